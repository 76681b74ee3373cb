//! A model server whose answers follow from what it is asked, so that clients in any language can use it.
//!
//! | the last text of the user | answer |
//! |---|---|
//! | `say TEXT` | TEXT |
//! | `think TEXT` | reasoning, then TEXT |
//! | `read PATH` | a call of `read_file`; then the result |
//! | `write PATH TEXT` | a call of `write_file`; then the result |
//! | `call TOOL ARGUMENTS` | a call of any tool; then the result |
//! | `run COMMAND` | a call of `shell`; then the result |
//! | `search PATTERN` | a call of `grep`; then the result |
//! | `spawn AGENT TASK` | a call of `spawn_agent`; then the result |
//! | `flood NUMBER PATH` | this many words and a call of `read_file`; then the result |
//! | `hang` | `Working` and a space, and no end |
//! | `wait FILE TEXT` | `Working` and a space, and TEXT as soon as the file exists |
//! | `late FILE TEXT` | TEXT, and nothing before the file exists |
//! | `forbidden` | a phrase that a rule stops; then `Corrected.` |
//! | `image` | the type and size of each image of the request |
//! | `history` | the number of messages of the request |
//! | `attempts A \| B \| …` | the answer to A, and to the next one after each reminder of a rule |

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::Say;

/// A running server, which stops with its process.
pub(crate) struct Model {
    pub(crate) url: String,
    /// The bodies of all requests, oldest first.
    pub(crate) requests: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Value>>> = Arc::default();
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let seen = Arc::clone(&seen);
                // A client that closes early is not a failure here.
                std::thread::spawn(move || drop(answer(socket, &seen)));
            }
        });
        Self { url, requests }
    }
}

fn answer(mut socket: TcpStream, seen: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    let body = body(&mut BufReader::new(socket.try_clone()?))?;
    let (answer, end) = said(&body);
    seen.lock().unwrap().push(body);
    socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    let says: Vec<Say<'_>> = answer.iter().map(Answer::say).collect();
    if let End::Before(file) = &end {
        appears(file);
    }
    for line in crate::support::recording(&[&says]).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some(text) = line["text"].as_str() else { continue };
        match &end {
            End::Never if text.contains("content_block_stop") => {
                // Until the client closes the connection.
                let _closed = socket.read(&mut [0]);
                return Ok(());
            }
            End::After(file) if text.contains("content_block_stop") => appears(file),
            End::Complete | End::Never | End::After(_) | End::Before(_) => {}
        }
        socket.write_all(text.as_bytes())?;
        socket.flush()?;
    }
    Ok(())
}

fn appears(file: &Path) {
    while !file.exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

fn body(reader: &mut impl BufRead) -> std::io::Result<Value> {
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body).unwrap())
}

/// A block of an answer.
enum Answer {
    Text(String),
    Thinking(String),
    Call(String, String),
}

impl Answer {
    fn say(&self) -> Say<'_> {
        match self {
            Self::Text(text) => Say::Text(text),
            Self::Thinking(text) => Say::Thinking(text),
            Self::Call(tool, arguments) => Say::Call(tool, arguments),
        }
    }
}

/// How an answer goes on after its first block.
enum End {
    Complete,
    Never,
    /// When a file exists.
    After(PathBuf),
    /// The first block waits for the file as well.
    Before(PathBuf),
}

/// The answer to a request.
fn said(body: &Value) -> (Vec<Answer>, End) {
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages.last().unwrap()["content"].as_array().unwrap();
    let text = |text: String| (vec![Answer::Text(text)], End::Complete);
    if let Some(result) = blocks.iter().find(|block| block["type"] == "tool_result") {
        return text(format!("Result: {}", flat(&result["content"])));
    }
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    if let Some(attempt) = attempt(messages) {
        return to_command(attempt, body);
    }
    if texts.iter().any(|text| text.contains("<system-interrupt")) {
        return text("Corrected.".to_owned());
    }
    to_command(texts.last().copied().unwrap_or_default().trim(), body)
}

/// The command of an `attempts` prompt that is next. A reminder can come before the start of an answer that is to be continued.
fn attempt(messages: &[Value]) -> Option<&str> {
    let texts = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
    let attempts = texts.iter().find_map(|text| text.trim().strip_prefix("attempts "))?;
    let reminders = texts.iter().filter(|text| text.contains("<system-interrupt")).count();
    attempts.split(" | ").nth(reminders)
}

fn to_command(last: &str, body: &Value) -> (Vec<Answer>, End) {
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages.last().unwrap()["content"].as_array().unwrap();
    let text = |text: String| (vec![Answer::Text(text)], End::Complete);
    let (word, rest) = last.split_once(' ').unwrap_or((last, ""));
    let call =
        |tool: &str, arguments: Value| (vec![Answer::Call(String::from(tool), arguments.to_string())], End::Complete);
    match word {
        "say" => text(rest.to_owned()),
        "think" => (vec![Answer::Thinking("I think. ".to_owned()), Answer::Text(rest.to_owned())], End::Complete),
        "read" => call("read_file", json!({"path": rest})),
        "write" => {
            let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
            call("write_file", json!({"path": path, "content": content}))
        }
        "search" => call("grep", json!({"pattern": rest})),
        "spawn" => {
            let (agent, task) = rest.split_once(' ').unwrap_or((rest, ""));
            call("spawn_agent", json!({"agent": agent, "task": task}))
        }
        "flood" => {
            let (number, path) = rest.split_once(' ').unwrap_or((rest, ""));
            let read = Answer::Call("read_file".to_owned(), json!({"path": path}).to_string());
            (vec![Answer::Text("word ".repeat(number.parse().unwrap())), read], End::Complete)
        }
        "call" => {
            let (tool, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
            (vec![Answer::Call(tool.to_owned(), arguments.to_owned())], End::Complete)
        }
        "run" => call("shell", json!({"command": rest})),
        "hang" => (vec![Answer::Text("Working ".to_owned())], End::Never),
        "wait" => {
            let (file, text) = rest.split_once(' ').unwrap_or((rest, ""));
            (vec![Answer::Text("Working ".to_owned()), Answer::Text(text.to_owned())], End::After(file.into()))
        }
        "late" => {
            let (file, text) = rest.split_once(' ').unwrap_or((rest, ""));
            (vec![Answer::Text(text.to_owned())], End::Before(file.into()))
        }
        "forbidden" => text("Well, as an AI language model I cannot. Never mind. More text follows here.".to_owned()),
        "image" => text(blocks.iter().filter_map(image).collect::<Vec<_>>().join(", ")),
        "history" => text(format!("{} messages", messages.len())),
        _ => text(format!("Unknown: {last}")),
    }
}

fn image(block: &Value) -> Option<String> {
    let source = (block["type"] == "image").then(|| &block["source"])?;
    Some(format!("{} {}", source["media_type"].as_str()?, source["data"].as_str()?.len()))
}

/// The text of a tool's result.
fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}
