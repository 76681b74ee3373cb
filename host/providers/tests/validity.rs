//! Whatever is in a conversation, its request is one that the vendor of the format takes: by a judge that reads what vendors publish
//! (`tests/corpus/providers/published`), and shares nothing with the code that writes requests.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use flow::{CallId, Image, Message, Origin, Part, Prompt, Role, ToolCall, ToolResult, ToolSpec};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use tidegate_kit::judge::{problems, sources};
use tidegate_providers::{HttpConfig, Wire, encode};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

fn body(wire: Wire, prompt: &Prompt, thinking: bool) -> Value {
    let model = if wire == Wire::Anthropic { "claude-sonnet-4-5" } else { "gpt-5" };
    let thinking_budget = thinking.then_some(2048);
    let config = HttpConfig { thinking_budget, ..HttpConfig::new(wire, model) };
    serde_json::from_slice(&encode(&config, prompt).unwrap()).unwrap()
}

/// Texts that somebody's server refuses.
fn texts() -> impl Strategy<Value = String> {
    select(vec![
        "",
        " \n",
        "\0",
        "words",
        "\0 and NUL",
        "trailing \n",
        "\u{fffd}\u{feff}",
        "\u{a0}",
        "🌊",
        "\\u0000",
        "{}",
    ])
    .prop_map(str::to_owned)
}

fn names() -> impl Strategy<Value = String> {
    let long = "n".repeat(200);
    let names = vec![
        "read_file",
        "functions.read_file",
        "read_file<|channel|>commentary",
        "read_file\" path=\"a",
        "",
        " ",
        "читать",
        "read file",
        "a\0b",
        "_",
    ];
    prop_oneof![select(names).prop_map(str::to_owned), Just(long)]
}

fn ids() -> impl Strategy<Value = String> {
    let long = "i".repeat(300);
    let ids =
        vec!["call_1", "call_1", "toolu_01", "", "call:1/x", "functions.read_file:0", "ü", "a b", "\0", "fc_1|call_2"];
    prop_oneof![select(ids).prop_map(str::to_owned), Just(long)]
}

fn arguments() -> impl Strategy<Value = String> {
    let cases = vec![
        "",
        "{}",
        "{\"path\":\"a\"}",
        "[1]",
        "null",
        "{\"path\": \"a",
        "{\"a\":\"\\u0000\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\\\u0000\"}",
        "{\"a\":1e999}",
        "\0",
        "{\"a\":1}{\"b\":2}",
        "\"{}\"",
    ];
    select(cases).prop_map(str::to_owned)
}

fn seals() -> impl Strategy<Value = Option<String>> {
    let seals = vec![
        "",
        "EqQBCgIYAhIM==",
        "{\"id\":\"rs_1\",\"encrypted_content\":\"gAAA\"}",
        "{\"id\":\"\",\"encrypted_content\":\"\"}",
        "{",
        "\0",
    ];
    prop_oneof![Just(None), select(seals).prop_map(|seal| Some(seal.to_owned()))]
}

fn image() -> impl Strategy<Value = Part> {
    select(vec![("image/png", "iVBORw0KGgo="), ("image/jpeg", "/9j/4AAQ")])
        .prop_map(|(kind, data)| Part::Image(Image::new(kind, data).unwrap()))
}

fn parts() -> impl Strategy<Value = Part> {
    prop_oneof![
        3 => texts().prop_map(Part::Text),
        1 => image(),
        2 => (texts(), seals(), any::<bool>())
            .prop_map(|(text, signature, redacted)| Part::Thinking { text, signature, redacted, shown: None }),
        4 => (ids(), names(), arguments())
            .prop_map(|(id, name, arguments)| Part::ToolCall(ToolCall { id: CallId::new(id), name, arguments })),
        3 => (ids(), vec(texts(), 0..3), any::<bool>()).prop_map(|(id, content, is_error)| {
            Part::ToolResult(ToolResult { call: CallId::new(id), content, is_error })
        }),
    ]
}

fn messages() -> impl Strategy<Value = Vec<Arc<Message>>> {
    let role = select(vec![Role::System, Role::User, Role::Assistant, Role::Assistant, Role::Tool]);
    let message = (role, vec(parts(), 0..5), any::<bool>())
        .prop_map(|(role, parts, hidden)| Arc::new(Message { role, origin: Origin::Host, parts, hidden }));
    vec(message, 0..10)
}

fn tools() -> impl Strategy<Value = Vec<ToolSpec>> {
    let schema = select(vec![
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        json!({"anyOf": [{"type": "object", "properties": {"a": {}}}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"type": "object"}}}),
        json!({"$ref": "#/$defs/b", "$defs": {"b": {"type": "object", "properties": {"list": {"type": "array"}}}}}),
        json!({"type": "object"}),
        json!({}),
        json!(true),
        json!({"type": "object", "properties": {"a": {"description": "\0"}}, "additionalProperties": false}),
    ]);
    // Names of tools are unique in a session.
    vec((names(), texts(), schema), 0..4).prop_map(|tools| {
        let mut specs: Vec<ToolSpec> = Vec::new();
        for (name, description, parameters) in tools {
            if !specs.iter().any(|spec| spec.name == name) {
                specs.push(ToolSpec { name, description, parameters });
            }
        }
        specs
    })
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
    ]});
    let found = problems("openai-responses", &responses).join("\n");
    for expected in ["No tool output", "No tool call", "begins with 'rs'", "encrypted_content", "following item"] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
}
