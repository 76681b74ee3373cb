//! Transcripts of conversations: what a session's loop records, recorded from the requests and answers of an exchange.

use std::sync::Arc;

use flow::{AnswerBlock, CallId};
use gateway::{Answer, Asked, Trail, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::event::StreamKind;
use tidegate::gateway::{ConversationLimits, ConversationOptions, Conversations};
use tidegate::{EventKind, SessionId};

use super::support::builder;

const WIRE: Wire = Wire::Anthropic;

async fn keeper(folder: &TempDir, sessions: &TempDir) -> Arc<Conversations> {
    let settings = format!("[transcript]\nenabled = true\nfolder = {:?}\n", sessions.path());
    let host = builder(&settings).without_model().open().await.unwrap();
    Conversations::new(host, ConversationOptions::new(folder.path()), ConversationLimits::default())
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

#[tokio::test]
async fn a_turn_over_two_requests_is_recorded_as_one() {
    let (folder, sessions) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let keeper = keeper(&folder, &sessions).await;
    let kind = StreamKind::Tool { call: CallId::new("toolu_1"), name: "Read".to_owned() };
    let mut first = Answer::default();
    first.blocks = vec![(StreamKind::Text, "I read.".to_owned()), (kind.clone(), "{}".to_owned())];
    first.usage.output = Some(7);
    let mut call = AnswerBlock::prose(kind, 2);
    call.arguments = Some(r#"{"path":"a"}"#.to_owned());
    let blocks = vec![AnswerBlock::prose(StreamKind::Text, 7), call];
    let id = exchange(&keeper, &json!([{"role": "user", "content": "Read a"}]), out("I read.", blocks), first).await;
    let used = json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"});
    let messages = json!([
        {"role": "user", "content": "Read a"}, {"role": "assistant", "content": [{"type": "text", "text": "I read."}, used]},
        {"role": "user", "content": [result]},
    ]);
    let mut second = Answer::default();
    second.blocks = vec![(StreamKind::Text, "Done.".to_owned())];
    let blocks = vec![AnswerBlock::prose(StreamKind::Text, 5)];
    assert_eq!(exchange(&keeper, &messages, out("Done.", blocks), second).await, id);
    keeper.close().await;
    let host = builder(&format!("[transcript]\nenabled = true\nfolder = {:?}\n", sessions.path())).without_model();
    let store = host.transcripts().unwrap().unwrap();
    let records: Vec<Value> = store.read(&id).unwrap().records::<Value>().map(|entry| entry.unwrap().record).collect();
    let types: Vec<&str> = records.iter().filter_map(|record| record["type"].as_str()).collect();
    assert_eq!(
        types,
        [
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
        ]
    );
    let of = |kind: &str| records.iter().find(|record| record["type"] == kind).unwrap()["payload"].clone();
    assert_eq!(of("input_received")["text"], "Read a");
    assert_eq!((&of("tool_call_start")["tool"], &of("tool_call_result")["tool"]), (&json!("Read"), &json!("Read")));
    assert_eq!(of("thread_started")["model"], "opus");
}
