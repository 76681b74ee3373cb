//! Conversations of a gateway next to the server: they are followed while the gateway has them, and nothing is done in them.

use serde_json::{Value, json};

use super::client::{Client, text};
use super::start;
use crate::gateway::model::Model;
use crate::gateway::running::{Answer, Running};
use crate::gateway::{place, plain};

/// Sends a request of a client of the gateway: what was said, after what was said and answered before. Returns the answer.
fn ask(gateway: &Running, before: &[(&str, &str)], said: &str) -> String {
    let user = |text: &str| json!({"role": "user", "content": text});
    let before = before.iter().flat_map(|(said, text)| [user(said), json!({"role": "assistant", "content": text})]);
    let messages: Vec<Value> = before.chain([user(said)]).collect();
    let body = json!({"stream": true, "messages": messages}).to_string();
    let answer: Answer = gateway.ask("POST", "/v1/messages", &[], &body);
    let data = answer.body.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    data.filter_map(|data| data["delta"]["text"].as_str().map(str::to_owned)).collect()
}

/// A workspace with a gateway and a server for front ends.
fn both(model: &Model) -> (crate::support::Place, Running, Running) {
    let place = place(&plain(model, "[transcript]\nenabled = true\n"));
    let (gateway, server) = (Running::start(&place), start(&place));
    (place, gateway, server)
}

#[test]
fn a_conversation_is_followed_while_its_client_goes_on() {
    let model = Model::start();
    let (place, gateway, server) = both(&model);
    let client = Client::new(&server, "");
    let first = ask(&gateway, &[], "The first question");
    assert!(!first.is_empty() && !first.contains("forbidden"), "{first}");
    let list = client.get("/v1/sessions").1;
    let [one] = &**list["sessions"].as_array().unwrap() else { panic!("{list}") };
    assert_eq!((one["gateway"].as_bool(), one["title"].as_str()), (Some(true), Some("The first question")), "{one}");
    let session = format!("/v1/sessions/{}", one["id"].as_str().unwrap());
    let mut events = client.events(&session, None);
    let seen = events.line("turn_finish");
    assert_eq!(text(&seen), first, "{}", events.bytes);
    for (kind, what) in [("input_received", "The first question"), ("rule_fired", "no-forbidden")] {
        let line = seen.iter().find(|event| event.line() == kind);
        assert!(line.is_some_and(|line| line.data.to_string().contains(what)), "{kind}: {}", events.bytes);
    }
    assert!(!events.bytes.contains("forbidden words"), "what a rule stopped was shown: {}", events.bytes);
    let left = seen.last().unwrap().id.clone();
    // The gateway still records it.
    let second = ask(&gateway, &[("The first question", &first)], "And another");
    assert_eq!(text(&events.line("turn_finish")), second);
    drop(events);
    // Who connects again gets what was missed, also of a server that was started again.
    drop(server);
    let server = start(&place);
    let client = Client::new(&server, "");
    let mut again = client.events(&session, Some(&left));
    let missed = again.line("turn_finish");
    assert_eq!((text(&missed), missed[0].line()), (second, "turn_start"), "{}", again.bytes);
    let other = left.replace(left.split('.').next().unwrap(), "0123456789abcdef");
    let mut snapshot = client.events(&session, Some(&other));
    let snapshot = snapshot.next().unwrap();
    let chat = snapshot.data["chat"].to_string();
    assert!(
        snapshot.kind == "snapshot" && chat.contains("The first question") && chat.contains("And another"),
        "{chat}"
    );
    assert!(!chat.contains("forbidden words"), "{chat}");
}

#[test]
fn nothing_is_done_in_a_conversation_and_its_gateway_keeps_recording_it() {
    let model = Model::start();
    let (_place, mut gateway, server) = both(&model);
    let client = Client::new(&server, "");
    let first = ask(&gateway, &[], "The first question");
    let id = client.get("/v1/sessions").1["sessions"][0]["id"].as_str().unwrap().to_owned();
    let session = format!("/v1/sessions/{id}");
    for (path, body) in [
        ("commands", json!({"command": "prompt", "messages": [{"id": "m-1", "text": "Hello"}]})),
        ("commands", json!({"command": "cancel"})),
        ("fork", json!({})),
        (
            "ui-messages",
            json!({"id": "x", "messages": [{"id": "m-1", "role": "user", "parts": [{"type": "text", "text": "x"}]}]}),
        ),
    ] {
        let (status, problem) = client.post(&format!("{session}/{path}"), &body);
        assert_eq!((status, problem["code"].as_str()), (409, Some("of_gateway")), "{path} {body}: {problem}");
    }
    assert_eq!(client.put(&format!("{session}/users/bert")), 409);
    for (format, what) in [("md", "## User"), ("html", "<h2>User</h2>"), ("jsonl", "\"author\":\"user\"")] {
        let export = client.send("GET", &format!("{session}/export?format={format}"), &[], "").body;
        let last = first.trim_end().lines().last().unwrap();
        assert!(export.contains(what) && export.contains(last), "{format}: {export}");
    }
    assert_eq!(client.delete(&session).1["code"], "open_elsewhere", "the gateway has it open");
    ask(&gateway, &[("The first question", &first)], "And another");
    let shown = client.get(&session).1;
    assert_eq!((shown["turns"].as_u64(), shown["gateway"].as_bool()), (Some(2), Some(true)), "{shown}");
    gateway.signal("TERM");
    assert!(gateway.ended().success());
    let mut events = client.events(&session, None);
    assert_eq!(client.delete(&session).0, 204);
    let end = events.until(|event| event.kind == "end");
    assert_eq!(end.last().unwrap().data["reason"], "deleted");
    assert_eq!(client.get(&session).0, 404);
}

/// What another process has removed is not there any more, also for who has looked at it.
#[test]
fn a_conversation_that_is_removed_elsewhere_leaves_the_list() {
    let model = Model::start();
    let (place, mut gateway, server) = both(&model);
    let client = Client::new(&server, "");
    ask(&gateway, &[], "The first question");
    let id = client.get("/v1/sessions").1["sessions"][0]["id"].as_str().unwrap().to_owned();
    let mut events = client.events(&format!("/v1/sessions/{id}"), None);
    events.line("turn_finish");
    gateway.signal("TERM");
    assert!(gateway.ended().success());
    assert!(place.run(&["session", "rm", &id]).status.success());
    assert_eq!(client.get("/v1/sessions").1, json!({"sessions": []}));
    assert_eq!(client.get(&format!("/v1/sessions/{id}")).0, 404);
    // A reader connects again, and gets the same answer.
    events.rest();
    assert_eq!(client.get(&format!("/v1/sessions/{id}/events")).0, 404);
}
