//! Transcripts of conversations: what a session's loop records, recorded from the requests and answers of an exchange.

use std::sync::Arc;
use std::time::Duration;

use flow::{AnswerBlock, CallId};
use gateway::{Answer, Asked, Trail, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::event::StreamKind;
use tidegate::gateway::{ConversationLimits, ConversationOptions, Conversations, Visit};
use tidegate::{EventKind, SessionId};

use super::support::builder;

const WIRE: Wire = Wire::Anthropic;

async fn keeper(folder: &TempDir, sessions: &TempDir, limits: ConversationLimits) -> Arc<Conversations> {
    let settings = format!("[transcript]\nenabled = true\nfolder = {:?}\n", sessions.path());
    let host = builder(&settings).without_model().open().await.unwrap();
    Conversations::new(host, ConversationOptions::new(folder.path()), limits)
}

/// The records of a conversation that was closed.
fn records(sessions: &TempDir, id: &SessionId) -> Vec<Value> {
    let host = builder(&format!("[transcript]\nenabled = true\nfolder = {:?}\n", sessions.path())).without_model();
    let store = host.transcripts().unwrap().unwrap();
    store.read(id).unwrap().records::<Value>().map(|entry| entry.unwrap().record).collect()
}

fn types(records: &[Value]) -> Vec<&str> {
    records.iter().filter_map(|record| record["type"].as_str()).collect()
}

/// Returns an accepted answer of the model, as its event.
fn out(text: &str, blocks: Vec<AnswerBlock>) -> EventKind {
    EventKind::CognitionOut {
        text: text.to_owned(),
        keep: flow::KeptText::Original,
        model: Some("opus".to_owned()),
        author: flow::Origin::Model,
        shown: None,
        partial: None,
        retained: flow::Retained::Answer,
        blocks,
        annotations: Vec::new(),
        rewrites: Vec::new(),
    }
}

async fn exchange(keeper: &Arc<Conversations>, messages: &Value, out: EventKind, answer: Answer) -> SessionId {
    let request = json!({"model": "opus", "messages": messages});
    let visit = keeper.enter(Trail::of(WIRE, &request, |_| None, None, b"key")).await.unwrap();
    visit.asked(&Asked::of(WIRE, request.to_string().as_bytes()), "anthropic", "opus");
    visit.happened([out]);
    visit.end(&visit.rules(), Some(&answer)).await.unwrap();
    visit.conversation().id().clone()
}

/// A turn of two requests. `between`: what happens while the client runs the tool.
async fn turn_with_a_call(keeper: &Arc<Conversations>, between: impl AsyncFnOnce()) -> SessionId {
    let kind = StreamKind::Tool { call: CallId::new("toolu_1"), name: "Read".to_owned() };
    let mut first = Answer::default();
    first.blocks = vec![(StreamKind::Text, "I read.".to_owned()), (kind.clone(), "{}".to_owned())];
    first.usage.output = Some(7);
    let mut call = AnswerBlock::prose(kind, 2);
    call.arguments = Some(r#"{"path":"a"}"#.to_owned());
    let blocks = vec![AnswerBlock::prose(StreamKind::Text, 7), call];
    let id = exchange(keeper, &json!([{"role": "user", "content": "Read a"}]), out("I read.", blocks), first).await;
    between().await;
    let used = json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"});
    let messages = json!([
        {"role": "user", "content": "Read a"}, {"role": "assistant", "content": [{"type": "text", "text": "I read."}, used]},
        {"role": "user", "content": [result]},
    ]);
    let mut second = Answer::default();
    second.blocks = vec![(StreamKind::Text, "Done.".to_owned())];
    let blocks = vec![AnswerBlock::prose(StreamKind::Text, 5)];
    assert_eq!(exchange(keeper, &messages, out("Done.", blocks), second).await, id);
    id
}

/// The records of [`turn_with_a_call`].
const TURN_WITH_A_CALL: [&str; 14] = [
    "thread_started",
    "turn_start",
    "input_received",
    "cognition_in",
    "step_start",
    "cognition_out",
    "tool_call_start",
    "step_finish",
    "tool_call_result",
    "step_start",
    "cognition_out",
    "step_finish",
    "turn_finish",
    "thread_completed",
];

#[tokio::test]
async fn a_turn_over_two_requests_is_recorded_as_one() {
    let (folder, sessions) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let keeper = keeper(&folder, &sessions, ConversationLimits::default()).await;
    let id = turn_with_a_call(&keeper, async || ()).await;
    keeper.close().await;
    let records = records(&sessions, &id);
    assert_eq!(types(&records), TURN_WITH_A_CALL);
    let of = |kind: &str| records.iter().find(|record| record["type"] == kind).unwrap()["payload"].clone();
    assert_eq!(of("input_received")["text"], "Read a");
    assert_eq!((&of("tool_call_start")["tool"], &of("tool_call_result")["tool"]), (&json!("Read"), &json!("Read")));
    assert_eq!(of("thread_started")["model"], "opus");
}

#[tokio::test]
async fn a_turn_is_one_where_its_tool_takes_longer_than_the_conversation_stays_in_memory() {
    let (folder, sessions) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut limits = ConversationLimits::default();
    limits.idle = Duration::from_millis(20);
    let keeper = keeper(&folder, &sessions, limits).await;
    let closed = async || {
        while keeper.counts().open > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let id = turn_with_a_call(&keeper, closed).await;
    keeper.close().await;
    let records = records(&sessions, &id);
    assert_eq!(types(&records), TURN_WITH_A_CALL);
    let steps = records.iter().filter(|record| record["type"] == "step_start");
    let steps: Vec<_> = steps.map(|one| (&one["turn"], &one["step"], &one["payload"]["turn_number"])).collect();
    assert_eq!(steps, [(&json!(1), &json!(1), &json!(1)), (&json!(1), &json!(2), &json!(2))]);
}

/// A request with the result of a call.
async fn result(keeper: &Arc<Conversations>) -> Visit {
    let used = json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"});
    let messages = json!([
        {"role": "user", "content": "Read a"}, {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
    ]);
    asked(keeper, &messages).await
}

fn says(kind: StreamKind, text: &str) -> Answer {
    let mut answer = Answer::default();
    answer.blocks = vec![(kind, text.to_owned())];
    answer
}

#[tokio::test]
async fn concurrent_exchanges_of_a_turn_finish_it_once() {
    let (folder, sessions) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let call = || says(StreamKind::Tool { call: CallId::new("toolu_1"), name: "Read".to_owned() }, "{}");
    // The client aborts one exchange and asks again; the gateway learns of it before the answer to the other, after it, or never.
    for aborted_ends in [Some(true), Some(false), None] {
        let keeper = keeper(&folder, &sessions, ConversationLimits::default()).await;
        let first = question(&keeper, "Read a").await;
        first.end(&first.rules(), Some(&call())).await.unwrap();
        let (aborted, retry) = (result(&keeper).await, result(&keeper).await);
        let end = async |visit: &Visit, answer: Option<Answer>| {
            visit.end(&visit.rules(), answer.as_ref()).await.unwrap();
        };
        let done = Some(says(StreamKind::Text, "Done."));
        match aborted_ends {
            Some(true) => (end(&aborted, None).await, end(&retry, done).await),
            Some(false) => (end(&retry, done).await, end(&aborted, None).await),
            None => (drop(aborted), end(&retry, done).await),
        };
        let id = first.conversation().id().clone();
        drop((first, retry));
        keeper.close().await;
        let records = records(&sessions, &id);
        let begin = records.iter().rposition(|one| one["type"] == "turn_start").unwrap();
        let count = |kind: &str| records[begin..].iter().filter(|one| one["type"] == kind).count();
        assert_eq!((count("step_start"), count("step_finish"), count("turn_finish")), (3, 3, 1), "{aborted_ends:?}");
        let finish = records.iter().rfind(|one| one["type"] == "turn_finish").unwrap();
        assert_eq!(finish["payload"]["status"], "completed", "{aborted_ends:?}");
    }
}

#[tokio::test]
async fn events_of_an_exchange_whose_turn_is_over_are_not_recorded_in_the_next() {
    let (folder, sessions) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let keeper = keeper(&folder, &sessions, ConversationLimits::default()).await;
    let before = question(&keeper, "Read a").await;
    let next = question(&keeper, "Read b").await;
    before.happened([out("late", Vec::new())]);
    next.happened([out("Done.", Vec::new())]);
    next.end(&next.rules(), Some(&says(StreamKind::Text, "Done."))).await.unwrap();
    let id = next.conversation().id().clone();
    drop((before, next));
    keeper.close().await;
    let records = records(&sessions, &id);
    let outs = records.iter().filter(|one| one["type"] == "cognition_out").map(|one| &one["payload"]["text"]);
    assert_eq!(outs.collect::<Vec<_>>(), ["Done."]);
}

/// A question in the conversation that a header names.
async fn question(keeper: &Arc<Conversations>, text: &str) -> Visit {
    asked(keeper, &json!([{"role": "user", "content": text}])).await
}

/// A request in that conversation, which goes to the model.
async fn asked(keeper: &Arc<Conversations>, messages: &Value) -> Visit {
    let request = json!({"model": "opus", "messages": messages});
    let visit = keeper.enter(Trail::of(WIRE, &request, |_| Some("one"), Some("x-own"), b"key")).await.unwrap();
    visit.asked(&Asked::of(WIRE, request.to_string().as_bytes()), "anthropic", "opus");
    visit
}

#[tokio::test]
async fn a_turn_without_an_answer_is_cancelled_by_the_next_question() {
    let (folder, sessions) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    // Its client has gone; the gateway learns of it before the next question, after it, or never.
    for learns in [Some(false), Some(true), None] {
        let keeper = keeper(&folder, &sessions, ConversationLimits::default()).await;
        let aborted = question(&keeper, "Read a").await;
        let next = match learns {
            Some(true) => {
                aborted.end(&aborted.rules(), None).await.unwrap();
                question(&keeper, "Read b").await
            }
            Some(false) => {
                let next = question(&keeper, "Read b").await;
                aborted.end(&aborted.rules(), None).await.unwrap();
                next
            }
            None => {
                drop(aborted);
                question(&keeper, "Read b").await
            }
        };
        let mut answer = Answer::default();
        answer.blocks = vec![(StreamKind::Text, "Done.".to_owned())];
        next.end(&next.rules(), Some(&answer)).await.unwrap();
        let id = next.conversation().id().clone();
        drop(next);
        keeper.close().await;
        let records = records(&sessions, &id);
        let ends = records.iter().filter(|one| one["type"] == "step_finish" || one["type"] == "turn_finish");
        let ends: Vec<_> = ends.map(|one| (one["turn"].clone(), one["payload"]["status"].clone())).collect();
        let (none, cancelled, completed) = (Value::Null, json!("cancelled"), json!("completed"));
        assert_eq!(
            ends,
            [(json!(1), none.clone()), (json!(1), cancelled), (json!(2), none), (json!(2), completed)],
            "{learns:?}: {records:#?}"
        );
    }
}
