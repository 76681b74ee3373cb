//! A workspace that a test writes to, and a host over it whose model is a recording.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::{Event, EventKind, Host, HostBuilder, HostError, Operator, Session, SessionId, SessionOptions};

/// One request to the recorded model and its answer.
#[derive(Default)]
pub(crate) struct Step {
    /// What the request must say.
    pub(crate) contains: Vec<&'static str>,
    /// What it must not say.
    pub(crate) absent: Vec<&'static str>,
    /// The answer's text, unless it is a call.
    pub(crate) text: &'static str,
    /// The tool called and its arguments.
    pub(crate) call: Option<(&'static str, Value)>,
}

/// An answer of text.
pub(crate) fn say(text: &'static str) -> Step {
    Step { text, ..Step::default() }
}

/// A workspace and a user's folder of rule files.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("workspace")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A rule file of the project.
    pub(crate) fn rule(&self, name: &str, text: &str) {
        self.write(&format!("workspace/.tidegate/rules/{name}"), text);
    }

    pub(crate) fn remove_rule(&self, name: &str) {
        fs::remove_file(self.path(&format!("workspace/.tidegate/rules/{name}"))).unwrap();
    }

    /// A host to be opened; `toml` is the operator's file.
    pub(crate) fn builder(&self, toml: &str) -> HostBuilder {
        self.write("tidegate.toml", toml);
        let operator = Operator::load(&self.path("tidegate.toml")).unwrap();
        Host::builder(operator).cache_dir(None).max_instances(4).user_rules(Some(self.path("user")))
    }

    /// A host whose model gives these answers, one a request, with the built-in rules off.
    pub(crate) async fn host(&self, answers: &[Step]) -> Host {
        self.try_host(answers, "[rules]\nbuiltin_rules = false\nretry_delay_ms = 0\n").await.unwrap()
    }

    /// A session in the workspace.
    pub(crate) async fn session(&self, host: &Host, id: &str) -> Result<Session, HostError> {
        host.session(SessionOptions::new(self.path("workspace")).id(SessionId::new(id))).await
    }

    /// The same with other settings, which can keep it, or its sessions, from being opened.
    pub(crate) async fn try_host(&self, answers: &[Step], toml: &str) -> Result<Host, HostError> {
        self.write("recording.jsonl", &recording(answers));
        let provider = "[provider]\nkind = \"recording\"\nrecording = \"recording.jsonl\"\n";
        let host = self.builder(&format!("{provider}{toml}")).open().await?;
        // Rules are those of a workspace: a session is what they can refuse.
        self.session(&host, "opens").await?;
        Ok(host)
    }
}

/// A session whose events are read turn by turn.
pub(crate) struct Talk {
    pub(crate) session: Session,
}

impl Talk {
    pub(crate) async fn new(place: &Place, host: &Host, id: &str) -> Self {
        Self { session: place.session(host, id).await.unwrap() }
    }

    /// Runs a turn; gives its text and what happened.
    pub(crate) async fn turn(&mut self) -> (String, Vec<Event>) {
        let mut turn = self.session.prompt("go on");
        let mut events = Vec::new();
        while let Some(event) = turn.next().await {
            events.push(event);
        }
        (turn.report().await.text, events)
    }
}

/// Names of the rules that fired.
pub(crate) fn fired(events: &[Event]) -> Vec<&str> {
    let mut names = Vec::new();
    for event in events {
        if let EventKind::RuleFired { found, .. } = &event.kind {
            names.push(found.rule.as_str());
        }
    }
    names
}

/// Notices, among them those about reloaded rules.
pub(crate) fn notices(events: &[Event]) -> Vec<&str> {
    let mut said = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::RulesReloaded { notices, .. } => said.extend(notices.iter().map(String::as_str)),
            EventKind::Notice { message } => said.push(message.as_str()),
            _ => {}
        }
    }
    said
}

/// Anthropic's wire format, each answer in one chunk.
fn recording(steps: &[Step]) -> String {
    let mut lines = vec![json!({"tidegate_recording": 1, "wire": "anthropic", "model": "recorded"})];
    for step in steps {
        lines.push(json!({"request": {}, "expect": {"contains": step.contains, "absent": step.absent}}));
        lines.push(json!({"response": 200, "headers": {"content-type": "text/event-stream"}, "at_ms": 0}));
        let (start, delta, stop) = match &step.call {
            None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": step.text}), "end_turn"),
            Some((name, arguments)) => {
                let start = json!({"type": "tool_use", "id": "call-1", "name": name, "input": {}});
                (start, json!({"type": "input_json_delta", "partial_json": arguments.to_string()}), "tool_use")
            }
        };
        let usage = json!({"input_tokens": 5, "output_tokens": 1});
        let events = [
            json!({"type": "message_start", "message": {"model": "recorded", "usage": usage}}),
            json!({"type": "content_block_start", "index": 0, "content_block": start}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}),
            json!({"type": "message_stop"}),
        ];
        let wire: String = events
            .iter()
            .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
            .collect();
        lines.push(json!({"text": wire, "at_ms": 0}));
        lines.push(json!({"end": "complete", "at_ms": 0}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
