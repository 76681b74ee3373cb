//! Events: a turn as it is shown, what is never shown, and readers that come back.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::client::{Client, Received, text};
use super::{RULE, USERS, place, start, users};
use crate::gateway::running::{Running, TOKEN_A};
use crate::support::script::Model;

#[test]
fn a_turn_is_streamed_to_two_readers_and_nothing_that_a_rule_stopped() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let (mut one, mut two) = (client.events(&session, None), client.events(&session, None));
    assert_eq!(client.prompt(&session, "m-1", "Hello"), json!({"receipts": [{"id": "m-1", "receipt": "sent"}]}));
    let mut request = model.request();
    assert!(request.text().contains("Hello"));
    request.say("Good day, this is forbid").say("den-4711 and more").end();
    // The rule stops it; the second attempt is shown.
    model.request().say("A better answer.").end();
    let events = one.line("turn_finish");
    assert_eq!(two.line("turn_finish"), events);
    assert!(text(&events).ends_with("A better answer."), "{events:?}");
    let lines: Vec<&str> = events.iter().map(|event| event.line()).collect();
    for kind in ["input_received", "rule_fired", "ttsr_injection", "cognition_out"] {
        assert!(lines.contains(&kind), "{kind}: {lines:?}");
    }
    let seqs: Vec<u64> = events.iter().map(|event| event.data["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    // Nobody gets what was held back: not live, not as a snapshot, not as a file.
    let mut snapshot = client.events(&session, Some("0000000000000000.7"));
    let saved = snapshot.next().unwrap();
    assert_eq!(saved.kind, "snapshot");
    assert_eq!(saved.data["omitted"], saved.data["next_seq"]);
    for (name, bytes) in [("live", &one.bytes), ("snapshot", &snapshot.bytes)] {
        assert!(bytes.contains("A better answer.") && !bytes.contains("forbid"), "{name}: {bytes}");
        assert!(!bytes.contains("Never say that word"), "{name}: the reminder is the model's");
    }
    for format in ["md", "html", "jsonl"] {
        let export = client.send("GET", &format!("{session}/export?format={format}"), &[], "").body;
        assert!(export.contains("A better answer.") && !export.contains("forbid"), "{format}: {export}");
    }
    assert_eq!(client.get(&format!("{session}/export?format=pdf")).0, 400);
}

#[test]
fn arguments_that_a_rule_stopped_are_in_no_stream() {
    let model = Model::start();
    let place = place(&model, "[tools.permission]\nwrite_file = \"allow\"\n");
    place.write(".tidegate/rules/no-numbers.md", &RULE.replace("repeat =", "action = \"block\"\nrepeat ="));
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let mut live = client.events(&session, None);
    client.prompt(&session, "m-1", "Write");
    model.request().call("c-1", "write_file", &json!({"path": "a.txt", "content": "forbidden-4711"})).end();
    model.request().say("Done.").end();
    live.line("turn_finish");
    let mut snapshot = client.events(&session, Some("0000000000000000.7"));
    snapshot.next().unwrap();
    let export = client.send("GET", &format!("{session}/export"), &[], "").body;
    for (name, bytes) in [("live", &live.bytes), ("snapshot", &snapshot.bytes), ("export", &export)] {
        assert!(bytes.contains("Done.") && !bytes.contains("4711"), "{name}: {bytes}");
    }
}

/// What a reader has at the end that left after `left` events and came back.
fn came_back(client: &Client, session: &str, all: &[Received], left: usize) -> Vec<Value> {
    let before = all[..left].iter().map(|event| event.data.clone());
    let from = all[left - 1].id.as_str();
    let mut again = client.events(session, Some(from));
    before.chain(again.line("turn_finish").into_iter().map(|event| event.data)).collect()
}

#[test]
fn a_reader_that_comes_back_in_mid_turn_misses_nothing_and_gets_nothing_twice() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let mut events = client.events(&session, None);
    client.prompt(&session, "m-1", "Hello");
    let mut request = model.request();
    request.say("one ").say("two ");
    let mut seen = events.until(|event| text(std::slice::from_ref(event)).contains("two"));
    // In mid-turn.
    let mut again = client.events(&session, Some(&seen[seen.len() - 2].id));
    assert_eq!(again.next().as_ref(), seen.last());
    request.say("three").end();
    seen.extend(events.line("turn_finish"));
    let all: Vec<Value> = seen.iter().map(|event| event.data.clone()).collect();
    for left in 1..seen.len() {
        assert_eq!(came_back(&client, &session, &seen, left), all, "after {left}");
    }
    assert_eq!(text(&seen), "one two three");
}

#[test]
fn what_is_not_kept_any_more_is_a_snapshot_and_the_stream_goes_on_after_it() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let mut live = client.events(&session, None);
    client.prompt(&session, "m-1", "Hello");
    let mut request = model.request();
    // More than the backlog keeps.
    let long = "x".repeat(1000);
    for _ in 0..1500 {
        request.say(&long);
    }
    request.say(" begun");
    let seen = live.until(|event| text(std::slice::from_ref(event)).contains("begun"));
    let mut late = client.events(&session, Some(&seen[0].id));
    let snapshot = late.next().unwrap();
    assert_eq!(snapshot.kind, "snapshot");
    assert!(snapshot.data["omitted"].as_u64().unwrap() > 0);
    assert!(snapshot.data["chat"].to_string().contains(" begun"));
    request.say(" end").end();
    let after = late.line("turn_finish");
    assert_eq!(text(&after), " end");
    assert_eq!(after[0].data["seq"].as_u64().unwrap(), snapshot.data["next_seq"].as_u64().unwrap());
}

#[test]
fn a_reader_that_takes_nothing_costs_the_session_nothing() {
    let model = Model::start();
    let place = place(&model, "[serve.limits]\nidle_timeout_ms = 500\n");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    // Its socket is full soon: it is not read by anything.
    let mut slow = running.connect();
    let head = format!("GET {session}/events HTTP/1.1\r\nHost: {}\r\n\r\n", running.address);
    slow.write_all(head.as_bytes()).unwrap();
    let mut live = client.events(&session, None);
    client.prompt(&session, "m-1", "Hello");
    let mut request = model.request();
    let long = "y".repeat(8000);
    for _ in 0..1500 {
        request.say(&long);
    }
    request.end();
    let events = live.line("turn_finish");
    assert_eq!(text(&events).len(), 1500 * 8000);
    // Its connection ends, with what was in flight.
    let mut all = Vec::new();
    let ended = slow.read_to_end(&mut all);
    assert!(
        all.len() < 1500 * 8000
            && (ended.is_ok() || ended.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset))
    );
}

#[test]
fn a_stream_ends_when_the_session_is_deleted_or_is_not_shared_any_more() {
    let model = Model::start();
    let place = place(&model, USERS);
    let running = start(&place);
    let [anna, bert] = users(&running);
    let session = anna.create();
    assert_eq!(anna.put(&format!("{session}/users/bert")), 204);
    let (own, shared) = (anna.events(&session, None), bert.events(&session, None));
    assert_eq!(anna.delete(&format!("{session}/users/bert")).0, 204);
    let ended = shared.rest();
    assert!(ended.contains("event: end") && ended.contains(r#"{"reason":"closed"}"#), "{ended}");
    assert_eq!(bert.get(&session).0, 404);
    assert_eq!(anna.delete(&session).0, 204);
    let ended = own.rest();
    assert!(ended.contains("event: end") && ended.contains(r#"{"reason":"deleted"}"#), "{ended}");
    assert_eq!(anna.get(&session).0, 404);
    let status = anna.send("GET", &format!("{session}/events"), &[], "").status;
    assert_eq!(status, 404);
}

/// Reads one text frame of a websocket, as servers send it.
pub(super) fn frame(socket: &mut impl Read) -> String {
    let mut head = [0; 2];
    socket.read_exact(&mut head).unwrap();
    let length = match head[1] {
        126 => {
            let mut long = [0; 2];
            socket.read_exact(&mut long).unwrap();
            usize::from(u16::from_be_bytes(long))
        }
        127 => {
            let mut long = [0; 8];
            socket.read_exact(&mut long).unwrap();
            usize::try_from(u64::from_be_bytes(long)).unwrap()
        }
        short => usize::from(short),
    };
    let mut text = vec![0; length];
    socket.read_exact(&mut text).unwrap();
    assert_eq!(head[0], 0x81, "a whole text frame: {:?}", String::from_utf8_lossy(&text));
    String::from_utf8(text).unwrap()
}

/// Connects a websocket with the token as a browser gives it. Returns it with the head of the response.
pub(super) fn websocket(running: &Running, path: &str, more: &str) -> (TcpStream, String) {
    let mut socket = running.connect();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n",
        running.address
    );
    socket.write_all(head.as_bytes()).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && socket.read(&mut byte).is_ok_and(|size| size > 0) {
        head.push(byte[0]);
    }
    (socket, String::from_utf8(head).unwrap().to_lowercase())
}

#[test]
fn the_same_events_come_over_a_websocket() {
    let model = Model::start();
    let place = place(&model, USERS);
    let running = start(&place);
    let [anna, _] = users(&running);
    let session = anna.create();
    let mut live = anna.events(&session, None);
    let token = format!("Sec-WebSocket-Protocol: tidegate, bearer.{TOKEN_A}\r\n");
    let path = format!("{session}/events");
    let (mut socket, head) = websocket(&running, &path, &token);
    assert!(head.starts_with("http/1.1 101") && head.contains("sec-websocket-protocol: tidegate\r\n"), "{head}");
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    anna.prompt(&session, "m-1", "Hello");
    model.request().say("Good day").end();
    let events = live.line("turn_finish");
    for event in &events {
        let received: Value = serde_json::from_str(&frame(&mut socket)).unwrap();
        assert_eq!(received, json!({"id": event.id, "event": event.kind, "data": event.data}));
    }
    // After an event.
    let (mut socket, _) = websocket(&running, &format!("{path}?from={}", events[0].id), &token);
    let received: Value = serde_json::from_str(&frame(&mut socket)).unwrap();
    assert_eq!(received["data"], events[1].data);
    // A text is one message, however long it is.
    anna.prompt(&session, "m-2", "And a long one");
    let long = "word ".repeat(500_000);
    model.request().say(&long).end();
    while !frame(&mut socket).contains(&long) {}
    for (more, status) in [
        ("", "401"),
        ("Sec-WebSocket-Protocol: tidegate, bearer.wrong\r\n", "401"),
        (&*format!("{token}Origin: http://evil.example\r\n"), "403"),
    ] {
        let (_, head) = websocket(&running, &path, more);
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{more}: {head}");
    }
}
