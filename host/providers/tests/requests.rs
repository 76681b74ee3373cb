//! Conversations as they are sent: the bodies of `tests/corpus/providers/requests`, exactly, in each wire format; and
//! what all formats promise for any conversation.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::sync::Arc;

use flow::{AdditionId, CallId, Image, Message, Origin, Part, Prompt, Role, ToolCall, ToolResult, ToolSpec};
use serde_json::{Value, json};
use tidegate_providers::{HttpConfig, Wire, encode};

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall { id: CallId::new(id), name: name.into(), arguments: arguments.into() })
}

fn result(id: &str, content: &[&str], is_error: bool) -> Part {
    let content = content.iter().map(|text| (*text).to_owned()).collect();
    Part::ToolResult(ToolResult { call: CallId::new(id), content, is_error })
}

fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> Part {
    Part::Thinking { text: text.into(), signature: signature.map(str::to_owned), redacted, shown: None }
}

fn text(words: &str) -> Part {
    Part::Text(words.into())
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    let origin = if role == Role::Assistant { Origin::Model } else { Origin::Host };
    Message { role, origin, parts, hidden: false }
}

fn reminder(words: &str) -> Message {
    Message { hidden: true, ..Message::text(Role::User, Origin::Host, words) }
}

fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt { messages: messages.into_iter().map(Arc::new).collect(), ..Prompt::default() }
}

/// The conversations, by name.
fn conversations() -> Vec<(&'static str, Prompt)> {
    vec![
        ("plain", plain()),
        ("tools", tools()),
        ("reminders", reminders()),
        ("kept", kept()),
        ("odd", odd()),
        ("rewound", rewound()),
        ("interleaved", interleaved()),
        ("images", images()),
        ("poisoned", poisoned()),
    ]
}

fn plain() -> Prompt {
    prompt(vec![Message::user("Grüße, \"Hafen\"!\n🌊")])
}

/// Two calls at once after signed thinking, one of them failed; each result with a reminder before the tool's own words.
fn tools() -> Prompt {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let specs = [("read_file", "Reads a file."), ("list_dir", "Lists a folder.")];
    Prompt {
        system: vec!["You are a careful helper.".into(), "Answer briefly.".into(), " ".into()],
        tools: specs
            .map(|(name, description)| ToolSpec {
                name: name.into(),
                description: description.into(),
                parameters: parameters.clone(),
            })
            .into(),
        max_tokens: Some(4096),
        ..prompt(vec![
            Message::user("Read both."),
            message(
                Role::Assistant,
                vec![
                    thinking("Two files\n to read. ", Some("EqQBCgIYAhIM1gbcDa9GJwZA=="), false),
                    thinking("", Some("EmwKAhgBEgy3"), true),
                    text("I will read both."),
                    call("call_a", "read_file", "{\"path\": \"a.rs\"}"),
                    call("call_b", "list_dir", ""),
                ],
            ),
            message(
                Role::Tool,
                vec![result("call_a", &["<system-reminder>x</system-reminder>", "fn main() {}"], false)],
            ),
            message(Role::Tool, vec![result("call_b", &["path is missing"], true)]),
        ])
    }
}

/// Hidden messages of the host, between calls and results and after them.
fn reminders() -> Prompt {
    prompt(vec![
        Message::user("Go on."),
        message(Role::Assistant, vec![call("call_a", "grep", "{}")]),
        reminder("<system-interrupt>First.</system-interrupt>"),
        message(Role::Tool, vec![result("call_a", &["found"], false)]),
        reminder("<system-interrupt>Second.</system-interrupt>"),
        Message::text(Role::System, Origin::Host, "Third."),
        Message::user("And now?"),
    ])
}

/// An answer that was cut off and stays, unsigned thinking and all, and what is there of the next.
fn kept() -> Prompt {
    prompt(vec![
        Message::user("Tell me."),
        message(Role::Assistant, vec![thinking("Half a thou", None, false), text("The tide is ")]),
        reminder("Do not say high."),
        message(Role::Assistant, vec![text("The tide")]),
        message(Role::Assistant, vec![text(" is low.\n")]),
    ])
}

/// An answer that was stopped, the reminder before its kept prefix, from which the model continues.
fn rewound() -> Prompt {
    prompt(vec![
        Message::user("Tell me."),
        reminder("Do not say high."),
        message(Role::Assistant, vec![text("The tide comes and goes.")]),
    ])
}

/// Reasoning between blocks of text and before calls: what is signed keeps its place, and no two blocks become one. Each
/// format has its own seal, and leaves out the other's.
fn interleaved() -> Prompt {
    let sealed = "{\"id\":\"rs_1\",\"encrypted_content\":\"gAAAAABo\"}";
    prompt(vec![
        Message::user("Look twice."),
        message(
            Role::Assistant,
            vec![
                thinking("First I look.", Some("EqQBCgIYAhIM=="), false),
                thinking("I look.", Some(sealed), false),
                text("First. "),
                thinking("", Some("EmwKAhgBEgy3"), true),
                thinking("Then again.", Some("EqQBCgIYAhIN=="), false),
                text("Second."),
                thinking("Now the file.", Some("EqQBCgIYAhIO=="), false),
                call("call_a", "read_file", "{\"path\":\"a.rs\"}"),
                call("call_b", "read_file", "{\"path\":\"b.rs\"}"),
            ],
        ),
        message(Role::Tool, vec![result("call_b", &["b"], false)]),
        message(Role::Tool, vec![result("call_a", &["a"], false)]),
    ])
}

/// Images between words, alone, and where no provider takes one.
fn images() -> Prompt {
    let image = |media_type| {
        let head = match media_type {
            "image/png" => "iVBORw0KGgo=",
            "image/jpeg" => "/9j/4AAQ",
            "image/gif" => "R0lGODlh",
            _ => "UklGRiQAAABXRUJQVlA4",
        };
        Part::Image(Image::new(media_type, head).unwrap())
    };
    prompt(vec![
        message(
            Role::User,
            vec![text("What is in"), image("image/png"), text("and in"), image("image/webp"), text("?")],
        ),
        message(Role::Assistant, vec![text("Boats."), image("image/gif")]),
        message(Role::User, vec![image("image/jpeg")]),
    ])
}

/// What providers refuse: blank text, arguments that are not an object, ids and signatures of another provider.
fn odd() -> Prompt {
    prompt(vec![
        Message::user(" \n"),
        Message::user("Try."),
        message(
            Role::Assistant,
            vec![
                thinking("Plan.", Some("{\"id\":\"rs_1\",\"encrypted_content\":\"gAAAAABo\"}"), false),
                text("\n"),
                call("call:1/x", "write_file", "{\"path\": \"a"),
                call("call:2", "write_file", "[1]"),
            ],
        ),
        message(Role::Tool, vec![result("call:1/x", &["no JSON"], true), result("call:2", &[""], false)]),
        message(Role::Assistant, vec![]),
        Message::user("Again."),
    ])
}

/// Names that no provider takes, ids that come twice, a call without a result and a result without a call. An answer is the last.
fn poisoned() -> Prompt {
    let parameters = json!({"$schema": "http://json-schema.org/draft-07/schema#", "anyOf": [{"properties": {"city": {"type": "string"}}}]});
    let tool = ToolSpec { name: "weather.now".into(), description: "The weather.\0".into(), parameters };
    Prompt {
        tools: vec![tool],
        ..prompt(vec![
            message(Role::Assistant, vec![text("Hello.")]),
            Message::user("Look\0."),
            message(
                Role::Assistant,
                vec![
                    call("t1", "functions.list_dir", "{}"),
                    call("t2", "weather.now", "{\"city\":\"a\\u0000\"}"),
                    call("t1", "", "{}"),
                ],
            ),
            message(Role::Tool, vec![result("t2", &["rain"], false), result("t1", &["no such tool"], true)]),
            message(Role::Assistant, vec![call("t1", "list_dir<|channel|>commentary", "{}")]),
            message(Role::Tool, vec![result("t1", &["no such tool"], true), result("t9", &["lost"], false)]),
            message(Role::Assistant, vec![text("So be it. ")]),
        ])
    }
}

fn body(wire: Wire, prompt: &Prompt) -> Value {
    let mut config = HttpConfig::new(wire, if wire == Wire::Anthropic { "claude-sonnet-4-5" } else { "gpt-5" });
    if wire == Wire::OpenAiChat {
        config.base_url = Some("http://127.0.0.1:1/v1".into());
    }
    serde_json::from_slice(&encode(&config, prompt).unwrap()).unwrap()
}

#[test]
fn bodies_are_those_of_the_corpus() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/providers/requests");
    let bless = std::env::var_os("BLESS").is_some();
    let mut read = 0;
    for (name, prompt) in conversations() {
        for wire in WIRES {
            let path = format!("{folder}/{name}.{}.json", wire.as_str());
            let got = serde_json::to_string_pretty(&body(wire, &prompt)).unwrap() + "\n";
            if bless {
                fs::write(&path, &got).unwrap();
            }
            let expected = fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{path}: {cause}"));
            assert_eq!(got, expected, "{path}");
            read += 1;
        }
    }
    assert_eq!(read, 27);
}

/// The model gets an addition around the user's input in the same message as the input.
#[test]
fn additions_around_the_input_are_joined_with_it() {
    let added = |index, words: &str| {
        let origin = Origin::Addition(AdditionId { plugin: "a".parse().unwrap(), index });
        Message { hidden: true, ..Message::text(Role::User, origin, words) }
    };
    let separate = prompt(vec![added(0, "Before."), Message::user("Go."), added(1, "After.")]);
    let joined = prompt(vec![message(Role::User, vec![text("Before."), text("Go."), text("After.")])]);
    for wire in WIRES {
        assert_eq!(body(wire, &separate), body(wire, &joined));
    }
}

#[test]
fn options_reach_the_body() {
    let config = HttpConfig {
        max_tokens: Some(100),
        thinking_budget: Some(5000),
        effort: Some("low".into()),
        ..HttpConfig::new(Wire::Anthropic, "m")
    };
    let body = |config: &HttpConfig, prompt: &Prompt| -> Value {
        serde_json::from_slice(&encode(config, prompt).unwrap()).unwrap()
    };
    let long = Prompt { max_tokens: Some(20_000), ..plain() };
    assert_eq!(body(&config, &long)["thinking"], json!({"type": "enabled", "budget_tokens": 5000}));
    assert_eq!(body(&config, &long)["max_tokens"], 20_000);
    assert_eq!(body(&config, &plain())["max_tokens"], 100);
    assert_eq!(body(&config, &plain())["thinking"], Value::Null, "too little is left for thinking");
    assert_eq!(body(&HttpConfig::new(Wire::Anthropic, "m"), &plain())["max_tokens"], 8192);

    let chat = HttpConfig { wire: Wire::OpenAiChat, ..config.clone() };
    assert_eq!(body(&chat, &plain())["max_completion_tokens"], 100);
    assert_eq!(body(&chat, &plain())["reasoning_effort"], "low");
    let other = HttpConfig { base_url: Some("http://127.0.0.1:1".into()), ..chat };
    assert_eq!(body(&other, &plain())["max_tokens"], 100);
    assert_eq!(body(&other, &plain())["max_completion_tokens"], Value::Null);

    let responses = HttpConfig { wire: Wire::OpenAiResponses, ..config };
    assert_eq!(body(&responses, &plain())["reasoning"], json!({"effort": "low", "summary": "auto"}));
    assert_eq!(body(&responses, &plain())["include"], json!(["reasoning.encrypted_content"]));
    let old = HttpConfig { model: "gpt-4o-mini".into(), ..responses };
    assert_eq!(body(&old, &plain())["include"], Value::Null);
}

#[test]
fn signed_thinking_goes_back_byte_for_byte() {
    let body = body(Wire::Anthropic, &tools());
    let expected = json!({
        "type": "thinking",
        "thinking": "Two files\n to read. ",
        "signature": "EqQBCgIYAhIM1gbcDa9GJwZA==",
    });
    assert_eq!(body["messages"][1]["content"][0], expected);
    assert!(!self::body(Wire::Anthropic, &kept()).to_string().contains("Half a thou"));
}
