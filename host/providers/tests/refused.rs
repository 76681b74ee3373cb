//! A request that is refused for a part of the conversation is sent again without it, and so is every later one
//! (`tests/corpus/providers/refusals.json`).
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints its counts")]

use std::sync::Arc;

use flow::ports::Model;
use flow::{CallId, Image, Message, ModelError, Origin, Part, Prompt, Role, ToolCall, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::Value;
use tidegate_providers::{HttpConfig, ProviderConfig, connect};
use wire::Wire;

use crate::support::{Fixture, Script};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refusal {
    server: String,
    format: String,
    status: u16,
    body: Value,
    leaves_out: String,
}

const ANSWERS: [(Wire, &[u8]); 3] = [
    (Wire::Anthropic, include_bytes!("../../../tests/corpus/providers/streams/anthropic/text.sse")),
    (Wire::OpenAiChat, include_bytes!("../../../tests/corpus/providers/streams/openai-chat/text.sse")),
    (Wire::OpenAiResponses, include_bytes!("../../../tests/corpus/providers/streams/openai-responses/text.sse")),
];

const IMAGES: [&str; 2] = ["iVBORw0KGgoA", "iVBORw0KGgoB"];

fn signature(wire: Wire) -> &'static str {
    if wire == Wire::Anthropic { "EqQBSEALED==" } else { "{\"id\":\"rs_1\",\"encrypted_content\":\"gSEALED\"}" }
}

fn user(parts: Vec<Part>) -> Message {
    Message { role: Role::User, origin: Origin::User, parts, hidden: false }
}

/// Two images of the user, an answer after sealed reasoning, and what follows.
fn conversation(wire: Wire, images: &[&str]) -> Prompt {
    let show =
        |data: &&str| user(vec![Part::Text("Look.".into()), Part::Image(Image::new("image/png", *data).unwrap())]);
    let signature = Some(signature(wire).to_owned());
    let thinking = Part::Thinking { text: "Hm.".into(), signature, redacted: false, shown: None };
    let answer = user(vec![thinking, Part::Text("I see.".into())]);
    let answer = Message { role: Role::Assistant, origin: Origin::Model, ..answer };
    let mut messages: Vec<_> = images.iter().map(show).collect();
    messages.insert(1.min(messages.len()), answer);
    messages.push(Message::user("And now?"));
    Prompt { messages: messages.into_iter().map(Arc::new).collect(), ..Prompt::default() }
}

fn model(wire: Wire, server: &Fixture) -> Arc<dyn Model> {
    let name = if wire == Wire::Anthropic { "claude-sonnet-4-5" } else { "gpt-5" };
    let config = HttpConfig { base_url: Some(server.base_url.clone()), ..HttpConfig::new(wire, name) };
    connect(&ProviderConfig::Http(config)).unwrap()
}

/// The note of an answer.
async fn ask(model: &dyn Model, prompt: &Prompt) -> Result<Option<String>, ModelError> {
    Ok(model.start(prompt).await?.note().map(str::to_owned))
}

fn corpus() -> Vec<Refusal> {
    serde_json::from_str(include_str!("../../../tests/corpus/providers/refusals.json")).unwrap()
}

#[tokio::test]
async fn what_is_refused_is_left_out_from_then_on() {
    let mut counts = [0; 3];
    for case in corpus().into_iter().filter(|case| !NAMED.iter().any(|(what, ..)| *what == case.leaves_out)) {
        let (wire, answer) = *ANSWERS.iter().find(|(wire, _)| wire.as_str() == case.format).unwrap();
        let refusal = Script::plain(case.status, "application/json", &case.body.to_string());
        let answers = [answer, answer].map(|answer| Script::stream([answer]));
        let server = Fixture::start([refusal].into_iter().chain(answers)).await;
        let (model, prompt) = (model(wire, &server), conversation(wire, &IMAGES[..1]));
        let first = ask(&*model, &prompt).await;
        let at = format!("{}: {}", case.server, case.body);
        if case.leaves_out == "nothing" {
            counts[2] += 1;
            assert!(first.is_err() && server.seen().len() == 1, "{at}");
            continue;
        }
        let note = first.unwrap_or_else(|error| panic!("{at}: {error}")).unwrap_or_else(|| panic!("{at}: no note"));
        let is_image = case.leaves_out == "image";
        counts[usize::from(is_image)] += 1;
        assert!(
            note.contains(if is_image { "refused an image" } else { "refused the model's earlier reasoning" }),
            "{at}: {note}"
        );
        // The next request does not try it again.
        assert_eq!(ask(&*model, &prompt).await.unwrap(), None, "{at}");
        let has = |body: &str| (body.contains("SEALED"), body.contains(IMAGES[0]), body.contains("omitted"));
        let bodies: Vec<_> = server.seen().iter().map(|seen| has(&seen.body)).collect();
        let sealed = wire != Wire::OpenAiChat;
        let less = (sealed && is_image, !is_image, is_image);
        assert_eq!(bodies, [(sealed, true, false), less, less], "{at}");
    }
    println!("left out: reasoning {}, images {}; other refusals {}", counts[0], counts[1], counts[2]);
    assert!(counts.iter().all(|count| *count > 3), "{counts:?}");
}

/// What a place in the body names, how the note calls it, and what the request has of it.
const NAMED: [(&str, &str, &str); 4] = [
    ("text", "a text of the conversation", "SAYS-2"),
    ("call", "a call of the tool `read_file`", "ARGUMENT-1"),
    ("result", "a result of a tool", "RESULT-1"),
    ("tool", "the tool `shell`", "SCHEMA-2"),
];

/// A question, a call with its result, an answer, and the next question, with two tools.
fn with_a_call() -> Prompt {
    let id = || CallId::new("call_1");
    let call = ToolCall { id: id(), name: "read_file".into(), arguments: r#"{"path": "ARGUMENT-1"}"#.into() };
    let result = ToolResult { call: id(), content: vec!["RESULT-1".into()], is_error: false };
    let said = |parts| Message { role: Role::Assistant, origin: Origin::Model, parts, hidden: false };
    let messages = [
        Message::user("ASKED-1"),
        said(vec![Part::Text("SAYS-1".into()), Part::ToolCall(call)]),
        Message { role: Role::Tool, origin: Origin::Host, ..user(vec![Part::ToolResult(result)]) },
        said(vec![Part::Text("SAYS-2".into())]),
        Message::user("ASKED-2"),
    ];
    let tool = |name: &str, key: &str| ToolSpec {
        name: name.into(),
        description: "A tool.".into(),
        parameters: serde_json::json!({"type": "object", "properties": {key: {"type": "string"}}}),
    };
    let tools = vec![tool("read_file", "SCHEMA-1"), tool("shell", "SCHEMA-2")];
    Prompt { messages: messages.into_iter().map(Arc::new).collect(), tools, ..Prompt::default() }
}

#[tokio::test]
async fn what_a_place_in_the_body_names_is_left_out_from_then_on() {
    let mut counts = [0; NAMED.len()];
    for case in corpus() {
        let Some(kind) = NAMED.iter().position(|(what, ..)| *what == case.leaves_out) else { continue };
        let (_, called, marker) = NAMED[kind];
        let (wire, answer) = *ANSWERS.iter().find(|(wire, _)| wire.as_str() == case.format).unwrap();
        let refusal = Script::plain(case.status, "application/json", &case.body.to_string());
        let answers = [answer, answer].map(|answer| Script::stream([answer]));
        let server = Fixture::start([refusal].into_iter().chain(answers)).await;
        let (model, prompt) = (model(wire, &server), with_a_call());
        let at = format!("{}: {}", case.server, case.body);
        let note = ask(&*model, &prompt).await.unwrap_or_else(|error| panic!("{at}: {error}"));
        assert!(note.as_deref().unwrap_or_default().contains(&format!("refused {called}; ")), "{at}: {note:?}");
        assert_eq!(ask(&*model, &prompt).await.unwrap(), None, "{at}");
        let bodies: Vec<String> = server.seen().into_iter().map(|seen| seen.body).collect();
        let all = ["ASKED-1", "SAYS-1", "ARGUMENT-1", "RESULT-1", "SAYS-2", "ASKED-2", "SCHEMA-1", "SCHEMA-2"];
        assert!(all.iter().all(|marker| bodies[0].contains(marker)), "{at}: {}", bodies[0]);
        for body in &bodies[1..] {
            let missing: Vec<&str> = all.into_iter().filter(|marker| !body.contains(marker)).collect();
            assert_eq!(missing, [marker], "{at}: {body}");
            let faults = tidegate_kit::judge::problems(wire.as_str(), &serde_json::from_str(body).unwrap());
            assert!(faults.is_empty(), "{at}: {faults:?}: {body}");
        }
        counts[kind] += 1;
    }
    println!("left out by their places: {:?}", NAMED.map(|(what, ..)| what).iter().zip(counts).collect::<Vec<_>>());
    assert!(counts.iter().all(|count| *count >= 3), "{counts:?}");
}

#[tokio::test]
async fn tools_after_the_number_that_a_provider_takes_are_left_out() {
    let (wire, answer) = ANSWERS[1];
    for (count, said) in [
        (150, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 150."),
        (129, "Too many tools: at most 128 are supported."),
    ] {
        let tool = |number: usize| ToolSpec { name: format!("tool_{number}"), ..with_a_call().tools[0].clone() };
        let prompt = Prompt { tools: (0..count).map(tool).collect(), ..with_a_call() };
        let refusal =
            Script::plain(400, "application/json", &serde_json::json!({"error": {"message": said}}).to_string());
        let server = Fixture::start([refusal, Script::stream([answer])]).await;
        let note = ask(&*model(wire, &server), &prompt).await.unwrap().unwrap();
        assert!(
            note.contains(&format!("{} tools after the first 128, beginning with `tool_128`", count - 128)),
            "{note}"
        );
        let body: Value = serde_json::from_str(&server.seen().pop().unwrap().body).unwrap();
        assert_eq!(body["tools"].as_array().unwrap().len(), 128);
    }
}

/// Calls and results of one answer: what an error names is found among them, and an id is the call's.
#[tokio::test]
async fn one_of_several_calls_is_found() {
    let id = |number| CallId::new(format!("call_{number}"));
    let call = |number| {
        Part::ToolCall(ToolCall { id: id(number), name: "read_file".into(), arguments: format!("{{\"n\": {number}}}") })
    };
    let result = |number| {
        let result = ToolResult { call: id(number), content: vec![format!("RESULT-{number}")], is_error: false };
        let message = Message { role: Role::Tool, origin: Origin::Host, ..user(vec![Part::ToolResult(result)]) };
        Arc::new(message)
    };
    let said = user((1..4).map(call).collect());
    let calls = Arc::new(Message { role: Role::Assistant, origin: Origin::Model, ..said });
    let messages = [Arc::new(Message::user("ASKED")), calls, result(1), result(2), result(3)];
    let prompt = Prompt { messages: messages.to_vec(), ..Prompt::default() };
    for (wire, path, left_out) in [
        (Wire::OpenAiResponses, "input[4].call_id", "call_1"),
        (Wire::OpenAiResponses, "input[5].output", "RESULT-2"),
        (Wire::OpenAiResponses, "input[2].arguments", "call_2"),
        (Wire::OpenAiChat, "messages[1].tool_calls[1].id", "call_2"),
        (Wire::OpenAiChat, "messages[3].tool_call_id", "call_2"),
        (Wire::OpenAiChat, "messages[4].content", "RESULT-3"),
        (Wire::Anthropic, "messages.1.content.2.tool_use.id", "call_3"),
        (Wire::Anthropic, "messages.2.content.0.tool_result.tool_use_id", "call_1"),
        (Wire::Anthropic, "messages.2.content.1.tool_result.content", "RESULT-2"),
    ] {
        let body = serde_json::json!({"error": {"message": format!("Invalid '{path}': not valid")}}).to_string();
        let (_, answer) = *ANSWERS.iter().find(|(one, _)| *one == wire).unwrap();
        let server = Fixture::start([Script::plain(400, "application/json", &body), Script::stream([answer])]).await;
        let note = ask(&*model(wire, &server), &prompt).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let sent = server.seen().pop().unwrap().body;
        let all = ["call_1", "call_2", "call_3", "RESULT-1", "RESULT-2", "RESULT-3"];
        let missing: Vec<&str> = all.into_iter().filter(|marker| !sent.contains(marker)).collect();
        assert_eq!(missing, [left_out], "{path}: {note:?}: {sent}");
        let faults = tidegate_kit::judge::problems(wire.as_str(), &serde_json::from_str(&sent).unwrap());
        assert!(faults.is_empty(), "{path}: {faults:?}: {sent}");
    }
}

/// What is no part of the conversation takes none of it away.
#[tokio::test]
async fn marks_of_a_prompt_cache_are_left_out_alone() {
    let (wire, answer) = ANSWERS[0];
    let refused = |message: &str| {
        Script::plain(400, "application/json", &serde_json::json!({"error": {"message": message}}).to_string())
    };
    for path in ["messages.4.content.0.cache_control", "tools.1.cache_control"] {
        let scripts = [
            refused(&format!("{path}: Extra inputs are not permitted")),
            Script::stream([answer]),
            Script::stream([answer]),
        ];
        let server = Fixture::start(scripts).await;
        let model = model(wire, &server);
        let note = ask(&*model, &with_a_call()).await.unwrap().unwrap();
        assert!(note.contains("refused marks for its prompt cache"), "{note}");
        assert_eq!(ask(&*model, &with_a_call()).await.unwrap(), None);
        let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body).collect();
        assert!(bodies[0].contains("cache_control") && bodies[0].contains("SAYS-2"), "{}", bodies[0]);
        for body in &bodies[1..] {
            assert!(!body.contains("cache_control") && body.contains("SAYS-2") && body.contains("SCHEMA-2"), "{body}");
        }
    }
    let server = Fixture::start([refused("messages.2.role: not valid")]).await;
    assert!(ask(&*model(wire, &server), &with_a_call()).await.is_err());
    assert_eq!(server.seen().len(), 1);
}

/// An input that was refused does not end the session: with the next one it is left out.
#[tokio::test]
async fn a_refused_input_is_left_out_of_the_next_request() {
    for (wire, path) in [
        (Wire::Anthropic, "messages.2.content.0.text"),
        (Wire::OpenAiChat, "messages[2].content"),
        (Wire::OpenAiResponses, "input[2].content[0].text"),
    ] {
        let mut messages = with_a_call().messages;
        messages.truncate(1);
        messages.push(with_a_call().messages.remove(3));
        messages.extend(["POISON", "HARMLESS"].map(|text| Arc::new(Message::user(text))));
        let prompt = Prompt { messages, ..Prompt::default() };
        let body = serde_json::json!({"error": {"message": format!("Invalid '{path}': not valid")}}).to_string();
        let (_, answer) = *ANSWERS.iter().find(|(one, _)| *one == wire).unwrap();
        let server = Fixture::start([Script::plain(400, "application/json", &body), Script::stream([answer])]).await;
        ask(&*model(wire, &server), &prompt).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        let sent = server.seen().pop().unwrap().body;
        assert!(!sent.contains("POISON") && sent.contains("HARMLESS") && sent.contains("SAYS-2"), "{path}: {sent}");
    }
}

/// An error that names a tool is about that one, whatever numbers it has.
#[tokio::test]
async fn a_tool_that_an_error_names_is_left_out_alone() {
    for (wire, said) in [
        (
            Wire::OpenAiChat,
            "Invalid 'tools[13].function.description': string too long. Expected a string with maximum length 1024, but got 1500.",
        ),
        (Wire::Anthropic, "tools.13.custom.name: String should have at most 64 characters"),
    ] {
        let tool = |number: usize| ToolSpec { name: format!("tool_{number}"), ..with_a_call().tools[0].clone() };
        let prompt = Prompt { tools: (0..20).map(tool).collect(), ..with_a_call() };
        let refusal =
            Script::plain(400, "application/json", &serde_json::json!({"error": {"message": said}}).to_string());
        let (_, answer) = *ANSWERS.iter().find(|(one, _)| *one == wire).unwrap();
        let server = Fixture::start([refusal, Script::stream([answer])]).await;
        let note = ask(&*model(wire, &server), &prompt).await.unwrap().unwrap();
        assert!(note.contains("refused the tool `tool_13`; "), "{note}");
        let body: Value = serde_json::from_str(&server.seen().pop().unwrap().body).unwrap();
        assert_eq!(body["tools"].as_array().unwrap().len(), 19);
    }
}

/// What the user asks now is sent, whatever was refused before, and whoever else had something refused.
#[tokio::test]
async fn the_newest_input_and_other_conversations_are_whole() {
    let (wire, answer) = ANSWERS[0];
    let refused = |path: &str| {
        Script::plain(400, "application/json", &format!("{{\"error\": {{\"message\": \"{path}: not valid\"}}}}"))
    };
    let with = |messages: &[Arc<Message>]| Prompt { messages: messages.to_vec(), ..Prompt::default() };
    let base = with_a_call().messages;
    let again = Arc::new(Message::user("ASKED-1"));
    let mut twice = base.clone();
    twice[4] = Arc::clone(&again);
    let answers = [answer; 3].map(|answer| Script::stream([answer]));
    let server = Fixture::start([refused("messages.0.content.0")].into_iter().chain(answers)).await;
    let model = model(wire, &server);
    let note = ask(&*model, &with(&twice)).await.unwrap().unwrap();
    assert!(note.contains("a text of the conversation"), "{note}");
    assert_eq!(server.seen().pop().unwrap().body.matches("ASKED-1").count(), 1, "the newest one");
    let other =
        [vec![Arc::new(Message::user("Another"))], base[1..].to_vec(), vec![Arc::clone(&base[1])], base.clone()]
            .concat();
    assert_eq!(ask(&*model, &with(&other)).await.unwrap(), None);
    assert!(server.seen().pop().unwrap().body.contains("ASKED-1"), "another conversation");

    // After the first call of a turn, the question is not the last message any more.
    let server = Fixture::start([refused("messages.0.content.0")]).await;
    assert!(ask(&*self::model(wire, &server), &with(&base[..3])).await.is_err());
    assert_eq!(server.seen().len(), 1, "it is not tried without the question");
}

/// A request can have several faults, of which each error names one.
#[tokio::test]
async fn several_parts_are_left_out_one_after_the_other() {
    let (wire, answer) = ANSWERS[0];
    let refused = |place: &str| {
        Script::plain(400, "application/json", &format!("{{\"error\": {{\"message\": \"{place}: not valid\"}}}}"))
    };
    let (text, tool, input) = ("messages.3.content.0", "tools.1.custom", "messages.4.content.0");
    let server = Fixture::start([refused(text), refused(tool), Script::stream([answer])]).await;
    let note = ask(&*model(wire, &server), &with_a_call()).await.unwrap().unwrap();
    assert!(note.contains("refused a text of the conversation, the tool `shell`; "), "{note}");
    let server = Fixture::start([refused(text), refused(input)]).await;
    let error = ask(&*model(wire, &server), &with_a_call()).await.unwrap_err();
    assert!(error.message.contains(text), "the first error is reported: {error}");
}

/// The newest image is at fault; all are where it is the model that reads none.
#[tokio::test]
async fn the_newest_image_is_doubted_first() {
    let (wire, answer) = ANSWERS[0];
    let refusal = || Script::plain(400, "application/json", "{\"error\": {\"message\": \"Could not process image\"}}");
    for (refusals, expected, what) in [(1, (true, false), "refused an image"), (2, (false, false), "refused 2 images")]
    {
        let scripts = std::iter::repeat_with(refusal).take(refusals).chain([Script::stream([answer])]);
        let server = Fixture::start(scripts).await;
        let note = ask(&*model(wire, &server), &conversation(wire, &IMAGES)).await.unwrap().unwrap();
        assert!(note.contains(what), "{note}");
        let body = server.seen().pop().unwrap().body;
        assert_eq!((body.contains(IMAGES[0]), body.contains(IMAGES[1])), expected, "{body}");
    }
}

/// What is not known to be refused is sent again, and the first error is the one that is reported.
#[tokio::test]
async fn a_part_that_is_not_at_fault_is_kept() {
    let (wire, answer) = ANSWERS[0];
    let refused =
        |message: &str| Script::plain(400, "application/json", &format!("{{\"error\": {{\"message\": {message:?}}}}}"));
    let busy = Script::plain(529, "application/json", "{}");
    let prompt = conversation(wire, &IMAGES[..1]);
    let server =
        Fixture::start([refused("image one"), refused("image two"), refused("image"), busy, Script::stream([answer])])
            .await;
    let model = model(wire, &server);
    let error = ask(&*model, &prompt).await.unwrap_err();
    assert!(error.message.contains("image one"), "{error}");
    assert_eq!(ask(&*model, &prompt).await.unwrap_err().status, Some(529));
    assert_eq!(ask(&*model, &prompt).await.unwrap(), None);
    assert!(server.seen().pop().unwrap().body.contains(IMAGES[0]));
}
