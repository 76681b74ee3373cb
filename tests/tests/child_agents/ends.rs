//! How children end without an answer: they fail, are cancelled, or never start.

use flow::{EventKind, FailureKind, ModelError};
use tidegate::{Session, TurnStatus};
use tidegate_kit::{Script, ScriptedModel, calls, live, say};
use tokio::sync::mpsc::UnboundedSender;

use super::place::{Place, kinds, names, spawn};

fn errors(events: &[flow::Event]) -> Vec<String> {
    kinds(events, |kind| match kind {
        EventKind::ToolCallResult { output, is_error: true, .. } => Some(output.clone()),
        _ => None,
    })
}

fn failures(events: &[flow::Event]) -> Vec<String> {
    kinds(events, |kind| match kind {
        EventKind::ChildThreadFailed { error, .. } => Some(error.clone()),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_child_is_the_result_and_the_parent_continues() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let refused = ModelError::of_kind(FailureKind::Http, "the provider is out of order");
    let model = ScriptedModel::new([
        spawn("1", "helper", "Help."),
        calls(&[("a", "list_dir", "{}")], usize::MAX),
        Script::Refuse(refused),
        say("I do it myself."),
    ]);
    let session = place.open(&model).await;
    let (report, events) = place.turn(&session, "Ask.").await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "I do it myself."));
    assert_eq!(failures(&events), ["the provider is out of order"]);
    let [error] = &errors(&events)[..] else { panic!("{events:?}") };
    assert!(error.starts_with("The agent `helper` did not complete the task: the provider is out of order"), "{error}");
    let child = place.child_of(&events);
    assert_eq!(names(&place.records(&child)).last().unwrap(), "thread_error");
    let records = place.records(&place.main());
    let failed = records.iter().find(|record| record["type"] == "child_thread_failed").unwrap();
    assert_eq!(failed["payload"]["child_thread_id"], child.as_str());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_made_starts_nothing() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    place.agent("checker", "description: Checks.", "You are a checker.");
    for (arguments, expected) in [
        (r#"{"agent": "helpr", "task": "Help."}"#, "there is no agent `helpr`; the agents are `checker`, `helper`"),
        (r#"{"agent": "helper", "task": " "}"#, "the `task` of `helper` is empty: write what it is to do"),
        (r#"{"agent": "helper"}"#, "the arguments of `spawn_agent` are not valid: missing field `task`"),
    ] {
        let call = calls(&[("1", "spawn_agent", arguments)], usize::MAX);
        let model = ScriptedModel::new([call, say("Then not.")]);
        let session = place.open(&model).await;
        let (_, events) = place.turn(&session, "Ask.").await;
        assert!(errors(&events)[0].starts_with(expected), "{:?}", errors(&events));
        assert_eq!((place.children_of(&events).len(), failures(&events).len()), (0, 0));
        place.close(session).await;
    }
    // Without agents there is no such tool.
    let place = Place::new();
    let model = ScriptedModel::new([spawn("1", "helper", "Help."), say("Then not.")]);
    let session = place.open(&model).await;
    let (_, events) = place.turn(&session, "Ask.").await;
    assert!(errors(&events)[0].starts_with("there is no tool `spawn_agent`"), "{:?}", errors(&events));
}

/// Returns the only child when it is in the middle of its answer.
async fn answering(session: &Session, answer: &UnboundedSender<&'static str>) -> Session {
    let [child] = <[_; 1]>::try_from(session.children()).unwrap();
    let mut heard = child.subscribe();
    answer.send("I begin").unwrap();
    while let Some(event) = heard.next().await {
        if matches!(event.kind, EventKind::CognitionOutDelta { .. }) {
            break;
        }
    }
    child
}

/// The child is in the middle of its answer when its parent is cancelled.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_is_cancelled_with_its_parent() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let (answer, endless) = live();
    let model = ScriptedModel::new([spawn("1", "helper", "Help."), endless]);
    let session = place.open(&model).await;
    let mut turn = session.prompt("Ask.");
    let mut events = Vec::new();
    let mut child = None;
    while let Some(event) = turn.next().await {
        let at_work = matches!(&event.kind, EventKind::ToolCallProgress { .. });
        events.push(event);
        if at_work && child.is_none() {
            child = Some(answering(&session, &answer).await);
            session.cancel();
        }
    }
    assert_eq!(turn.report().await.status, TurnStatus::Cancelled);
    assert_eq!(failures(&events), ["it was cancelled with the session that started it"]);
    let child = child.unwrap();
    place.close(session).await;
    assert_eq!(model.open.load(std::sync::atomic::Ordering::SeqCst), 0, "its request is aborted");
    let records = place.records(child.id());
    let last = records.last().unwrap();
    assert_eq!(last["type"], "thread_cancelled", "{:?}", names(&records));
    assert_eq!(last["payload"]["cancelled_by"], "the session that started it");
    assert_eq!(
        place.rebuilt(child.id()).history.last().unwrap().plain_text(),
        "I begin\n\n[Stream interrupted: cancelled]"
    );
    assert_eq!(names(&place.records(&place.main())).last().unwrap(), "thread_cancelled");
}

/// Somebody else cancels the child alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_is_cancelled_alone_is_an_error_for_its_parent() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let (answer, endless) = live();
    let model = ScriptedModel::new([spawn("1", "helper", "Help."), endless, say("Then not.")]);
    let session = place.open(&model).await;
    let mut turn = session.prompt("Ask.");
    let (mut events, mut is_cancelled) = (Vec::new(), false);
    while let Some(event) = turn.next().await {
        if matches!(&event.kind, EventKind::ToolCallProgress { .. }) && !std::mem::replace(&mut is_cancelled, true) {
            answering(&session, &answer).await.cancel_by("a person");
        }
        events.push(event);
    }
    assert_eq!(turn.report().await.text, "Then not.");
    assert_eq!(failures(&events), ["it was cancelled"]);
    let records = place.records(&place.child_of(&events));
    assert_eq!(records.last().unwrap()["payload"]["cancelled_by"], "a person");
}
