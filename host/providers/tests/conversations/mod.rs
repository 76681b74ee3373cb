//! Conversations that requests are made of: written ones by name, those of the corpus (`items.json`, recorded sessions), and random ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use flow::{CallId, Image, Message, Origin, Part, Prompt, Role, ToolCall, ToolResult, ToolSpec};
use serde_json::json;

pub(crate) mod corpus;
pub(crate) mod random;

pub(crate) fn call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall { id: CallId::new(id), name: name.into(), arguments: arguments.into() })
}

pub(crate) fn result(id: &str, content: &[&str], is_error: bool) -> Part {
    let content = content.iter().map(|text| (*text).to_owned()).collect();
    Part::ToolResult(ToolResult { call: CallId::new(id), content, is_error })
}

pub(crate) fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> Part {
    Part::Thinking { text: text.into(), signature: signature.map(str::to_owned), redacted, shown: None }
}

pub(crate) fn text(words: &str) -> Part {
    Part::Text(words.into())
}

pub(crate) fn message(role: Role, parts: Vec<Part>) -> Message {
    let origin = if role == Role::Assistant { Origin::Model } else { Origin::Host };
    Message { role, origin, parts, hidden: false }
}

pub(crate) fn reminder(words: &str) -> Message {
    Message { hidden: true, ..Message::text(Role::User, Origin::Host, words) }
}

pub(crate) fn prompt(messages: Vec<Message>) -> Prompt {
    Prompt { messages: messages.into_iter().map(Arc::new).collect(), ..Prompt::default() }
}

/// The conversations, by name.
pub(crate) fn conversations() -> Vec<(&'static str, Prompt)> {
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

pub(crate) fn plain() -> Prompt {
    prompt(vec![Message::user("Grüße, \"Hafen\"!\n🌊")])
}

/// Two calls at once after signed thinking, one of them failed; each result with a reminder before the tool's own words.
pub(crate) fn tools() -> Prompt {
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
pub(crate) fn kept() -> Prompt {
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
