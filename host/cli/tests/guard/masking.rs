//! `mask-secrets` between an agent and its model: case 5 of the specification, with the official SDKs.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_servers::ensure_judge;

use super::answers::{Kind, Wire, streamed, values};
use super::raw::{Client, Cut, Guard, upstream};
use super::source;
use crate::support::{Place, err};

/// A model that repeats the text that it has read.
struct Model {
    process: Child,
    url: String,
}

impl Model {
    fn start() -> Self {
        let python = ensure_judge().unwrap().join("bin/python");
        let mut process = Command::new(python).arg(source("keyless.py")).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A key in a file, in the instructions and in the description of a tool never reaches the model, text written with the placeholder has the
/// key, and over twenty turns each request begins with the bytes of the one before it.
#[test]
fn a_key_never_reaches_the_model_and_is_written_whole() {
    let (place, model) = (Place::new(), Model::start());
    let plugin = crate::masked::plugin();
    place.write("tidegate.toml", &format!("[[plugin]]\npath = {plugin:?}\ngrants = [\"state\"]\nrequired = true\n"));
    let python = ensure_judge().unwrap().join("bin/python");
    let openai = format!("{}/v1", model.url);
    let mut command = place.command(&["guard", "--anthropic-url", &model.url, "--openai-url", &openai, "--"]);
    let token = crate::masked::token();
    let (first, second) = token.split_at(8);
    command.arg(python).arg(source("keyless_client.py")).env("UPSTREAM", &model.url);
    command.env("TOKEN", format!("{first} {second}")).stdin(Stdio::null());
    let output = command.output().unwrap();
    let told = err(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let last = "Turn 20.\nThe token is TOKEN.";
    let each = json!({"requests": 20, "written": 18, "last": last, "leaks": [], "keeps": true});
    assert_eq!(seen, json!({"anthropic": each, "chat": each, "responses": each}), "{told}");
    let counts = ["and 1 plugin between the agent and its model", "plugin mask-secrets: changed"];
    assert!(counts.iter().all(|words| told.contains(words)), "{told}");
}

/// A text beyond what the plugin can search is not sent, and both sides are told why.
#[test]
fn a_text_that_cannot_be_searched_is_not_sent() {
    let bodies: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let kept = Arc::clone(&bodies);
    let address = upstream(move |request, stream| {
        kept.lock().unwrap().push(request.body.clone());
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        Cut::Whole.write(head, &Wire::Messages.stream(Kind::Text, &["Hi."]), stream)
    });
    let (place, token) = (Place::new(), crate::masked::token());
    let plugin = crate::masked::plugin();
    place.write("tidegate.toml", &format!("[[plugin]]\npath = {plugin:?}\ngrants = [\"state\"]\n"));
    let guard = Guard::start(&place, address);
    for (lines, is_sent) in [(1_000, true), (1_000_000, false)] {
        let text = format!("{}{token}", "twenty letters here\n".repeat(lines));
        let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": text}]}).to_string();
        let answer = Client::connect(guard.address).ask("/v1/messages", "", body.as_bytes()).unwrap();
        let sent = std::mem::take(&mut *bodies.lock().unwrap());
        assert_eq!(sent.len(), usize::from(is_sent), "{lines}: {}", answer.text());
        let has_token = |body: &Vec<u8>| body.windows(token.len()).any(|part| part == token.as_bytes());
        assert!(!sent.iter().any(has_token), "{lines}");
        assert_eq!(answer.text().contains("mask-secrets"), !is_sent, "{lines}: {}", answer.text());
    }
    let report = guard.finish();
    assert!(report.contains("plugin mask-secrets: changed 1×, failed 1×"), "{report}");
    assert!(report.contains("1× a request was not sent, because the extension `mask-secrets`"), "{report}");
}

/// Returns what a client keeps of an answer with two blocks: the messages or items of the model.
fn kept(wire: Wire, answer: &[u8]) -> Vec<Value> {
    let values = values(answer);
    match wire {
        Wire::Messages => {
            let of = |block: usize| values.iter().filter(|event| event["index"] == block).cloned().collect::<Vec<_>>();
            let block = |block| json!({"type": "text", "text": streamed(Kind::Text, &of(block))});
            vec![json!({"role": "assistant", "content": [block(0), block(1)]})]
        }
        Wire::Chat => vec![json!({"role": "assistant", "content": streamed(Kind::Text, &values)})],
        Wire::Responses => values.last().unwrap()["response"]["output"].as_array().unwrap().clone(),
    }
}

/// Returns the texts of the model's messages in a request, or in what a client keeps.
fn said(messages: &[Value]) -> Vec<String> {
    let model = messages.iter().filter(|one| one["role"] == "assistant");
    let text = |content: &Value| content.as_str().or(content["text"].as_str()).unwrap().to_owned();
    let texts = model.flat_map(|one| match one["content"].as_array() {
        Some(parts) => parts.iter().map(text).collect(),
        None => vec![text(&one["content"])],
    });
    texts.collect()
}

/// A line that runs over two blocks, because a rule has stopped the first one: the client reads the key in both, and the model gets back what
/// it has written in each.
#[test]
fn the_model_gets_back_what_it_has_written() {
    let bodies: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept_bodies = Arc::clone(&bodies);
    let address = upstream(move |request, stream| {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        let masked = crate::masked::placeholder(&body, "GITHUB_TOKEN");
        let text = match body.as_str() {
            body if body.contains("Turn 2.") => "Fine.".to_owned(),
            body if body.contains("Never say that word") => format!("second {masked} end"),
            _ => format!("begin {masked} and forbidden"),
        };
        kept_bodies.lock().unwrap().push(body);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
        Cut::Whole.write(head, &Wire::of(&request.head).stream(Kind::Text, &[&text]), stream)
    });
    let (place, token) = (Place::with(&[("no-forbidden", crate::gateway::RULE)]), crate::masked::token());
    let plugin = crate::masked::plugin();
    place.write("tidegate.toml", &format!("[[plugin]]\npath = {plugin:?}\ngrants = [\"state\"]\n"));
    let guard = Guard::start(&place, address);
    for wire in Wire::ALL {
        let ask = |body: &[u8]| Client::connect(guard.address).ask(wire.path(), "", body).unwrap();
        let request = wire.request(&format!("The token is {token}."), true);
        let kept = kept(wire, &ask(&request).body);
        assert_eq!(said(&kept).concat(), format!("begin {token} and second {token} end"), "{wire:?}");
        let mut next: Value = serde_json::from_slice(&request).unwrap();
        let list = if wire == Wire::Responses { "input" } else { "messages" };
        let messages = next[list].as_array_mut().unwrap();
        messages.extend(kept);
        messages.push(json!({"role": "user", "content": "Turn 2."}));
        ask(next.to_string().as_bytes());
        let sent = std::mem::take(&mut *bodies.lock().unwrap());
        assert_eq!(sent.len(), 3, "{wire:?}: {sent:?}");
        assert!(!sent.iter().any(|body| body.contains(&token)), "{wire:?}: {sent:?}");
        let (last, masked) = (sent.last().unwrap(), crate::masked::placeholder(&sent[0], "GITHUB_TOKEN"));
        let last: Value = serde_json::from_str(last).unwrap();
        let written = [format!("begin {masked} and "), format!("second {masked} end")];
        let written = if wire == Wire::Chat { vec![written.concat()] } else { written.to_vec() };
        assert_eq!(said(last[list].as_array().unwrap()), written, "{wire:?}");
    }
}
