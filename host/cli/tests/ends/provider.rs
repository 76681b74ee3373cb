//! A provider of OpenAI's chat format that answers, refuses, or does neither.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a request is waited for before a test fails: no time that a test depends on.
const PATIENCE: Duration = Duration::from_secs(120);

/// What becomes of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    Never,
    /// The start of an answer, and nothing after it.
    Begun(&'static str),
    Text(&'static str),
    /// A call of a tool with these arguments, as text.
    Call(&'static str, &'static str),
    /// It is to be sent again after a minute.
    Busy,
    Refused,
}

/// Answers requests until its process ends.
pub(crate) struct Provider {
    pub(crate) url: String,
    asked: Receiver<()>,
}

impl Provider {
    /// `reply`: what becomes of each request, by its number from 0; the last one counts for all that follow.
    pub(crate) fn start(replies: &'static [Reply]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (send, asked) = channel();
        let number = Arc::new(AtomicUsize::new(0));
        let send = Arc::new(Mutex::new(send));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (number, send) = (Arc::clone(&number), Arc::clone(&send));
                std::thread::spawn(move || {
                    let number = || number.fetch_add(1, Ordering::SeqCst);
                    // A client that closes early is what many tests are about.
                    drop(serve(
                        stream,
                        || replies[number().min(replies.len() - 1)],
                        || _ = send.lock().unwrap().send(()),
                    ));
                });
            }
        });
        Self { url, asked }
    }

    /// Waits until so many more requests have come, and their answers are written as far as they are.
    pub(crate) fn is_asked(&self, times: usize) {
        (0..times).for_each(|_| self.asked.recv_timeout(PATIENCE).unwrap());
    }

    /// Settings that make it the model's provider.
    pub(crate) fn settings(&self) -> String {
        format!("[provider]\nkind = \"openai-chat\"\nmodel = \"m\"\nbase_url = \"{}\"\napi_key_env = \"\"\n", self.url)
    }
}

fn serve(mut stream: TcpStream, reply: impl Fn() -> Reply, asked: impl Fn()) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line)? > 2 {
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        if length == 0 {
            return Ok(());
        }
        reader.read_exact(&mut vec![0; length])?;
        let reply = reply();
        write(&mut stream, reply)?;
        asked();
        if let Reply::Never | Reply::Begun(_) = reply {
            // Until the client goes.
            std::io::copy(&mut reader, &mut std::io::sink())?;
        }
    }
}

fn write(stream: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    let chunk = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk =
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let text = |text: &str| chunk(json!({"role": "assistant", "content": text}), None);
    let (end, events) = match reply {
        Reply::Never => return Ok(()),
        Reply::Busy => return error(stream, "429 Too Many Requests\r\nretry-after: 60", "slow down"),
        Reply::Refused => return error(stream, "400 Bad Request", "no"),
        Reply::Begun(start) => ("", text(start)),
        Reply::Text(whole) => ("data: [DONE]\n\n", text(whole) + &chunk(json!({}), Some("stop"))),
        Reply::Call(tool, arguments) => {
            let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": tool, "arguments": arguments}});
            (
                "data: [DONE]\n\n",
                chunk(json!({"role": "assistant", "tool_calls": [call]}), None) + &chunk(json!({}), Some("tool_calls")),
            )
        }
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let body = events + end;
    let last = if end.is_empty() { "" } else { "0\r\n\r\n" };
    write!(stream, "{head}{:x}\r\n{body}\r\n{last}", body.len())?;
    stream.flush()
}

fn error(stream: &mut TcpStream, status: &str, message: &str) -> std::io::Result<()> {
    let body = json!({"error": {"message": message}}).to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}
