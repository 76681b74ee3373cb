//! The program as it starts and ends: settings, signals, and what survives a kill.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use serde_json::json;

use super::client::Client;
use super::{USERS, place, start, users};
use crate::support::script::Model;
use crate::support::{code, err};

#[test]
fn what_cannot_be_served_is_said_before_it_begins() {
    let model = Model::start();
    for (settings, arguments, expected) in [
        (USERS, &["serve"][..], "the variable A_TOKEN, which contains the token `anna`, is not set"),
        (
            "",
            &["serve", "--listen", "0.0.0.0:0"],
            "without a token, the server listens on addresses of this machine alone",
        ),
        ("[serve]\nlisten = \"192.0.2.1:1\"\n", &["serve"], "no `[[serve.token]]` says who is admitted"),
        ("[serve]\nlisten = \"127.0.0.1:0\"\nsurprise = 1\n", &["serve"], "surprise"),
    ] {
        let place = place(&model, settings);
        let output = place.run(arguments);
        assert_eq!(code(&output), 2, "{}", err(&output));
        assert!(err(&output).contains(expected), "{}", err(&output));
    }
}

#[test]
fn a_killed_server_loses_no_session_no_owner_and_no_receipt() {
    let model = Model::start();
    let place = place(&model, &format!("[tools.permission]\nwrite_file = \"ask\"\n{USERS}"));
    let mut running = start(&place);
    let [anna, bert] = users(&running);
    let (session, empty) = (anna.create(), anna.create());
    anna.put(&format!("{session}/users/bert"));
    let mut events = anna.events(&session, None);
    anna.prompt(&session, "m-1", "Hello");
    model.request().say("Good day.").end();
    let before = events.line("turn_finish");
    anna.prompt(&session, "m-2", "Write");
    model.request().call("c-1", "write_file", &json!({"path": "a.txt", "content": "written"})).end();
    events.line("tool_confirmation_requested");
    running.signal("KILL");
    running.ended();
    drop(bert);

    let running = start(&place);
    let [anna, bert] = users(&running);
    assert_eq!(anna.get("/v1/sessions").1["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(anna.get(&empty).1["owner"], "anna");
    assert_eq!(bert.get(&session).1["state"], "interrupted");
    // A position of the time before is answered by the whole state; the question is asked again.
    let mut events = bert.events(&session, Some(&before.last().unwrap().id));
    let snapshot = events.next().unwrap();
    assert_eq!(snapshot.kind, "snapshot");
    assert!(snapshot.data["chat"].to_string().contains("Good day."), "{snapshot:?}");
    let question = events.line("tool_confirmation_requested").pop().unwrap().data["payload"].clone();
    // A message whose answer was lost is not taken twice.
    let again = anna.prompt(&session, "m-1", "Hello");
    assert_eq!(again["receipts"][0]["receipt"], "delivered", "{again}");
    let answer = json!({"command": "answer", "question": question["question_id"], "answer": {"decision": "approve"}});
    bert.command(&session, &answer);
    let mut request = model.request();
    assert_eq!(request.text().matches("Hello").count(), 1);
    request.say("Written.").end();
    events.line("turn_finish");
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "written");
    assert_eq!(anna.delete(&format!("{session}/users/bert")).0, 204);
    assert_eq!(bert.get(&session).0, 404);
}

#[test]
fn a_signal_ends_the_server_and_streams_end_without_a_last_word() {
    let model = Model::start();
    let place = place(&model, "");
    let mut running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let mut events = client.events(&session, None);
    client.prompt(&session, "m-1", "Hello");
    let mut request = model.request();
    request.say("Begun");
    events.line("cognition_out_delta");
    running.signal("TERM");
    // Its client connects again.
    let rest = events.rest();
    assert!(!rest.contains("event: end"), "{rest}");
    assert!(running.ended().code().is_some_and(|code| code == 0), "{}", running.log());
    let running = start(&place);
    let client = Client::new(&running, "");
    assert_eq!(client.get(&session).1["state"], "idle");
}

#[test]
fn a_client_that_reads_nothing_does_not_delay_the_end() {
    let model = Model::start();
    for is_websocket in [false, true] {
        let place = place(&model, "");
        let mut running = start(&place);
        let client = Client::new(&running, "");
        let session = client.create();
        let mut events = client.events(&session, None);
        // More than the buffers of a connection contain.
        for number in 0..3 {
            client.prompt(&session, &format!("m-{number}"), &"Hello ".repeat(600_000));
            model.request().say("Good day.").end();
            events.line("turn_finish");
        }
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        let more = if is_websocket { upgrade } else { "" };
        let head = format!("GET {session}/events HTTP/1.1\r\nHost: {}\r\n{more}\r\n", running.address);
        let mut unread = running.connect();
        unread.write_all(head.as_bytes()).unwrap();
        unread.read_exact(&mut [0; 12]).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        running.signal("TERM");
        assert!(running.ended().success(), "{is_websocket}: {}", running.log());
        drop(unread);
    }
}
