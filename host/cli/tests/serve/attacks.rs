//! Who is not admitted, and requests that are made to harm.

use std::io::{Read as _, Write as _};

use serde_json::json;

use super::client::Client;
use super::{USERS, place, start, users};
use crate::gateway::running::{Answer, TOKEN_A, TOKEN_B, request, rest};
use crate::support::script::Model;

/// Sends a request as it is. Returns the status and the code of the problem.
fn ask(running: &crate::gateway::running::Running, bytes: &str) -> (u16, String) {
    let answer = Answer::of(&running.raw(bytes.as_bytes()));
    let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
    if answer.status >= 400 && !answer.body.is_empty() {
        assert!(answer.head.contains("application/problem+json"), "{}", answer.head);
        assert_eq!(problem["status"], answer.status, "{problem}");
    }
    (answer.status, problem["code"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn another_user_has_no_access_and_does_not_learn_what_there_is() {
    let model = Model::start();
    let place = place(&model, USERS);
    let running = start(&place);
    let [anna, bert] = users(&running);
    let session = anna.create();
    let commands = format!("{session}/commands");
    let prompt = json!({"command": "prompt", "messages": [{"id": "m", "text": "t"}]});
    // The answer is that for a session that does not exist, byte by byte.
    let unknown = bert.get("/v1/sessions/s-00000000000000000000000000000000");
    assert_eq!(unknown.0, 404);
    for (method, path, body) in [
        ("GET", session.clone(), ""),
        ("DELETE", session.clone(), ""),
        ("GET", format!("{session}/events"), ""),
        ("GET", format!("{session}/export"), ""),
        ("PUT", format!("{session}/users/bert"), ""),
        ("DELETE", format!("{session}/users/bert"), ""),
        ("POST", format!("{session}/fork"), "{}"),
        ("POST", commands.clone(), &*prompt.to_string()),
        // A body that is none says nothing either.
        ("POST", commands, "no json"),
        ("GET", "/v1/sessions/../sessions".to_owned(), ""),
        ("GET", "/v1/sessions/%2e%2e%2fother".to_owned(), ""),
        ("GET", "/v1/sessions/a%00b".to_owned(), ""),
        ("GET", format!("/v1/sessions/{}", "a".repeat(129)), ""),
        ("GET", "/v1/other".to_owned(), ""),
    ] {
        let answer = bert.send(method, &path, &["Content-Type: application/json"], body);
        assert_eq!((answer.status, answer.body), (404, unknown.1.to_string()), "{method} {path}");
    }
    assert_eq!(bert.get("/v1/sessions").1, json!({"sessions": []}));
    assert_eq!(anna.get("/v1/sessions").1["sessions"].as_array().unwrap().len(), 1);
    // Shared, it can be used, and not deleted or shared on.
    assert_eq!(anna.put(&format!("{session}/users/bert")), 204);
    assert_eq!(bert.get(&session).1["users"], json!(["bert"]));
    assert_eq!(bert.delete(&session), (403, bert.delete(&session).1));
    assert_eq!(bert.put(&format!("{session}/users/carl")), 403);
    assert_eq!(anna.put(&format!("{session}/users/a%2fb")), 400);
}

#[test]
fn requests_of_pages_of_names_that_are_not_the_servers_and_without_tokens_are_refused() {
    let model = Model::start();
    let place = place(
        &model,
        &format!("[serve]\norigins = [\"https://app.example.com\"]\nhosts = [\"Agent.example.com\"]\n{USERS}"),
    );
    let running = start(&place);
    let token = format!("Authorization: Bearer {TOKEN_A}");
    let host = |host: &str, more: &str| {
        format!("GET /v1/sessions HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{token}\r\n{more}\r\n")
    };
    let port = running.address.rsplit(':').next().unwrap();
    for (bytes, expected) in [
        (host("HOST", ""), (200, "")),
        (host(&format!("localhost:{port}"), ""), (200, "")),
        (host("agent.example.com", ""), (200, "")),
        // DNS rebinding.
        (host(&format!("evil.example:{port}"), ""), (421, "wrong_host")),
        (host("evil.example", ""), (421, "wrong_host")),
        (host("127.0.0.1:1", ""), (421, "wrong_host")),
        (host("HOST", "Host: evil.example\r\n"), (421, "wrong_host")),
        // Pages.
        (host("HOST", "Origin: https://app.example.com\r\n"), (200, "")),
        (host("HOST", "Origin: https://app.example.com.evil.example\r\n"), (403, "origin_not_allowed")),
        (host("HOST", "Origin: http://evil.example\r\n"), (403, "origin_not_allowed")),
        (host("HOST", "Origin: null\r\n"), (403, "origin_not_allowed")),
        (host("HOST", "Sec-Fetch-Site: cross-site\r\n"), (403, "origin_not_allowed")),
        // Tokens.
        (request("GET", "/v1/sessions", &[], ""), (401, "unauthorized")),
        (request("GET", "/v1/sessions", &["Authorization: Bearer wrong"], ""), (401, "unauthorized")),
        (request("GET", "/v1/sessions", &["X-Api-Key: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-A"], ""), (401, "unauthorized")),
        (request("GET", &format!("/v1/sessions?token={TOKEN_A}"), &[&token], ""), (400, "token_in_address")),
        (request("GET", "http://HOST/v1/sessions", &[&token], ""), (400, "malformed")),
        // A form of a page cannot send JSON without being asked first.
        (request("POST", "/v1/sessions", &[&token, "Content-Type: text/plain"], "{}"), (415, "unsupported_media_type")),
        (request("POST", "/v1/sessions", &[&token], "{}"), (415, "unsupported_media_type")),
        (request("PATCH", "/v1/sessions", &[&token], ""), (405, "method_not_allowed")),
        (request("GET", "/v1/openapi.json", &[], ""), (401, "unauthorized")),
    ] {
        let (status, code) = ask(&running, &bytes);
        assert_eq!((status, &*code), expected, "{bytes}");
    }
    // A browser asks first, and gets the headers that let its page read the answer.
    let asks = request(
        "OPTIONS",
        "/v1/sessions",
        &["Origin: https://app.example.com", "Access-Control-Request-Method: POST"],
        "",
    );
    let answer = Answer::of(&running.raw(asks.as_bytes()));
    assert_eq!(answer.status, 204);
    for header in [
        "access-control-allow-origin: https://app.example.com",
        "access-control-allow-headers: authorization, content-type",
    ] {
        assert!(answer.head.contains(header), "{header}: {}", answer.head);
    }
    let asks = asks.replace("app.example.com", "evil.example");
    let answer = Answer::of(&running.raw(asks.as_bytes()));
    assert!(answer.status == 403 && !answer.head.contains("access-control"), "{}", answer.head);
    assert!(!running.log().contains(TOKEN_A) && !running.log().contains(TOKEN_B), "{}", running.log());
}

#[test]
fn requests_that_are_framed_in_two_ways_are_refused() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let head = "POST /v1/sessions HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\nContent-Type: application/json\r\n";
    for (name, more) in [
        ("two lengths", "Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}"),
        ("a length and chunks in another coding", "Transfer-Encoding: xchunked\r\nContent-Length: 2\r\n\r\n{}"),
        ("chunks twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
        ("a folded line", "X-A: b\r\n Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}"),
        ("a space before the colon", "Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
        ("a zero byte", "X-A: b\0c\r\nContent-Length: 2\r\n\r\n{}"),
    ] {
        let said = running.raw(format!("{head}{more}").as_bytes());
        assert!(said.starts_with("HTTP/1.1 400"), "{name}: {said}");
        assert_eq!(said.matches("HTTP/1.").count(), 1, "{name}: one answer: {said}");
    }
    let client = Client::new(&running, "");
    assert_eq!(client.get("/v1/sessions").1, json!({"sessions": []}), "nothing of that was carried out");
}

#[test]
fn limits_end_what_is_too_large_too_slow_or_too_much() {
    let model = Model::start();
    let limits = "[serve.limits]\nbody_mib = 1\nhead_kib = 4\nconcurrent = 2\nstreams = 2\nconnections = 6\nclient_timeout_ms = 300\n";
    let place = place(&model, &format!("{limits}{USERS}"));
    let running = start(&place);
    let [anna, bert] = users(&running);
    let session = anna.create();
    let token = format!("Authorization: Bearer {TOKEN_A}");
    let json = "Content-Type: application/json";
    let long = format!("X-Long: {}", "a".repeat(4500));
    let huge =
        format!("POST /v1/sessions HTTP/1.1\r\nHost: HOST\r\n{token}\r\n{json}\r\nContent-Length: 9999999999\r\n\r\n");
    assert_eq!(ask(&running, &huge), (413, "too_large".to_owned()));
    let body = format!("{{\"id\": \"{}\"}}", "a".repeat(1 << 20));
    assert_eq!(anna.send("POST", "/v1/sessions", &[json], &body).status, 413);
    // A client that sends all of it before it reads has the answer, too.
    let body = vec![b'a'; 40 << 20];
    for (path, status) in [("/v1/sessions", 413), ("/v1/other", 404)] {
        let mut stream = running.connect();
        let length = body.len();
        write!(stream, "POST {path} HTTP/1.1\r\nHost: {}\r\n{token}\r\n{json}\r\n", running.address).unwrap();
        write!(stream, "Content-Length: {length}\r\n\r\n").unwrap();
        stream.write_all(&body).unwrap();
        assert_eq!(Answer::of(&rest(&mut stream)).status, status, "{path}");
    }
    assert_eq!(ask(&running, &request("GET", "/v1/sessions", &[&token, &long], "")), (431, "too_large".to_owned()));
    // A body that does not come ends, and so does a head.
    let slow = format!("POST /v1/sessions HTTP/1.1\r\nHost: HOST\r\n{token}\r\n{json}\r\nContent-Length: 10\r\n\r\n{{");
    assert_eq!(ask(&running, &slow), (408, "too_slow".to_owned()));
    let (status, code) = ask(&running, "GET / HT");
    assert_eq!((status, &*code), (408, "too_slow"));
    // A connection that is only kept is no head.
    assert_eq!(rest(&mut running.connect()), "");
    // Streams of one user are limited, and those of another are not.
    let path = format!("{session}/events");
    let (mut one, mut two) = (anna.events(&session, None), anna.events(&session, None));
    anna.prompt(&session, "m-1", "Hello");
    model.request().say("Hi.").end();
    one.line("turn_finish");
    two.line("turn_finish");
    assert_eq!(anna.get(&path).0, 429);
    assert_eq!(bert.get(&path).0, 404);
    assert_eq!(anna.get(&session).0, 200, "requests are limited by themselves");
    drop(two);
    // More connections than are allowed wait, and are served when others end.
    let waiting: Vec<_> = (0..8).map(|_| running.connect()).collect();
    let mut late = running.connect();
    write!(late, "GET /v1/sessions HTTP/1.1\r\nHost: {}\r\n{token}\r\nConnection: close\r\n\r\n", running.address)
        .unwrap();
    drop(waiting);
    let mut answer = String::new();
    late.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
