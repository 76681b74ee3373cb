//! `tidegate rules check`.

use std::io::{Read, Write, stdin};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate::diagnostic::DiagnosticCode;
use trial::{Catalogue, Checked, check};

use super::{count, json as shapes, kinds};
use crate::args::RulesCheck;
use crate::exit::{Exit, Failure};
use crate::{say, screen, style};

/// A rule file on standard input has at most this many bytes, as any rule file.
const MAX_INPUT: u64 = 1 << 20;

/// The code of files that are named and cannot be read.
const UNREADABLE: DiagnosticCode = DiagnosticCode::RuleFileUnreadable;

/// Checks rule files. Findings go to standard output: they are what was asked for.
///
/// JSON is one object:
/// ```json
/// {"files": 3, "rules": ["no-print"], "examples": 4, "errors": 1, "warnings": 0,
///  "guards": [{"rule": "no-print", "promise": "…"}], "unfolded": ["no-print"],
///  "findings": [{"code": "rule-unknown-key", "severity": "error", "rule": "no-print", "plugin": null, "message": "…",
///    "file": "rules/no-print.md", "line": 2, "column": 14, "help": "…",
///    "labels": [{"file": "rules/no-print.md", "line": 2, "column": 14, "start": 17, "end": 20, "text": ""}]}],
///  "unreadable": [{"code": "rule-file-unreadable", "file": "rules/gone.md", "cause": "…"}]}
/// ```
pub(super) fn run(catalogue: &Catalogue, args: &RulesCheck) -> Result<Exit, Failure> {
    let (input, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        args.files.iter().cloned().partition(|file| file == Path::new("-"));
    if input.len() > 1 {
        return Err(Failure::setup("standard input can be read once: give `-` once only"));
    }
    let texts = if input.is_empty() { Vec::new() } else { vec![("stdin.md".to_owned(), read_input()?)] };
    let own = if args.files.is_empty() { catalogue.folders() } else { &[] };
    if args.files.is_empty() && own.is_empty() {
        return Err(Failure::setup(
            "there is no rule folder here: name a rule file, or write rules into `.tidegate/rules`",
        ));
    }
    let checked = check(catalogue, &[own, &paths].concat(), &texts);
    let mut out = screen::out();
    if args.json {
        screen::json(&as_json(&checked))?;
    } else {
        text(&mut out, &checked, args.verbose)?;
    }
    let (errors, warnings) = checked.counts();
    Ok(match (checked.unreadable.is_empty(), errors > 0 || (args.deny_warnings && warnings > 0)) {
        (false, _) => Exit::Wrong,
        (true, true) => Exit::Failed,
        (true, false) => Exit::Completed,
    })
}

fn read_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = stdin().take(MAX_INPUT + 1).read_to_string(&mut text);
    match read {
        Err(error) => Err(Failure::setup(format_args!("cannot read the rule file on standard input: {error}"))),
        Ok(bytes) if bytes as u64 > MAX_INPUT => {
            Err(Failure::setup(format_args!("the rule file on standard input has more than {MAX_INPUT} bytes")))
        }
        Ok(_) => Ok(text),
    }
}

fn text(out: &mut impl Write, checked: &Checked, verbose: bool) -> Result<(), Failure> {
    let shown = kinds::shown(&checked.findings, if verbose { usize::MAX } else { MAX_WARNINGS });
    for finding in shown.findings {
        writeln!(out, "{}\n", say::diagnostic(finding))?;
    }
    for line in &shown.more {
        writeln!(out, "{line}\n")?;
    }
    for one in &checked.unreadable {
        say::note(format_args!(
            "{} cannot read `{}`: {}",
            style::err(style::BAD, &format!("error[{UNREADABLE}]:")),
            one.path.display(),
            one.cause
        ));
    }
    for (promise, rules) in promises(&checked.guards) {
        let most = if verbose { usize::MAX } else { MAX_NAMES };
        writeln!(out, "{}: {promise}", kinds::listed(rules, most))?;
    }
    if !checked.unfolded.is_empty() {
        writeln!(out, "{}", unfolded(&checked.unfolded))?;
    }
    let (errors, warnings) = checked.counts();
    writeln!(
        out,
        "{} with {} and {} checked: {}, {}",
        count(checked.files as u64, "file", "files"),
        count(checked.rules.len() as u64, "rule", "rules"),
        count(checked.examples as u64, "example", "examples"),
        count(errors as u64, "error", "errors"),
        count(warnings as u64, "warning", "warnings")
    )?;
    Ok(())
}

/// Which rules a look-alike passes, in one line.
fn unfolded(rules: &[String]) -> String {
    let named = kinds::listed(rules.iter().map(|name| format!("`{name}`")), MAX_NAMES);
    let who = if rules.len() == 1 { "rule stops what it finds" } else { "rules stop what they find" };
    format!(
        "{} {who} without `fold` ({named}): a word with a zero-width space or a full-width letter in it passes. \
         `fold = [\"invisible\", \"width\", \"compose\"]` closes that, with `\"case\"` where letter case does not matter",
        rules.len()
    )
}

/// So many rules are named.
const MAX_NAMES: usize = 3;

/// So many warnings of one kind are printed; of more, the first one.
const MAX_WARNINGS: usize = 3;

/// The rules by what they promise, in the order in which they were found.
fn promises(guards: &[(String, String)]) -> Vec<(&str, Vec<&str>)> {
    let mut out: Vec<(&str, Vec<&str>)> = Vec::new();
    for (rule, promise) in guards {
        match out.iter_mut().find(|(known, _)| known == promise) {
            Some((_, rules)) => rules.push(rule),
            None => out.push((promise, vec![rule])),
        }
    }
    out
}

fn as_json(checked: &Checked) -> Value {
    let (errors, warnings) = checked.counts();
    let unreadable = |one: &trial::Unreadable| json!({"code": UNREADABLE.as_str(), "file": one.path.display().to_string(), "cause": one.cause});
    json!({
        "files": checked.files,
        "rules": checked.rules,
        "guards": checked.guards.iter().map(|(rule, promise)| json!({"rule": rule, "promise": promise})).collect::<Vec<_>>(),
        "unfolded": checked.unfolded,
        "examples": checked.examples,
        "errors": errors,
        "warnings": warnings,
        "findings": checked.findings.iter().map(shapes::finding).collect::<Vec<_>>(),
        "unreadable": checked.unreadable.iter().map(unreadable).collect::<Vec<_>>(),
    })
}
