//! Many findings of one kind: the first is printed, the others are counted. A rule set that was imported has hundreds of one kind.

use std::collections::BTreeSet;

use tidegate::diagnostic::{Diagnostic, DiagnosticCode};

/// So many files are named.
const MAX_FILES: usize = 3;

/// What is printed of findings.
pub(super) struct Shown<'f> {
    /// In full, in their order.
    pub(super) findings: Vec<&'f Diagnostic>,
    /// A line for each kind of which more was found.
    pub(super) more: Vec<String>,
}

/// All errors, and the warnings of each kind where there are at most `most`.
pub(super) fn shown(findings: &[Diagnostic], most: usize) -> Shown<'_> {
    let of = |code: DiagnosticCode| findings.iter().filter(move |one| !one.is_error() && one.code == code);
    let (mut out, mut seen) = (Shown { findings: Vec::new(), more: Vec::new() }, Vec::new());
    for finding in findings {
        if finding.is_error() || of(finding.code).count() <= most {
            out.findings.push(finding);
        } else if !seen.contains(&finding.code) {
            seen.push(finding.code);
            out.findings.push(finding);
            out.more.push(rest(finding.code, &of(finding.code).skip(1).collect::<Vec<_>>()));
        }
    }
    out
}

/// How many more there are of a kind, and where.
fn rest(code: DiagnosticCode, others: &[&Diagnostic]) -> String {
    let places = others.iter().filter_map(|one| one.location());
    let (mut known, mut files) = (BTreeSet::new(), Vec::new());
    for file in places.map(|at| at.file.shown()) {
        if known.insert(file.clone()) {
            files.push(file);
        }
    }
    let of = if files.is_empty() { String::new() } else { format!(" in {}", listed(files, MAX_FILES)) };
    format!("{} more `{code}` warnings{of}; `--verbose` prints them", others.len())
}

/// Names with commas between them; the rest as a number.
pub(super) fn listed<N: ToString>(names: impl IntoIterator<Item = N>, most: usize) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    let more = names.len().saturating_sub(most);
    let first = names[..names.len() - more].join(", ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}
