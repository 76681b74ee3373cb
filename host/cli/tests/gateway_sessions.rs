//! Conversations of a gateway are sessions: `session list`, `show`, `follow` and `export`, `explain` and `state` work on their records.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::gateway::{
    Asked, ConversationLimits, ConversationOptions, Conversations, Exchange, Filtered, Next, Received, Then, Trail,
    Wire,
};
use tidegate::native::{CallError, Native, NativeCall, NativeExtension, TextAnswer, TextPlace};
use tidegate::plugin::{Callback, TextUnit};
use tidegate::rule::{RuleAction, RuleSpec};
use tidegate::{Host, Operator};

use crate::support::{Place, code, err, out};

const WIRE: Wire = Wire::Anthropic;

/// Replaces a placeholder by its value for the client, as `mask-secrets` does.
struct Unmask;

impl NativeExtension for Unmask {
    fn on_plain_text(&self, _: &NativeCall, text: &str, _: &TextPlace) -> Result<TextAnswer, CallError> {
        match text.contains("[KEY-1]") {
            true => Ok(TextAnswer::Replace(text.replace("[KEY-1]", "hunter2"))),
            false => Ok(TextAnswer::Pass),
        }
    }
}

/// Returns an answer as its provider streams it.
fn answer(text: &str) -> String {
    let event = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let usage = json!({"input_tokens": 11, "output_tokens": 1});
    [
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "opus",
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
    .map(event)
    .concat()
}

/// One exchange in which the model gives these answers. Returns what the client has received.
async fn exchange(keeper: &Arc<Conversations>, request: &Value, answers: &[&str]) -> String {
    streamed(keeper, request, &answers.iter().map(|text| answer(text)).collect::<Vec<_>>()).await
}

/// The same with the bytes of the answers.
async fn streamed(keeper: &Arc<Conversations>, request: &Value, answers: &[String]) -> String {
    let body = request.to_string();
    let visit = keeper.enter(Trail::of(WIRE, request, |_| None, None, b"key")).await.unwrap();
    visit.asked(&Asked::of(WIRE, body.as_bytes()), "anthropic", "opus");
    let exchange = Exchange::new(WIRE, body.into(), "opus", visit.rules());
    let mut own = Filtered::new(exchange, "opus", Some(visit.conversation().caller()), Arc::default());
    let mut received = Received::new(WIRE, true);
    for bytes in answers {
        own.begin(true);
        let Next { send, then } = own.receive(bytes.as_bytes(), Duration::ZERO).await;
        visit.happened(own.take_events());
        received.push(&send);
        assert_ne!(then, Then::Break);
    }
    let answer = received.finish();
    visit.end(own.exchange().rules(), Some(&answer)).await.unwrap();
    answer.text()
}

/// Conversations that are recorded, with a rule and a plugin.
async fn keeper(place: &Place) -> Arc<Conversations> {
    let settings = format!(
        "[rules]\nbuiltin_rules = false\n[transcript]\nenabled = true\nfolder = {:?}\n[state]\nbackend = \"disk\"\nfolder = {:?}\n",
        place.path("state/tidegate/sessions"),
        place.path("state/tidegate/state")
    );
    let operator = Operator::of_source(&tidegate::diagnostic::SourceFile::new("tidegate.toml", settings)).unwrap();
    let rule = RuleSpec::new("no-todo", "Finish the work.").condition(r"\bTODO\b").scope("text");
    let never = RuleSpec::new("never", "Stop.").condition("FORBIDDEN").scope("text").action(RuleAction::Stop);
    let unmask = Native::new("unmask".parse().unwrap(), Unmask).on(Callback::PlainText(TextUnit::Line.into()));
    let host = Host::builder(operator).user_rules(None).cache_dir(None).rule(rule).rule(never).extension(unmask);
    let host = host.without_model().open().await.unwrap();
    Conversations::new(host, ConversationOptions::new(place.path("")), ConversationLimits::default())
}

/// A recorded conversation: a rule stopped an answer, and a plugin has changed another.
fn record(place: &Place) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let keeper = keeper(place).await;
        let first = json!({"model": "opus", "messages": [{"role": "user", "content": "Write the function"}]});
        let sent = exchange(&keeper, &first, &["Here: TODO later\n", "Here it is.\n"]).await;
        assert!(sent.contains("Here it is.") && !sent.contains("TODO"), "{sent}");
        let second = json!({"model": "opus", "messages": [
            {"role": "user", "content": "Write the function"}, {"role": "assistant", "content": sent},
            {"role": "user", "content": "Which key is [KEY-1]?"},
        ]});
        let sent = exchange(&keeper, &second, &["It is [KEY-1].\n"]).await;
        assert!(sent.contains("It is hunter2."), "{sent}");
        keeper.close().await;
    });
}

#[test]
fn calls_of_a_client_have_run() {
    let place = Place::new();
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let keeper = keeper(&place).await;
        let request = json!({"model": "opus", "messages": [
            {"role": "user", "content": "List the files"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "list", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}]},
        ]});
        exchange(&keeper, &request, &["There is one.\n"]).await;
        keeper.close().await;
    });
    let listed = place.json(&["session", "list", "--json"]);
    let shown = out(&place.run(&["session", "show", listed["sessions"][0]["session"].as_str().unwrap()]));
    assert!(shown.contains("a.txt (run by the client)"), "{shown}");
}

#[test]
fn the_commands_of_sessions_work_on_what_was_recorded() {
    let place = Place::new();
    record(&place);
    let listed = place.json(&["session", "list", "--json"]);
    let sessions = listed["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{listed}");
    let id = sessions[0]["session"].as_str().unwrap();
    assert!(id.starts_with("gateway-"), "{id}");
    let shown = |arguments: &[&str]| {
        let output = place.run(arguments);
        assert_eq!(code(&output), 0, "{arguments:?}: {}", err(&output));
        let text = out(&output);
        assert!(!text.contains("hunter2"), "{arguments:?}: what a plugin keeps from the model is in no record\n{text}");
        text
    };
    let text = shown(&["session", "show", id]);
    for part in ["Write the function", "Here it is.", "no-todo", "Which key is [KEY-1]?", "[changed by an extension]"] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let markdown = shown(&["session", "export", id]);
    assert!(markdown.contains("Write the function") && markdown.contains("no-todo"), "{markdown}");
    assert!(shown(&["session", "export", id, "--format", "html"]).contains("It is [KEY-1]."));
    let explained = shown(&["explain", "--session", id]);
    assert!(explained.contains("unmask"), "{explained}");
    assert!(shown(&["session", "show", id, "--rules"]).contains("no-todo"));
    let mut following = place.command(&["session", "follow", id, "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let types = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()["type"].clone());
    let types: Vec<Value> = types.take_while(|kind| kind != "thread_completed").collect();
    following.kill().unwrap();
    following.wait().unwrap();
    for kind in [
        "thread_started",
        "turn_start",
        "input_received",
        "rule_fired",
        "ttsr_injection",
        "cognition_out",
        "extension_callback",
    ] {
        assert!(types.contains(&json!(kind)), "{kind} is not in {types:?}");
    }
    assert_eq!(types.iter().filter(|kind| *kind == "turn_finish").count(), 2, "{types:?}");
}

#[test]
fn an_answer_that_the_gateway_ended_is_recorded() {
    let unreadable = answer("Fine.\n").replace("event: message_delta", "data: {broken\n\nevent: message_delta");
    for (bytes, text, why) in [
        (answer("Sure: FORBIDDEN\n"), "Sure: ", "the rule `never` stopped it"),
        (unreadable, "Fine.", "a part of it could not be read"),
    ] {
        let place = Place::new();
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let keeper = keeper(&place).await;
            let request = json!({"model": "opus", "messages": [{"role": "user", "content": "Go on"}]});
            let sent = streamed(&keeper, &request, &[bytes]).await;
            assert!(sent.contains("[Tidegate: "), "{sent}");
            keeper.close().await;
        });
        let listed = place.json(&["session", "list", "--json"]);
        let id = listed["sessions"][0]["session"].as_str().unwrap();
        let shown = out(&place.run(&["session", "show", id, "--json"]));
        let answers: Vec<&str> = shown.lines().filter(|line| line.contains("\"cognition_out\"")).collect();
        assert!(matches!(*answers, [one] if one.contains(text) && one.contains(why)), "{why}: {shown}");
    }
}
