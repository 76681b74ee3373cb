//! The built-in pack: every rule loads without a word, keeps its headings and its own examples, and gives a reason where
//! it stops anything.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::path::Path;

use rules::{BUILTIN_FILES, InterruptMode, RuleAction, RuleSet, Settings, builtin, check_examples};
use tidegate_rules as rules;

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
    assert!(pack.len() >= 6);
}

#[test]
fn every_rule_keeps_its_examples() {
    let (rules, found) = builtin();
    assert_eq!(found, []);
    assert_eq!(rules.len(), BUILTIN_FILES.len());
    for rule in &rules {
        assert!(rule.examples.iter().any(|example| example.fires), "{}", rule.name);
        assert!(rule.examples.iter().any(|example| !example.fires), "{}", rule.name);
        assert_eq!(check_examples(rule), [], "{}", rule.name);
    }
    let (_, found) = RuleSet::build(rules, Settings::default(), "/workspace");
    assert_eq!(found, []);
}

#[test]
fn every_file_has_its_headings_in_order() {
    for (name, text) in BUILTIN_FILES {
        let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
        assert_eq!(headings, ["## What", "## Why", "## Fires", "## Does not fire", "## Instead"], "{name}");
    }
}

#[test]
fn what_stops_anything_says_why() {
    for rule in builtin().0 {
        let quiet = rule.interrupt == Some(InterruptMode::Never) && rule.action.is_none();
        let text = BUILTIN_FILES.iter().find(|(name, _)| *name == rule.name).unwrap().1;
        let reason = text.lines().any(|line| line.starts_with("# Blocks: ") || line.starts_with("# Interrupts: "));
        assert!(quiet || reason, "{}", rule.name);
        assert!(matches!(rule.action, None | Some(RuleAction::Block)), "{}", rule.name);
    }
}
