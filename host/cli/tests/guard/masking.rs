//! `mask-secrets` between an agent and its model: case 5 of the specification, with the official SDKs.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tidegate_servers::ensure_judge;

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
