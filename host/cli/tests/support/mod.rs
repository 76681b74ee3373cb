//! A workspace with rules of its own, a recorded model, and the program run in it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A workspace with rules of its own.
pub(crate) struct Place(TempDir);

pub(crate) const UNWRAP: &str = "+++\ndescription = \"`unwrap()` in Rust code\"\ncondition = '\\.unwrap\\(\\)'\nscope = \"tool(*.rs)\"\n\
    field = [\"content\", \"new_text\"]\n+++\nUse `?`.\n\n## Fires\n```tool:write_file path=src/a.rs content\nx.unwrap()\n```\n\n\
    ## Does not fire\n```tool:write_file path=a.py content\nx.unwrap()\n```\n";

pub(crate) const AN_AI: &str =
    "+++\ncondition = '(?i)\\bas an AI(?: language model)?\\b'\nscope = \"text\"\n+++\nAnswer the question.\n";

impl Place {
    /// An empty workspace.
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A workspace with rules of the project, by name and text.
    pub(crate) fn with(rules: &[(&str, &str)]) -> Self {
        let place = Self::new();
        for (name, text) in rules {
            place.write(&format!(".tidegate/rules/{name}.md"), text);
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        use std::io::Write;
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(arguments)
            .current_dir(self.0.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("user"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input may be gone already.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    }

    /// The only object that the command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", out(&output), err(&output)))
    }

    /// Runs turns on a recording and keeps their transcript.
    pub(crate) fn transcript(&self, settings: &str, answers: &[&[Say<'_>]], prompts: &[&str]) -> &'static str {
        self.write("answers.jsonl", &recording(answers));
        let file = format!(
            "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[tools.permission]\nwrite_file = \"allow\"\n\
             [rules]\nretry_delay_ms = 0\n{settings}\n"
        );
        self.write("tidegate.toml", &file);
        let output = self.run(&[&["run"], prompts, &["--output", "stream-json"]].concat());
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", err(&output));
        std::fs::write(self.path("t.jsonl"), &output.stdout).unwrap();
        "t.jsonl"
    }
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// One block of an answer of the recorded model.
pub(crate) enum Say<'a> {
    Text(&'a str),
    Thinking(&'a str),
    Write(&'a str, &'a str),
}

/// Anthropic's wire format, cut at blanks.
pub(crate) fn recording(answers: &[&[Say<'_>]]) -> String {
    let mut lines = vec![json!({"tidegate_recording": 1, "wire": "anthropic", "model": "recorded"})];
    for answer in answers {
        lines.push(json!({"request": {}}));
        lines.push(json!({"response": 200, "headers": {"content-type": "text/event-stream"}, "at_ms": 0}));
        let mut event = |event: Value| {
            let text = format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
            lines.push(json!({"text": text, "at_ms": 0}));
        };
        event(
            json!({"type": "message_start", "message": {"model": "recorded", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        );
        let mut stop = "end_turn";
        for (index, block) in answer.iter().enumerate() {
            let arguments;
            let (start, kind, key, text) = match block {
                Say::Text(text) => (json!({"type": "text", "text": ""}), "text_delta", "text", *text),
                Say::Thinking(text) => {
                    (json!({"type": "thinking", "thinking": ""}), "thinking_delta", "thinking", *text)
                }
                Say::Write(path, content) => {
                    stop = "tool_use";
                    arguments = json!({"path": path, "content": content}).to_string();
                    let start =
                        json!({"type": "tool_use", "id": format!("call-{index}"), "name": "write_file", "input": {}});
                    (start, "input_json_delta", "partial_json", arguments.as_str())
                }
            };
            event(json!({"type": "content_block_start", "index": index, "content_block": start}));
            for piece in text.split_inclusive(' ') {
                event(json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}));
            }
            event(json!({"type": "content_block_stop", "index": index}));
        }
        event(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 40}}));
        event(json!({"type": "message_stop"}));
        lines.push(json!({"end": "complete", "at_ms": 0}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}
