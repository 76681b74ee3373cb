//! A client that knows HTTP and server-sent events, and nothing else.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gateway::running::{Answer, Running, rest};

/// How long an event may take to arrive.
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct Client {
    address: String,
    token: String,
}

impl Client {
    /// A client of a server; `token` is empty where none is needed.
    pub(super) fn new(running: &Running, token: &str) -> Self {
        Self { address: running.address.clone(), token: token.to_owned() }
    }

    fn head(&self, line: &str, headers: &[&str]) -> String {
        let mut head = format!("{line}\r\nHost: {}\r\nConnection: close\r\n", self.address);
        if !self.token.is_empty() {
            head.push_str(&format!("Authorization: Bearer {}\r\n", self.token));
        }
        headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
        head
    }

    pub(super) fn send(&self, method: &str, path: &str, headers: &[&str], body: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let head = self.head(&format!("{method} {path} HTTP/1.1"), headers);
        // It can be refused before all of it is written.
        drop(write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()));
        Answer::of(&rest(&mut stream))
    }

    /// Sends JSON. Returns the status and the body.
    pub(super) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        read(&self.send("POST", path, &["Content-Type: application/json"], &body.to_string()))
    }

    pub(super) fn get(&self, path: &str) -> (u16, Value) {
        read(&self.send("GET", path, &[], ""))
    }

    pub(super) fn put(&self, path: &str) -> u16 {
        self.send("PUT", path, &[], "").status
    }

    pub(super) fn delete(&self, path: &str) -> (u16, Value) {
        read(&self.send("DELETE", path, &[], ""))
    }

    /// Creates a session, and returns its path.
    pub(super) fn create(&self) -> String {
        let (status, session) = self.post("/v1/sessions", &json!({}));
        assert_eq!(status, 201, "{session}");
        format!("/v1/sessions/{}", session["id"].as_str().unwrap())
    }

    /// Sends a command, which is carried out.
    pub(super) fn command(&self, session: &str, command: &Value) -> Value {
        let (status, answer) = self.post(&format!("{session}/commands"), command);
        assert_eq!(status, 200, "{command}: {answer}");
        answer
    }

    /// Starts a turn.
    pub(super) fn prompt(&self, session: &str, id: &str, text: &str) -> Value {
        self.command(session, &json!({"command": "prompt", "messages": [{"id": id, "text": text}]}))
    }

    /// Streams the events of a session after the event `from`, or all.
    pub(super) fn events(&self, session: &str, from: Option<&str>) -> Stream {
        let id = from.map(|from| format!("Last-Event-ID: {from}"));
        self.stream(&format!("{session}/events"), id.as_deref())
    }

    /// Streams what is at a path.
    pub(super) fn stream(&self, path: &str, header: Option<&str>) -> Stream {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let headers: Vec<&str> = header.into_iter().collect();
        // The answer is not in chunks for a client of the older version.
        socket.write_all((self.head(&format!("GET {path} HTTP/1.0"), &headers) + "\r\n").as_bytes()).unwrap();
        let mut stream = Stream::of(socket);
        // It is subscribed when the first comment comes.
        while !stream.bytes.ends_with(": keep-alive\n") {
            stream.bytes.push_str(&stream.lines.recv_timeout(LIMIT).unwrap_or_else(|_| panic!("{}", stream.bytes)));
        }
        stream
    }
}

fn read(answer: &Answer) -> (u16, Value) {
    (answer.status, serde_json::from_str(&answer.body).unwrap_or(Value::String(answer.body.clone())))
}

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Received {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) data: Value,
}

impl Received {
    /// The type of the line.
    pub(super) fn line(&self) -> &str {
        self.data["type"].as_str().unwrap_or_default()
    }
}

/// A stream of events, which is read meanwhile.
pub(super) struct Stream {
    socket: TcpStream,
    lines: Receiver<String>,
    /// All bytes that were read.
    pub(super) bytes: String,
}

impl Stream {
    fn of(socket: TcpStream) -> Self {
        let (send, lines) = channel();
        let mut reader = BufReader::new(socket.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while reader.read_until(b'\n', &mut line).is_ok_and(|size| size > 0) {
                if send.send(String::from_utf8(std::mem::take(&mut line)).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { socket, lines, bytes: String::new() }
    }

    /// Returns the next event; `None`: the stream has ended.
    pub(super) fn next(&mut self) -> Option<Received> {
        let mut event = Received { kind: "message".to_owned(), ..Received::default() };
        // Keep-alives are no events.
        let late = Instant::now() + LIMIT;
        loop {
            let line = match self.lines.recv_timeout(late.saturating_duration_since(Instant::now())) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no event follows {}", self.bytes),
            };
            self.bytes.push_str(&line);
            match line.trim_end().split_once(": ") {
                Some(("id", id)) => id.clone_into(&mut event.id),
                Some(("event", kind)) => kind.clone_into(&mut event.kind),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                None if line.trim().is_empty() && !event.id.is_empty() => return Some(event),
                _ => {}
            }
        }
    }

    /// Returns the events up to one that is wanted.
    pub(super) fn until(&mut self, is_wanted: impl Fn(&Received) -> bool) -> Vec<Received> {
        let mut all = Vec::new();
        while let Some(event) = self.next() {
            let is_last = is_wanted(&event);
            all.push(event);
            if is_last {
                return all;
            }
        }
        panic!("the stream has ended: {}", self.bytes);
    }

    /// Returns the events up to a line of this type.
    pub(super) fn line(&mut self, kind: &str) -> Vec<Received> {
        self.until(|event| event.line() == kind)
    }

    /// Waits until it has a string.
    pub(super) fn seen(&mut self, text: &str) {
        while !self.bytes.contains(text) {
            let line = self.lines.recv_timeout(LIMIT);
            self.bytes.push_str(&line.unwrap_or_else(|_| panic!("no {text:?} follows {}", self.bytes)));
        }
    }

    /// Returns everything until the end of the stream.
    pub(super) fn rest(mut self) -> String {
        loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => self.bytes.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => return self.bytes.clone(),
                Err(RecvTimeoutError::Timeout) => panic!("the stream does not end after {}", self.bytes),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.socket.shutdown(std::net::Shutdown::Both));
    }
}

/// The text that was shown by lines.
pub(super) fn text(events: &[Received]) -> String {
    let deltas = events.iter().filter(|event| event.line() == "cognition_out_delta");
    deltas.map(|event| event.data["payload"]["text"].as_str().unwrap()).collect()
}
