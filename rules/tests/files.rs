//! Loads every rule file under `tests/corpus/rules/files` and compares it with `expected.toml` next to them.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flow::Diagnostic;
use rules::{Bucket, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, RuleState, parse_rule_file};
use serde::{Deserialize, Serialize};
use tidegate_rules as rules;

/// What becomes of one file.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    bucket: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    all: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unless: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    globs: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    says: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/rules/files")
}

fn load(path: &Path) -> Expected {
    let text = std::fs::read_to_string(path).unwrap();
    let name = path.file_stem().unwrap().to_str().unwrap();
    let source = RuleOrigin { layer: RuleLayer::Project, path: path.file_name().unwrap().to_str().unwrap().to_owned() };
    let (rule, mut found) = parse_rule_file(name, &source, &text);
    let says = |found: &Diagnostic| {
        let at = found.location().unwrap();
        let under = match &at.file.text[at.span.clone()] {
            "" => String::new(),
            marked => format!(" `{marked}`"),
        };
        let help = found.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
        let (severity, line, column) = (found.severity.as_str(), at.line(), at.column());
        format!("{severity}[{}] {line}:{column}{under}: {}{help}", found.code, found.message)
    };
    let Some(rule) = rule else {
        let says = found.iter().map(says).collect();
        return Expected { bucket: "refused".into(), says, ..nothing() };
    };
    let (set, more) = RuleSet::build(vec![rule], RuleSettings::default(), "/work");
    found.extend(more);
    let info = set.rules().next().unwrap();
    let bucket = match (info.state, info.rule.bucket) {
        (RuleState::Disabled(_), _) => "disabled",
        (RuleState::Unreachable(_), _) => "unreachable",
        (_, Bucket::Stream) => "stream",
        (_, Bucket::AlwaysApply) => "always",
        (_, Bucket::Rulebook) => "rulebook",
    };
    let texts = |patterns: &[std::sync::Arc<rules::engine::Pattern>]| {
        patterns.iter().map(|pattern| pattern.as_str().to_owned()).collect()
    };
    Expected {
        bucket: bucket.to_owned(),
        conditions: texts(&info.rule.conditions),
        all: texts(&info.rule.all),
        unless: texts(&info.rule.unless),
        scopes: if info.rule.bucket == Bucket::Stream { info.scopes.clone() } else { Vec::new() },
        globs: info.rule.globs.iter().map(|glob| glob.as_str().to_owned()).collect(),
        description: info.rule.description.clone(),
        told: Some(info.rule.told().to_owned()),
        says: found.iter().map(says).collect(),
    }
}

fn nothing() -> Expected {
    Expected {
        bucket: String::new(),
        conditions: Vec::new(),
        all: Vec::new(),
        unless: Vec::new(),
        scopes: Vec::new(),
        globs: Vec::new(),
        description: None,
        told: None,
        says: Vec::new(),
    }
}

#[test]
fn all_files() {
    let expected = folder().join("expected.toml");
    let loaded: BTreeMap<String, Expected> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md" || extension == "mdc"))
        .filter(|path| path.file_name().is_some_and(|name| name != "README.md"))
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), load(&path)))
        .collect();
    assert!(loaded.len() >= 40, "only {} files were found", loaded.len());
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&expected, toml::to_string_pretty(&loaded).unwrap()).unwrap();
    }
    let known: BTreeMap<String, Expected> = toml::from_str(&std::fs::read_to_string(&expected).unwrap()).unwrap();
    assert_eq!(known.keys().collect::<Vec<_>>(), loaded.keys().collect::<Vec<_>>());
    for (name, loaded) in &loaded {
        assert_eq!(*loaded, known[name], "{name}");
    }
}

#[test]
fn the_reminder_goes_to_the_model_and_the_body_does_not() {
    let text = std::fs::read_to_string(folder().join("reminder.md")).unwrap();
    let source = RuleOrigin { layer: RuleLayer::Project, path: "reminder.md".into() };
    let (rule, found) = parse_rule_file("reminder", &source, &text);
    assert_eq!(found, []);
    let (set, _) = RuleSet::build(rule.into_iter().collect(), RuleSettings::default(), "/work");
    let mut session = RuleSession::new(set);
    session.begin_turn();
    let mut gate = session.gate();
    gate.block_start(0, &flow::StreamKind::Text);
    let fed = gate.piece(0, "Now a force push.");
    drop(session.judge(&fed.matches));
    let told = session.reminder(&fed.matches);
    assert!(told.contains("Ask first.") && !told.contains("policy"), "{told}");
}
