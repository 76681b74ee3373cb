//! A turn may be cancelled at any event, or its future dropped at any point: nothing is left running, nothing more is
//! started, the conversation stays valid, and the session continues.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use flow::ports::{BoxFuture, Clock};
use flow::{
    Callback, Delta, ErrorClass, Event, EventKind, Message, ModelError, OutputMode, StopReason, StreamKind, TagPattern,
    TextUnit, TurnStatus,
};
use rules::ContextMode;
use tidegate_kit::{Plugin, Script, ScriptedModel, blocks, rule_set, tool};
use tidegate_turn as turn;
use turn::{CancellationToken, Session};

use crate::recorded::{Spans, alone};

/// A clock that advances by one whenever it is read (for each event and each attempt), and cancels at one of its times.
struct Trigger {
    reads: AtomicUsize,
    at: usize,
    cancel: CancellationToken,
}

impl Clock for Trigger {
    fn now_ms(&self) -> u64 {
        let now = self.reads.fetch_add(1, Ordering::SeqCst);
        if now == self.at {
            self.cancel.cancel();
        }
        now as u64
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// A turn that meets everything: a refused request, a rule that stops, one that reminds of text and one of a call, tools
/// that run, ask and are denied, a tag, and two steps.
fn scripts() -> Vec<Script> {
    let slow = |deltas: Vec<Delta>| Script::Slow(deltas.into_iter().map(|delta| (1, delta)).collect());
    let stopped = [(StreamKind::Thinking, "Hm, so."), (StreamKind::Text, "Well.\nSo, FORBIDDEN it is.")];
    let working = [
        (StreamKind::Text, "A MILD word.\n"),
        (tool("1", "read"), r#"{"path":"a"}"#),
        (tool("2", "steps"), r#"{"path":"MILD"}"#),
        (tool("3", "shell"), r#"{"command":"ls"}"#),
        (tool("4", "locked"), "{}"),
    ];
    let last = [(StreamKind::Text, "All <t>is</t> done.")];
    vec![
        Script::Refuse(ModelError::new(ErrorClass::Transient, "busy")),
        slow(blocks(&stopped, 4, StopReason::EndTurn)),
        slow(blocks(&working, 4, StopReason::ToolUse)),
        slow(blocks(&last, 4, StopReason::EndTurn)),
    ]
}

fn plugins(mode: OutputMode) -> Vec<Plugin> {
    let callbacks = vec![
        (Callback::InputMessages, 50),
        (Callback::PlainText(TextUnit::Line.into()), 50),
        (Callback::Tag(vec![TagPattern::Exact("t".into())]), 50),
        (Callback::LlmOutput(mode), 50),
        (Callback::TtsrTriggered, 50),
    ];
    vec![
        Plugin { id: "a", callbacks: callbacks.clone(), yields: true, ..Plugin::default() },
        Plugin { id: "b", callbacks, ..Plugin::default() },
    ]
}

struct Scene {
    model: Arc<ScriptedModel>,
    session: Session,
    events: turn::Subscription,
    cancel: CancellationToken,
    spans: Spans,
}

fn scene(mode: (OutputMode, ContextMode), at: usize, spans: &Spans) -> Scene {
    let (mode, context) = mode;
    let rules = rule_set(
        &[
            ("hard", "+++\ncondition = \"FORBIDDEN\"\n+++\nNo."),
            ("soft", "+++\ncondition = \"MILD\"\nscope = \"text\"\ninterrupt = \"never\"\n+++\nMildly."),
            ("call", "+++\ncondition = \"MILD\"\nscope = \"tool\"\ninterrupt = \"never\"\n+++\nMildly."),
        ],
        |settings| {
            settings.retry_delay_ms = 20;
            settings.context_mode = context;
        },
    );
    let model = ScriptedModel::going_on(scripts());
    let cancel = CancellationToken::new();
    let clock = Trigger { reads: AtomicUsize::new(0), at, cancel: cancel.clone() };
    let parts = turn::SessionParts { clock: Arc::new(clock), ..tidegate_kit::parts(&model, plugins(mode), rules) };
    let session = tidegate_kit::ready(Session::open(parts)).unwrap();
    let events = session.subscribe();
    Scene { model, session, events, cancel, spans: spans.clone() }
}

impl Scene {
    /// However the turn ended: nothing is left of it, its events are whole, and another turn runs.
    async fn aftermath(&mut self, context: &str) -> Vec<Event> {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(self.model.open.load(Ordering::SeqCst), 0, "{context}: a stream is open");
        assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0, "{context}: a task is left");
        self.spans.take(context);
        tidegate_kit::assert_valid(&self.session.history());
        let events = tidegate_kit::drain(&mut self.events);
        tidegate_kit::assert_rebuilt(&events, &self.session.history());
        let count = |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
        let ends = count(|kind| matches!(kind, EventKind::TurnFinish { .. }));
        assert_eq!(ends, count(|kind| *kind == EventKind::TurnStart), "{context}: a turn that began has ended");

        let before = self.session.history().len();
        *self.model.scripts.lock().unwrap() = vec![tidegate_kit::text("Fine.", 2)];
        let report = self.session.run(vec![Message::user("again")], &CancellationToken::new()).await;
        assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "Fine."), "{context}");
        assert_eq!(self.session.history().len(), before + 2, "{context}");
        tidegate_kit::assert_valid(&self.session.history());
        tidegate_kit::drain(&mut self.events);
        self.spans.take(context);
        events
    }
}

/// What extensions do with whole outputs, and what becomes of a stopped answer.
const MODES: [(OutputMode, ContextMode); 4] = [
    (OutputMode::Observe, ContextMode::Discard),
    (OutputMode::Observe, ContextMode::Rewind),
    (OutputMode::Rewrite, ContextMode::Discard),
    (OutputMode::Rewrite, ContextMode::Rewind),
];

/// When the whole turn has ended.
async fn length(mode: (OutputMode, ContextMode), spans: &Spans) -> usize {
    let mut scene = scene(mode, usize::MAX - 1, spans);
    let report = scene.session.run(vec![Message::user("go")], &scene.cancel).await;
    assert_eq!((report.status, report.interrupts), (TurnStatus::Completed, 1));
    let events = tidegate_kit::drain(&mut scene.events);
    let has = |wanted: fn(&EventKind) -> bool| events.iter().any(|event| wanted(&event.kind));
    assert!(has(|kind| matches!(kind, EventKind::RetrySucceeded { .. })));
    assert!(has(|kind| matches!(kind, EventKind::ToolCallProgress { .. })));
    assert!(has(|kind| matches!(kind, EventKind::ToolConfirmationResolved { .. })));
    assert_eq!(events.iter().filter(|event| matches!(event.kind, EventKind::TtsrInjection { .. })).count(), 3);
    assert!(spans.take("the whole turn").len() > 30);
    events.last().unwrap().at_ms as usize + 1
}

#[tokio::test(start_paused = true)]
async fn a_turn_may_be_cancelled_at_any_event() {
    let (spans, _kept) = Spans::keep();
    for mode in MODES {
        let length = length(mode, &spans).await;
        assert!(length > 60, "a turn of {length} ticks is no long one");
        // The first reading is the thread's own start.
        for at in 1..length {
            let mut scene = scene(mode, at, &spans);
            let cancel = scene.cancel.clone();
            let report = scene.session.run(vec![Message::user("go")], &cancel).await;
            let context = format!("{mode:?}, cancelled at time {at} of {length}");
            assert!(cancel.is_cancelled(), "{context}");
            let events = scene.aftermath(&context).await;
            let after: Vec<&Event> = events.iter().filter(|event| event.at_ms as usize > at).collect();
            let starts = |event: &&&Event| {
                matches!(
                    event.kind,
                    EventKind::StepStart { .. } | EventKind::ToolCallStart { .. } | EventKind::TtsrInjection { .. }
                )
            };
            // The reminder of a call is recorded with its result, which was already there.
            let more: Vec<_> = after.iter().filter(starts).filter(|event| !belongs(&events, event, at)).collect();
            assert!(more.is_empty(), "{context}: {more:#?}");
            let cancelled = EventKind::TurnFinish { status: TurnStatus::Cancelled };
            let told = after.iter().filter(|event| event.kind == cancelled).count();
            match report.status {
                TurnStatus::Cancelled => assert_eq!(told, 1, "{context}"),
                // Too late: the answer was there already.
                TurnStatus::Completed => assert!(at + 10 >= length && told == 0, "{context}"),
                other => panic!("{context}: {other:?}"),
            }
        }
    }
}

/// Whether an injection is reported for the result of a call that ended at the time of the cancel, or just before.
fn belongs(events: &[Event], injection: &Event, at: usize) -> bool {
    let told = matches!(injection.kind, EventKind::TtsrInjection { .. });
    let begin = at.saturating_sub(1) as u64;
    let of = |event: &Event| matches!(event.kind, EventKind::ToolCallResult { .. } | EventKind::CustomMessage { .. });
    told && events.iter().any(|event| (begin..injection.at_ms).contains(&event.at_ms) && of(event))
}

#[tokio::test(start_paused = true)]
async fn the_future_of_a_turn_may_be_dropped_at_any_point() {
    let (spans, _kept) = Spans::keep();
    for mode in MODES {
        let mut finished = false;
        let mut polls = 0;
        while !finished {
            let mut scene = scene(mode, usize::MAX - 1, &spans);
            let cancel = CancellationToken::new();
            {
                let mut run = Box::pin(scene.session.run(vec![Message::user("go")], &cancel));
                let mut left = polls;
                finished = std::future::poll_fn(|cx| {
                    if left == 0 {
                        return Poll::Ready(false);
                    }
                    left -= 1;
                    run.as_mut().poll(cx).map(|_| true)
                })
                .await;
            }
            scene.aftermath(&format!("{mode:?}, dropped after {polls} polls")).await;
            polls += 1;
        }
        assert!(polls > 50, "only {polls} points");
    }
}

#[tokio::test]
async fn a_turn_cancelled_before_it_began_asks_nobody() {
    let (spans, _kept) = Spans::keep();
    let mut scene = scene(MODES[0], usize::MAX - 1, &spans);
    scene.cancel.cancel();
    let report = scene.session.run(vec![Message::user("go")], &scene.cancel).await;
    assert_eq!((report.status, scene.model.asked()), (TurnStatus::Cancelled, 0));
    scene.aftermath("before").await;
}

/// What is under way for ever ends with the turn: a stream without end, a tool, a callback.
#[tokio::test(start_paused = true)]
async fn what_hangs_is_stopped() {
    let _alone = alone();
    let endless = Script::Say(blocks(&[(StreamKind::Text, "Hm")], 1, StopReason::EndTurn)[..3].to_vec(), None);
    let tool = tidegate_kit::calls(&[("1", "read", "{}"), ("2", "slow", "{}")], 4);
    let plugin = |hangs| Plugin {
        id: "h",
        callbacks: vec![(Callback::LlmOutput(OutputMode::Observe), 50)],
        hangs,
        ..Plugin::default()
    };
    let hangs = Some(flow::CallbackKind::LlmOutput);
    for (script, hangs, left) in [(endless, None, 2), (tool, None, 3), (tidegate_kit::text("Hm", 1), hangs, 2)] {
        let mut scene = tidegate_kit::Scene::new([script], vec![plugin(hangs)], rule_set(&[], |_| {}));
        let cancel = CancellationToken::new();
        let stop = async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            cancel.cancel();
        };
        let (report, ()) = tokio::join!(scene.session.run(vec![Message::user("go")], &cancel), stop);
        assert_eq!((report.status, scene.model.open.load(Ordering::SeqCst)), (TurnStatus::Cancelled, 0));
        tidegate_kit::assert_valid(&scene.session.history());
        assert_eq!(scene.session.history().len(), left, "{:?}", scene.session.history());
    }
}
