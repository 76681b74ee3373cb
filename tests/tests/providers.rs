//! The three wire formats against servers that others wrote: the same turn gives the same answer in each, results of
//! tools go back, failures have their class, and the server sees an abort.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flow::ports::{Model, ModelStream};
use flow::{
    CallId, Delta, ErrorClass, Message, ModelError, Origin, Part, Prompt, Role, StopReason, StreamKind, ToolCall,
    ToolResult, ToolSpec, Usage,
};
use providers::{HttpConfig, ProviderConfig, ReplayConfig, check, connect};
use serde_json::{Value, json};
use tidegate_servers::{Aimock, Llmock, RealModel};
use wire::Wire;

const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];
/// How long a server may take to note what became of a request, before a test fails. No test depends on it.
const PATIENCE: Duration = Duration::from_secs(120);

/// A model that the servers let think: `aimock` sends reasoning only under such names.
fn thinker(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "claude-sonnet-4-5",
        Wire::OpenAiChat => "deepseek-r1",
        Wire::OpenAiResponses => "gpt-5",
    }
}

/// The class of an error, as the default table has it.
fn class_of(error: &ModelError) -> ErrorClass {
    let table = config::errors::of_sources(&[]).unwrap_or_else(|found| panic!("{found}"));
    table.classify(error).class
}

fn config(wire: Wire, base_url: &str) -> HttpConfig {
    HttpConfig { base_url: Some(base_url.to_owned()), ..HttpConfig::new(wire, thinker(wire)) }
}

/// `llmock` has Anthropic's routes below a folder.
fn llmock_url(wire: Wire, llmock: &Llmock) -> String {
    let folder = if wire == Wire::Anthropic { "/anthropic" } else { "" };
    format!("{}{folder}", llmock.base_url())
}

fn model(config: HttpConfig) -> Arc<dyn Model> {
    connect(&ProviderConfig::Http(config)).unwrap()
}

fn prompt(messages: Vec<Message>) -> Prompt {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tool = ToolSpec { name: "read_file".into(), description: "Reads a file.".into(), parameters };
    Prompt {
        system: vec!["You mend greetings.".into()],
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: vec![tool],
        max_tokens: Some(200),
    }
}

fn words(text: &str) -> Prompt {
    Prompt { tools: Vec::new(), ..prompt(vec![Message::user(text)]) }
}

async fn next(stream: &mut Box<dyn ModelStream>) -> Option<Result<Delta, ModelError>> {
    std::future::poll_fn(|cx| stream.poll_next(cx)).await
}

/// An answer with its blocks whole, in the order of their start.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    model: Option<String>,
    blocks: Vec<Block>,
    pieces: usize,
    usage: Usage,
    stop: Option<StopReason>,
    error: Option<ModelError>,
}

#[derive(Debug, PartialEq)]
struct Block {
    kind: StreamKind,
    text: String,
    signature: Option<String>,
    ended: bool,
}

impl Answer {
    fn take(&mut self, delta: Delta) {
        assert_eq!(self.stop, None, "{delta:?} came after the stop");
        match delta {
            Delta::Start { model } => self.model = model,
            Delta::BlockStart { block, kind } => {
                assert_eq!(block as usize, self.blocks.len());
                self.blocks.push(Block { kind, text: String::new(), signature: None, ended: false });
            }
            Delta::Piece { block, text } => {
                assert!(!text.is_empty() && !self.blocks[block as usize].ended);
                self.blocks[block as usize].text.push_str(&text);
                self.pieces += 1;
            }
            Delta::Signature { block, data, .. } => {
                self.blocks[block as usize].signature.get_or_insert_default().push_str(&data);
            }
            Delta::BlockEnd { block } => assert!(!std::mem::replace(&mut self.blocks[block as usize].ended, true)),
            Delta::Usage(usage) => self.usage.update(usage),
            Delta::Stop { reason } => self.stop = Some(reason),
        }
    }

    fn text(&self) -> String {
        self.blocks.iter().filter(|block| block.kind == StreamKind::Text).map(|block| block.text.as_str()).collect()
    }

    /// What all formats must agree on: kinds and words. Ids of calls are the server's to choose.
    fn shape(&self) -> Vec<(&str, &str)> {
        let kind = |block: &'_ Block| match &block.kind {
            StreamKind::Text => "text",
            StreamKind::Thinking => "thinking",
            StreamKind::Tool { name, .. } if name == "read_file" => "read_file",
            StreamKind::Tool { .. } => "another tool",
        };
        self.blocks.iter().map(|block| (kind(block), block.text.as_str())).collect()
    }

    /// As the message that goes back to the model.
    fn message(&self) -> Message {
        let part = |block: &Block| match &block.kind {
            StreamKind::Text => Part::Text(block.text.clone()),
            StreamKind::Thinking => Part::Thinking {
                text: block.text.clone(),
                signature: block.signature.clone(),
                redacted: false,
                shown: None,
            },
            StreamKind::Tool { call, name } => {
                Part::ToolCall(ToolCall { id: call.clone(), name: name.clone(), arguments: block.text.clone() })
            }
        };
        let parts = self.blocks.iter().map(part).collect();
        Message { role: Role::Assistant, origin: Origin::Model, parts, hidden: false }
    }

    fn calls(&self) -> Vec<CallId> {
        let call = |block: &Block| match &block.kind {
            StreamKind::Tool { call, .. } => Some(call.clone()),
            StreamKind::Text | StreamKind::Thinking => None,
        };
        self.blocks.iter().filter_map(call).collect()
    }
}

async fn ask(model: &Arc<dyn Model>, prompt: &Prompt) -> Answer {
    let mut answer = Answer::default();
    match model.start(prompt).await {
        Ok(mut stream) => {
            while let Some(delta) = next(&mut stream).await {
                match delta {
                    Ok(delta) => answer.take(delta),
                    Err(error) => answer.error = Some(error),
                }
            }
        }
        Err(error) => answer.error = Some(error),
    }
    answer
}

fn result(call: &CallId, content: &[&str], is_error: bool) -> Message {
    let content = content.iter().map(|text| (*text).to_owned()).collect();
    let parts = vec![Part::ToolResult(ToolResult { call: call.clone(), content, is_error })];
    Message { role: Role::Tool, origin: Origin::Host, parts, hidden: false }
}

fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/providers/servers")
}

#[tokio::test]
async fn one_turn_is_the_same_in_three_formats() {
    let server = Aimock::start(&fixtures()).unwrap();
    for wire in WIRES {
        let model = model(config(wire, server.base_url()));
        let question = Message::user("Fix the greeting in two files.");
        let answer = ask(&model, &prompt(vec![question.clone()])).await;
        assert_eq!(answer.error, None, "{wire:?}");
        let expected = [
            ("thinking", "Two files — one after the other: 🌊."),
            ("text", "I will look at „grüße.rs“ first,\nthen at the other. 🌊"),
            ("read_file", "{\"path\":\"src/grüße.rs\"}"),
            ("read_file", "{\"path\":\"src/other.rs\",\"lines\":[1,2]}"),
        ];
        assert_eq!(answer.shape(), expected, "{wire:?}");
        assert!(answer.blocks.iter().all(|block| block.ended) && answer.pieces > 20, "{wire:?}: {answer:?}");
        assert_eq!(answer.stop, Some(StopReason::ToolUse), "{wire:?}");
        assert_eq!((answer.usage.input, answer.usage.output), (Some(31), Some(17)), "{wire:?}");
        let calls = answer.calls();
        assert!(calls.len() == 2 && calls[0] != calls[1], "{wire:?}: {calls:?}");

        let second = prompt(vec![
            question,
            answer.message(),
            result(&calls[0], &["<system-reminder>mind the umlaut</system-reminder>", "fn grüße() {}"], false),
            result(&calls[1], &["no such file"], true),
            Message {
                hidden: true,
                ..Message::text(Role::User, Origin::Host, "<system-interrupt>be kind</system-interrupt>")
            },
        ]);
        let answer = ask(&model, &second).await;
        assert_eq!(
            (answer.text().as_str(), &answer.stop),
            ("Both greet well now.", &Some(StopReason::EndTurn)),
            "{wire:?}"
        );

        let journal = server.journal().unwrap();
        let body = journal.last().unwrap()["body"].to_string();
        for text in
            ["mind the umlaut", "no such file", "be kind", calls[0].as_str(), calls[1].as_str(), "You mend greetings."]
        {
            assert!(body.contains(text), "{wire:?} did not send {text:?}: {body}");
        }
    }
    let paths: Vec<Value> = server.journal().unwrap().into_iter().map(|entry| entry["path"].clone()).collect();
    let each = ["/v1/messages", "/v1/chat/completions", "/v1/responses"];
    assert_eq!(paths, each.iter().flat_map(|path| [*path, *path]).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_refusal_and_a_broken_answer_have_their_class() {
    let server = Aimock::start(&fixtures()).unwrap();
    for wire in WIRES {
        let model = model(config(wire, server.base_url()));
        let error = ask(&model, &words("be overloaded")).await.error.unwrap();
        assert_eq!((class_of(&error), error.status), (ErrorClass::Transient, Some(529)), "{wire:?}: {error}");
        assert!(error.message.contains("Overloaded"), "{wire:?}: {error}");

        let answer = ask(&model, &words("break off")).await;
        assert_eq!(class_of(&answer.error.unwrap()), ErrorClass::Transient, "{wire:?}");
        assert_eq!(answer.stop, None);
    }
}

#[tokio::test]
async fn faults_of_a_stream_keep_what_came() {
    let server = Llmock::start().unwrap();
    let long = "one two three four five six seven eight nine ten eleven twelve";
    for wire in WIRES {
        let model =
            model(HttpConfig { idle_timeout: Duration::from_secs(2), ..config(wire, &llmock_url(wire, &server)) });
        for kind in ["disconnect", "truncate", "stall", "malformed"] {
            server.scenario(&[json!({"type": "stream_fault", "kind": kind, "after_chunks": 4})]).unwrap();
            let broken = ask(&model, &words(long)).await;
            let error = broken.error.clone().unwrap_or_else(|| panic!("{wire:?} {kind}: {broken:?}"));
            assert_eq!(class_of(&error), ErrorClass::Transient, "{wire:?} {kind}: {error}");
            let whole = ask(&model, &words(long)).await;
            assert!(whole.error.is_none() && whole.text().contains(long), "{wire:?} {kind}: {whole:?}");
            assert!(whole.text().starts_with(&broken.text()), "{wire:?} {kind}: {broken:?}");
            assert!(broken.text().len() < long.len(), "{wire:?} {kind}: {broken:?}");
        }
    }
}

#[tokio::test]
async fn a_wait_that_is_asked_for_is_told() {
    let server = Llmock::start().unwrap();
    for wire in WIRES {
        let model = model(config(wire, &llmock_url(wire, &server)));
        server.scenario(&[json!({"type": "fail", "status": 429, "retry_after": 3})]).unwrap();
        let error = ask(&model, &words("hi")).await.error.unwrap();
        assert_eq!(
            (class_of(&error), error.retry_after_ms),
            (ErrorClass::RateLimited, Some(3000)),
            "{wire:?}: {error}"
        );
    }
}

#[tokio::test]
async fn the_server_sees_an_abort() {
    let server = Llmock::start_with(&["--stream-chunk-delay-ms", "80", "--response-style", "echo"]).unwrap();
    for (at, wire) in WIRES.into_iter().enumerate() {
        let model = model(config(wire, &llmock_url(wire, &server)));
        let prompt = words("a long question with quite a few words that are said back one by one and slowly");
        let mut stream = model.start(&prompt).await.unwrap();
        while !matches!(next(&mut stream).await.unwrap().unwrap(), Delta::Piece { .. }) {}
        drop(stream);
        // The socket is closed by a task of this runtime: it must get its turn before a call that blocks.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let begun = Instant::now();
        loop {
            let requests = server.requests().unwrap();
            if let Some(request) = requests.get(at).filter(|request| request["ended_at"].is_number()) {
                assert_eq!(request["completed"], false, "{wire:?}: {request}");
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{wire:?}: {requests:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn a_real_model_speaks_all_three_formats() {
    let server = RealModel::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for wire in WIRES {
        let path = folder.path().join(wire.as_str());
        let record = HttpConfig { record: Some(path.clone()), ..config(wire, server.base_url()) };
        assert!(check(&ProviderConfig::Http(config(wire, server.base_url()))).await.unwrap().contains("answers"));
        let live = model(record);
        let prompt = Prompt { max_tokens: Some(24), ..words("Tell me about the sea.") };
        let answer = ask(&live, &prompt).await;
        assert_eq!(answer.error, None, "{wire:?}");
        assert!(answer.text().len() > 20 && answer.pieces > 5, "{wire:?}: {answer:?}");
        // This server ends a Responses answer with `response.completed` also where it was cut short.
        let stop = if wire == Wire::OpenAiResponses { StopReason::EndTurn } else { StopReason::MaxTokens };
        assert_eq!(answer.stop, Some(stop), "{wire:?}: {answer:?}");
        assert!(answer.usage.input.is_some_and(|count| count > 5), "{wire:?}: {answer:?}");
        assert_eq!(answer.usage.output, Some(24), "{wire:?}");

        drop(live); // its recording is complete then
        let replay = ReplayConfig { speed: 0.0, strict: true, ..ReplayConfig::new(&path) };
        let replayed = connect(&ProviderConfig::Recording(replay)).unwrap();
        assert_eq!(ask(&replayed, &prompt).await, answer, "{wire:?}: a replay is the session again");
    }
}

#[tokio::test]
async fn a_real_model_stops_when_nobody_listens_and_says_what_is_too_long() {
    let server = RealModel::start().unwrap();
    for (at, wire) in WIRES.into_iter().enumerate() {
        let model = model(config(wire, server.base_url()));
        let prompt = Prompt { max_tokens: Some(1000), ..words("Count from one to a thousand.") };
        let mut stream = model.start(&prompt).await.unwrap();
        while !matches!(next(&mut stream).await.unwrap().unwrap(), Delta::Piece { .. }) {}
        drop(stream);
        let begun = Instant::now();
        while server.log().matches("cancel task").count() <= at {
            assert!(begun.elapsed() < PATIENCE, "{wire:?} was not cancelled: {}", server.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let error = ask(&model, &words(&"tide ".repeat(4000))).await.error.unwrap();
        let parts = (class_of(&error), error.status, error.code.as_deref());
        assert_eq!(
            parts,
            (ErrorClass::ContextOverflow, Some(400), Some("exceed_context_size_error")),
            "{wire:?}: {error}"
        );
    }
}
