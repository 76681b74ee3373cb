//! Compaction: when it happens, what the model is asked and reads then, and what it leaves alone.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::ports::Approvals;
use flow::{Event, EventKind, LimitDecision, Limits, ModelError, Role, StopReason, StreamKind, TurnStatus, Usage};
use tidegate_kit::{Decisions, Scene, Script, ScriptedModel, blocks, calls, ready, rule_set, text};
use tidegate_turn as turn;
use turn::{Budget, Compaction, Session, SessionParts, SessionSettings};

/// A scene whose model has a context of so many tokens, which are four bytes each where nobody counts.
fn scene(scripts: Vec<Script>, context_tokens: u64, keep_turns: u32) -> Scene {
    let model = ScriptedModel::new(scripts);
    let rules = rule_set(&[("no-bad", "+++\ncondition = \"BAD\"\n+++\nSay it differently.")], |_| {});
    let compaction = Some(Compaction { context_tokens: Some(context_tokens), at: 0.5, keep_turns });
    let settings = SessionSettings { compaction, ..SessionSettings::default() };
    let parts = SessionParts { settings, ..tidegate_kit::parts(&model, vec![], rules) };
    let session = ready(Session::open(parts)).unwrap();
    let events = session.subscribe();
    Scene { model, session, events, past: Vec::new() }
}

fn summaries(events: &[Event]) -> Vec<(Option<String>, u32, u64, Option<String>)> {
    let end = |event: &Event| match &event.kind {
        EventKind::ContextCompactionEnd { summary, prune_before_turn, kept, error, left_out, .. }
            if left_out.is_empty() =>
        {
            Some((summary.clone(), *prune_before_turn, *kept, error.clone()))
        }
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

/// A request for a summary takes tokens, too: before it would exceed a limit, somebody is asked.
#[tokio::test(start_paused = true)]
async fn a_summary_is_within_the_limits() {
    for (decision, asked) in [(LimitDecision::Approved { max: 9_000.0 }, 4), (LimitDecision::TimedOut, 2)] {
        let scripts = vec![long("one "), long("two "), text("They counted.", 5), text("Three.", 5)];
        let (mut scene, desk) = (scene(scripts, 640, 2), Decisions::new([decision]));
        // Enough for both answers and their prompts, and not for a summary of the first.
        let mut limits = Limits::default();
        limits.tokens = Some(560);
        let budget = Budget::new(limits, None);
        scene.session = scene.session.with_budget(budget, Some(Arc::clone(&desk) as Arc<dyn Approvals>));
        scene.turn("first").await;
        scene.turn("second").await;
        let (report, events) = scene.turn("third").await;
        assert_eq!((scene.model.asked(), desk.asked().len()), (asked, 1), "{report:?}");
        assert_eq!(report.status == TurnStatus::Completed, asked == 4);
        let position = |name: &str| events.iter().position(|event| event.kind.name() == name);
        let started = position("context_compaction_start");
        assert_eq!(started.is_some(), asked == 4);
        assert!(started.is_none_or(|started| position("limit_escalation_requested").unwrap() < started));
    }
}

/// What a request for a summary that broke off has taken counts before it is sent again, counted by the provider or not, also where it
/// broke off before its text.
#[tokio::test(start_paused = true)]
async fn a_repeated_summary_is_within_the_limits() {
    let busy = || ModelError { status: Some(529), ..ModelError::new(flow::ErrorClass::Transient, "overloaded") };
    let usage = Usage { input: Some(100), output: Some(60), ..Usage::default() };
    for (counted, kind) in [(true, StreamKind::Text), (false, StreamKind::Text), (false, StreamKind::Thinking)] {
        for (decision, asked) in [(LimitDecision::Approved { max: 9_000.0 }, 5), (LimitDecision::TimedOut, 3)] {
            let mut broken = blocks(&[(kind.clone(), &"They ".repeat(100))], 50, StopReason::EndTurn);
            if counted {
                broken.insert(1, flow::Delta::Usage(usage));
            }
            let broken = Script::Say(broken, Some(Err(busy())));
            let scripts = vec![long("one "), long("two "), broken, text("They counted.", 5), text("Three.", 5)];
            let (mut scene, desk) = (scene(scripts, 640, 2), Decisions::new([decision]));
            // Enough for both answers and one request for a summary.
            let mut limits = Limits::default();
            limits.tokens = Some(800);
            let budget = Budget::new(limits, None);
            scene.session = scene.session.with_budget(budget, Some(Arc::clone(&desk) as Arc<dyn Approvals>));
            scene.turn("first").await;
            scene.turn("second").await;
            let before = scene.session.budget().spent().tokens;
            let (report, events) = scene.turn("third").await;
            assert_eq!((scene.model.asked(), desk.asked().len()), (asked, 1), "{counted} {kind:?} {report:?}");
            let spent = desk.asked()[0].current as u64 - before;
            assert!(if counted { spent == 160 } else { (300..450).contains(&spent) }, "{counted} {kind:?} {spent}");
            let error = summaries(&events).remove(0).3;
            assert_eq!(error.is_none(), asked == 5, "{error:?}");
            assert!(error.is_none_or(|error| error.contains("limit `tokens`")), "{report:?}");
        }
    }
}

fn long(word: &str) -> Script {
    text(&word.repeat(100), 50)
}

#[tokio::test(start_paused = true)]
async fn older_turns_are_summarised_when_the_context_is_filled() {
    let scripts = vec![long("one "), long("two "), text("They counted.", 5), text("Three.", 5)];
    let mut scene = scene(scripts, 640, 2);
    assert!(
        summaries(&scene.turn("first").await.1).is_empty(),
        "400 bytes are 100 tokens, and the tools as many, of 320"
    );
    assert!(summaries(&scene.turn("second").await.1).is_empty(), "nothing is done before it is needed");
    let (report, events) = scene.turn("third").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Three."));
    // What stays: the turn before, and this one's input.
    assert_eq!(summaries(&events), [(Some("They counted.".into()), 2, 3, None)]);
    let started = events.iter().find_map(|event| match event.kind {
        EventKind::ContextCompactionStart { used_tokens, ratio, .. } => Some((used_tokens, ratio)),
        _ => None,
    });
    let (used, ratio) = started.unwrap();
    assert!(used > 320 && (ratio - used as f64 / 640.0).abs() < 1e-9, "{used} {ratio}");

    let asked = scene.model.request(2);
    assert_eq!(asked.len(), 1, "the conversation is one message of data: {asked:?}");
    assert!(
        asked[0].1.starts_with("User: first\n\nAssistant: one one") && !asked[0].1.contains("second"),
        "{}",
        asked[0].1
    );
    let next = scene.model.request(3);
    let roles: Vec<Role> = next.iter().map(|(role, _)| *role).collect();
    assert_eq!(roles, [Role::User, Role::User, Role::Assistant, Role::User]);
    assert!(next[0].1.ends_with("\n\nThey counted."), "{}", next[0].1);
    assert_eq!((next[1].1.as_str(), next[3].1.as_str()), ("second", "third"));
    // Nobody has seen the summary.
    assert_eq!(tidegate_kit::shown(&events), "Three.");
}

#[tokio::test(start_paused = true)]
async fn where_no_summary_can_be_made_the_conversation_stays() {
    let refused = Script::Refuse(ModelError::new(flow::ErrorClass::Permanent, "no"));
    for (script, why) in [(refused, "no"), (calls(&[("1", "read", "{}")], 5), "the summary ended with tool_use")] {
        let scripts = vec![long("one "), long("two "), script, text("Three.", 5)];
        let mut scene = scene(scripts, 640, 2);
        scene.turn("first").await;
        scene.turn("second").await;
        let (report, events) = scene.turn("third").await;
        assert_eq!(report.status, TurnStatus::Completed);
        assert_eq!(summaries(&events), [(None, 2, 3, Some(why.to_owned()))]);
        assert_eq!(scene.session.history().len(), 6);
    }
}

/// A request for a summary is repeated as that of an answer is, also where a part of the summary was received.
#[tokio::test(start_paused = true)]
async fn a_request_for_a_summary_is_repeated_by_the_retry_table() {
    let overloaded = || ModelError { status: Some(529), ..ModelError::new(flow::ErrorClass::Transient, "overloaded") };
    let Script::Say(mut deltas, _) = text("They cou", 4) else { panic!("a text") };
    deltas.truncate(4);
    let usage = |input| flow::Delta::Usage(Usage { input: Some(input), ..Usage::default() });
    deltas.insert(1, usage(7));
    let broken = Script::Say(deltas, Some(Err(overloaded())));
    let scripts = vec![
        long("one "),
        long("two "),
        Script::Refuse(overloaded()),
        broken,
        text("They counted.", 5),
        text("Three.", 5),
    ];
    let mut scene = scene(scripts, 640, 2);
    scene.turn("first").await;
    scene.turn("second").await;
    let (report, events) = scene.turn("third").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Three."));
    assert_eq!(summaries(&events), [(Some("They counted.".into()), 2, 3, None)]);
    assert_eq!(report.usage.input, Some(7), "tokens of a request that broke are counted");
    let retries = |event: &Event| match &event.kind {
        EventKind::ErrorClassified { class, .. } => Some(class.as_str().to_owned()),
        EventKind::RetryScheduled { retry, .. } => Some(format!("retry {retry}")),
        EventKind::RetrySucceeded { retry_count, .. } => Some(format!("succeeded after {retry_count}")),
        _ => None,
    };
    let retries: Vec<String> = events.iter().filter_map(retries).collect();
    assert_eq!(retries, ["transient", "retry 1", "transient", "retry 2", "succeeded after 2"]);
}

/// The reminder of a rule is summarised away: the rule may fire again.
#[tokio::test(start_paused = true)]
async fn rules_whose_reminders_are_gone_may_fire_again() {
    let scripts =
        vec![text("BAD", 5), long("one "), long("two "), text("They counted.", 5), text("BAD", 5), text("Good.", 5)];
    let mut scene = scene(scripts, 840, 2);
    let (report, _) = scene.turn("first").await;
    assert_eq!(report.interrupts, 1);
    scene.turn("second").await;
    let (report, events) = scene.turn("third").await;
    assert_eq!((report.text.as_str(), report.interrupts), ("Good.", 1));
    assert!(events.iter().any(|event| event.kind == EventKind::TtsrRearmed { rules: vec!["no-bad".into()] }));
}
