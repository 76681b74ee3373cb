//! The built-in pack: every rule loads without a word, keeps its headings and its own examples, and gives a reason where
//! it stops anything.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::path::Path;

use flow::{CallId, StreamKind};
use rules::{
    BUILTIN_FILES, InterruptMode, Rule, RuleAction, RuleSession, RuleSet, RuleSettings, builtin, builtin_origin,
    check_examples, parse_rule_file,
};
use tidegate_rules as rules;

/// The least number of rules that is worth being called a pack.
const LEAST: usize = 24;

/// The most bytes of a rule that go to the model.
const LONGEST_BODY: usize = 1_000;

#[test]
fn all_files_of_the_folder_are_in_the_pack() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("builtin");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let pack: Vec<&str> = BUILTIN_FILES.iter().map(|(name, _)| *name).collect();
    assert_eq!(files, pack);
    assert!(pack.len() >= LEAST);
}

#[test]
fn every_rule_loads_and_keeps_its_examples() {
    let (rules, found) = builtin();
    assert_eq!(found, []);
    assert_eq!(rules.len(), BUILTIN_FILES.len());
    // What `builtin` leaves out: every condition is compiled, and nothing is to be said of one.
    for (rule, (name, text)) in rules.iter().zip(BUILTIN_FILES) {
        let (checked, found) = parse_rule_file(name, &builtin_origin(name), text);
        assert_eq!(found, []);
        assert_eq!(checked.map(|checked| checked.content_hash()), Some(rule.content_hash()), "{name}");
    }
    for rule in &rules {
        assert!(rule.description.is_some(), "{}", rule.name);
        let firing = rule.examples.iter().filter(|example| example.fires).count();
        assert!(firing >= 2 && rule.examples.len() - firing >= 2, "{} has too few examples", rule.name);
        assert_eq!(check_examples(rule), [], "{}", rule.name);
    }
    let (_, found) = RuleSet::build(rules, RuleSettings::default(), "/workspace");
    assert_eq!(found, []);
}

/// The rule with only the examples of one kind.
fn with_examples(rule: &Rule, fires: bool) -> Rule {
    let mut rule = rule.clone();
    rule.examples.retain(|example| example.fires == fires);
    rule
}

#[test]
fn no_condition_is_dead() {
    for rule in builtin().0 {
        for condition in &rule.conditions {
            let mut alone = with_examples(&rule, true);
            alone.conditions = vec![condition.clone()];
            let missed = check_examples(&alone).len();
            assert!(missed < alone.examples.len(), "{}: no example needs `{}`", rule.name, condition.as_str());
        }
        for exception in &rule.unless {
            let mut without = with_examples(&rule, false);
            without.unless.retain(|pattern| pattern.as_str() != exception.as_str());
            assert_ne!(check_examples(&without), [], "{}: no example needs `{}`", rule.name, exception.as_str());
        }
    }
}

#[test]
fn every_file_has_its_headings_in_order() {
    for (name, text) in BUILTIN_FILES {
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## What", "## Why", "## Fires", "## Does not fire", "## Instead"], "{name}");
    }
}

#[test]
fn what_the_model_gets_is_short_and_holds_no_example() {
    for rule in builtin().0 {
        assert!(rule.body.len() <= LONGEST_BODY, "{} has {} bytes", rule.name, rule.body.len());
        let headings: Vec<&str> = rule.body.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## What", "## Why", "## Instead"], "{}", rule.name);
        assert!(!rule.body.contains("```"), "{}", rule.name);
    }
}

#[test]
fn nothing_is_stopped_without_a_reason() {
    for rule in builtin().0 {
        let quiet = rule.interrupt == Some(InterruptMode::Never) && rule.action.is_none();
        assert!(quiet || rule.action == Some(RuleAction::Block), "{} interrupts", rule.name);
        let why = rule.body.split("## ").find(|part| part.starts_with("Why")).unwrap();
        assert_eq!(why.contains("It is blocked"), !quiet, "{} and its reason", rule.name);
    }
}

#[test]
fn rules_for_prose_hold_little_back() {
    let (set, _) = RuleSet::build(builtin().0, RuleSettings::default(), "/workspace");
    let prose: Vec<_> = set.rules().filter(|info| !info.scopes.iter().any(|scope| scope.starts_with("tool"))).collect();
    assert_eq!(prose.len(), 3);
    for info in prose {
        assert!(
            info.longest_match().is_some_and(|bytes| bytes <= 100),
            "{}: {:?}",
            info.rule.name,
            info.longest_match()
        );
    }
}

#[test]
fn what_an_edit_removes_never_fires() {
    let removed = ["old_text", "old_string", "oldText", "old_str", "edits[].old_text"];
    for rule in builtin().0 {
        let tools = rule.scopes.iter().any(|scope| scope.to_text().starts_with("tool"));
        assert_eq!(tools, !rule.fields.is_empty(), "{} says which arguments it reads", rule.name);
        assert!(!rule.fields.iter().any(|field| removed.contains(&field.as_str())), "{}", rule.name);
    }
}

#[test]
fn every_argument_that_a_rule_names_is_watched() {
    let mut watched = 0;
    for rule in builtin().0 {
        let Some(example) = rule.examples.iter().find(|one| one.fires && one.stream.starts_with("tool:")) else {
            continue;
        };
        let mut words = example.stream["tool:".len()..].split(' ');
        let tool = words.next().unwrap();
        let path = words.find_map(|word| word.strip_prefix("path=")).unwrap_or("a");
        let (set, _) = RuleSet::build(vec![rule.clone()], RuleSettings::default(), "");
        for field in &rule.fields {
            let mut gate = RuleSession::new(set.clone()).gate();
            gate.block_start(0, &StreamKind::Tool { call: CallId::new("1"), name: tool.into() });
            let value = match field.split_once("[].") {
                Some((list, key)) => serde_json::json!({ "path": path, list: [{ key: example.text }] }),
                None => serde_json::json!({ "path": path, field: example.text }),
            };
            assert_eq!(gate.piece(0, &value.to_string()).matches.len(), 1, "{} on {field}", rule.name);
            watched += 1;
        }
    }
    assert!(watched > 200, "{watched} arguments");
}
