//! The user interrupts a turn at every point at which it waits: the message is delivered once, the conversation stays valid, every request
//! is one that providers accept, and nothing is left running.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use flow::{
    Callback, Delta, ErrorClass, Event, EventKind, InputId, InputWay, Message, ModelError, OutputMode, Receipt,
    Retained, Role, StopReason, StreamKind, TagPattern, TextUnit, TurnStatus,
};
use rules::ContextMode;
use tidegate_kit::{Plugin, Script, ScriptedModel, blocks, drain, rule_set, text, tool};
use tidegate_turn as turn;
use turn::{CancellationToken, Session};

/// A turn that meets everything: a refused request, a rule that stops, reminders, tools that run, ask and are denied, and two steps.
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
    vec![Plugin { id: "a", callbacks, yields: true, ..Plugin::default() }]
}

struct Scene {
    model: Arc<ScriptedModel>,
    session: Session,
    events: turn::Subscription,
}

fn scene((mode, context): (OutputMode, ContextMode)) -> Scene {
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
    let model = Arc::new(ScriptedModel {
        scripts: Mutex::new(scripts()),
        prefill: true,
        otherwise: Some(text("Fine.", 2)),
        ..ScriptedModel::default()
    });
    let session = tidegate_kit::session(&model, plugins(mode), rules);
    let events = session.subscribe();
    Scene { model, session, events }
}

/// Runs a turn, and hands messages over before its polls of these numbers. Returns how many polls it took.
async fn run(scene: &mut Scene, at: &[usize]) -> (turn::TurnReport, usize) {
    let (inputs, cancel) = (scene.session.handles().inputs, CancellationToken::new());
    let mut run = std::pin::pin!(scene.session.run(vec![Message::user("go")], &cancel));
    let mut polls = 0;
    let report = std::future::poll_fn(|cx| {
        for number in at.iter().enumerate().filter(|(_, at)| **at == polls).map(|(number, _)| number) {
            let id = InputId::new(format!("stop-{number}"));
            inputs.wait(vec![(Some(id), Message::user(format!("stop {number}")))], InputWay::Interrupt);
        }
        polls += 1;
        run.as_mut().poll(cx)
    });
    let report = report.await;
    (report, polls)
}

/// A provider takes the request: valid, and ending with something to answer, or with the start of an answer that a rule has kept.
fn assert_accepted(model: &ScriptedModel, context: &str) {
    for prompt in model.prompts.lock().unwrap().iter() {
        tidegate_kit::assert_valid(&prompt.messages);
        let last = prompt.messages.last().unwrap();
        let continues = last.role == Role::Assistant && last.plain_text() == "Well.";
        assert!(last.role != Role::Assistant || continues, "{context}: {prompt:#?}");
    }
}

fn assert_settled(scene: &mut Scene, sent: usize, context: &str) -> Vec<Event> {
    assert_eq!(scene.model.open.load(Ordering::SeqCst), 0, "{context}: a stream is open");
    assert_accepted(&scene.model, context);
    let history = scene.session.history();
    tidegate_kit::assert_valid(&history);
    let events = drain(&mut scene.events);
    tidegate_kit::assert_rebuilt(&events, &history);
    let inputs = scene.session.handles().inputs;
    for number in 0..sent {
        let id = InputId::new(format!("stop-{number}"));
        let seqs: Vec<u64> = events.iter().filter(|event| delivers(event, &id)).map(|event| event.seq).collect();
        let times = history.iter().filter(|message| message.plain_text() == format!("stop {number}")).count();
        match inputs.receipt(&id) {
            Some(Receipt::Delivered { seq, .. }) => assert_eq!((seqs, times), (vec![seq], 1), "{context}"),
            // The turn had ended before.
            Some(Receipt::Queued) => assert_eq!((seqs, times), (vec![], 0), "{context}"),
            other => panic!("{context}: {other:?}"),
        }
    }
    for event in &events {
        let EventKind::CognitionOut { text, partial: Some(partial), retained, .. } = &event.kind else { continue };
        if partial.error == "the user interrupted it" && !text.trim().is_empty() {
            assert_eq!(*retained, Retained::Marked, "{context}");
            let kept = |message: &Arc<Message>| message.plain_text().starts_with(text.as_str());
            assert!(history.iter().any(kept), "{context}: {text}");
        }
    }
    assert_eq!(history.iter().filter(|message| message.plain_text() == "go").count(), 1, "{context}");
    events
}

fn delivers(event: &Event, wanted: &InputId) -> bool {
    matches!(&event.kind, EventKind::SteeringMessage { id: Some(id), .. } | EventKind::InputReceived { id: Some(id), .. } if id == wanted)
}

const MODES: [(OutputMode, ContextMode); 4] = [
    (OutputMode::Observe, ContextMode::Discard),
    (OutputMode::Observe, ContextMode::Rewind),
    (OutputMode::Rewrite, ContextMode::Discard),
    (OutputMode::Rewrite, ContextMode::Rewind),
];

#[tokio::test(start_paused = true)]
async fn a_turn_may_be_interrupted_at_any_point() {
    for mode in MODES {
        let (report, polls) = run(&mut scene(mode), &[]).await;
        assert_eq!((report.status, polls > 60), (TurnStatus::Completed, true), "{polls} polls");
        let (mut cut, mut stopped_calls) = (0, 0);
        for at in 0..polls {
            let mut scene = scene(mode);
            let context = format!("{mode:?}, interrupted before poll {at} of {polls}");
            let (report, _) = run(&mut scene, &[at]).await;
            assert_eq!(report.status, TurnStatus::Completed, "{context}");
            let events = assert_settled(&mut scene, 1, &context);
            let count = |wanted: fn(&EventKind) -> bool| events.iter().filter(|event| wanted(&event.kind)).count();
            cut += count(
                |kind| matches!(kind, EventKind::CognitionOut { partial: Some(partial), .. } if partial.error == "the user interrupted it"),
            );
            stopped_calls += count(
                |kind| matches!(kind, EventKind::ToolCallResult { output, .. } if output.contains("the user interrupted")),
            );
            assert_eq!(scene.session.handles().inputs.waiting(), [], "{context}: the turn was not over");
        }
        assert!(cut > 20 && stopped_calls > 4, "{mode:?}: {cut} answers and {stopped_calls} calls were stopped");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_may_be_interrupted_twice() {
    for mode in MODES {
        for first in (0..90).step_by(7) {
            for second in (first..110).step_by(5) {
                let mut scene = scene(mode);
                let context = format!("{mode:?}, interrupted before polls {first} and {second}");
                let (report, _) = run(&mut scene, &[first, second]).await;
                assert_eq!(report.status, TurnStatus::Completed, "{context}");
                let inputs = scene.session.handles().inputs;
                let is_sent = |number: &usize| inputs.receipt(&InputId::new(format!("stop-{number}"))).is_some();
                // The turn can end before.
                let sent = (0..2).take_while(is_sent).count();
                assert_settled(&mut scene, sent, &context);
            }
        }
    }
}
