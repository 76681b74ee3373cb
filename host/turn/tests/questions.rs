//! Questions about tool calls: what they carry, and calls that need no question. A turn without input.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use flow::ports::{BoxFuture, Confirm, Question};
use flow::{Answer, ErrorClass, Event, EventKind, Message, RunPosition, TurnStatus};
use tidegate_kit::{Scene, Script, calls, rule_set, text};
use tidegate_turn as turn;
use turn::{CancellationToken, Session};

fn scene(scripts: impl IntoIterator<Item = Script>) -> Scene {
    Scene::new(scripts, vec![], rule_set(&[], |_| {}))
}

fn questions(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event.kind, EventKind::ToolConfirmationRequested { .. })).count()
}

/// Approves everything and keeps what it was asked.
#[derive(Default)]
struct Asked(std::sync::Mutex<Vec<Question>>);

impl Confirm for Asked {
    fn confirm<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Answer> {
        self.0.lock().unwrap().push(question.clone());
        Box::pin(async { Answer::Approve })
    }
}

#[tokio::test]
async fn a_question_carries_its_session_position_call_and_preview() {
    let arguments = r#"{"command":"ls\r","n":1}"#;
    let model = tidegate_kit::ScriptedModel::new(vec![calls(&[("1", "shell", arguments)], 1), text("ok", 1)]);
    let asked = Arc::new(Asked::default());
    let mut parts = tidegate_kit::parts(&model, vec![], rule_set(&[], |_| {}));
    parts.confirm = Arc::<Asked>::clone(&asked);
    let id = parts.id.clone();
    let report = Session::open(parts).await.unwrap().run(vec![Message::user("go")], &CancellationToken::new()).await;
    assert_eq!(report.status, TurnStatus::Completed);
    let asked = asked.0.lock().unwrap();
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((&question.session, question.place), (&id, RunPosition { turn: 1, step: 1, attempt: 1 }));
    assert_eq!((question.call.id.as_str(), question.call.arguments.as_str()), ("1", arguments));
    assert_eq!(question.reason, "shell is set to ask");
    let shown: Vec<(&str, &str)> =
        question.preview.arguments.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    assert_eq!(shown, [("command", "ls\r"), ("n", "1")]);
}

#[tokio::test]
async fn a_key_that_occurs_twice_runs_nothing_and_asks_nobody() {
    let twice = r#"{"command":"ls","comm\u0061nd":"rm -rf ."}"#;
    let wanted = [("1", "shell", twice), ("2", "read", r#"{"a":{"b":1,"b":2}}"#)];
    let mut scene = scene([calls(&wanted, 1), text("ok", 1)]);
    let (_, events) = scene.turn("go").await;
    assert_eq!(questions(&events), 0);
    let request = &scene.model.request(1)[2].1;
    for part in ["the key \"command\" occurs twice", "the key \"b\" occurs twice", "Write each key once."] {
        assert!(request.replace("\\\"", "\"").contains(part), "{part}: {request}");
    }
    assert!(!request.contains("done:"), "{request}");
}

#[tokio::test]
async fn a_turn_without_input_asks_nobody_and_is_not_completed() {
    let mut scene = scene([text("unasked", 1)]);
    let report = scene.session.run(Vec::new(), &CancellationToken::new()).await;
    let TurnStatus::Failed { class: ErrorClass::Permanent, message } = &report.status else { panic!("{report:?}") };
    assert!(message.contains("no messages"), "{message}");
    assert_eq!((scene.model.asked(), report.text.as_str()), (0, ""));
}
