//! Two hosts on one Redis server, one of which is killed at random moments while users send and read, case 7 of the specification: no record
//! that was acknowledged to somebody is lost, every session continues on the other host, and every input is delivered once, in order.
//!
//! `TIDEGATE_KILLS` is how often a host is killed; `cargo xtask crash` sets it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_kit::Random;

use super::hosts::Hosts;
use crate::gateway::model::Model;
use crate::gateway::running::{Answer, Running, rest};
use crate::support::out;

const SESSIONS: usize = 4;

/// How long a session may take to continue: longer than a lease, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn kills() -> usize {
    std::env::var("TIDEGATE_KILLS").map_or(6, |kills| kills.parse().unwrap())
}

/// Answers after a while, so that a host is killed before, during and after an answer.
fn answer(asked: &Value) -> Vec<Value> {
    std::thread::sleep(Duration::from_millis(30));
    let count = asked["messages"].as_array().unwrap().len();
    vec![json!({"type": "text", "text": format!("Answer after {count} messages.")})]
}

/// What users and the killer share.
struct Shared {
    /// Where the hosts are at the moment.
    addresses: [Mutex<String>; 2],
    /// How many inputs of each session were delivered.
    delivered: [AtomicUsize; SESSIONS],
    is_over: AtomicBool,
}

impl Shared {
    fn address(&self, random: &mut Random) -> String {
        self.addresses[random.below(2)].lock().unwrap().clone()
    }

    fn delivered(&self) -> Vec<usize> {
        self.delivered.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }

    /// Waits until every session has had another input.
    fn continued(&self) {
        let (begun, before) = (Instant::now(), self.delivered());
        while self.delivered().iter().zip(&before).any(|(now, before)| now <= before) {
            assert!(begun.elapsed() < PATIENCE, "a session does not continue: {before:?}, {:?}", self.delivered());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Sends a request; `None`: the host has ended.
fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n"
    );
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    let bytes = rest(&mut stream);
    let has_body = bytes.split_once("\r\n\r\n").is_some_and(|(_, body)| !body.is_empty());
    let answer = has_body.then(|| Answer::of(&bytes))?;
    Some((answer.status, serde_json::from_str(&answer.body).ok()?))
}

/// A user of one session, who sends each input to any host until it is delivered. Returns the numbers of the events that delivered them.
fn send(shared: &Shared, number: usize, session: &str) -> Vec<u64> {
    let (mut random, mut acknowledged) = (Random::new(number as u64), Vec::new());
    while !shared.is_over.load(Ordering::SeqCst) {
        let input = acknowledged.len();
        let message = json!({"id": format!("m-{input}"), "text": format!("input {number}-{input}.")});
        let body = json!({"command": "prompt", "messages": [message]}).to_string();
        let begun = Instant::now();
        loop {
            let address = shared.address(&mut random);
            let answered = ask(&address, "POST", &format!("{session}/commands"), &body);
            assert!(begun.elapsed() < PATIENCE, "input {number}-{input} is not delivered: {answered:?}");
            match answered {
                Some((200, answer)) if answer["receipts"][0]["receipt"] == "delivered" => {
                    acknowledged.push(answer["receipts"][0]["seq"].as_u64().unwrap());
                    break;
                }
                Some((200, _)) => go_on(&address, session),
                None => {}
                Some((503, problem)) => assert_eq!(problem["code"], "open_elsewhere", "{problem}"),
                Some(other) => panic!("{other:?}"),
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        shared.delivered[number].fetch_add(1, Ordering::SeqCst);
    }
    acknowledged
}

/// Continues a session whose turn was cut off, and sends what waits in it, as a person does.
fn go_on(address: &str, session: &str) {
    let state = ask(address, "GET", session, "").map(|(_, shown)| shown["state"].clone());
    let command = match state.as_ref().and_then(Value::as_str) {
        Some("interrupted") => "continue",
        Some("idle") => "flush",
        _ => return,
    };
    ask(address, "POST", &format!("{session}/commands"), &json!({"command": command}).to_string());
}

/// Somebody who reads a session at any host, and connects again. Returns the types of the events that must be on record, by their numbers.
fn read(shared: &Shared, number: usize, session: &str) -> BTreeMap<u64, String> {
    let (mut random, mut seen, mut last) = (Random::new(1_000 + number as u64), BTreeMap::new(), String::new());
    while !shared.is_over.load(Ordering::SeqCst) {
        let address = shared.address(&mut random);
        let Ok(mut stream) = TcpStream::connect(&address) else { continue };
        let head = format!("GET {session}/events HTTP/1.0\r\nHost: {address}\r\nLast-Event-ID: {last}\r\n\r\n");
        if stream.write_all(head.as_bytes()).is_err() {
            continue;
        }
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Some(id) = line.strip_prefix("id: ") {
                id.clone_into(&mut last);
            }
            let data: Option<Value> = line.strip_prefix("data: ").and_then(|data| serde_json::from_str(data).ok());
            let data = data.unwrap_or_default();
            if let (Some(seq), Some(kind @ ("input_received" | "turn_finish"))) =
                (data["seq"].as_u64(), data["type"].as_str())
            {
                seen.insert(seq, kind.to_owned());
            }
            if shared.is_over.load(Ordering::SeqCst) {
                break;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    seen
}

/// Kills a host at a time, and starts it again a little later.
fn kill(shared: &Shared, hosts: &Hosts, running: &mut [Running; 2]) {
    let mut random = Random::new(7);
    for round in 0..kills() {
        std::thread::sleep(Duration::from_millis(100 + random.below(500) as u64));
        let victim = random.below(2);
        running[victim].signal("KILL");
        running[victim].ended();
        // Every other time the next host is killed while sessions move.
        if round % 2 == 0 {
            shared.continued();
        }
        running[victim] = hosts.start(["one", "two"][victim]).0;
        running[victim].address.clone_into(&mut shared.addresses[victim].lock().unwrap());
    }
    shared.continued();
}

#[test]
fn nothing_acknowledged_is_lost_and_every_session_continues() {
    let model = Model::answering(answer);
    let hosts = Hosts::at(&model.url, "[serve.limits]\nkeep_alive_ms = 100\n");
    let mut running = [hosts.start("one").0, hosts.start("two").0];
    let shared = Shared {
        addresses: [0, 1].map(|host: usize| Mutex::new(running[host].address.clone())),
        delivered: Default::default(),
        is_over: AtomicBool::new(false),
    };
    let create = |number: usize| {
        let created = ask(&running[number % 2].address, "POST", "/v1/sessions", "{}").unwrap();
        created.1["id"].as_str().unwrap().to_owned()
    };
    let ids: [String; SESSIONS] = std::array::from_fn(create);
    let paths = ids.each_ref().map(|id| format!("/v1/sessions/{id}"));
    let found = std::thread::scope(|scope| {
        let (shared, paths) = (&shared, &paths);
        let threads: Vec<_> = (0..SESSIONS)
            .map(|number| {
                let session = &paths[number];
                (scope.spawn(move || send(shared, number, session)), scope.spawn(move || read(shared, number, session)))
            })
            .collect();
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| kill(shared, &hosts, &mut running)));
        shared.is_over.store(true, Ordering::SeqCst);
        let found: Vec<_> = threads.into_iter().map(|(sent, read)| (sent.join(), read.join())).collect();
        killed.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        found
    });
    for (number, (sent, read)) in found.into_iter().enumerate() {
        check(&hosts, number, &ids[number], &sent.unwrap(), &read.unwrap());
    }
    let last: Vec<String> = model.seen().into_iter().rev().map(|(_, body)| body).collect();
    for (number, delivered) in shared.delivered().into_iter().enumerate() {
        let asked = last.iter().find(|body| body.contains(&format!("input {number}-"))).unwrap();
        // The last one can have been delivered in a turn that was killed before its request.
        for input in 0..delivered - 1 {
            assert_eq!(asked.matches(&format!("input {number}-{input}.")).count(), 1, "{number}-{input}: {asked}");
        }
    }
}

/// The inputs of users in the conversation. What a host had begun to deliver when it died waits again, and leaves the conversation.
fn conversation(records: &[Value]) -> Vec<&str> {
    let mut joined: Vec<&str> = Vec::new();
    for record in records {
        let payload = &record["payload"];
        let text = payload["text"].as_str().unwrap_or_default();
        match record["type"].as_str().unwrap() {
            "cognition_in" if payload["role"] == "user" && text.starts_with("input ") => joined.push(text),
            "input_queued" => joined.retain(|other| *other != text),
            _ => {}
        }
    }
    joined
}

/// The records around those with this text, a line each.
fn around(records: &[Value], text: &str) -> String {
    let has = |record: &Value| record["payload"]["text"] == text;
    let first = records.iter().position(has).unwrap_or(0);
    let last = records.iter().rposition(has).unwrap_or(records.len());
    let line = |record: &Value| {
        let payload = &record["payload"];
        let [seq, event, turn] = ["seq", "event", "turn"].map(|key| record[key].as_u64().unwrap_or_default());
        format!(
            "\n{seq} {event} turn {turn} {} {} {} {}",
            record["type"], payload["id"], payload["role"], payload["text"]
        )
    };
    records[first.saturating_sub(6)..(last + 6).min(records.len())].iter().map(line).collect()
}

/// Compares what was acknowledged to users with the records.
fn check(hosts: &Hosts, number: usize, id: &str, acknowledged: &[u64], seen: &BTreeMap<u64, String>) {
    let shown = hosts.command("reader", &["session", "show", id, "--json"]).output().unwrap();
    let records: Vec<Value> = out(&shown).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(records.iter().enumerate().all(|(seq, record)| record["seq"] == seq), "{number}: a record is missing");
    let joined = conversation(&records);
    let expected: Vec<String> = (0..joined.len()).map(|input| format!("input {number}-{input}.")).collect();
    if let Some(at) = joined.iter().zip(&expected).position(|(joined, expected)| joined != expected) {
        panic!("{number}: each input once, in order, and not {}: {}", joined[at], around(&records, joined[at]));
    }
    // The last one can have been received by a host that was killed then.
    assert!(joined.len() + 1 >= acknowledged.len(), "{number}: {joined:?}");
    let by_event: BTreeMap<u64, &Value> =
        records.iter().map(|record| (record["event"].as_u64().unwrap(), record)).collect();
    for seq in acknowledged {
        assert!(by_event.contains_key(seq), "{number}: the event {seq}, which delivered an input, is lost");
    }
    for (seq, kind) in seen {
        assert_eq!(
            by_event.get(seq).map(|record| &record["type"]),
            Some(&json!(kind)),
            "{number}: the event {seq} is lost"
        );
    }
    assert!(!seen.is_empty());
}
