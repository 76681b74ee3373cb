//! Whole turns: the host as a library, first-party plugins built from source, servers that others wrote. The same turn
//! gives the same events in all three wire formats, a rule cuts the stream where the server sees it, the reminder is in
//! the next request, and results of tools go back.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::{Event, Host, Operator, Session, SessionId, SessionOptions, TurnReport, TurnStatus};
use tidegate_servers::{Aimock, Llmock, RealModel};

const WIRES: [&str; 3] = ["anthropic", "openai-chat", "openai-responses"];
/// How long a server may take to note what became of a request, before a test fails. No test depends on it.
const PATIENCE: Duration = Duration::from_secs(120);
const SECRET: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn corpus() -> PathBuf {
    root().join("tests/corpus/turn")
}

/// Builds a first-party plugin, once however many tests ask.
fn built(name: &str) -> PathBuf {
    let folder = root().join("plugins").join(name);
    let built = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    built.place_beside_manifest(&folder).unwrap();
    folder
}

/// A workspace of its own with an operator's file, and the host over it.
struct Bench {
    folder: TempDir,
    host: Host,
}

impl Bench {
    async fn new(wire: &str, base_url: &str, plugins: &[(PathBuf, &str)], more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut file = format!(
            "[provider]\nkind = \"{wire}\"\nmodel = \"claude-or-gpt\"\nbase_url = \"{base_url}\"\nmax_tokens = 120\n{more}\n\
             [rules]\nbuiltin_rules = false\n\n[tools.permission]\nwrite_file = \"allow\"\n"
        );
        for (path, grants) in plugins {
            file.push_str(&format!("\n[[plugin]]\npath = {:?}\ngrants = {grants}\n", path.display().to_string()));
        }
        let path = folder.path().join("tidegate.toml");
        std::fs::write(&path, file).unwrap();
        let operator = Operator::load(&path).unwrap_or_else(|wrong| panic!("{wrong}"));
        let cache = root().join("target/test-components");
        let host = Host::builder(operator).cache_dir(Some(cache)).open().await;
        Self { host: host.unwrap_or_else(|error| panic!("{error}")), folder }
    }

    async fn counts(&self) -> (u64, u64) {
        self.host.loaded(self.folder.path()).await.unwrap().compiled_and_loaded()
    }

    async fn session(&self) -> Session {
        self.host.session(SessionOptions::new(self.folder.path()).id(SessionId::new("test"))).await.unwrap()
    }
}

async fn turn(session: &Session, words: &str) -> (TurnReport, Vec<Event>) {
    let mut turn = session.prompt(words);
    let mut events = Vec::new();
    while let Some(event) = turn.next().await {
        events.push(event);
    }
    (turn.report().await, events)
}

/// What differs from run to run or from server to server: ids, times, tokens, cuts.
const PASSING: [&str; 16] = [
    "call_id",
    "chunk_index",
    "context_tokens",
    "discarded_bytes",
    "duration_ms",
    "duration_us",
    "model",
    "provider",
    "shown_bytes",
    "size_bytes",
    "kept_bytes",
    "tokens",
    "tokens_discarded",
    "tokens_estimated",
    "usage",
    "workspace",
];

/// Events as records, without what is passing. Reports of extensions about rules are not awaited, so they are at the
/// end.
fn story(events: &[Event]) -> Vec<Value> {
    let (mut story, mut unawaited): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    for event in events {
        let record = record::json(event, "test");
        let mut payload = record["payload"].clone();
        without_passing(&mut payload);
        let kind = record["type"].as_str().unwrap().to_owned();
        let place = json!([record["turn"], record["step"], record["attempt"]]);
        // How finely the words are cut is the server's business, and with it how much of them had to wait; what they say
        // is not. Before a rule's cut even how far they got is.
        if matches!(&*kind, "cognition_out_delta" | "rule_held") || payload["is_partial"] == true {
            continue;
        }
        // What the server counts is its own invention.
        if payload["message"].as_str().is_some_and(|message| message.starts_with("the server has counted")) {
            continue;
        }
        let after_a_rule = kind == "extension_log" || payload["callback"] == "ttsr_triggered";
        let told = json!({"at": place, "type": kind, "payload": payload});
        if after_a_rule { unawaited.push(told) } else { story.push(told) }
    }
    unawaited.sort_by_key(Value::to_string);
    story.extend(unawaited);
    story
}

fn without_passing(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !PASSING.contains(&key.as_str()));
            // One server signs its reasoning, the others give none.
            if let Some(Value::Array(blocks)) = fields.get_mut("blocks") {
                blocks.retain(|block| block["signature"].is_null());
            }
            fields.values_mut().for_each(without_passing);
        }
        Value::Array(items) => items.iter_mut().for_each(without_passing),
        _ => {}
    }
}

fn shown(events: &[Event]) -> String {
    let delta = |event: &Event| match &event.kind {
        tidegate::EventKind::CognitionOutDelta { text, .. } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(delta).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_turn_tells_the_same_story_in_three_formats() {
    let server = Aimock::start(&corpus().join("aimock.json")).unwrap();
    let plugins = [
        (corpus().join("rules-only"), "[]"),
        (built("session-notes"), r#"["state", "prompt", "provide-tools"]"#),
        (built("redact-secrets"), r#"["state"]"#),
        (built("team-guard"), r#"["state", "prompt"]"#),
    ];
    let mut stories = Vec::new();
    for wire in WIRES {
        let before = server.journal().unwrap().len();
        let bench = Bench::new(wire, server.base_url(), &plugins, "").await;
        let session = bench.session().await;

        let (report, events) = turn(&session, "Say something.").await;
        assert_eq!((&report.status, report.interrupts), (&TurnStatus::Completed, 1), "{wire}: {report:?}");
        let text = shown(&events);
        assert!(text.starts_with("A good beginning") && !text.contains("FORB"), "{wire}: {text:?}");
        assert!(report.text.contains("a good end. (noted: call home)"), "{wire}: {:?}", report.text);
        assert!(report.text.contains("[redacted") && !text.contains(SECRET), "{wire}: {:?}", report.text);
        let mut story_here = story(&events);

        let (report, events) = turn(&session, "What is open?").await;
        assert_eq!(report.text, "You are to call home.", "{wire}");
        story_here.extend(story(&events));

        let (report, events) = turn(&session, "Write the file.").await;
        assert_eq!(
            (report.text.as_str(), report.interrupts),
            ("I write it well.It is written.", 1),
            "{wire}: {events:#?}"
        );
        assert_eq!(std::fs::read_to_string(bench.folder.path().join("out/a.txt")).unwrap(), "one\ntwo\n", "{wire}");
        story_here.extend(story(&events));

        requests_are_right(wire, &server.journal().unwrap()[before..]);
        stories.push(story_here);
    }
    assert!(stories[0].len() > 40, "only {} events", stories[0].len());
    for (wire, story) in WIRES.iter().zip(&stories).skip(1) {
        for (here, first) in story.iter().zip(&stories[0]) {
            assert_eq!(here, first, "{wire} differs from {}", WIRES[0]);
        }
        assert_eq!(story.len(), stories[0].len(), "{wire}");
    }
}

/// What the server was asked: the reminder in the second request and not in the first, no partial answer in the
/// conversation, notes given back, the tool's result in the last.
fn requests_are_right(wire: &str, journal: &[Value]) {
    let bodies: Vec<String> = journal.iter().map(|entry| entry["body"].to_string()).collect();
    assert_eq!(bodies.len(), 6, "{wire}: {bodies:#?}");
    let reminder = "rule=\\\\\\\"no-forbidden-word\\\\\\\"";
    assert!(!bodies[0].contains("system-interrupt reason"), "{wire}: {}", bodies[0]);
    assert!(bodies[1].contains("no-forbidden-word"), "{wire}: {reminder} is not in {}", bodies[1]);
    assert!(!bodies[1].contains("Then comes"), "{wire}: the partial answer went back: {}", bodies[1]);
    assert!(bodies[2].contains("call home") && bodies[2].contains("What is open?"), "{wire}: {}", bodies[2]);
    assert!(bodies[4].contains("no-left-over") && !bodies[4].contains("\\nLEFTOVER"), "{wire}: {}", bodies[4]);
    assert!(bodies[5].contains("out/a.txt"), "{wire}: {}", bodies[5]);
    let is_result =
        |body: &str| body.contains("tool_result") || body.contains("\"tool\"") || body.contains("function_call_output");
    assert!(is_result(&bodies[5]) && !is_result(&bodies[3]), "{wire}: {}", bodies[5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_cuts_the_stream_where_the_server_sees_it() {
    let server = Llmock::start_with(&["--stream-chunk-delay-ms", "40"]).unwrap();
    for (at, wire) in WIRES.into_iter().enumerate() {
        let folder = if wire == "anthropic" { "/anthropic" } else { "" };
        let url = format!("{}{folder}", server.base_url());
        let bench = Bench::new(wire, &url, &[(corpus().join("rules-only"), "[]")], "").await;
        let session = bench.session().await;
        let words = "I repeat that FORBIDDEN is one of the many words which nobody should have to read to its end";
        server
            .scenario(&[json!({"type": "reply", "text": words}), json!({"type": "reply", "text": "All is well."})])
            .unwrap();
        let (report, events) = turn(&session, "Repeat it.").await;
        assert_eq!((&report.status, report.interrupts), (&TurnStatus::Completed, 1), "{wire}: {report:?}");
        let first: Vec<Event> = events.iter().filter(|event| event.place.attempt == 1).cloned().collect();
        assert!(!shown(&first).contains("FORB"), "{wire}: {:?}", shown(&first));
        let begun = Instant::now();
        loop {
            let requests = server.requests().unwrap();
            let (cut, retry) = (&requests[2 * at], &requests[2 * at + 1]);
            if cut["ended_at"].is_number() && retry["ended_at"].is_number() {
                assert_eq!(
                    (&cut["completed"], &retry["completed"]),
                    (&json!(false), &json!(true)),
                    "{wire}: {requests:?}"
                );
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{wire}: {requests:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_turn_leaves_no_connection_and_the_session_goes_on() {
    let server = Llmock::start_with(&["--stream-chunk-delay-ms", "60"]).unwrap();
    let words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";
    server.scenario(&[json!({"type": "reply", "text": words}), json!({"type": "reply", "text": "short"})]).unwrap();
    let bench = Bench::new("openai-chat", server.base_url(), &[(corpus().join("rules-only"), "[]")], "").await;
    let session = bench.session().await;
    let mut counting = session.prompt("Count.");
    while let Some(event) = counting.next().await {
        if matches!(event.kind, tidegate::EventKind::CognitionOutDelta { .. }) {
            session.cancel();
            break;
        }
    }
    let report = counting.report().await;
    assert_eq!(report.status, TurnStatus::Cancelled);
    let begun = Instant::now();
    while !server.requests().unwrap()[0]["ended_at"].is_number() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", server.requests());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(server.requests().unwrap()[0]["completed"], json!(false));
    let (report, _) = turn(&session, "Again, and briefly.").await;
    assert_eq!((&report.status, report.text.as_str()), (&TurnStatus::Completed, "short"), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_model_is_cut_and_goes_on() {
    let server = RealModel::start().unwrap();
    for (at, wire) in WIRES.into_iter().enumerate() {
        let bench = Bench::new(wire, server.base_url(), &[(corpus().join("rules-only"), "[]")], "").await;
        let session = bench.session().await;
        let (report, events) = turn(&session, "Write two sentences about the sea.").await;
        assert_eq!((&report.status, report.interrupts), (&TurnStatus::Completed, 1), "{wire}: {report:?}");
        let first: Vec<Event> = events.iter().filter(|event| event.place.attempt == 1).cloned().collect();
        let words = shown(&first).to_lowercase();
        assert!(
            !["sea", "ocean", "water"].iter().any(|word| words.split_whitespace().any(|one| one == *word)),
            "{wire}: {words}"
        );
        assert!(report.text.len() > 20, "{wire}: {report:?}");
        // Whether the server was still at the answer that was cut depends on which of the two is faster; what it does not do is go on.
        let begun = Instant::now();
        let count = |words: &str| server.log().matches(words).count();
        while count("processing task") < 2 * (at + 1) || count("stop processing") < count("processing task") {
            assert!(begun.elapsed() < PATIENCE, "{wire}: a request still runs: {}", server.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_start_compiles_nothing_and_the_doctor_finds_nothing() {
    let server = Aimock::start(&corpus().join("aimock.json")).unwrap();
    let plugins = [
        (built("session-notes"), r#"["state", "prompt", "provide-tools"]"#),
        (built("redact-secrets"), r#"["state"]"#),
        (built("team-guard"), r#"["state", "prompt"]"#),
    ];
    let first = Bench::new("anthropic", server.base_url(), &plugins, "").await;
    let (compiled, loaded) = first.counts().await;
    assert_eq!(compiled + loaded, 3);
    let second = Bench::new("anthropic", server.base_url(), &plugins, "").await;
    assert_eq!(second.counts().await, (0, 3));
    let checks = second.host.doctor(second.folder.path()).await;
    let callbacks = checks.iter().filter(|check| check.what.starts_with("callback ")).count();
    assert!(callbacks >= 5, "{checks:#?}");
    for check in checks.iter().filter(|check| check.what != "provider") {
        assert_eq!(check.health, tidegate::diagnostic::Health::Good, "{check:?}");
    }
}
