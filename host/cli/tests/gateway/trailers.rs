//! Trailers in both directions, interim responses, and clients that wait for one.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::model::Model;
use super::running::{Answer, Running, TOKEN_A, rest};
use super::{place, team};
use crate::support::Place;

/// A server that answers each request with the next of these bytes, and keeps the received ones.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let own = Arc::clone(&seen);
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                own.lock().unwrap().push(request(&mut stream));
                stream.write_all(answer.as_bytes()).unwrap();
                // The connection is open until the gateway closes it.
                std::thread::spawn(move || drop(stream.read(&mut [0; 1])));
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// Reads a request to the end of its body.
fn request(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&all).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            let is_over = match length {
                Some(length) => body.len() >= length,
                None if head.contains("transfer-encoding: chunked") => {
                    body.contains("\r\n0\r\n") && body.ends_with("\r\n\r\n")
                }
                None => true,
            };
            if is_over {
                return text;
            }
        }
        let mut part = [0; 4096];
        let size = stream.read(&mut part).unwrap();
        assert!(size > 0, "the request breaks off: {text}");
        all.extend_from_slice(&part[..size]);
    }
}

/// Returns an answer in one chunk. `headers` and `trailers`: lines with their ends.
fn chunked(media_type: &str, headers: &str, body: &str, trailers: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n{headers}\r\n\
         {length:x}\r\n{body}\r\n0\r\n{trailers}\r\n"
    )
}

/// Returns a streamed message with this text.
fn stream(text: &str) -> String {
    let start = json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let events = [
        start,
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ];
    let frame =
        |event: &serde_json::Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(frame).collect()
}

fn of(server: &Server) -> Place {
    place(&format!("[[gateway.route]]\npath = \"/\"\nupstream = \"{}\"\n", server.url))
}

const EVENTS: &str = "text/event-stream";
const BOTH: &str = "X-Cost: 5\r\nContent-Digest: a\r\n";
const NAMED: &str = "Trailer: X-Cost\r\nTrailer: content-digest, connection\r\n";

#[test]
fn trailers_of_a_server_pass() {
    let whole = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Fine."}], "usage": {"input_tokens": 1, "output_tokens": 1}});
    let (plain, good) = (json!({"a": 1}).to_string(), stream("Fine."));
    let accepts = "TE: trailers";
    for (name, path, header, answers, expected) in [
        (
            "passed on",
            "/a",
            accepts,
            vec![chunked("application/json", NAMED, &plain, BOTH)],
            "x-cost: 5\r\ncontent-digest: a\r\n",
        ),
        ("not accepted", "/a", "X-A: b", vec![chunked("application/json", NAMED, &plain, BOTH)], ""),
        ("not announced", "/a", accepts, vec![chunked("application/json", "", &plain, BOTH)], ""),
        // The text of an answer that is checked can be changed: a digest of it does not pass.
        ("a stream", "/v1/messages", accepts, vec![chunked(EVENTS, NAMED, &good, BOTH)], "x-cost: 5\r\n"),
        (
            "a body",
            "/v1/messages",
            accepts,
            vec![chunked("application/json", NAMED, &whole.to_string(), BOTH)],
            "x-cost: 5\r\n",
        ),
        (
            "a second answer",
            "/v1/messages",
            accepts,
            vec![
                chunked(EVENTS, NAMED, &stream("Now the forbidden words"), "X-Cost: 1\r\n"),
                chunked(EVENTS, NAMED, &good, "X-Cost: 2\r\n"),
            ],
            "x-cost: 2\r\n",
        ),
    ] {
        let asked = answers.len();
        let server = Server::start(answers);
        let place = of(&server);
        let answer = Running::start(&place).ask("POST", path, &[header], r#"{"stream": true, "messages": []}"#);
        assert!(answer.body.ends_with(&format!("\r\n0\r\n{expected}\r\n")), "{name}: {answer:?}");
        let is_announced = answer.head.lines().any(|line| line.starts_with("trailer: x-cost"));
        assert_eq!(is_announced, !expected.is_empty(), "{name}: {answer:?}");
        let seen = server.seen();
        assert_eq!(seen.len(), asked, "{name}");
        for request in seen {
            let is_asked = request.contains("te: trailers\r\n") && request.contains("connection: te\r\n");
            assert_eq!(is_asked, header == accepts, "{name}: {request}");
        }
    }
}

/// A client does not wait for the trailers of a server that does not send them.
#[test]
fn late_trailers_are_left_out() {
    let answer = chunked(EVENTS, NAMED, &stream("Fine."), "");
    let server = Server::start(vec![answer.strip_suffix("0\r\n\r\n").unwrap().to_owned()]);
    let place = of(&server);
    let (running, begun) = (Running::start(&place), Instant::now());
    let answer = running.ask("POST", "/v1/messages", &["TE: trailers"], r#"{"stream": true, "messages": []}"#);
    assert!(answer.body.ends_with("\r\n0\r\n\r\n") && answer.body.contains("message_stop"), "{answer:?}");
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn trailers_of_a_request_pass() {
    let trailers = format!("X-Sum: a\r\nContent-Digest: b\r\nX-Api-Key: {TOKEN_A}\r\nConnection: c\r\n\r\n");
    let body = r#"{"stream": true, "messages": [{"role": "user", "content": "x"}]}"#;
    let good = chunked(EVENTS, "", &stream("Fine."), "");
    for (name, path, answers, kept) in [
        ("passed on", "/anthropic/a", vec![good.clone()], vec!["content-digest: b\r\nx-sum: a\r\n"]),
        (
            // The body of the second request is another one.
            "asked again",
            "/anthropic/v1/messages",
            vec![chunked(EVENTS, "", &stream("Now the forbidden words"), ""), good],
            vec!["content-digest: b\r\nx-sum: a\r\n", "x-sum: a\r\n"],
        ),
    ] {
        let server = Server::start(answers);
        let place = place(&format!(
            "[[gateway.route]]\npath = \"/anthropic\"\nupstream = \"{}\"\nkey = \"env:A_KEY\"\n\
             [[gateway.token]]\nname = \"a\"\nvalue = \"env:A_TOKEN\"\n",
            server.url
        ));
        let running = Running::start(&place);
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nX-Api-Key: {TOKEN_A}\r\n\
             Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n{trailers}"
        );
        let answer = Answer::of(&running.raw(request.as_bytes()));
        assert!(answer.status == 200 && answer.body.contains("Fine."), "{name}: {answer:?}");
        let seen = server.seen();
        assert_eq!(seen.len(), kept.len(), "{name}: {seen:?}");
        for (request, kept) in seen.iter().zip(kept) {
            let (_, last) = request.rsplit_once("\r\n0\r\n").unwrap();
            let mut lines: Vec<&str> = last.split_inclusive("\r\n").collect();
            lines.sort_unstable();
            assert_eq!(lines.concat().trim_start(), kept, "{name}: {request}");
            assert!(!request.contains(&TOKEN_A.to_lowercase()), "{name}: {request}");
            let announced: Vec<&str> = kept.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
            let line = request.lines().find_map(|line| line.strip_prefix("trailer: ")).unwrap();
            assert!(announced.iter().all(|name| line.contains(name)) && !line.contains("x-api-key"), "{name}: {line}");
        }
    }
}

/// A client that waits before it sends its body is told to continue only if its request is not refused anyway.
#[test]
fn a_body_is_only_asked_for_if_it_is_read() {
    let model = Model::start();
    let place = place(&team(&model, ""));
    let running = Running::start(&place);
    for (path, token, starts) in [
        ("/anthropic/a", TOKEN_A, "HTTP/1.1 100 Continue\r\n\r\n"),
        ("/anthropic/a", "no-token", "HTTP/1.1 401 "),
        ("/other", TOKEN_A, "HTTP/1.1 404 "),
    ] {
        let mut stream = running.connect();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nX-Api-Key: {token}\r\nConnection: close\r\n\
             Expect: 100-continue\r\nContent-Length: 3\r\n\r\n",
            running.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = vec![0; starts.len()];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(String::from_utf8_lossy(&first), starts, "{path} {token}");
        if starts.contains("100") {
            stream.write_all(b"abc").unwrap();
            assert!(rest(&mut stream).starts_with("HTTP/1.1 200"), "{path}");
        }
    }
    let seen = model.seen();
    assert!(seen.len() == 1 && !seen[0].0.to_lowercase().contains("expect"), "{seen:?}");
}
