//! The total time of a request, and the time of a thread: what they end, what remains, and what is said.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;
use std::time::Duration;

use flow::ports::Approvals;
use flow::{
    Delta, ErrorClass, Event, EventKind, Limit, LimitDecision, Limits, ModelError, StreamKind, SuspendReason,
    TurnStatus,
};
use tidegate_kit::{Decisions, Scene, Script, ScriptedModel, blocks, ready, rule_set, say};
use tidegate_turn as turn;
use turn::{Budget, Session, SessionParts, SessionSettings};

/// A text that never ends, a piece a second.
fn endless(pieces: usize) -> Script {
    let start = [Delta::Start { model: None }, Delta::BlockStart { block: 0, kind: StreamKind::Text }];
    let piece = || Delta::Piece { block: 0, text: "tick ".into() };
    let deltas = start.map(|delta| (0, delta)).into_iter().chain((0..pieces).map(|_| (1000, piece())));
    Script::Slow(deltas.collect())
}

/// A text that never ends, as fast as it is read.
fn flood() -> Script {
    let mut deltas = blocks(&[(StreamKind::Text, "")], 1, flow::StopReason::EndTurn);
    deltas.truncate(2);
    deltas.extend((0..100_000).map(|_| Delta::Piece { block: 0, text: "x".into() }));
    Script::Say(deltas, None)
}

fn hanging() -> Script {
    Script::Say(vec![Delta::Start { model: None }], None)
}

fn broken() -> Script {
    Script::Refuse(ModelError::new(ErrorClass::Transient, "connection reset"))
}

fn scene(scripts: Vec<Script>, seconds: u64, live: bool) -> Scene {
    let settings =
        SessionSettings { request_timeout: Some(Duration::from_secs(seconds)), live, ..SessionSettings::default() };
    of(scripts, settings, Limits::default(), None)
}

fn of(scripts: Vec<Script>, settings: SessionSettings, limits: Limits, desk: Option<Arc<Decisions>>) -> Scene {
    let model = ScriptedModel::new(scripts);
    let parts = SessionParts { settings, ..tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {})) };
    let session = ready(Session::open(parts)).unwrap();
    let session = session.with_budget(Budget::new(limits, None), desk.map(|desk| desk as Arc<dyn Approvals>));
    let events = session.subscribe();
    Scene { model, session, events, past: Vec::new() }
}

fn retries(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.kind, EventKind::RetryScheduled { .. })).count()
}

fn failure(status: &TurnStatus) -> &str {
    match status {
        TurnStatus::Failed { class: ErrorClass::Transient, message } => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_takes_at_most_its_time() {
    for (script, kept) in [(endless(1_000), 2), (hanging(), 1)] {
        let mut scene = scene(vec![script], 20, true);
        let (report, events) = scene.turn("go").await;
        let message = failure(&report.status);
        assert!(message.contains("20 s with its retries (`request_timeout_ms` of the provider)"), "{message}");
        assert_eq!((scene.model.asked(), retries(&events)), (1, 0));
        assert_eq!(scene.session.history().len(), kept, "what was shown stays in the conversation");
    }
}

/// Each attempt is well within the time, together they are not.
#[tokio::test(start_paused = true)]
async fn retries_and_the_waits_between_them_count() {
    let mut scene = scene(vec![broken(), broken(), broken(), say("Too late.")], 4, true);
    let (report, events) = scene.turn("go").await;
    let message = failure(&report.status);
    assert!(message.starts_with("connection reset (a request takes at most 4 s"), "{message}");
    // After 0, 1 and 3 seconds; the next wait would be one of 4.
    assert_eq!((scene.model.asked(), retries(&events)), (3, 2));
}

/// An answer that nobody saw is asked for again, in what is left of the time.
#[tokio::test(start_paused = true)]
async fn an_attempt_gets_what_the_others_have_left() {
    let error = ModelError::new(ErrorClass::Transient, "reset");
    let slow = Script::Slow(vec![(9_000, Delta::Start { model: None })]);
    let breaks = Script::Say(vec![Delta::Start { model: None }], Some(Err(error)));
    let mut scene = scene(vec![breaks, slow, say("Done.")], 8, false);
    let (report, _) = scene.turn("go").await;
    assert!(failure(&report.status).contains("8 s with its retries"), "{report:?}");
    assert_eq!(scene.model.asked(), 2);
}

/// The next request of the turn has its own time.
#[tokio::test(start_paused = true)]
async fn every_request_has_its_own_time() {
    let mut deltas: Vec<_> = blocks(&[(tidegate_kit::tool("1", "read"), "{}")], 9, flow::StopReason::ToolUse)
        .into_iter()
        .map(|delta| (0, delta))
        .collect();
    deltas[0].0 = 7_000;
    let mut last = blocks(&[(StreamKind::Text, "Done.")], 9, flow::StopReason::EndTurn)
        .into_iter()
        .map(|delta| (0, delta))
        .collect::<Vec<_>>();
    last[0].0 = 7_000;
    let mut scene = scene(vec![Script::Slow(deltas), Script::Slow(last)], 8, true);
    let (report, _) = scene.turn("go").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Done."));
}

#[tokio::test(start_paused = true)]
async fn the_time_of_the_thread_ends_a_running_request() {
    for (script, kept) in [(endless(1_000), true), (hanging(), false)] {
        let mut limits = Limits::default();
        limits.duration = Some(Duration::from_secs(30));
        let mut scene = of(vec![script], SessionSettings::default(), limits, None);
        let (report, _) = scene.turn("go").await;
        assert!(
            matches!(&report.status, TurnStatus::Suspended { reason: SuspendReason::Limit, message } if message.contains("`duration` of 30 s")),
            "{report:?}"
        );
        let history = scene.session.history();
        assert_eq!(history.len(), if kept { 2 } else { 1 });
        let last = history.last().unwrap().plain_text();
        assert_eq!(last.contains("[Stream interrupted: the session has reached its limit `duration`]"), kept, "{last}");
        assert!(scene.session.budget().spent().duration < Duration::from_secs(40));
    }
}

/// Somebody permits more time: the model continues in the same turn.
#[tokio::test(start_paused = true)]
async fn a_thread_that_gets_more_time_continues() {
    let desk = Decisions::new([LimitDecision::Approved { max: 100.0 }]);
    let mut limits = Limits::default();
    limits.duration = Some(Duration::from_secs(30));
    let scripts = vec![endless(1_000), say("Done.")];
    let mut scene = of(scripts, SessionSettings::default(), limits, Some(Arc::clone(&desk)));
    let (report, _) = scene.turn("go").await;
    assert_eq!((report.status, scene.model.asked()), (TurnStatus::Completed, 2), "{}", report.text);
    assert_eq!(desk.asked().iter().map(|one| one.limit).collect::<Vec<_>>(), [Limit::Duration]);
    assert!(report.text.ends_with("Done."), "{}", report.text);
}

/// A stream that is always ready must not keep a deadline from being noticed.
#[tokio::test]
async fn a_flood_has_an_end() {
    let mut scene = scene(vec![flood()], 0, true);
    let (report, _) = scene.turn("go").await;
    assert!(failure(&report.status).contains("`request_timeout_ms`"), "{report:?}");
    assert!(report.text.len() < 100_000, "{}", report.text.len());
}
