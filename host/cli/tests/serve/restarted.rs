//! Conventions after the program was killed: they agree with the events, and no answer is lost.

use serde_json::{Value, json};

use super::client::Client;
use super::conventions::{ASK, data, post, user};
use super::{place, say_more_than_is_kept, start};
use crate::gateway::running::Running;
use crate::support::Place;
use crate::support::script::Model;

/// Asks about a call in a turn, and waits for the question.
fn asked(client: &Client, model: &Model, file: &str) -> String {
    let session = client.create();
    let mut events = client.events(&session, None);
    client.prompt(&session, "m-1", "Write");
    let mut request = model.request();
    request.say("I write.").call("c-1", "write_file", &json!({"path": file, "content": "written"})).end();
    events.line("tool_confirmation_requested");
    session
}

fn ui_answer() -> Value {
    let approval = json!({"id": "question-1", "approved": true});
    let part = json!({"type": "dynamic-tool", "state": "approval-responded", "approval": approval});
    json!({"messages": [user("m-1", "Write"), {"id": "turn-1", "role": "assistant", "parts": [part]}]})
}

pub(super) fn run(more: &Value) -> Value {
    let mut input = json!({"threadId": "t", "runId": "r", "messages": []});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    input
}

pub(super) fn ag_ui_answer(question: &str) -> Value {
    run(&json!({"resume": [{"interruptId": question, "status": "resolved", "payload": {"approved": true}}]}))
}

/// Kills a server and starts it again.
pub(super) fn restarted(mut running: Running, place: &Place) -> Running {
    running.signal("KILL");
    running.ended();
    start(place)
}

/// Whatever the first request after the restart is, it finds the question under its id, on the call under its id, in the message of its turn.
#[test]
fn the_first_request_after_a_kill_finds_the_question() {
    let model = Model::start();
    let place = place(&model, ASK);
    let running = start(&place);
    let client = Client::new(&running, "");
    let names =
        ["resumed", "sent again", "a run", "an answer", "an answer of a run", "a command", "an unknown question"];
    let sessions = names.map(|name| asked(&client, &model, &format!("{name}.txt")));
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    let [resumed, again, run_again, answered, run_answered, commanded, unknown] = &sessions;
    let stream = client.stream(&format!("{resumed}/ui-messages/chat/stream"), None).rest();
    let sent = post(&client, &format!("{again}/ui-messages"), &json!({"messages": [user("m-1", "Write")]})).1;
    for (name, body) in [("resumed", &stream), ("sent again", &sent)] {
        for part in [
            r#"{"type":"start","messageId":"turn-1"}"#,
            "I write.",
            r#""approvalId":"question-1","toolCallId":"1.1.c-1""#,
            r#""finishReason":"tool-calls""#,
        ] {
            assert!(body.contains(part), "{name}: {part}: {body}");
        }
        assert!(!body.contains("refused") && data(body).last() == Some(&"[DONE]"), "{name}: {body}");
    }
    let said = run(&json!({"messages": [{"id": "m-1", "role": "user", "content": "Write"}]}));
    let body = post(&client, &format!("{run_again}/ag-ui"), &said).1;
    let end: Value = serde_json::from_str(data(&body).last().unwrap()).unwrap();
    assert_eq!(end["outcome"]["interrupts"][0]["id"], "question-1", "{body}");
    assert_eq!(end["outcome"]["interrupts"][0]["toolCallId"], "1.1.c-1", "{body}");

    for (name, session, path, answer, expected) in [
        (names[3], answered, "ui-messages", ui_answer(), r#"{"type":"start","messageId":"turn-1"}"#),
        (names[4], run_answered, "ag-ui", ag_ui_answer("question-1"), "RUN_FINISHED"),
    ] {
        let body = std::thread::scope(|scope| {
            let answer = scope.spawn(|| post(&client, &format!("{session}/{path}"), &answer).1);
            model.request().say("It is written.").end();
            answer.join().unwrap()
        });
        for part in [expected, "1.1.c-1", "It is written."] {
            assert!(body.contains(part), "{name}: {part}: {body}");
        }
        assert!(!body.contains("I write.") && !body.contains("2.0.c-1"), "{name}: the client has it: {body}");
        assert_eq!(std::fs::read_to_string(place.path(&format!("{name}.txt"))).unwrap(), "written", "{name}");
    }
    let answer = json!({"command": "answer", "question": "question-1", "answer": {"decision": "deny"}});
    client.command(commanded, &answer);
    model.request().say("As you like.").end();
    // One that is not asked any more is refused, and what is asked stays open.
    let mut stale = ui_answer();
    stale["messages"][1]["parts"][0]["approval"]["id"] = json!("question-9");
    let (status, body) = post(&client, &format!("{unknown}/ui-messages"), &stale);
    assert!(status == 409 && body.contains("no_such_question") && body.contains("question-9"), "{status} {body}");
    let (_, body) = post(&client, &format!("{unknown}/ag-ui"), &ag_ui_answer("question-9"));
    assert!(body.contains("RUN_ERROR"), "{body}");
    assert_eq!(client.get(unknown).1["state"], "waiting");
}

/// A turn whose question was answered after a restart is one message, and its numbers are those of all steps that have ended.
#[test]
fn a_turn_that_continues_after_a_kill_stays_one_message() {
    let model = Model::start();
    let place = place(&model, ASK);
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = asked(&client, &model, "a.txt");
    let mut running = restarted(running, &place);
    let client = Client::new(&running, "");
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| post(&client, &format!("{session}/ui-messages"), &ui_answer()).1);
        model.request().say("It is written.").end();
        answer.join().unwrap()
    });
    for _ in 0..2 {
        let client = Client::new(&running, "");
        let again = json!({"messages": [user("m-1", "Write")]});
        let body = post(&client, &format!("{session}/ui-messages"), &again).1;
        for part in ["turn-1", "I write.", "tool-output-available", "It is written.", r#""outputTokens":40"#] {
            assert!(body.contains(part), "{part}: {body}");
        }
        assert!(body.contains(r#""status":"completed""#), "{body}");
        running = restarted(running, &place);
    }
}

/// An answer to what was asked again after a restart has the rest of its own turn, however often and however late it is sent.
#[test]
fn an_answer_that_is_sent_again_later_has_the_stream_of_its_turn() {
    let model = Model::start();
    let place = place(&model, ASK);
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = asked(&client, &model, "a.txt");
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    let path = format!("{session}/ui-messages");
    for (body, text) in [(ui_answer(), "It is written."), (json!({"messages": [user("m-2", "And?")]}), "A later turn.")]
    {
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| post(&client, &path, &body));
            model.request().say(text).end();
            assert_eq!(answer.join().unwrap().0, 200);
        });
    }
    let answers = [("ui-messages", ui_answer()), ("ag-ui", ag_ui_answer("question-1"))];
    for (path, answer) in &answers {
        let body = post(&client, &format!("{session}/{path}"), answer).1;
        assert!(body.contains("It is written.") && !body.contains("A later turn."), "{path}: {body}");
    }
    // The line of the question is not kept any more.
    client.prompt(&session, "m-3", "More");
    let mut events = client.events(&session, None);
    say_more_than_is_kept(model.request());
    events.until(|event| event.line() == "turn_finish" && event.data["turn"] == 4);
    for (path, answer) in &answers {
        let body = post(&client, &format!("{session}/{path}"), answer).1;
        let (has, end) = (body.contains("It is written."), &body[body.len().saturating_sub(300)..]);
        assert!(has && !body.contains("A later turn.") && !body.contains("xxx"), "{path}: {end}");
        assert!(!body.contains("I write."), "{path}: the client has it: {body}");
    }
}

#[test]
fn the_numbers_and_the_model_of_a_turn_survive_a_restart() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let input = json!({"messages": [user("m-1", "Hello")]});
    let run = run(&json!({"messages": [{"id": "m-1", "role": "user", "content": "Hello"}]}));
    let before = std::thread::scope(|scope| {
        let first = scope.spawn(|| post(&client, &format!("{session}/ui-messages"), &input).1);
        model.request().say("Good day.").end();
        first.join().unwrap()
    });
    let before_run = post(&client, &format!("{session}/ag-ui"), &run).1;
    let end = |body: &str| {
        let last = data(body).into_iter().rev().find(|chunk| chunk.starts_with('{')).unwrap().to_owned();
        let mut last: Value = serde_json::from_str(&last).unwrap();
        last.as_object_mut().unwrap().remove("timestamp");
        last
    };
    assert_eq!(end(&before)["messageMetadata"]["usage"], json!({"inputTokens": 5, "outputTokens": 40}));
    assert_eq!(end(&before)["messageMetadata"]["model"], "scripted");
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    assert_eq!(end(&post(&client, &format!("{session}/ui-messages"), &input).1), end(&before));
    assert_eq!(end(&post(&client, &format!("{session}/ag-ui"), &run).1), end(&before_run));
}

/// A request for a higher limit is in the state that comes in the place of events, for the page as for conventions.
#[test]
fn a_limit_is_asked_about_also_where_its_event_is_not_kept_any_more() {
    let model = Model::start();
    let place = place(&model, "[limits.session]\nsteps = 1\n");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let mut events = client.events(&session, None);
    client.prompt(&session, "m-1", "Look");
    let mut request = model.request();
    // More than the backlog keeps.
    let long = "x".repeat(1000);
    for _ in 0..1500 {
        request.say(&long);
    }
    request.call("c-1", "list_dir", &json!({"path": "."})).end();
    events.line("limit_escalation_requested");
    let snapshot = client.events(&session, None).next().unwrap();
    let run = run(&json!({"messages": [{"id": "m-1", "role": "user", "content": "Look"}]}));
    let body = post(&client, &format!("{session}/ag-ui"), &run).1;
    let end: Value = serde_json::from_str(data(&body).last().unwrap()).unwrap();
    assert_eq!(end["outcome"]["interrupts"][0]["reason"], "confirmation", "{end}");
    assert_eq!(
        end["outcome"]["interrupts"][0]["id"], snapshot.data["chat"]["limit"]["id"],
        "{}",
        snapshot.data["chat"]["limit"]
    );
    let id = end["outcome"]["interrupts"][0]["id"].as_str().unwrap().to_owned();
    let body = std::thread::scope(|scope| {
        let answer = scope.spawn(|| post(&client, &format!("{session}/ag-ui"), &ag_ui_answer(&id)).1);
        model.request().say("Done.").end();
        answer.join().unwrap()
    });
    assert!(body.contains("Done.") && body.contains("RUN_FINISHED"), "{body}");
}
