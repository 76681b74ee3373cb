//! Questions of child agents, answered by the front ends of the session that started them.

use std::time::Duration;

use flow::EventKind;
use tidegate::TurnStatus;
use tidegate::question::{Answer, AnswerError, QuestionId};
use tidegate_kit::{ScriptedModel, calls, say};

use super::place::{Place, spawn};

#[tokio::test(flavor = "multi_thread")]
async fn a_parents_front_end_answers_the_question_of_a_child() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let model = ScriptedModel::new([
        spawn("1", "helper", "Run it."),
        calls(&[("a", "shell", r#"{"command": "echo yes"}"#)], usize::MAX),
        say("It ran."),
        say("The helper ran it."),
    ]);
    let host = place.host(&model).await;
    let session = host.session(place.options().questions_wait()).await.unwrap();
    let turn = session.prompt("Run it.");
    let question = loop {
        match session.pending_questions().as_slice() {
            [question] => break question.clone(),
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    assert_eq!(question.agent, "helper");
    assert_eq!(question.id, QuestionId::new("question-1").of_child(&question.session));
    let child = session.child(&question.session).unwrap();
    assert_eq!(child.id(), &question.session);
    assert_eq!(session.child(session.id()).map(|own| own.id().clone()), None);
    let mut events = child.subscribe();
    let edit = Answer::Edit { arguments: "{}".into() };
    let refused = session.answer(&question.id, edit, "Ada").unwrap_err();
    assert!(matches!(&refused, AnswerError::Edit { id, .. } if *id == question.id), "{refused:?}");
    session.answer(&question.id, Answer::Approve, "Ada").unwrap();
    let late = session.answer(&question.id, Answer::Approve, "Bob");
    assert!(matches!(late, Err(AnswerError::NotOpen { .. })), "{late:?}");
    let report = turn.report().await;
    assert_eq!((report.status, report.text.as_str()), (TurnStatus::Completed, "The helper ran it."));
    assert!(model.request(2).last().unwrap().1.contains("yes"));
    let mut by = None;
    while let Some(event) = events.next().await {
        if let EventKind::ToolConfirmationResolved { by: who, .. } = event.kind {
            by = Some(who);
        }
    }
    assert_eq!(by.as_deref(), Some("Ada"));
    place.close(session).await;
}

/// The turn of the parent ends its agents, and with them their questions.
#[tokio::test(flavor = "multi_thread")]
async fn cancelling_the_parent_ends_the_questions_of_its_children() {
    let place = Place::new();
    place.agent("helper", "description: Helps.", "You are a helper.");
    let shell = calls(&[("a", "shell", r#"{"command": "touch made"}"#)], usize::MAX);
    let model = ScriptedModel::new([spawn("1", "helper", "Run it."), shell]);
    let host = place.host(&model).await;
    let session = host.session(place.options().questions_wait()).await.unwrap();
    let turn = session.prompt("Run it.");
    while session.pending_questions().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let question = session.pending_questions().remove(0);
    session.cancel();
    assert_eq!(turn.report().await.status, TurnStatus::Cancelled);
    place.close(session).await;
    let records = place.records(&question.session);
    let resolved = records.iter().find(|record| record["type"] == "tool_confirmation_resolved").unwrap();
    assert_eq!(resolved["payload"]["decision"], "cancelled");
}
