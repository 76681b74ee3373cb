//! `mask-secrets` between an agent and its model: case 5 of the specification, with the official SDKs.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_servers::ensure_judge;

use super::answers::{Kind, Wire};
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
