//! Findings about rules as they are shown where nobody asked for them: those of one kind in one line, so that a folder of
//! several hundred files of another host does not fill the screen.

use std::collections::BTreeMap;

use flow::{Diagnostic, DiagnosticCode, Severity};

/// So many findings of one kind are shown each by itself. Of more errors the first ones are, of more warnings none.
const MOST: usize = 3;

/// The findings, of which more than three warnings about rules of one kind are one, and so are further errors about them.
pub fn by_kind(findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    for kind in findings.iter().filter_map(kind) {
        *counts.entry(kind).or_default() += 1;
    }
    let (mut shown, mut met) = (Vec::new(), BTreeMap::<Kind, usize>::new());
    for one in findings {
        let Some(kind) = kind(&one) else {
            shown.push(one);
            continue;
        };
        let most = if one.is_error() { MOST } else { 0 };
        let (count, before) = (counts.get(&kind).copied().unwrap_or_default(), met.entry(kind).or_default());
        *before += 1;
        if count <= MOST || *before <= most {
            shown.push(one);
        } else if *before == most + 1 {
            shown.push(all_of(&one, count, most));
        }
    }
    shown
}

type Kind = (&'static str, Severity);

/// What is asked about a single file is shown where it is: only what is about rules is joined.
fn kind(one: &Diagnostic) -> Option<Kind> {
    let code = one.code.as_str();
    (code.starts_with("rule-") && one.code != DiagnosticCode::RuleRequired).then_some((code, one.severity))
}

fn all_of(first: &Diagnostic, count: usize, shown: usize) -> Diagnostic {
    let place = first.location().map(|at| format!(" ({}:{})", at.file.shown(), at.line())).unwrap_or_default();
    let more = if shown > 0 { " more" } else { "" };
    let message = format!(
        "{}{more} of this kind (`tidegate rules check --verbose` prints all), the first: {}{place}",
        count - shown,
        first.headline()
    );
    Diagnostic::new(first.severity, first.code, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_one_kind_are_one_line_and_errors_are_shown_up_to_three() {
        let unknown = |at: usize| Diagnostic::warning(DiagnosticCode::RuleUnknownKey, format!("unknown key `k{at}`"));
        let broken = |at: usize| Diagnostic::error(DiagnosticCode::RuleSyntax, format!("error {at}"));
        let other = || Diagnostic::warning(DiagnosticCode::ConfigUnknownRule, "other");
        let all = (0..200).map(unknown).chain((0..5).map(broken)).chain([other(), other()]).collect();
        let lines: Vec<String> = by_kind(all).iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "warning[rule-unknown-key]: 200 of this kind (`tidegate rules check --verbose` prints all), the first: unknown key `k0`",
                "error[rule-syntax]: error 0",
                "error[rule-syntax]: error 1",
                "error[rule-syntax]: error 2",
                "error[rule-syntax]: 2 more of this kind (`tidegate rules check --verbose` prints all), the first: error 3",
                "warning[config-unknown-rule]: other",
                "warning[config-unknown-rule]: other",
            ]
        );
    }

    #[test]
    fn a_single_finding_stays_as_it_is() {
        let one = Diagnostic::warning(DiagnosticCode::RuleUnknownKey, "unknown key `a`").help("remove it");
        assert_eq!(by_kind(vec![one.clone()]), [one]);
    }
}
