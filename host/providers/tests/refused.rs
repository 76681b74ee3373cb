//! A request that is refused for a part of the conversation is sent again without it, and so is every later one
//! (`tests/corpus/providers/refusals.json`).
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints its counts")]

mod support;

use std::sync::Arc;

use flow::{Image, Message, ModelError, Origin, Part, Prompt, Role};
use serde::Deserialize;
use serde_json::Value;
use support::{Fixture, Script};
use tidegate_providers::{HttpConfig, ProviderConfig, Wire, connect};
use turn::ports::Model;

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
    for case in corpus() {
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
        let has = |body: &str| (body.contains("SEALED"), body.contains(IMAGES[0]), body.contains("left out here"));
        let bodies: Vec<_> = server.seen().iter().map(|seen| has(&seen.body)).collect();
        let sealed = wire != Wire::OpenAiChat;
        let less = (sealed && is_image, !is_image, is_image);
        assert_eq!(bodies, [(sealed, true, false), less, less], "{at}");
    }
    println!("left out: reasoning {}, images {}; other refusals {}", counts[0], counts[1], counts[2]);
    assert!(counts.iter().all(|count| *count > 3), "{counts:?}");
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
