//! Translated look-around against an oracle that supports it: the same texts match, and a rule never fires before all
//! continuations would match.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidegate_rules::engine::{Automaton, Cursor, Pattern};

/// How often a condition must be translated, of how many.
const CASES: u32 = 3_000;
const LEAST: u32 = 1_000;

fn plain() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["a", "b", "ab", "[ab]", "[^a]", ".", "·", "c", "", "\n", "[^b\n]"]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => (inner, prop::sample::select(vec!["*", "+", "?", "{2}", "{1,2}"]))
                .prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}

/// What an oracle with look-behind of fixed length can check.
fn fixed() -> impl Strategy<Value = String> {
    let one = prop::sample::select(vec!["a", "b", "ab", "[ab]", "[^a]", "ca", "·", "c"]);
    prop::collection::vec(one, 1..3).prop_map(|parts| parts.concat())
}

fn condition() -> impl Strategy<Value = String> {
    let assertion = prop::sample::select(vec!["", "", "", "^", "$", r"\b", "(?m:^)", "(?m:$)"]);
    let end = prop::sample::select(vec!["$", r"\b", "(?m:$)", r"\z", r"b\b", r"[ab]\b"]);
    let look = prop_oneof![
        3 => plain().prop_map(|inner| format!("(?!{inner})")),
        2 => plain().prop_map(|inner| format!("(?={inner})")),
        1 => (plain(), end.clone()).prop_map(|(inner, end)| format!("(?!{inner}{end})")),
        1 => (plain(), end).prop_map(|(inner, end)| format!("(?={inner}{end})")),
        1 => fixed().prop_map(|inner| format!(r"(?<!\b{inner})")),
        2 => fixed().prop_map(|inner| format!("(?<!{inner})")),
        1 => fixed().prop_map(|inner| format!("(?<={inner})")),
    ];
    let piece = prop_oneof![3 => plain(), 1 => assertion.prop_map(str::to_owned), 3 => look];
    let flat = prop::collection::vec(piece, 1..5).prop_map(|parts| parts.concat());
    let group = (flat.clone(), flat.clone(), plain()).prop_map(|(a, b, c)| format!("(?:{a}|{b}){c}"));
    let optional = (flat.clone(), plain()).prop_map(|(a, c)| format!("{c}(?:{a})?{c}"));
    prop_oneof![6 => flat, 2 => group, 1 => optional]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "ab", "·", " ", "\n"]), 0..10)
        .prop_map(|parts| parts.concat())
}

/// How many bytes had to be seen until the pattern fired; the text's length and one more at its end.
fn fires(pattern: &Arc<Pattern>, text: &str) -> Option<usize> {
    if pattern.matches_empty() {
        return Some(0);
    }
    let automaton = Automaton::new(vec![Arc::clone(pattern)]);
    let mut cursor = Cursor::new(&automaton);
    let mut seen = None;
    cursor.feed(text.as_bytes(), |hit| {
        seen.get_or_insert(hit.seen as usize);
        true
    });
    if seen.is_none() {
        cursor.finish(|_| {
            seen.get_or_insert(text.len() + 1);
            true
        });
    }
    seen
}

#[test]
fn what_is_translated_matches_the_same_texts() {
    let (translated, judged) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let texts = prop::collection::vec(text(), 1..8);
    let outcome = runner.run(&(condition(), texts), |(condition, texts)| {
        let Ok(judge) = fancy_regex::Regex::new(&condition) else { return Ok(()) };
        judged.set(judged.get() + 1);
        let Ok(pattern) = Pattern::new(&condition) else { return Ok(()) };
        translated.set(translated.get() + 1);
        let pattern = Arc::new(pattern);
        for text in &texts {
            let seen = fires(&pattern, text);
            prop_assert_eq!(seen.is_some(), judge.is_match(text).unwrap(), "{} on {:?}", &condition, text);
            let Some(seen) = seen.filter(|seen| *seen <= text.len()) else { continue };
            // A character that is not complete yet can only become one of those that begin so.
            let Some(head) = text.get(..seen) else { continue };
            for tail in ["", "a", "b", "c", "·", " ", "\n", "ab", "ba", "ca", "b\n", "aaaa"] {
                let other = format!("{head}{tail}");
                prop_assert!(
                    judge.is_match(&other).unwrap(),
                    "{} fired too early in {:?}: {:?}",
                    &condition,
                    text,
                    other
                );
            }
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let (translated, judged) = (translated.get(), judged.get());
    assert!(translated >= LEAST, "only {translated} of {judged} conditions were translated");
}
