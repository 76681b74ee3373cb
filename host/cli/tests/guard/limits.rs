//! Requests and answers that exceed a limit, or that two programs could parse in two ways: a named error, and nothing passes.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use super::answers::{Kind, Wire};
use super::raw::{Client, Cut, Guard, upstream};
use crate::support::Place;

const RULE: &str = "+++\ncondition = 'zyzzyva'\nscope = [\"text\", \"thinking\", \"tool\"]\n+++\nNever.\n";

/// A guard in front of an upstream that keeps the heads that it gets, and answers as `x-answer` says.
struct Stage {
    _place: Place,
    guard: Guard,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    fn new() -> Self {
        let heads: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&heads);
        let address = upstream(move |request, stream| {
            kept.lock().unwrap().push(request.head.clone());
            let wire = Wire::Messages;
            let stream_head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
            let whole_head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            match request.header("x-answer") {
                "large event" => {
                    let body = [&b": begins\n\ndata: "[..], &vec![b'x'; 9 << 20]].concat();
                    Cut::Whole.write(stream_head, &body, stream)
                }
                "large body" => {
                    Cut::Whole.write(whole_head, &[b"{\"x\":\"".to_vec(), vec![b'x'; 33 << 20]].concat(), stream)
                }
                "two lengths" => {
                    let body = "5\r\nHello\r\n0\r\n\r\n";
                    let both = format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", body.len());
                    stream.write_all(format!("{whole_head}{both}\r\n{body}").as_bytes())
                }
                "no http" => stream.write_all(b"220 mail.example ESMTP\r\n\r\n"),
                "gzip" => {
                    Cut::Whole.write(&format!("{stream_head}content-encoding: gzip\r\n"), b"\x1f\x8b\x08", stream)
                }
                "redirect" => {
                    Cut::Whole.write("HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\n", b"", stream)
                }
                "other protocol" => {
                    stream.write_all(
                        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nHello",
                    )?;
                    Err(std::io::Error::other("it has another protocol"))
                }
                "other type" => Cut::Whole.write("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n", b"Hello", stream),
                _ => Cut::Whole.write(stream_head, &wire.stream(Kind::Text, &["Hi."]), stream),
            }
        });
        let place = Place::with(&[("never", RULE)]);
        place.write("tidegate.toml", "[rules]\nbuiltin_rules = false\n");
        Self { guard: Guard::start(&place, address), _place: place, heads }
    }

    /// Sends bytes, and reads the response until the connection ends or is silent.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut client = Client::connect(self.guard.address);
        // The request can be refused before all of it is sent.
        drop(client.write(bytes));
        let mut received = Vec::new();
        client.patience(std::time::Duration::from_millis(700));
        while !client.read_some(4096, &mut received).unwrap_or(true) {}
        String::from_utf8_lossy(&received).into_owned()
    }
}

#[test]
fn what_two_programs_could_read_in_two_ways_is_refused() {
    let stage = Stage::new();
    let host = stage.guard.address;
    let inner = format!("POST /v1/smuggled HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n");
    let post = |headers: &str, body: &str| format!("POST /v1/messages HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n{body}");
    let length = inner.len();
    let zero = format!("0\r\n\r\n{inner}");
    let refused = [
        post("content-length: 5\r\ncontent-length: 6\r\n", "Hello"),
        post("content-length: 5, 6\r\n", "Hello"),
        post("content-length: +5\r\n", "Hello"),
        post("content-length: 0x5\r\n", "Hello"),
        post("content-length: -1\r\n", "Hello"),
        post("transfer-encoding: chunked, identity\r\n", &zero),
        post("transfer-encoding: xchunked\r\n", &zero),
        post("content-length : 5\r\n", "Hello"),
        post(&format!("content-length: {length}\r\n x: folded\r\n"), &inner),
        post("x\u{0}: 1\r\ncontent-length: 5\r\n", "Hello"),
        post("x: a\u{0}b\r\ncontent-length: 5\r\n", "Hello"),
        post("transfer-encoding: chunked\r\n", "5;\nx\r\nHello\r\n0\r\n\r\n"),
        post("transfer-encoding: chunked\r\n", "-5\r\nHello\r\n0\r\n\r\n"),
        post("transfer-encoding: chunked\r\n", "fffffffffffffffff\r\nHello\r\n0\r\n\r\n"),
        format!("POST  /v1/messages HTTP/1.1\r\nhost: {host}\r\ncontent-length: 5\r\n\r\nHello"),
        format!("POST /v1/messages HTTP/3.7\r\nhost: {host}\r\ncontent-length: 5\r\n\r\nHello"),
        "POST /v1/messages HTTP/1.1\r\nhost: attacker.example\r\ncontent-length: 5\r\n\r\nHello".to_owned(),
        "POST /v1/messages HTTP/1.1\r\ncontent-length: 5\r\n\r\nHello".to_owned(),
        "POST http://attacker.example/v1/messages HTTP/1.1\r\nhost: attacker.example\r\ncontent-length: 0\r\n\r\n"
            .to_owned(),
        "CONNECT attacker.example:443 HTTP/1.1\r\nhost: attacker.example:443\r\n\r\n".to_owned(),
        format!(
            "POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nx: {}\r\ncontent-length: 5\r\n\r\nHello",
            "x".repeat(300 << 10)
        ),
    ];
    for request in &refused {
        let answer = stage.raw(request.as_bytes());
        let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
        let about = request.chars().take(200).collect::<String>();
        assert!(answer.is_empty() || status.starts_with('4'), "{about}\n{answer}");
    }
    assert_eq!(stage.heads.lock().unwrap().as_slice(), <[String; 0]>::default(), "none of them reached the model");
    // Parsed in one way only: as a chunked body, whose content length is not passed on.
    let both =
        stage.raw(post(&format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"), &zero).as_bytes());
    let heads = std::mem::take(&mut *stage.heads.lock().unwrap());
    for head in &heads {
        assert!(!head.contains("/v1/smuggled") || both.matches("HTTP/1.1 ").count() == heads.len(), "{heads:?} {both}");
        assert!(!(head.contains("transfer-encoding") && head.contains("content-length")), "{head}");
    }
    // Header names and values of the gateway cannot be forged.
    let split = stage.raw(
        post("connection: close, x-secret\r\nx-secret: 1\r\nkeep-alive: 5\r\ncontent-length: 2\r\n", "{}").as_bytes(),
    );
    assert!(split.starts_with("HTTP/1.1 200 "), "{split}");
    let head = stage.heads.lock().unwrap().pop().unwrap();
    assert!(!head.contains("x-secret") && !head.contains("keep-alive"), "{head}");
    stage.guard.finish();
}

#[test]
fn each_limit_is_named_and_leaves_nothing() {
    let stage = Stage::new();
    let (files, before) = stage.guard.resources();
    let ask = |answer: &str, body: &[u8]| {
        let mut client = Client::connect(stage.guard.address);
        drop(client.send("/v1/messages", &format!("x-answer: {answer}\r\n"), body));
        client.receive()
    };
    for _ in 0..3 {
        let large = ask("", &vec![b'x'; (64 << 20) + 1]);
        if let Ok(large) = large {
            assert!(large.status == 413 && large.text().contains("67108864 bytes"), "{large:?}");
        }
        for (answer, status, said) in [
            ("large event", 200, "a server-sent event is larger than 8388608 bytes"),
            ("large body", 200, "it is too large to be checked"),
            ("no http", 502, "cannot reach"),
            ("gzip", 400, "in a way that cannot be checked: it is compressed (`content-encoding: gzip`)"),
            ("redirect", 400, "answered with status 307"),
            ("other protocol", 502, "the server's answer has an invalid head"),
            ("other type", 400, "in a way that cannot be checked: its content type is `text/plain`, not"),
        ] {
            let got = ask(answer, b"{\"messages\":[]}").unwrap();
            assert!(got.status == status && got.text().contains(said), "{answer}: {} {}", got.status, got.text());
        }
        // An answer with two lengths: an error, or the content of the chunks.
        let got = ask("two lengths", b"{\"messages\":[]}").unwrap();
        assert!(got.status >= 400 || got.text().contains("it is not JSON"), "{} {}", got.status, got.text());
    }
    stage.guard.assert_settled(files);
    let (_, after) = stage.guard.resources();
    assert!(after < before + (160 << 20), "{before} bytes of memory became {after}");
    stage.guard.finish();
}
