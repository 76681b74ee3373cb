//! Each limit of the gateway, with its error.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use super::conversations::text;
use super::model::Model;
use super::running::{Answer, Running, TOKEN_B, request, rest};
use super::{place, plain, team};
use crate::support::Place;

#[test]
fn sizes_have_limits_with_names() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway.limits]\nbody_mib = 1\nhead_kib = 8\n"));
    let running = Running::start(&place);
    let large = "x".repeat((1 << 20) + 1);
    let answer = running.ask("POST", "/a", &[], &large);
    assert_eq!((answer.status, answer.code().as_str()), (413, "gateway_body"), "{answer:?}");
    assert!(answer.body.contains("1048576 bytes") && answer.body.contains("`body_mib`"), "{answer:?}");
    // In chunks of unknown total length.
    let chunks = format!(
        "POST /a HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{large}\r\n0\r\n\r\n",
        large.len()
    );
    let answer = Answer::of(&running.raw(chunks.as_bytes()));
    assert_eq!((answer.status, answer.code().as_str()), (413, "gateway_body"), "{answer:?}");
    // A client that asks first is not told to continue if its body is too large.
    for (length, starts) in [((1 << 20) + 1, "HTTP/1.1 413"), (3, "HTTP/1.1 100")] {
        let mut stream = running.connect();
        let head = format!(
            "POST /a HTTP/1.1\r\nHost: {}\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n",
            running.address
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(String::from_utf8_lossy(&first), starts);
    }
    assert_eq!(model.seen().len(), 0);
    let answer = running.ask("POST", "/a", &[], &large[..1 << 20]);
    assert_eq!(answer.status, 200);
    for (size, code) in [(9 << 10, "gateway_head"), (1 << 20, "")] {
        let answer = running.ask("GET", "/a", &[&format!("X-A: {}", "b".repeat(size))], "");
        // The rest of a far too large body is not read, so that the response can be lost.
        let is_refused = answer.status == 431 || (code.is_empty() && answer.status == 0);
        assert!(is_refused && answer.code() == code, "{size}: {answer:?}");
    }
    let many: Vec<String> = (0..300).map(|number| format!("X-{number}: a")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(running.ask("GET", "/a", &many, "").status, 431);
    let answer = running.ask("GET", &format!("/{}", "a".repeat(9 << 10)), &[], "");
    assert_eq!((answer.status, answer.code().as_str()), (431, "gateway_head"));
    assert_eq!(model.seen().len(), 1);
}

#[test]
fn a_token_has_so_many_requests_at_once() {
    let model = Model::start();
    let place = place(&team(&model, ""));
    let running = Running::start(&place);
    let token = format!("Authorization: Bearer {TOKEN_B}");
    let mut first = running.connect();
    let endless = request("POST", "/openai/a?do=endless", &[&token], "");
    first.write_all(endless.replace("HOST", &running.address).as_bytes()).unwrap();
    first.read_exact(&mut [0; 100]).unwrap();
    let answer = running.ask("GET", "/openai/models", &[&token], "");
    assert_eq!((answer.status, answer.code().as_str()), (429, "gateway_concurrent"), "{answer:?}");
    assert!(answer.head.contains("retry-after: 1") && !answer.head.contains("x-should-retry"), "{answer:?}");
    // The end of the first one is the start of others.
    let gone = Instant::now();
    drop(first);
    let left = model.left(1);
    assert!(left.duration_since(gone) < Duration::from_secs(1), "{:?}", left.duration_since(gone));
    let begun = Instant::now();
    while running.ask("GET", "/openai/models", &[&token], "").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(5), "its place stays taken");
    }
}

/// The request to the server ends within a second after the client has disconnected, whatever it waits for.
#[test]
fn who_goes_away_is_not_answered() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    for (number, target) in
        ["/a?do=silent", "/v1/messages?do=silent", "/a?do=endless", "/v1/messages?do=endless"].into_iter().enumerate()
    {
        let mut stream = running.connect();
        let bytes = request("POST", target, &[], r#"{"messages": []}"#).replace("HOST", &running.address);
        stream.write_all(bytes.as_bytes()).unwrap();
        if target.contains("endless") {
            stream.read_exact(&mut [0; 200]).unwrap();
        }
        let begun = Instant::now();
        while model.seen().len() <= number {
            assert!(begun.elapsed() < Duration::from_secs(10), "{target}");
            std::thread::sleep(Duration::from_millis(5));
        }
        let gone = Instant::now();
        drop(stream);
        let left = model.left(number + 1);
        assert!(left.duration_since(gone) < Duration::from_secs(1), "{target}: {:?}", left.duration_since(gone));
    }
    // Each one is counted, also if there was no answer yet.
    let begun = Instant::now();
    while !running.ask("GET", "/metrics", &[], "").body.contains("outcome=\"abandoned\"} 4") {
        assert!(begun.elapsed() < Duration::from_secs(5), "{}", running.ask("GET", "/metrics", &[], "").body);
    }
}

/// A request that only reads is not for an answer of a model, and passes; so do requests on which nothing acts.
#[test]
fn what_nothing_acts_on_passes() {
    let model = Model::start();
    let guarded = place(&plain(&model, ""));
    let running = Running::start(&guarded);
    running.ask("GET", "/v1/responses", &[], "");
    running.ask("GET", "/v1/responses", &[], "{\"input\": \"a body\"}");
    let metrics = running.ask("GET", "/metrics", &[], "").body;
    for line in ["outcome=\"relayed\"} 1", "outcome=\"checked\"} 1"] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
    // A plugin that gets neither requests nor answers, and whose text is not for other agents.
    let only_rules = "id = \"style\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"The style.\"\n[capabilities]\nprompt = \"states it\"\n\
         [[rule]]\nname = \"brief\"\nalways_apply = true\nbody = \"Be brief.\"\n";
    let place = Place::new();
    place.write("style/plugin.toml", only_rules);
    place.write(
        "tidegate.toml",
        &plain(&model, "[rules]\nbuiltin_rules = false\n[[plugin]]\npath = \"style\"\ngrants = [\"prompt\"]\n"),
    );
    let running = Running::start(&place);
    running.ask("POST", "/v1/messages", &[], r#"{"messages": [{"role": "user", "content": "x"}]}"#);
    let metrics = running.ask("GET", "/metrics", &[], "").body;
    assert!(metrics.contains("outcome=\"relayed\"} 1"), "{metrics}");
}

/// Timeouts end in the client's protocol, with the name of the limit; pauses have keep-alives.
#[test]
fn times_have_limits_with_names() {
    let model = Model::start();
    let limits = "[gateway.limits]\nidle_timeout_ms = 400\nrequest_timeout_ms = 1500\nkeep_alive_ms = 100\n";
    let place = place(&plain(&model, limits));
    let running = Running::start(&place);
    let body = r#"{"messages": [{"role": "user", "content": "x"}]}"#;
    let answer = running.ask("POST", "/v1/messages?do=silent", &[], body);
    assert_eq!((answer.status, answer.code().as_str()), (504, "gateway_idle"), "{answer:?}");
    assert!(answer.body.contains("`idle_timeout_ms`") && !answer.head.contains("x-should-retry"), "{answer:?}");
    let answer = running.ask("POST", "/v1/messages?do=endless", &[], body);
    assert!(answer.body.contains("`request_timeout_ms`") && answer.body.contains("message_stop"), "{answer:?}");
    // A server that pauses for longer than the limit.
    let answer = running.ask("POST", "/v1/messages?do=pause", &[], body);
    assert!(answer.body.contains("`idle_timeout_ms`") && answer.body.contains("message_stop"), "{answer:?}");
    assert!(answer.body.contains("one ") && !answer.body.contains("forbid"), "{answer:?}");
    assert!(answer.body.matches("event: ping").count() >= 2, "{answer:?}");
    // A connection that is not guarded breaks off.
    let said = running.raw(request("POST", "/a?do=endless", &[], "").as_bytes());
    assert!(said.contains("word") && !said.ends_with("0\r\n\r\n"), "{said}");
    let answer = running.ask("GET", "/metrics", &[], "");
    for line in ["outcome=\"late\"} 2", "outcome=\"silent\"} 1", "outcome=\"unreachable\"} 1"] {
        assert!(answer.body.contains(line), "{line} is not in {}", answer.body);
    }
}

/// Exceeding the limit of held bytes ends the answer, with a text that reports it.
#[test]
fn what_is_held_back_has_a_limit() {
    let model = Model::start();
    let rule = "+++\ncondition = \"word[a-z ]*never\"\nscope = \"text\"\n+++\nNo.\n";
    let place = place(&plain(
        &model,
        "[gateway.limits]\nheld_frames = 16\n[rules]\nhold_max_bytes = 1000000\nhold_max_ms = 600000\n",
    ));
    place.write(".tidegate/rules/no-forbidden.md", rule);
    let running = Running::start(&place);
    let answer =
        running.ask("POST", "/v1/messages?do=endless", &[], r#"{"messages": [{"role": "user", "content": "x"}]}"#);
    assert!(
        answer.body.contains("too much of it waits to be checked; `held_mib` and `held_frames` under")
            && answer.body.contains("message_stop"),
        "{answer:?}"
    );
    assert!(!answer.body.contains("word"), "{answer:?}");
}

/// A client that receives nothing makes its server wait, and is then disconnected.
#[test]
fn a_client_that_takes_nothing_is_left() {
    let model = Model::start();
    let place = place(&plain(&model, "[gateway.limits]\nidle_timeout_ms = 1000\n"));
    let running = Running::start(&place);
    let mut stream = running.connect();
    let bytes = request("POST", "/a?do=flood", &[], "").replace("HOST", &running.address);
    stream.write_all(bytes.as_bytes()).unwrap();
    let begun = Instant::now();
    model.left(1);
    assert!(begun.elapsed() > Duration::from_millis(900), "{:?}", begun.elapsed());
    let said = rest(&mut stream);
    assert!(said.len() < 64 << 20, "{} bytes were buffered", said.len());
}

/// Answers without a body are complete.
#[test]
fn an_answer_to_head_is_relayed() {
    let model = Model::start();
    let place = place(&plain(&model, ""));
    let running = Running::start(&place);
    assert_eq!(running.ask("HEAD", "/v1/models", &[], "").status, 200);
    let metrics = running.ask("GET", "/metrics", &[], "").body;
    assert!(metrics.contains("outcome=\"relayed\"} 1"), "{metrics}");
}

/// A request after a stopped answer can meet a connection that the server closes at that moment.
#[test]
fn a_retry_whose_connection_is_closed_is_sent_once_more() {
    for (does, requests, expected) in
        [("hang_up_once", 4, "These are fine."), ("hang_up", 4, "could not be asked again")]
    {
        let model = Model::start();
        let place = place(&plain(&model, ""));
        let running = Running::start(&place);
        // Its connection is idle then.
        assert_eq!(running.ask("GET", "/v1/models", &[], "").status, 200);
        let body = r#"{"stream": true, "messages": [{"role": "user", "content": "x"}]}"#;
        let answer = running.ask("POST", &format!("/v1/messages?do={does}"), &[], body);
        assert!(text(&answer).contains(expected), "{does}: {}", answer.body);
        assert_eq!(model.seen().len(), requests, "{does}");
    }
}
