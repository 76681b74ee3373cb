//! Runs `tests/corpus/rules/dialect.toml`: what each construct of a condition means, or how it is refused.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::path::Path;

use flow::{Diagnostic, Severity};
use rules::{RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, parse_rule_file};
use serde::Deserialize;
use tidegate_rules as rules;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    dialect: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    construct: String,
    means: Option<String>,
    condition: String,
    #[serde(default)]
    fires: Vec<(String, String)>,
    #[serde(default)]
    quiet: Vec<String>,
    refused: Option<String>,
    warned: Option<String>,
    at: Option<String>,
    instead: Option<String>,
}

#[test]
fn all_constructs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/rules/dialect.toml");
    let file: File = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert!(file.dialect.len() >= 65, "only {} constructs were found", file.dialect.len());
    for entry in &file.dialect {
        check(entry);
    }
}

fn check(entry: &Entry) {
    let name = &entry.construct;
    let text = format!("+++\nscope = 'text'\ncondition = '''{}'''\n+++\nBody.\n", entry.condition);
    let source = RuleOrigin { layer: RuleLayer::Project, path: "r.md".into() };
    let (rule, found) = parse_rule_file("r", &source, &text);
    let said = entry.refused.as_ref().or(entry.warned.as_ref());
    match said {
        Some(said) => {
            let first = found.first().unwrap_or_else(|| panic!("{name}: nothing is said"));
            let severity = if entry.refused.is_some() { Severity::Error } else { Severity::Warning };
            assert_eq!(first.severity, severity, "{name}: {first}");
            assert!(first.message.contains(said.as_str()), "{name}: {first}");
            assert_eq!(&text[first.location().unwrap().span.clone()], entry.at.as_ref().unwrap(), "{name}: {first}");
            let help = first.help.as_deref().unwrap_or_default();
            assert!(help.contains(entry.instead.as_deref().unwrap_or_default()), "{name}: {first}");
        }
        None => assert_eq!(found.iter().map(Diagnostic::to_string).collect::<Vec<_>>(), [""; 0], "{name}"),
    }
    assert_eq!(rule.is_none(), entry.refused.is_some(), "{name}: {found:?}");
    assert_eq!(entry.means.is_some(), entry.refused.is_none(), "{name}: what is not refused means something");
    let Some(rule) = rule else { return };
    assert!(!entry.fires.is_empty(), "{name}: what is not refused fires on something");
    let (set, _) = RuleSet::build(vec![rule], RuleSettings::default(), "/work");
    let session = RuleSession::new(set);
    for (text, matched) in &entry.fires {
        for found in evidence(&session, text) {
            assert_eq!(found.as_ref(), Some(matched), "{name} on {text:?}");
        }
    }
    for text in &entry.quiet {
        for found in evidence(&session, text) {
            assert_eq!(found, None, "{name} on {text:?}");
        }
    }
}

/// The text that the rule matches, fed whole and character by character.
fn evidence(session: &RuleSession, text: &str) -> [Option<String>; 2] {
    let single: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    [vec![text], single].map(|pieces| {
        let mut gate = session.gate();
        gate.block_start(0, &flow::StreamKind::Text);
        let mut found: Vec<_> = pieces.into_iter().flat_map(|piece| gate.piece(0, piece).matches).collect();
        found.extend(gate.end(0).matches);
        found.into_iter().next().map(|found| found.evidence.text)
    })
}
