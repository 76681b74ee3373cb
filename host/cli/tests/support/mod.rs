//! A workspace with rules of its own, a recorded model, and the program run in it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

#[cfg(target_os = "linux")]
pub(crate) mod age;
pub(crate) mod machine;
pub(crate) mod pty;
pub(crate) mod script;
pub(crate) mod tmux;

/// A workspace with rules of its own.
pub(crate) struct Place(TempDir);

/// The operator's file of these workspaces is a test's own.
pub(crate) const TRUSTED: &str = "--trust-workspace";

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

    /// A workspace with the guest that does what texts say, and the entry that names it with its grants.
    pub(crate) fn with_guest() -> (Self, &'static str) {
        let place = Self::new();
        let source = repository().join("tests/guests/conformance");
        let built = tidegate_build::build(&source, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
        place.write("conformance/plugin.toml", &std::fs::read_to_string(source.join("plugin.toml")).unwrap());
        std::fs::write(place.path("conformance").join(tidegate_build::COMPONENT_FILE), built.bytes).unwrap();
        let entry = "[[plugin]]\npath = \"conformance\"\n\
                     grants = [\"state\", \"session\", \"history\", \"tools\", \"provide-tools\"]\n";
        (place, entry)
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

    /// Runs the program with its folders outside of the workspace, so that they do not change it.
    pub(crate) fn run_outside(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.arg(TRUSTED).args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
            .env("XDG_CACHE_HOME", outside("cache"))
            .env("XDG_CONFIG_HOME", outside("user"))
            .env("XDG_STATE_HOME", outside("state"));
        command.output().unwrap()
    }

    /// The program with its folders in the workspace.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command
            .arg(TRUSTED)
            .args(arguments)
            .current_dir(self.0.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("user"))
            .env("XDG_STATE_HOME", self.path("state"));
        command
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
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

/// A folder that no workspace contains.
pub(crate) fn outside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
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

/// Text without the styles of the host, and with what it draws at the bottom of a terminal on lines of its own.
pub(crate) fn plain(text: &str) -> String {
    // What begins and ends a drawing, and what erases: the carriage returns next to them are the host's.
    let mut text = text.replace("\u{1b}[?25l\r", "\n").replace("\r\r\n\u{1b}[2K", "\n");
    for drawn in ["\u{1b}[J\r", "\u{1b}[?25h\r", "\u{1b}[2K", "\u{1b}[J", "\u{1b}[?25h"] {
        text = text.replace(drawn, "");
    }
    for rows in 1..30 {
        text = text.replace(&["\u{1b}[", &rows.to_string(), "A"].concat(), "");
    }
    let mut parts = text.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut text, part| {
        let end = part.find('m').filter(|end| part[1..*end].bytes().all(|byte| byte.is_ascii_digit() || byte == b';'));
        match end.filter(|_| part.starts_with('[')) {
            Some(end) => text.push_str(&part[end + 1..]),
            None => text.push_str(&format!("\u{1b}{part}")),
        }
        text
    })
}

/// Panics if a text would act on a terminal or hide something. Line ends and tabs are fine, and so is a carriage return that
/// a terminal puts before a line end.
pub(crate) fn assert_harmless(text: &str) {
    let text = text.replace("\r\n", "\n");
    let acts = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
    };
    if let Some((at, c)) = text.char_indices().find(|(_, c)| acts(*c)) {
        let around: String = text[..at].chars().rev().take(200).collect::<Vec<_>>().into_iter().rev().collect();
        panic!("{c:?} after {around:?}");
    }
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// One block of an answer of the recorded model.
pub(crate) enum Say<'a> {
    Text(&'a str),
    Thinking(&'a str),
    Write(&'a str, &'a str),
    /// A call of a tool with these arguments, as text.
    Call(&'a str, &'a str),
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
                Say::Call(name, arguments) => {
                    stop = "tool_use";
                    let start = json!({"type": "tool_use", "id": format!("call-{index}"), "name": name, "input": {}});
                    (start, "input_json_delta", "partial_json", *arguments)
                }
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

/// A server that answers with what a recording holds, request by request, and stops with its process.
pub(crate) struct Server {
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start(recording: &str) -> Self {
        Self::held(recording, |_| {})
    }

    /// A server that calls `hold` with the number of each request, from 0, before it answers it.
    pub(crate) fn held(recording: &str, hold: impl Fn(usize) + Send + 'static) -> Self {
        let mut answers: Vec<Vec<String>> = Vec::new();
        for line in recording.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            match (line.get("request"), line["text"].as_str()) {
                (Some(_), _) => answers.push(Vec::new()),
                (None, Some(text)) => answers.last_mut().unwrap().push(text.to_owned()),
                (None, None) => {}
            }
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for (number, answer) in answers.iter().enumerate() {
                hold(number);
                // A client that closes early is not a failure here.
                drop(Self::answer(&listener, answer));
            }
        });
        Self { url }
    }

    fn answer(listener: &TcpListener, events: &[String]) -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let mut reader = BufReader::new(socket.try_clone()?);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        reader.read_exact(&mut vec![0; length])?;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
        for event in events {
            socket.write_all(event.as_bytes())?;
            socket.flush()?;
        }
        Ok(())
    }
}
