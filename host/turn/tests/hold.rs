//! What is held back while a match may be in progress: no byte of a match is ever shown, for any text and chunking, and
//! the bounds of holding, on a clock that the tests own.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::{Delta, Event, EventKind, HoldOutcome, StopReason, StreamKind};
use proptest::prelude::*;
use rules::{Hold, RepeatMode, RuleSet};
use tidegate_kit::{CUTS, RANDOM, Scene, Script, blocks, rule_set, shown, text};

/// One rule a pattern, all interrupting.
fn patterns(patterns: &[&str], change: impl FnOnce(&mut rules::RuleSettings)) -> Arc<RuleSet> {
    let rules: Vec<(String, String)> = patterns
        .iter()
        .enumerate()
        .map(|(at, pattern)| (format!("r{at}"), format!("+++\ncondition = '{pattern}'\n+++\nDo not.")))
        .collect();
    let rules: Vec<(&str, &str)> = rules.iter().map(|(name, rule)| (name.as_str(), rule.as_str())).collect();
    rule_set(&rules, change)
}

/// What the first attempt showed.
fn first_shown(events: &[Event]) -> String {
    let first: Vec<Event> = events.iter().filter(|event| event.place.attempt == 1).cloned().collect();
    shown(&first)
}

fn run(words: &str, rules: &Arc<RuleSet>, cut: usize) -> Vec<Event> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let mut scene = Scene::new([text(words, cut), text("ok", cut)], vec![], Arc::clone(rules));
        scene.turn("go").await.1
    })
}

fn slow(words: &[(u64, &str)]) -> Script {
    let mut deltas =
        vec![(0, Delta::Start { model: None }), (0, Delta::BlockStart { block: 0, kind: StreamKind::Text })];
    deltas.extend(words.iter().map(|(wait, text)| (*wait, Delta::Piece { block: 0, text: (*text).into() })));
    deltas.extend([(0, Delta::BlockEnd { block: 0 }), (0, Delta::Stop { reason: StopReason::EndTurn })]);
    Script::Slow(deltas)
}

/// Chunks shown and bytes released, each with its time.
fn timeline(events: &[Event]) -> Vec<(u64, String)> {
    let told = |event: &Event| match &event.kind {
        EventKind::CognitionOutDelta { text, .. } if !text.is_empty() => Some((event.at_ms, text.clone())),
        EventKind::RuleHoldReleased { bytes, bound, .. } => Some((event.at_ms, format!("{bound}: {bytes}"))),
        EventKind::RuleFired { .. } => Some((event.at_ms, "fired".into())),
        _ => None,
    };
    events.iter().filter_map(told).collect()
}

fn at(time: u64, what: &str) -> (u64, String) {
    (time, what.to_owned())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Case 34, judged by a search of the whole text.
    #[test]
    fn no_byte_of_a_match_is_ever_shown(words in "(FORB|FOR|BI|A|D|[bc]|no|way| |\n|é|x){0,24}", seed in 0usize..1000) {
        let written = ["FORB", "A[bc]*D", r"\bno way\b", "é+x"];
        let rules = patterns(&written, |settings| settings.repeat_mode = RepeatMode::Always);
        let first = written
            .iter()
            .map(|pattern| regex::Regex::new(&pattern.replace(r"\b", r"(?-u:\b)")).unwrap())
            .filter_map(|regex| Some((regex.shortest_match(&words)?, regex.find(&words).unwrap().start())))
            .min();
        let outcomes = [1, usize::MAX, RANDOM + seed].map(|cut| first_shown(&run(&words, &rules, cut)));
        match first {
            None => prop_assert_eq!(&outcomes[0], &words),
            Some((_, start)) => {
                prop_assert!(words.starts_with(&outcomes[0]));
                prop_assert!(outcomes[0].len() <= start, "{:?} shows {:?}, the match begins at {}", words, outcomes[0], start);
            }
        }
        prop_assert_eq!(&outcomes[0], &outcomes[1], "whole against characters");
        prop_assert_eq!(&outcomes[0], &outcomes[2], "at random against characters");
    }
}

#[test]
fn a_text_without_a_match_is_shown_whole() {
    let rules = patterns(&["FORBIDDEN", "A[a-z]*Z"], |_| {});
    for cut in CUTS {
        assert_eq!(shown(&run("FORBID and Abc", &rules, cut)), "FORBID and Abc");
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_are_let_go_when_they_have_waited_long_enough() {
    let script = slow(&[(0, "x A"), (1000, "b"), (1000, "c"), (1000, "d!")]);
    let mut scene = Scene::new([script], vec![], patterns(&["A[a-z]*Z"], |_| {}));
    let (_, events) = scene.turn("go").await;
    // "c" arrived after the others had been released, so its own time runs to 3500; "!" rules the match out before.
    assert_eq!(timeline(&events), [at(0, "x "), at(1500, "hold_max_ms: 2"), at(1500, "Ab"), at(3000, "cd!")]);
}

/// Each byte is held for 100 ms only, however long something is held without a break.
#[tokio::test(start_paused = true)]
async fn the_time_is_each_bytes_own() {
    let mut words = vec![(100, "F"); 40];
    words.extend([(100, "ORB"), (100, "IDDEN")]);
    let mut scene = Scene::new([slow(&words), text("ok", 1)], vec![], patterns(&["FORBIDDEN"], |_| {}));
    let (_, events) = scene.turn("go").await;
    assert_eq!(first_shown(&events), "F".repeat(39));
    assert!(timeline(&events).contains(&at(4200, "fired")));
}

#[tokio::test(start_paused = true)]
async fn a_match_may_still_fire_after_its_beginning_was_let_go() {
    let script = slow(&[(0, "A"), (2000, "bZ")]);
    let mut scene = Scene::new([script, text("ok", 1)], vec![], patterns(&["A[a-z]*Z"], |_| {}));
    let (report, events) = scene.turn("go").await;
    assert_eq!(report.interrupts, 1);
    assert_eq!(timeline(&events)[..3], [at(1500, "hold_max_ms: 1"), at(1500, "A"), at(2000, "fired")]);
}

#[tokio::test(start_paused = true)]
async fn no_more_bytes_are_held_than_may_be() {
    for cut in CUTS {
        let rules = patterns(&["A[a-z]*Z"], |settings| settings.hold_max_bytes = 8);
        let mut scene = Scene::new([text("x Abcdefghijklm done", cut)], vec![], rules);
        let (_, events) = scene.turn("go").await;
        assert_eq!(shown(&events), "x Abcdefghijklm done");
        // If one chunk contains everything, nothing is held back afterwards.
        if cut == 1 {
            assert!(timeline(&events).contains(&at(0, "hold_max_bytes: 9")), "{:?}", timeline(&events));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_is_held_until_it_is_complete_however_long_that_takes() {
    let rules = patterns(&["FORBIDDEN"], |settings| settings.hold = Hold::Block);
    let mut scene = Scene::new([slow(&[(0, "a"), (5000, "b"), (5000, "c")])], vec![], rules);
    let (_, events) = scene.turn("go").await;
    assert_eq!(timeline(&events), [at(10_000, "abc")]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_held_where_holding_is_off() {
    let rules = patterns(&["FORBIDDEN"], |settings| settings.hold = Hold::Off);
    let mut scene = Scene::new([slow(&[(0, "FORB"), (100, "ID"), (100, "x")])], vec![], rules);
    let (_, events) = scene.turn("go").await;
    assert_eq!(timeline(&events), [at(0, "FORB"), at(100, "ID"), at(200, "x")]);
}

/// A stall of the server does not open the gate.
#[tokio::test(start_paused = true)]
async fn a_condition_of_bounded_length_is_held_back_however_long_it_takes() {
    for (condition, words, shown) in [
        ("FORBIDDEN", [(0, "so FORB"), (60_000, "IDDEN"), (0, "!")], "so "),
        (r"\bcat\b", [(0, "the cat"), (60_000, " sat"), (0, "!")], "the "),
    ] {
        let mut scene = Scene::new([slow(&words), text("ok", 9)], vec![], patterns(&[condition], |_| {}));
        let (_, events) = scene.turn("go").await;
        let expected = [at(0, shown), at(60_000, "fired"), at(60_000, "ok")];
        assert_eq!(timeline(&events), expected, "{condition}");
    }
}

fn holds(events: &[Event]) -> Vec<EventKind> {
    events.iter().map(|event| event.kind.clone()).filter(|kind| matches!(kind, EventKind::RuleHeld { .. })).collect()
}

fn held(rules: &[&str], numbers: (u32, u64, u64), outcome: HoldOutcome) -> EventKind {
    let (rules, (holds, bytes_max, ms_max)) = (rules.iter().map(|&rule| rule.to_owned()).collect(), numbers);
    EventKind::RuleHeld { stream: StreamKind::Text, rules, holds, bytes_max, ms_max, outcome }
}

/// One event for each stream in which something was held back over more than one delta: why, how often, how much, how long.
#[tokio::test(start_paused = true)]
async fn what_was_held_back_is_reported_once_a_stream() {
    use HoldOutcome::{Cut, Matched, Released, RuledOut};
    let rules = || patterns(&["A[a-z]*Z", "Abcx"], |_| {});
    for (words, expected) in [
        (vec![(0, "x A"), (100, "b"), (300, "! "), (100, "A"), (50, "!")], held(&["r0", "r1"], (2, 2, 400), RuledOut)),
        // `Abcx` has a bounded length: its time is not limited.
        (vec![(0, "x A"), (1000, "b"), (1000, "c"), (1000, "d!")], held(&["r0", "r1"], (1, 3, 3000), RuledOut)),
        (vec![(0, "x Aa"), (1000, "b"), (1000, "c"), (1000, "d!")], held(&["r0"], (2, 3, 1500), Released)),
        (vec![(0, "x A"), (100, "b"), (100, "Z")], held(&["r0", "r1"], (1, 2, 200), Matched)),
    ] {
        let mut scene = Scene::new([slow(&words), text("ok", 1)], vec![], rules());
        let (_, events) = scene.turn("go").await;
        assert_eq!(holds(&events), [expected], "{words:?}");
    }
    let mut scene = Scene::new([slow(&[(0, "Abc no, AZ"), (5, " "), (5, "A")]), text("ok", 1)], vec![], rules());
    let (_, events) = scene.turn("go").await;
    assert_eq!(holds(&events), [], "a match that came in one piece held nothing");
    let cut =
        Script::Say(blocks(&[(StreamKind::Text, "so A")], 1, StopReason::EndTurn)[..6].to_vec(), Some(Err(gone())));
    let (_, events) = Scene::new([cut], vec![], rules()).turn("go").await;
    assert_eq!(holds(&events), [held(&["r0", "r1"], (1, 1, 0), Cut)]);
    let whole = patterns(&["FORBIDDEN"], |settings| settings.hold = Hold::Block);
    let (_, events) = Scene::new([slow(&[(0, "a"), (5000, "b"), (5000, "c")])], vec![], whole).turn("go").await;
    assert_eq!(holds(&events), [held(&[], (1, 3, 10_000), RuledOut)]);
}

fn gone() -> flow::ModelError {
    flow::ModelError::new(flow::ErrorClass::Permanent, "gone")
}
