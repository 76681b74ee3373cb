//! `tidegate rules list`.

use std::io::Write;

use serde_json::json;
use tidegate::diagnostic::Diagnostic;
use tidegate::rule::Bucket;
use trial::{Catalogue, REPEAT_LEGEND, RuleEntry, RuleStatus};

use super::{count, json as shapes, warn};
use crate::args::RulesList;
use crate::exit::{Exit, Failure};
use crate::print::{shorten, tidy_path};
use crate::screen::clean::flat;
use crate::screen::table::{self, Cell};
use crate::{say, screen, style};

/// What is shown of a rule's scopes in the table, in characters.
const SCOPES: usize = 60;

/// Prints the rules.
///
/// JSON is one object; `reason` is why a rule cannot fire, and `findings` at the top are all that were made, those
/// about rules that were refused included:
/// ```json
/// {"rules": [{"name": "ts-as-any", "description": "…", "state": "active", "reason": null, "bucket": "stream",
///   "source": {"layer": "builtin", "path": "rules/builtin/ts-as-any.md"}, "scope": ["tool(*.ts)"], "globs": [],
///   "field": ["new_text"], "agents": [], "action": "remind", "interrupt": "never", "repeat": "once", "gap": null,
///   "promise": "…", "required": false, "secret": false, "fold": [],
///   "conditions": 1, "all": 0, "unless": 0, "longest_match": 6, "examples": 2, "findings": []}],
///  "refused": [{"name": "broken", "code": "rule-unknown-key", "reason": "…"}],
///  "findings": [{"code": "rule-unknown-key", "severity": "error", "rule": "broken", "plugin": null, "message": "…",
///    "file": "rules/a.md", "line": 2, "column": 14, "labels": […], "help": null}],
///  "unmet": []}
/// ```
/// `unmet` are findings for which the host does not run: a required rule is not in force. States: `active`, `idle` (what it watches is not here), `disabled`, `shadowed`, `unreachable`. Buckets: `stream`,
/// `always_apply`, `rulebook`. `hint`: where there is more about a rule than in the table.
pub(super) fn run(catalogue: &Catalogue, args: &RulesList, hint: &str) -> Result<Exit, Failure> {
    let entries = catalogue.entries();
    let mut out = screen::out();
    if args.json {
        let rules: Vec<_> = entries.iter().map(shapes::entry).collect();
        let findings: Vec<_> = catalogue.warnings().iter().map(shapes::finding).collect();
        let refused: Vec<_> = catalogue
            .refused()
            .iter()
            .map(|(name, finding)| json!({"name": name, "code": finding.code.as_str(), "reason": finding.message}))
            .collect();
        let unmet: Vec<_> = catalogue.unmet().iter().map(shapes::finding).collect();
        screen::json(&json!({"rules": rules, "refused": refused, "findings": findings, "unmet": unmet}))?;
        return Ok(Exit::Completed);
    }
    if args.verbose {
        entries.iter().try_for_each(|entry| long(&mut out, entry))?;
    } else {
        short(&mut out, &entries, &catalogue.refused(), hint)?;
    }
    let warnings = catalogue.warnings();
    warn(&tidegate::diagnostic::by_kind(warnings.clone()));
    let unmet = catalogue.unmet();
    warn(&unmet.iter().filter(|one| !warnings.contains(one)).cloned().collect::<Vec<_>>());
    if !unmet.is_empty() {
        let what = count(unmet.len() as u64, "required rule is", "required rules are");
        say::note(format_args!("the host does not run: {what} not in force"));
    }
    Ok(Exit::Completed)
}

fn short(
    out: &mut impl Write,
    entries: &[RuleEntry],
    refused: &[(String, Diagnostic)],
    hint: &str,
) -> std::io::Result<()> {
    let mut rows: Vec<Vec<Cell>> = entries.iter().map(row).collect();
    rows.extend(
        refused.iter().map(|(name, _)| vec![Cell(name.clone(), style::STRONG), Cell("refused".into(), style::BAD)]),
    );
    for line in table::lines(&["RULE", "STATE", "ACTION", "REPEATS", "LONGEST", "FROM", "WATCHES"], &rows) {
        writeln!(out, "{line}")?;
    }
    for (status, names) in inactive(entries) {
        let who = match names.as_slice() {
            few if few.len() <= MAX_NAMES => few.join(", "),
            many => format!("{} rules", many.len()),
        };
        writeln!(out, "{}: {status}", style::out(style::STRONG, &who))?;
    }
    if entries.iter().any(|entry| entry.rule.bucket == Bucket::Stream) {
        writeln!(out, "{}", style::out(style::DIM, &format!("REPEATS: {REPEAT_LEGEND}")))?;
    }
    let active = entries.iter().filter(|entry| entry.status == RuleStatus::Active).count() as u64;
    let all = count((entries.len() + refused.len()) as u64, "rule", "rules");
    let refused = if refused.is_empty() { String::new() } else { format!(", {} refused", refused.len()) };
    writeln!(out, "{all}, {active} active{refused}; {hint}")
}

/// So many rules with the same reason are named; of more, only the number is given: the table has their names.
const MAX_NAMES: usize = 3;

/// Why rules are not active, each reason once with the names of its rules, in order of the first.
fn inactive(entries: &[RuleEntry]) -> Vec<(String, Vec<&str>)> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.status != RuleStatus::Active) {
        let (status, name) = (entry.status.to_string(), entry.rule.name.as_str());
        match reasons.iter_mut().find(|(known, _)| *known == status) {
            Some((_, names)) => names.push(name),
            None => reasons.push((status, vec![name])),
        }
    }
    reasons
}

fn row(entry: &RuleEntry) -> Vec<Cell> {
    let rule = &entry.rule;
    let look = look(&entry.status);
    let name = Cell(rule.name.clone(), style::STRONG);
    let state = Cell(entry.status.as_str().to_owned(), look);
    let from = match &rule.source.layer {
        tidegate::rule::RuleLayer::Code => "code".to_owned(),
        tidegate::rule::RuleLayer::Project => "project".to_owned(),
        tidegate::rule::RuleLayer::User => "user".to_owned(),
        tidegate::rule::RuleLayer::Plugin(id) => id.to_string(),
        tidegate::rule::RuleLayer::Builtin => "built-in".to_owned(),
    };
    let blank = || Cell::from("-");
    match rule.bucket {
        Bucket::AlwaysApply => {
            vec![name, state, blank(), blank(), blank(), from.into(), "(in the system prompt)".into()]
        }
        Bucket::Rulebook => vec![name, state, blank(), blank(), blank(), from.into(), "(in the rulebook)".into()],
        Bucket::Stream => vec![
            name,
            state,
            entry.action().into(),
            repeats(entry).into(),
            entry.longest_match.map_or_else(|| "no bound".to_owned(), |bytes| format!("{bytes} B")).into(),
            from.into(),
            shorten(&entry.scopes.join(", "), SCOPES).into(),
        ],
    }
}

fn repeats(entry: &RuleEntry) -> String {
    match entry.repeat {
        tidegate::rule::RepeatMode::AfterGap => format!("after {}", count(entry.gap, "turn", "turns")),
        other => other.as_str().to_owned(),
    }
}

fn look(status: &RuleStatus) -> anstyle::Style {
    match status {
        RuleStatus::Active => style::GOOD,
        RuleStatus::Disabled(_) => style::DIM,
        RuleStatus::Shadowed(_) | RuleStatus::Idle(_) => style::WARNING,
        RuleStatus::Unreachable(_) => style::BAD,
    }
}

/// Prints the head of every detailed description of a rule: its name, its state with the reason, and its description.
pub(super) fn heading(out: &mut impl Write, entry: &RuleEntry) -> std::io::Result<()> {
    let rule = &entry.rule;
    let state = style::out(look(&entry.status), entry.status.as_str());
    let why = entry.status.reason().map(|why| format!(": {why}")).unwrap_or_default();
    writeln!(out, "{}  {state}{why}", style::out(style::STRONG, &rule.name))?;
    if let Some(description) = &rule.description {
        writeln!(out, "  {}", flat(description))?;
    }
    Ok(())
}

fn long(out: &mut impl Write, entry: &RuleEntry) -> std::io::Result<()> {
    heading(out, entry)?;
    let rule = &entry.rule;
    match rule.bucket {
        Bucket::Stream => {
            let action = match entry.action() {
                "interrupt" => format!("interrupt ({})", entry.interrupt.as_str()),
                other => other.to_owned(),
            };
            writeln!(out, "  watches {}; action {action}; repeats {}", entry.scopes.join(", "), repeats(entry))?;
            if let Some(promise) = &entry.promise {
                writeln!(out, "  {promise}")?;
            }
            let longest = entry.longest_match.map_or_else(|| "no bound".to_owned(), |bytes| format!("{bytes} bytes"));
            let parts = [(&rule.conditions, "conditions"), (&rule.all, "all"), (&rule.unless, "unless")];
            let parts: Vec<String> = parts
                .iter()
                .filter(|(patterns, _)| !patterns.is_empty())
                .map(|(patterns, word)| format!("{word} {}", patterns.len()))
                .collect();
            writeln!(out, "  {}; longest match {longest}", parts.join(", "))?;
        }
        Bucket::AlwaysApply => writeln!(out, "  has no condition: its body is part of the system prompt")?,
        Bucket::Rulebook => writeln!(out, "  has no condition: the model reads it on demand")?,
    }
    let required = if entry.required { "; required: the host does not run without it" } else { "" };
    writeln!(out, "  from {}{required}", tidy_path(&rule.source.to_string()))?;
    let (errors, warnings) = entry.counts();
    if errors + warnings > 0 {
        writeln!(
            out,
            "  {}, {}",
            count(errors as u64, "error", "errors"),
            count(warnings as u64, "warning", "warnings")
        )?;
    }
    Ok(())
}
