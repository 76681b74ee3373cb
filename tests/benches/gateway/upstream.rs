//! A model that answers as the question says: so many frames, so many microseconds apart, each with the time at which it was written.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep_until;

/// What a client asks for.
#[derive(Clone, Copy)]
pub(super) struct Question {
    /// 0: a whole body.
    pub(super) frames: u64,
    pub(super) every: Duration,
}

impl Question {
    /// Returns the body of a request for Chat Completions, the first one of conversation `number`.
    pub(super) fn body(self, number: u32) -> String {
        let Self { frames, every } = self;
        let content = format!("frames={frames} every={} done {number}", every.as_micros());
        let tool = r#"{"type":"function","function":{"name":"read","parameters":{"type":"object"}}}"#;
        format!(
            "{{\"model\":\"m\",\"stream\":{},\"tools\":[{tool}],\"messages\":[{{\"role\":\"user\",\"content\":\"{content}\"}}]}}",
            frames > 0
        )
    }

    /// Peers write a request anew: what is asked for is where they leave it alone.
    fn of(body: &str) -> Self {
        let number = |key: &str| {
            let rest = &body[body.find(key).unwrap() + key.len()..];
            rest[..rest.find(' ').unwrap()].parse().unwrap()
        };
        Self { frames: number("frames="), every: Duration::from_micros(number("every=")) }
    }
}

/// Words that no rule of the set waits for. Each frame is a line, for which plugins that get lines do not wait either.
const WORDS: &str = "quiet brook over green hill";

/// Serves for as long as the runtime lives. Times count from `start`.
pub(super) async fn serve(start: Instant) -> SocketAddr {
    serve_on("127.0.0.1:0", start).await
}

/// Does the same as [`serve`] at this address.
pub(super) async fn serve_on(address: &str, start: Instant) -> SocketAddr {
    let listener = TcpListener::bind(address).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            // A client that breaks off ends its connection.
            tokio::spawn(async move { drop(connection(stream, start).await) });
        }
    });
    address
}

async fn connection(mut stream: TcpStream, start: Instant) -> std::io::Result<()> {
    let mut received = Vec::with_capacity(4096);
    loop {
        let Some(question) = next(&mut stream, &mut received).await? else { return Ok(()) };
        if question.frames == 0 {
            stream.write_all(whole().as_bytes()).await?;
            continue;
        }
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await?;
        let begin = tokio::time::Instant::now();
        for number in 0..question.frames {
            sleep_until(begin + question.every * u32::try_from(number).unwrap()).await;
            let now = start.elapsed().as_micros();
            stream.write_all(chunk(&frame(&format!("\"content\":\"{now} {WORDS}\\n\""), "null")).as_bytes()).await?;
        }
        let end = chunk(&frame("", "\"stop\"")) + &chunk("data: [DONE]\n\n") + "0\r\n\r\n";
        stream.write_all(end.as_bytes()).await?;
    }
}

/// Reads a request; `None`: the connection has ended.
async fn next(stream: &mut TcpStream, received: &mut Vec<u8>) -> std::io::Result<Option<Question>> {
    loop {
        if let Some(head) = received.windows(4).position(|end| end == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:")).map(str::trim);
            let end = head + 4 + length.map_or(0, |length| length.parse::<usize>().unwrap());
            if received.len() >= end {
                let request: Vec<u8> = received.drain(..end).collect();
                if text.starts_with("get ") {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await?;
                    continue;
                }
                return Ok(Some(Question::of(&String::from_utf8_lossy(&request[head..]))));
            }
        }
        if stream.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}

fn frame(delta: &str, reason: &str) -> String {
    let choice = format!("{{\"index\":0,\"delta\":{{{delta}}},\"logprobs\":null,\"finish_reason\":{reason}}}");
    let head = "\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\"";
    format!("data: {{{head},\"choices\":[{choice}]}}\n\n")
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn whole() -> String {
    let usage = "\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":9,\"total_tokens\":19}";
    let message = format!("{{\"role\":\"assistant\",\"content\":\"{}\"}}", WORDS.repeat(20));
    let body = format!(
        "{{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"message\":{message},\
         \"finish_reason\":\"stop\"}}],{usage}}}"
    );
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
