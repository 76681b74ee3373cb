//! Whatever is in a conversation, its request is one that the vendor of the format takes: by a judge that reads what vendors publish
//! (`tests/corpus/providers/published`), and shares nothing with the code that writes requests.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use flow::{Message, Origin, Prompt, Role};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_kit::judge::{problems, sources};
use tidegate_providers::{HttpConfig, encode};
use wire::Wire;

use crate::conversations::random::{messages, texts, tools};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

fn body(wire: Wire, prompt: &Prompt, thinking: bool) -> Value {
    let model = if wire == Wire::Anthropic { "claude-sonnet-4-5" } else { "gpt-5" };
    let thinking_budget = thinking.then_some(2048);
    let config = HttpConfig { thinking_budget, ..HttpConfig::new(wire, model) };
    serde_json::from_slice(&encode(&config, prompt).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_request_is_valid(messages in messages(), tools in tools(), system in vec(texts(), 0..3), thinking: bool) {
        let system = system.iter().map(|text| text.as_str().into()).collect();
        let prompt = Prompt { system, messages, tools, max_tokens: Some(4096) };
        for wire in WIRES {
            let body = body(wire, &prompt, thinking);
            let found = problems(wire.as_str(), &body);
            prop_assert!(found.is_empty(), "{}: {found:#?}\n{body:#}", wire.as_str());
            prop_assert_eq!(&body, &self::body(wire, &prompt, thinking), "the same request twice");
        }
    }

    /// What follows changes nothing of what precedes it: a provider's cache keeps the start of the conversation.
    #[test]
    fn a_longer_conversation_begins_the_same(messages in messages(), more in messages()) {
        let prompt = |messages: Vec<Arc<Message>>| Prompt { messages, ..Prompt::default() };
        let user = || Arc::new(Message::user("And now?"));
        let short: Vec<_> = messages.into_iter().chain([user()]).collect();
        let long: Vec<_> = short.iter().cloned().chain([Arc::new(Message::text(Role::Assistant, Origin::Model, "This."))]).chain(more).collect();
        for (wire, key) in [(Wire::OpenAiChat, "messages"), (Wire::OpenAiResponses, "input")] {
            let (short, long) = (body(wire, &prompt(short.clone()), false), body(wire, &prompt(long.clone()), false));
            let (short, long) = (short[key].as_array().unwrap(), long[key].as_array().unwrap());
            prop_assert_eq!(&long[..short.len()], &short[..]);
        }
    }
}

/// A limit without a source is somebody's guess.
#[test]
fn every_published_limit_has_a_source() {
    let sources = sources();
    assert!(sources.len() > 20, "{sources:?}");
    for (limit, source) in sources {
        assert!(source.len() > 20, "{limit}: {source}");
    }
}

/// The judge refuses what it should: a case for each of its rules.
#[test]
fn the_judge_finds_what_is_wrong() {
    let user = json!({"role": "user", "content": [{"type": "text", "text": "Hi."}]});
    let call =
        |id: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "a", "input": {}}]});
    let result =
        |id: &str| json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": []}]});
    let ends = |text: &str| json!({"role": "assistant", "content": [{"type": "text", "text": text}]});
    let tools = json!([{"name": "a", "input_schema": {"type": "object"}}]);
    let cases = [
        (json!([]), "at least one message"),
        (json!([call("a"), result("a")]), "\"user\" role"),
        (json!([user, user]), "alternate"),
        (json!([user, call("a"), user]), "without `tool_result`"),
        (json!([user, call("a"), result("a"), call("a"), result("a")]), "must be unique"),
        (json!([user, call("a b"), result("a b")]), "match pattern"),
        (json!([user, call("a"), result("b")]), "unexpected `tool_use_id`"),
        (json!([user, ends("so ")]), "trailing whitespace"),
        (json!([user, ends("\0")]), "\\u0000"),
        (json!([user, ends(" ")]), "non-whitespace"),
        (
            json!([user, {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "a"}]}]),
            "final block",
        ),
    ];
    for (messages, expected) in cases {
        let found = problems("anthropic", &json!({"messages": messages, "tools": tools}));
        assert!(found.iter().any(|found| found.contains(expected)), "{messages}: {found:?}");
    }
    let chat = json!({"messages": [
        {"role": "user", "content": "Hi."},
        {"role": "user", "content": " "},
        {"role": "assistant", "tool_calls": [{"id": "", "function": {"name": "a.b", "arguments": "[]"}}]},
        {"role": "tool", "tool_call_id": "b", "content": ""},
    ], "tools": [{"function": {"name": "a", "parameters": {"anyOf": []}}}]});
    let found = problems("openai-chat", &chat).join("\n");
    for expected in [
        "alternate",
        "non-whitespace",
        "empty string",
        "match pattern",
        "JSON object",
        "'role': 'tool'",
        "anyOf",
        "properties",
    ] {
        assert!(found.contains(&expected.replace("'role': 'tool'", "role 'tool'")), "{expected}: {found}");
    }
    let responses = json!({"input": [
        {"type": "function_call", "call_id": "a", "name": "a", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": ""},
        {"type": "reasoning", "id": "x", "encrypted_content": ""},
        {"type": "message", "content": [{"type": "input_image", "image_url": "data:image/png;base64,"}]},
    ], "max_output_tokens": 15});
    let found = problems("openai-responses", &responses).join("\n");
    for expected in [
        "No tool output",
        "No tool call",
        "begins with 'rs'",
        "encrypted_content",
        "following item",
        "detail",
        "max_output_tokens",
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
}
