//! The rule sets of `tests/corpus/import`: what is written for each, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use flow::{Diagnostic, SourceFile};
use serde::Deserialize;
use tidegate_import::{Hidden, Imported, import, set_name};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/import")
}

/// What became of a rule set.
fn report(imported: &Imported) -> String {
    let Imported { format, read, rules, skipped, left_out } = imported;
    let mut out = format!("{format}: {read} rules, {} files, {} skipped\n", rules.len(), skipped.len());
    left_out.iter().for_each(|one| writeln!(out, "not carried over: {one}").unwrap());
    for one in skipped {
        let help = one.why.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        let line = one.why.location().unwrap().line();
        writeln!(out, "skipped {} in line {line}: {}: {}{help}", one.id, one.why.code, one.why.message).unwrap();
    }
    for rule in rules {
        let hides = if rule.hidden == Hidden::Secret { "the secret" } else { "the match" };
        write!(out, "\n== {}.md (line {}, hides {hides})\n{}", rule.name, rule.line, rule.text).unwrap();
    }
    out
}

#[test]
fn each_format_becomes_rule_files() {
    for file in
        ["gitleaks.toml", "gitleaks-extends.toml", "trufflehog.yaml", "trufflehog-rules.json", "detect-secrets.json"]
    {
        let path = corpus().join(file);
        let source = SourceFile::new(file, fs::read_to_string(&path).unwrap());
        let found = report(&import(&source).unwrap_or_else(|found| panic!("{file}: {found}")));
        let expected = path.with_extension("expected.txt");
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&expected, &found).unwrap();
        }
        assert_eq!(fs::read_to_string(&expected).unwrap_or_default(), found, "{}", expected.display());
    }
}

#[test]
fn the_same_rule_set_gives_the_same_files_whatever_its_line_ends() {
    let text = fs::read_to_string(corpus().join("gitleaks.toml")).unwrap();
    let files = |text: &str| -> Vec<(String, String)> {
        let imported = import(&SourceFile::new("gitleaks.toml", text)).unwrap();
        imported.rules.into_iter().map(|rule| (rule.name, rule.text)).collect()
    };
    assert_eq!(files(&text), files(&text.replace('\n', "\r\n")));
}

#[derive(Deserialize)]
struct Errors {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    file: String,
    text: String,
    says: Vec<String>,
}

fn said(one: &Diagnostic) -> String {
    let at = one.location().unwrap();
    format!("{} | {} | {}", one.code, &at.file.text[at.span.clone()], one.message)
}

#[test]
fn what_is_no_rule_set_is_refused_at_its_place() {
    let Errors { case } = toml::from_str(&fs::read_to_string(corpus().join("errors.toml")).unwrap()).unwrap();
    assert!(case.len() >= 10);
    let mut wrong = Vec::new();
    for Case { name, file, text, says } in case {
        let found = import(&SourceFile::new(&file, text)).expect_err(&name);
        assert!(found.0.iter().all(Diagnostic::is_error), "{name}");
        let found: Vec<String> = found.0.iter().map(said).collect();
        if found != says {
            wrong.push(format!("{name}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_rule_set_has_the_name_of_its_file() {
    for (file, name) in [
        ("a/gitleaks.toml", "gitleaks"),
        (".gitleaks.toml", "gitleaks"),
        (".secrets.baseline", "secrets"),
        ("..", "imported"),
    ] {
        assert_eq!(set_name(Path::new(file)), name, "{file}");
    }
}
