//! Commands: each as front ends send it, and each sent again.

use serde_json::{Value, json};

use super::client::Client;
use super::{USERS, place, start, users};
use crate::support::script::Model;

/// The start of an image, of which no more is looked at.
const DOT: &str = "iVBORw0KGgo=";

fn message(id: &str, text: &str) -> Value {
    json!({"id": id, "text": text})
}

fn receipt(answer: &Value) -> (&str, &str) {
    let receipt = &answer["receipts"][0];
    (receipt["id"].as_str().unwrap(), receipt["receipt"].as_str().unwrap())
}

#[test]
fn messages_are_steered_queued_edited_removed_and_taken_back() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let send = |command: Value| client.command(&session, &command);
    let mut events = client.events(&session, None);
    client.prompt(&session, "m-1", "Hello");
    let mut request = model.request();
    request.say("Working");
    events.line("cognition_out_delta");
    for (way, id) in [("queue", "q-1"), ("queue", "q-2"), ("queue", "q-3"), ("steer", "s-1")] {
        let command = json!({"command": way, "message": message(id, &format!("text of {id}"))});
        assert_eq!(receipt(&send(command.clone())), (id, "sent"));
        // A repetition is not a second message.
        assert_eq!(receipt(&send(command)), (id, "sent"));
    }
    let edit = json!({"command": "edit", "message": message("q-1", "other text of q-1")});
    assert_eq!(receipt(&send(edit)), ("q-1", "sent"));
    for _ in 0..2 {
        assert_eq!(receipt(&send(json!({"command": "remove", "id": "q-2"}))), ("q-2", "removed"));
        assert_eq!(receipt(&send(json!({"command": "take_back", "id": "q-3"}))), ("q-3", "returned"));
    }
    let unknown = client.post(&format!("{session}/commands"), &json!({"command": "remove", "id": "q-9"}));
    assert_eq!((unknown.0, unknown.1["code"].as_str()), (409, Some("not_waiting")));
    request.end();
    // The steering message joins the turn; the queued one starts the next.
    let mut steered = model.request();
    assert!(steered.text().contains("text of s-1") && !steered.text().contains("q-1"), "{}", steered.text());
    steered.say("Steered.").end();
    let mut queued = model.request();
    assert!(queued.text().contains("other text of q-1"));
    assert!(!queued.text().contains("q-2") && !queued.text().contains("q-3"), "{}", queued.text());
    queued.say("Queued.").end();
    events.until(|event| event.line() == "turn_finish" && event.data["turn"] == 2);
    let again = client.prompt(&session, "m-1", "Hello");
    assert_eq!(again["receipts"][0]["receipt"], "delivered", "{again}");
    assert_eq!(again["receipts"][0]["turn"], 1);
    let late = client.post(&format!("{session}/commands"), &json!({"command": "edit", "message": message("q-1", "x")}));
    assert_eq!(late.1["code"], "not_waiting", "{late:?}");
}

/// An id is that of one message: with other content it is refused, and nothing of the command is taken.
#[test]
fn an_id_with_other_content_is_refused_and_the_same_message_is_taken_once() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let path = format!("{session}/commands");
    let prompt = |messages: Value| json!({"command": "prompt", "messages": messages});
    let mut events = client.events(&session, None);
    let twice = client.post(&path, &prompt(json!([message("m-1", "first"), message("m-1", "second")])));
    assert_eq!((twice.0, twice.1["code"].as_str()), (409, Some("id_in_use")), "{twice:?}");
    assert!(twice.1["detail"].as_str().unwrap().contains("`m-1`"), "{twice:?}");
    // Nothing was taken, so the id is free.
    let same = json!([message("m-1", "second"), message("m-1", "second"), message("m-2", "third")]);
    client.command(&session, &prompt(same.clone()));
    let mut request = model.request();
    assert_eq!(request.text().matches("second").count(), 1, "{}", request.text());
    assert!(!request.text().contains("first") && request.text().contains("third"), "{}", request.text());
    request.say("Working");
    events.line("cognition_out_delta");
    client.command(&session, &prompt(same));
    client.command(&session, &json!({"command": "queue", "message": message("q-1", "queued")}));
    for way in ["steer", "interrupt", "queue"] {
        for (id, text) in [("m-1", "lost"), ("m-2", "second"), ("q-1", "lost")] {
            let (status, answer) = client.post(&path, &json!({"command": way, "message": message(id, text)}));
            assert_eq!((status, answer["code"].as_str()), (409, Some("id_in_use")), "{way} {id}: {answer}");
        }
        client.command(&session, &json!({"command": way, "message": message("m-1", "second")}));
    }
    // A message that was given back can be sent again, with other content.
    client.command(&session, &json!({"command": "take_back", "id": "q-1"}));
    client.command(&session, &json!({"command": "queue", "message": message("q-1", "changed")}));
    request.end();
    let mut queued = model.request();
    assert!(queued.text().contains("changed") && !queued.text().contains("lost"), "{}", queued.text());
    queued.say("Done.").end();
}

#[test]
fn a_message_that_no_model_takes_is_refused() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let file = |media_type: &str, source: &str| json!([{"name": "f", "media_type": media_type, "source": source}]);
    for (text, attachments, words) in [
        ("", json!([]), "is blank"),
        (" \n\t", json!([]), "is blank"),
        ("\u{200b}\u{feff}", json!([]), "is blank"),
        ("x", file("text/plain", "SGVsbG8="), "put text into the text"),
        ("x", file("application/pdf", "JVBERi0="), "the types are image/png"),
        ("x", file("image/png", "SGVsbG8="), "no image of the type"),
    ] {
        let given = json!({"id": "m", "text": text, "attachments": attachments});
        for command in [
            json!({"command": "prompt", "messages": [given]}),
            json!({"command": "steer", "message": given}),
            json!({"command": "queue", "message": given}),
            json!({"command": "edit", "message": given}),
        ] {
            // What is left of a message then, the session knows.
            if words == "is blank" && command["command"] == "edit" {
                continue;
            }
            let (status, answer) = client.post(&format!("{session}/commands"), &command);
            assert_eq!((status, answer["code"].as_str()), (422, Some("invalid_message")), "{command}: {answer}");
            assert!(answer["detail"].as_str().unwrap().contains(words), "{answer}");
        }
    }
    // What comes in an address that contains it is the content.
    let dot = format!("data:image/png;base64,{DOT}");
    let given = json!({"id": "m", "text": "", "attachments": file("image/png", &dot)});
    client.command(&session, &json!({"command": "prompt", "messages": [given]}));
    let mut request = model.request();
    assert!(request.text().contains("image/png") && !request.text().contains("[f]("), "{}", request.text());
    // The text of a message can be blank where an attachment is left, whoever edits it.
    for (id, attachments) in [("with", file("image/png", DOT)), ("without", json!([]))] {
        let message = json!({"id": id, "text": "Later", "attachments": attachments});
        client.command(&session, &json!({"command": "queue", "message": message}));
        let edit = json!({"command": "edit", "message": {"id": id, "text": "\u{200b} "}});
        let (status, answer) = client.post(&format!("{session}/commands"), &edit);
        let expected = if id == "with" { (200, None) } else { (422, Some("invalid_message")) };
        assert_eq!((status, answer["code"].as_str()), expected, "{answer}");
    }
    request.say("A dot.").end();
}

#[test]
fn a_turn_is_interrupted_cancelled_once_and_continued() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let send = |command: Value| client.command(&session, &command);
    let mut events = client.events(&session, None);
    client.prompt(&session, "m-1", "Hello");
    let mut request = model.request();
    request.say("A long answer");
    events.line("cognition_out_delta");
    assert_eq!(client.get(&session).1["state"], "running");
    let interrupt = json!({"command": "interrupt", "message": message("i-1", "Stop, another way")});
    assert_eq!(receipt(&send(interrupt.clone())), ("i-1", "sent"));
    send(interrupt);
    let mut second = model.request();
    assert_eq!(second.text().matches("Stop, another way").count(), 1, "{}", second.text());
    second.say("Another");
    events.line("cognition_out_delta");
    for _ in 0..2 {
        send(json!({"command": "cancel", "id": "c-1"}));
    }
    let finished = events.line("turn_finish");
    assert_eq!(finished.last().unwrap().data["payload"]["status"], "cancelled");
    send(json!({"command": "continue", "id": "c-2"}));
    let mut third = model.request();
    // The cancel of before is about the turn of before.
    send(json!({"command": "cancel", "id": "c-1"}));
    let other = client.post(&format!("{session}/commands"), &json!({"command": "flush", "id": "c-1"}));
    assert_eq!(other.1["code"], "id_in_use", "{other:?}");
    third.say("Continued.").end();
    let finished = events.line("turn_finish");
    assert_eq!(finished.last().unwrap().data["payload"]["status"], "completed");
    assert_eq!(client.get(&session).1["state"], "idle");
}

#[test]
fn a_question_is_answered_once_by_whoever_is_first() {
    let model = Model::start();
    let place = place(&model, &format!("[tools.permission]\nwrite_file = \"ask\"\n{USERS}"));
    let running = start(&place);
    let [anna, bert] = users(&running);
    let session = anna.create();
    anna.put(&format!("{session}/users/bert"));
    let mut events = anna.events(&session, None);
    anna.prompt(&session, "m-1", "Write");
    let mut request = model.request();
    request.call("c-1", "write_file", &json!({"path": "a.txt", "content": "as proposed"}));
    request.call("c-2", "write_file", &json!({"path": "b.txt", "content": "denied"})).end();
    let mut questions = Vec::new();
    while questions.len() < 2 {
        questions.push(events.line("tool_confirmation_requested").pop().unwrap().data["payload"].clone());
    }
    assert_eq!(anna.get(&session).1["state"], "waiting");
    let answer = |question: &Value, answer: Value| {
        let (question, call) = (&question["question_id"], &question["call_id"]);
        json!({"command": "answer", "question": question, "call": call, "answer": answer})
    };
    let (first, second) = (&questions[0], &questions[1]);
    let path = format!("{session}/commands");
    let wrong = anna.post(&path, &answer(first, json!({"decision": "edit", "arguments": "{}"})));
    assert_eq!((wrong.0, wrong.1["code"].as_str()), (422, Some("answer_refused")), "{wrong:?}");
    let arguments = json!({"path": "a.txt", "content": "as edited"}).to_string();
    let edit = answer(first, json!({"decision": "edit", "arguments": arguments}));
    for _ in 0..2 {
        assert_eq!(anna.post(&path, &edit), (200, json!({"receipts": []})));
    }
    // Somebody else is too late, and learns it.
    let late = bert.post(&path, &answer(first, json!({"decision": "deny", "reason": "no"})));
    assert_eq!((late.0, late.1["code"].as_str()), (409, Some("no_such_question")));
    assert!(late.1["detail"].as_str().unwrap().contains("anna"), "{late:?}");
    assert_eq!(bert.post(&path, &answer(second, json!({"decision": "deny", "reason": "not that file"}))).0, 200);
    let mut after = model.request();
    assert!(after.text().contains("not that file"), "{}", after.text());
    after.say("Done.").end();
    let events = events.line("turn_finish");
    let by: Vec<&str> = events
        .iter()
        .filter(|event| event.line() == "tool_confirmation_resolved")
        .map(|event| event.data["payload"]["decided_by"].as_str().unwrap())
        .collect();
    assert_eq!(by, ["anna", "bert"]);
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "as edited");
    assert!(!place.path("b.txt").exists());
}

#[test]
fn bodies_that_are_no_commands_are_refused_with_what_is_wrong() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let path = format!("{}/commands", client.create());
    for (body, status, code) in [
        (json!({"command": "dance"}), 400, "invalid_request"),
        (json!({"command": "prompt", "messages": []}), 400, "invalid_request"),
        (json!({"command": "prompt", "messages": [{"id": "", "text": "t"}]}), 400, "invalid_request"),
        (json!({"command": "prompt", "messages": [{"id": "a\nb", "text": "t"}]}), 400, "invalid_request"),
        (json!({"command": "prompt", "messages": [{"id": "a", "text": "t", "more": 1}]}), 400, "invalid_request"),
        (json!({"command": "cancel", "id": "x".repeat(129)}), 400, "invalid_request"),
        (json!([]), 400, "invalid_request"),
        (json!({"command": "answer", "question": "q", "answer": {"decision": "approve"}}), 409, "no_such_question"),
        (
            json!({"command": "decide_limit", "request": "r", "decision": {"decision": "approve"}}),
            409,
            "no_such_request",
        ),
    ] {
        let (found, problem) = client.post(&path, &body);
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{body}: {problem}");
    }
    let answer = client.send("POST", &path, &["Content-Type: application/json"], "{");
    assert_eq!(answer.status, 400, "{answer:?}");
    let model = client.post("/v1/sessions", &json!({"model": "unheard-of"}));
    assert_eq!((model.0, model.1["code"].as_str()), (422, Some("no_such_model")));
}
