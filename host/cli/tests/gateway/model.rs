//! A server of models for tests of the gateway: the query of each request controls its behavior, `metadata.say`
//! is what it says, and it records the requests.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A model that writes the forbidden word until it is reminded.
pub(crate) struct Model {
    pub(crate) url: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Heads and bodies, in the order of their arrival.
    seen: Mutex<Vec<(String, String)>>,
    /// The times at which clients disconnected during their answers.
    left: Mutex<Vec<Instant>>,
    /// Returns the content blocks of the answer to a request of the Messages API; `None` for the forbidden word.
    blocks: Option<fn(&Value) -> Vec<Value>>,
}

const BAD: &str = "Hello.\nNow the forbidden words come.\n";
const GOOD: &str = "These are fine.\n";

/// A part of an answer that fills buffers.
const LONG: &str = match std::str::from_utf8(&[b'x'; 1 << 16]) {
    Ok(text) => text,
    Err(_) => "",
};

impl Model {
    pub(crate) fn start() -> Self {
        Self::serving(Shared::default())
    }

    /// Starts a model whose answers have the content blocks that `blocks` returns for the body of a request.
    pub(crate) fn answering(blocks: fn(&Value) -> Vec<Value>) -> Self {
        Self::serving(Shared { blocks: Some(blocks), ..Shared::default() })
    }

    fn serving(shared: Shared) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(shared);
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = Arc::clone(&own);
                std::thread::spawn(move || serve(stream, &own));
            }
        });
        Self { url, shared }
    }

    /// Returns the received requests: heads and bodies.
    pub(crate) fn seen(&self) -> Vec<(String, String)> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Waits until this many clients have disconnected; returns the time of the last one.
    pub(crate) fn left(&self, number: usize) -> Instant {
        let begun = Instant::now();
        loop {
            let left = self.shared.left.lock().unwrap().clone();
            if left.len() >= number {
                return left[number - 1];
            }
            assert!(begun.elapsed() < Duration::from_secs(10), "only {} clients went away", left.len());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Shared {
    /// Returns the number of requests with the reminder.
    fn reminded(&self) -> usize {
        self.seen.lock().unwrap().iter().filter(|(_, body)| body.contains("Never say that word")).count()
    }
}

/// Reads a complete request; returns `None` if the connection ended.
fn request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, String)> {
    let mut part = [0; 4096];
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:").map(str::to_owned));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&buffer[end + 4..end + 4 + length]).into_owned();
                buffer.drain(..end + 4 + length);
                return Some((head, body));
            }
        }
        match stream.read(&mut part) {
            Ok(size) if size > 0 => buffer.extend_from_slice(&part[..size]),
            _ => return None,
        }
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut buffer = Vec::new();
    while let Some((head, body)) = request(&mut stream, &mut buffer) {
        shared.seen.lock().unwrap().push((head.clone(), body.clone()));
        let target = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let does = target.split_once("do=").map_or("", |(_, does)| does);
        let written = match does {
            "silent" => {
                // Until the gateway disconnects.
                let ended = stream.read(&mut [0; 1]);
                assert!(matches!(ended, Ok(0) | Err(_)), "a request within a request");
                Err(std::io::ErrorKind::BrokenPipe.into())
            }
            "endless" => stream_of(&mut stream, std::iter::repeat("word "), Duration::from_millis(10)),
            "flood" => stream_of(&mut stream, std::iter::repeat(LONG), Duration::ZERO),
            "large" => {
                let answer = format!("{{\"content\": [{{\"type\": \"text\", \"text\": \"{}\"}}]}}", "x".repeat((2 << 20) + 1));
                let length = answer.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n");
                stream.write_all((head + &answer).as_bytes())
            }
            "slow" => stream_of(&mut stream, std::iter::repeat_n("word ", 100), Duration::from_millis(10)),
            "pause" => stream_of(&mut stream, ["one forbid", "", "den two"].into_iter(), Duration::from_millis(700)),
            "failure" => stream.write_all(
                b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 529 Busy\r\nContent-Type: application/json\r\nX-Own: a\r\n\
                  Retry-After: 7\r\nConnection: x-hop\r\nX-Hop: b\r\nTransfer-Encoding: chunked\r\nTrailer: x-end\r\n\r\n\
                  14\r\n{\"error\":\"too much\"}\r\n0\r\nX-End: c\r\n\r\n",
            ),
            // The server closes an idle connection at the moment at which the next request is sent on it.
            "hang_up" if body.contains("Never say that word") => return,
            "hang_up_once" if body.contains("Never say that word") && shared.reminded() == 1 => return,
            "refuse_again" if body.contains("Never say that word") => {
                stream.write_all(b"HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n")
            }
            _ if target.contains("/messages") && shared.blocks.is_some() => {
                let asked = serde_json::from_str(&body).unwrap();
                stream_blocks(&mut stream, &shared.blocks.map(|blocks| blocks(&asked)).unwrap_or_default())
            }
            _ if target.contains("/messages") => {
                let asked: Value = serde_json::from_str(&body).unwrap_or_default();
                let text = match asked["metadata"]["say"].as_str() {
                    Some(said) => said,
                    None if body.contains("Never say that word") || body.contains("\"good\"") => GOOD,
                    None => BAD,
                };
                let parts: Vec<&str> = text.split_inclusive(' ').collect();
                stream_of(&mut stream, parts.into_iter(), Duration::ZERO)
            }
            _ => {
                let answer = json!({"target": target}).to_string();
                let length = answer.len();
                stream.write_all(
                    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{answer}")
                        .as_bytes(),
                )
            }
        };
        if written.is_err() {
            shared.left.lock().unwrap().push(Instant::now());
            return;
        }
    }
}

/// Writes an answer of the Messages API with a text block of these parts.
fn stream_of<'p>(stream: &mut TcpStream, parts: impl Iterator<Item = &'p str>, pause: Duration) -> std::io::Result<()> {
    begin(stream)?;
    send(stream, &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}))?;
    for part in parts {
        if !part.is_empty() {
            let delta = json!({"type": "text_delta", "text": part});
            send(stream, &json!({"type": "content_block_delta", "index": 0, "delta": delta}))?;
        }
        std::thread::sleep(pause);
    }
    send(stream, &json!({"type": "content_block_stop", "index": 0}))?;
    end(stream)
}

/// Writes an answer of the Messages API with these content blocks, texts in small parts.
fn stream_blocks(stream: &mut TcpStream, blocks: &[Value]) -> std::io::Result<()> {
    begin(stream)?;
    for (index, block) in blocks.iter().enumerate() {
        let mut empty = block.clone();
        let deltas: Vec<Value> = match block["text"].as_str() {
            Some(text) => {
                empty["text"] = json!("");
                let parts = text.as_bytes().chunks(7).map(String::from_utf8_lossy);
                parts.map(|part| json!({"type": "text_delta", "text": part})).collect()
            }
            None => vec![json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})],
        };
        send(stream, &json!({"type": "content_block_start", "index": index, "content_block": empty}))?;
        for delta in deltas {
            send(stream, &json!({"type": "content_block_delta", "index": index, "delta": delta}))?;
        }
        send(stream, &json!({"type": "content_block_stop", "index": index}))?;
    }
    end(stream)
}

fn begin(stream: &mut TcpStream) -> std::io::Result<()> {
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    send(stream, &json!({"type": "message_start", "message": message}))
}

fn send(stream: &mut TcpStream, event: &Value) -> std::io::Result<()> {
    let frame = format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    stream.write_all(format!("{:x}\r\n{frame}\r\n", frame.len()).as_bytes())
}

fn end(stream: &mut TcpStream) -> std::io::Result<()> {
    let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
    send(stream, &json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}))?;
    send(stream, &json!({"type": "message_stop"}))?;
    stream.write_all(b"0\r\n\r\n")
}
