//! Each independent server installs, starts, answers on the routes that other tests use, and goes with its owner.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_servers::{Aimock, Judge, Llmock, RealModel, get, post, tombi};

/// One question in each wire format: below which path, and the body.
fn questions(prefix: &str, text: &str) -> [(String, Value); 3] {
    let messages = json!([{ "role": "user", "content": text }]);
    [
        (format!("{prefix}/v1/messages"), json!({ "model": "claude-x", "max_tokens": 16, "messages": messages })),
        ("/v1/chat/completions".to_owned(), json!({ "model": "gpt-x", "max_tokens": 16, "messages": messages })),
        ("/v1/responses".to_owned(), json!({ "model": "gpt-x", "max_output_tokens": 16, "input": text })),
    ]
}

/// Asks in all three formats, streaming; each answer must be a stream of events that holds `word`.
fn ask_all(base: &str, prefix: &str, text: &str, word: &str) {
    for (path, mut body) in questions(prefix, text) {
        body["stream"] = json!(true);
        let answer = post(base, &path, &body).unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        assert!(answer.body.contains("data: "), "{path} does not stream: {}", answer.body);
        assert!(answer.body.contains(word), "{path} does not say {word:?}: {}", answer.body);
    }
}

#[test]
fn aimock_answers_in_three_formats_and_keeps_a_journal() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let aimock = Aimock::start_with(&fixtures, &["--chunk-size", "64"]).unwrap();
    ask_all(aimock.base_url(), "", "is the tide in?", "It is at the gate.");
    let journal = aimock.journal().unwrap();
    let paths: Vec<&str> = journal.iter().map(|entry| entry["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/v1/messages", "/v1/chat/completions", "/v1/responses"]);
    assert!(journal[1]["body"].to_string().contains("is the tide in?"), "{}", journal[1]);

    let (path, body) = &questions("", "a question without a fixture")[1];
    assert_ne!(post(aimock.base_url(), path, body).unwrap().status, 200, "a strict server must refuse");
}

#[test]
fn llmock_answers_in_three_formats_and_plays_scenarios() {
    let llmock = Llmock::start_with(&["--response-style", "echo"]).unwrap();
    ask_all(llmock.base_url(), "/anthropic", "low water", "water");
    let requests = llmock.requests().unwrap();
    assert_eq!(requests.len(), 3);
    assert!(requests.iter().all(|request| request["completed"] == true), "{requests:?}");

    llmock
        .scenario(&[json!({ "type": "fail", "status": 503 }), json!({ "type": "reply", "text": "spring tide" })])
        .unwrap();
    let (path, body) = &questions("/anthropic", "again")[1];
    assert_eq!(post(llmock.base_url(), path, body).unwrap().status, 503);
    assert!(post(llmock.base_url(), path, body).unwrap().body.contains("spring tide"));
    assert!(llmock.verdict().unwrap()["calls"].is_number());
}

#[test]
fn llmock_sees_an_abort() {
    let llmock = Llmock::start().unwrap();
    let (path, mut body) =
        questions("/anthropic", "a long question with quite a few words to say back, slowly")[1].clone();
    body["stream"] = json!(true);
    let body = body.to_string();
    let mut stream = TcpStream::connect(llmock.base_url().strip_prefix("http://").unwrap()).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
    std::io::Read::read(&mut stream, &mut [0; 64]).unwrap();
    drop(stream);
    let began = Instant::now();
    loop {
        let requests = llmock.requests().unwrap();
        if requests.first().is_some_and(|request| request["completed"] == false && request["ended_at"].is_number()) {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "no abort was seen: {requests:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_real_model_answers_in_three_formats() {
    let model = RealModel::start().unwrap();
    ask_all(model.base_url(), "", "Say hello.", "data: ");
    let (path, body) = &questions("", "Say hello.")[1];
    let answer = post(model.base_url(), path, body).unwrap().json().unwrap();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    // What so small a model says cannot be known.
    assert!(!text.trim().is_empty(), "no words: {answer}");
}

#[test]
fn tombi_runs() {
    let output = Command::new(tombi().unwrap()).arg("--version").output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("tombi 1.9.6"));
}

#[test]
fn a_dropped_server_is_gone_at_once() {
    let llmock = Llmock::start().unwrap();
    let base = llmock.base_url().to_owned();
    assert_eq!(get(&base, "/health").unwrap().status, 200);
    drop(llmock);
    assert!(get(&base, "/health").is_err());
}

#[test]
fn the_judge_knows_what_an_sdk_would_not_send() {
    let judge = Judge::start().unwrap();
    let bodies = questions("", "hello").map(|(_, mut body)| {
        body["stream"] = json!(true);
        body
    });
    for (wire, body) in ["anthropic", "openai-chat", "openai-responses"].into_iter().zip(bodies) {
        assert_eq!(judge.problems(wire, &body).unwrap(), Vec::<String>::new(), "{wire}");
        for (key, value) in [("model", json!(null)), ("stream", json!(false)), ("no_such_key", json!(1))] {
            let mut wrong = body.clone();
            wrong[key] = value;
            assert!(!judge.problems(wire, &wrong).unwrap().is_empty(), "{wire}: {wrong}");
        }
    }
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "read"}]});
    let body = json!({"model": "m", "max_tokens": 1, "stream": true, "messages": [call]});
    assert!(!judge.problems("anthropic", &body).unwrap().is_empty(), "a call without an input");
}
