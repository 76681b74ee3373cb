//! What each rule did, in numbers, with the definitions of `RuleMetrics`.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use flow::{Delta, StopReason, StreamKind, Usage};
use rules::{ContextMode, OnBudget};
use tidegate_kit::{Scene, Script, blocks, calls, rule_set, text};
use tidegate_turn as turn;
use turn::RuleMetrics;

const WRITE: &str = r#"{"path":"a","content":"FORBIDDEN"}"#;

fn scene(
    scripts: impl IntoIterator<Item = Script>,
    front: &str,
    change: impl FnOnce(&mut rules::RuleSettings),
) -> Scene {
    let rule = format!("+++\ncondition = 'FORBIDDEN'\n{front}\n+++\nNo.");
    Scene::new(scripts, vec![], rule_set(&[("r", &rule)], change))
}

async fn metrics(mut scene: Scene) -> RuleMetrics {
    scene.turn("go").await;
    let all = scene.session.rule_metrics();
    assert_eq!(all.len(), 1);
    all["r"]
}

#[tokio::test]
async fn a_rule_that_did_nothing_has_no_numbers() {
    let mut scene = scene([text("ok", 1)], "", |_| {});
    scene.turn("go").await;
    assert!(scene.session.rule_metrics().is_empty());
}

#[tokio::test(start_paused = true)]
async fn interrupts_cost_tokens_and_time_and_may_come_again() {
    let slow = |words: &str| {
        let deltas = blocks(&[(StreamKind::Text, words)], 9, StopReason::EndTurn);
        Script::Slow(deltas.into_iter().map(|delta| (10, delta)).collect())
    };
    // 18 bytes before the match is whole: deltas at 10 (start), 20 (block), 30, 40 ms; then 50 ms to the retry.
    let scripts = [slow("12345678 FORBIDDEN and more"), slow("12345678 FORBIDDEN"), text("ok", 1)];
    let found = metrics(scene(scripts, "repeat = 'always'", |settings| settings.retry_delay_ms = 50)).await;
    assert_eq!(
        found,
        RuleMetrics {
            fires: 2,
            reminders: 2,
            interrupts: 2,
            tokens_discarded: 10,
            tokens_estimated: true,
            added_latency_ms: 180,
            second_violations: 1,
            ..RuleMetrics::default()
        }
    );
}

#[tokio::test]
async fn tokens_are_the_providers_where_it_counted_all_and_a_part_where_some_stays() {
    let counted = |count_after: usize| {
        let mut deltas = blocks(&[(StreamKind::Text, "Good.\nFORBIDDEN")], usize::MAX, StopReason::EndTurn);
        let usage = Usage { output: Some(30), ..Usage::default() };
        deltas.insert(count_after, Delta::Usage(usage));
        Script::Say(deltas, Some(Ok(())))
    };
    // The chunk of text is the third delta; what was counted before it is not known to be all.
    for (count_after, context, tokens) in [(2, ContextMode::Discard, (4, true)), (2, ContextMode::Rewind, (3, true))] {
        let change = |settings: &mut rules::RuleSettings| settings.context_mode = context;
        let found = metrics(scene([counted(count_after), text("Fine.", 1)], "", change)).await;
        assert_eq!((found.tokens_discarded, found.tokens_estimated), tokens, "{count_after} {context:?}");
    }
    // A match that is known at the end of the block alone comes after the count.
    let rule = "+++\ncondition = 'FORBIDDEN\\z'\n+++\nNo.";
    for (context, tokens) in [(ContextMode::Discard, (30, false)), (ContextMode::Rewind, (18, true))] {
        let rules = rule_set(&[("r", rule)], |settings| settings.context_mode = context);
        let mut scene = Scene::new([counted(3), text("Fine.", 1)], vec![], rules);
        scene.turn("go").await;
        let found = scene.session.rule_metrics()["r"];
        assert_eq!((found.tokens_discarded, found.tokens_estimated), tokens, "{context:?}");
    }
}

#[tokio::test]
async fn a_violation_in_a_later_turn_is_no_second_one() {
    let answer = || [text("FORBIDDEN", 1), text("Fine.", 1)];
    let mut scene = scene(answer().into_iter().chain(answer()), "repeat = 'always'", |_| {});
    scene.turn("go").await;
    scene.turn("again").await;
    let found = scene.session.rule_metrics()["r"];
    assert_eq!((found.fires, found.reminders, found.second_violations), (2, 2, 0));
}

#[tokio::test]
async fn each_action_has_its_number() {
    let reminded = RuleMetrics { fires: 3, reminders: 1, passes: 2, ..RuleMetrics::default() };
    let three = || [calls(&[("1", "write", WRITE), ("2", "write", WRITE), ("3", "write", WRITE)], 4), text("Done.", 4)];
    assert_eq!(metrics(scene(three(), "interrupt = 'never'", |_| {})).await, reminded);
    let blocked = RuleMetrics { fires: 3, reminders: 3, blocks: 3, second_violations: 0, ..RuleMetrics::default() };
    assert_eq!(metrics(scene(three(), "action = 'block'", |_| {})).await, blocked);
    let stopped = RuleMetrics { fires: 1, stops: 1, held: 1, ..RuleMetrics::default() };
    assert_eq!(metrics(scene([text("a FORBIDDEN", 1)], "action = 'stop'", |_| {})).await, stopped);
    let passed = RuleMetrics { fires: 1, passes: 1, ..RuleMetrics::default() };
    let no_budget = |settings: &mut rules::RuleSettings| {
        (settings.max_interrupts_per_turn, settings.on_budget) = (0, OnBudget::Pass);
    };
    assert_eq!(metrics(scene([text("a FORBIDDEN", 1)], "", no_budget)).await, passed);
}

/// Of rules that stop one answer together the first has its cost: the sum is the session's.
#[tokio::test]
async fn what_an_answer_cost_is_counted_once() {
    let rules = rule_set(&[("a", "+++\ncondition = 'xy'\n+++\nNo."), ("b", "+++\ncondition = 'y'\n+++\nNo.")], |_| {});
    let mut scene = Scene::new([text("12345678xy", 1), text("Fine.", 1)], vec![], rules);
    scene.turn("go").await;
    let all = scene.session.rule_metrics();
    assert_eq!(all.values().map(|one| one.tokens_discarded).sum::<u64>(), 3, "{all:?}");
    assert_eq!(all.values().map(|one| one.interrupts).collect::<Vec<_>>(), [1, 1]);
}
