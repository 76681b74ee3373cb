//! Decisions about limits, also after the program was killed while one was waited for.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate::chat::ChatSession;

use super::client::Client;
use super::conventions::{data, post, user};
use super::restarted::{ag_ui_answer, restarted, run};
use super::{place, say_more_than_is_kept, start};
use crate::support::script::Model;

const STEPS: &str = "[limits.session]\nsteps = 1\n";

/// Begins a turn that waits for a decision about its steps.
fn asked(client: &Client, model: &Model) -> String {
    let session = client.create();
    let mut events = client.events(&session, None);
    client.prompt(&session, "m-1", "Look");
    let mut request = model.request();
    request.say("I look.").call("c-1", "list_dir", &json!({"path": "."})).end();
    events.line("limit_escalation_requested");
    session
}

/// Waits until no turn of a session runs. What has happened before can be in a snapshot, and in no event.
fn until_idle(client: &Client, session: &str) {
    let begun = Instant::now();
    while client.get(session).1["state"] != "idle" {
        assert!(begun.elapsed() < Duration::from_secs(30), "{}", client.get(session).1);
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn decide(request: &str, decision: &str) -> Value {
    json!({"command": "decide_limit", "request": request, "decision": {"decision": decision}})
}

/// Whatever the first request after the restart is, it finds the request for a higher limit under its id.
#[test]
fn the_first_request_after_a_kill_finds_the_limit() {
    let model = Model::start();
    let place = place(&model, STEPS);
    let running = start(&place);
    let client = Client::new(&running, "");
    let sessions = [(); 6].map(|()| asked(&client, &model));
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    let [approved, denied, unknown, followed, run_again, run_answered] = &sessions;
    assert_eq!(client.get(approved).1["state"], "interrupted");
    client.command(approved, &decide("limit-1", "approve"));
    model.request().say("Done.").end();
    until_idle(&client, approved);
    client.command(denied, &decide("limit-1", "deny"));
    until_idle(&client, denied);

    let (status, body) = client.post(&format!("{unknown}/commands"), &decide("limit-9", "approve"));
    assert_eq!((status, &body["code"]), (409, &json!("no_such_request")), "{body}");
    assert_eq!(client.get(unknown).1["state"], "waiting");
    // It is asked before the subscription, or after.
    client
        .events(followed, None)
        .until(|event| event.line() == "limit_escalation_requested" || event.data["chat"]["limit"]["id"] == "limit-1");
    assert_eq!(client.get(followed).1["state"], "waiting");

    let said = run(&json!({"messages": [{"id": "m-1", "role": "user", "content": "Look"}]}));
    let body = post(&client, &format!("{run_again}/ag-ui"), &said).1;
    let end: Value = serde_json::from_str(data(&body).last().unwrap()).unwrap();
    assert_eq!(end["outcome"]["interrupts"][0]["id"], "limit-1", "{body}");
    assert!(body.contains("I look."), "{body}");
    let body = std::thread::scope(|scope| {
        let answer = scope.spawn(|| post(&client, &format!("{run_answered}/ag-ui"), &ag_ui_answer("limit-1")).1);
        model.request().say("Done.").end();
        answer.join().unwrap()
    });
    assert!(body.contains("Done.") && body.contains("RUN_FINISHED") && !body.contains("I look."), "{body}");
}

/// A suspended session is idle before it is used as after that. One whose turn was cut off says so in the state of a chat, too.
#[test]
fn a_session_has_the_same_state_after_a_kill_before_it_is_used() {
    let model = Model::start();
    let place = place(&model, STEPS);
    let running = start(&place);
    let client = Client::new(&running, "");
    let suspended = asked(&client, &model);
    client.command(&suspended, &decide("limit-1", "deny"));
    client.events(&suspended, None).line("thread_suspended");
    let cut = client.create();
    client.prompt(&cut, "m-1", "Hello");
    let _unanswered = model.request();
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    for (session, state) in [(&suspended, "idle"), (&cut, "interrupted")] {
        assert_eq!(client.get(session).1["state"], state);
        let snapshot = client.events(session, None).next().unwrap();
        assert_eq!(client.get(session).1["state"], state, "{snapshot:?}");
        let mut chat = ChatSession::default();
        let _changed = chat.restore(serde_json::from_value(snapshot.data["chat"].clone()).unwrap());
        assert_eq!(chat.snapshot().interrupted, state == "interrupted", "{snapshot:?}");
    }
}

/// A turn whose limit was raised after a restart is one message, which shows that it waits until then.
#[test]
fn a_turn_that_waited_for_a_limit_stays_one_message() {
    let model = Model::start();
    let place = place(&model, STEPS);
    let running = start(&place);
    let session = asked(&Client::new(&running, ""), &model);
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    let body = std::thread::scope(|scope| {
        let stream = scope.spawn(|| {
            let mut stream = client.stream(&format!("{session}/ui-messages/chat/stream"), None);
            stream.seen("limit-1");
            client.command(&session, &decide("limit-1", "approve"));
            stream.rest()
        });
        model.request().say("It is done.").end();
        stream.join().unwrap()
    });
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    let again = post(&client, &format!("{session}/ui-messages"), &json!({"messages": [user("m-1", "Look")]})).1;
    for (name, body) in [("resumed", &body), ("sent again", &again)] {
        for part in [r#""messageId":"turn-1""#, "I look.", "It is done.", r#""status":"completed""#] {
            assert!(body.contains(part), "{name}: {part}: {body}");
        }
    }
    assert!(body.contains("data-tidegate-limit-escalation-requested"), "{body}");
}

/// A server that ends leaves what a person is asked to the next one.
#[test]
fn a_limit_that_is_waited_for_outlives_the_end_of_the_server() {
    let model = Model::start();
    let place = place(&model, STEPS);
    let mut running = start(&place);
    let session = asked(&Client::new(&running, ""), &model);
    // A server can also end before it has asked again.
    for has_asked in [true, true, false, false] {
        running.signal("TERM");
        running.ended();
        running = start(&place);
        let client = Client::new(&running, "");
        drop(client.events(&session, None));
        if has_asked {
            client.events(&session, None).seen("limit-1");
        }
    }
    let client = Client::new(&running, "");
    client.command(&session, &decide("limit-1", "approve"));
    model.request().say("It is done.").end();
    until_idle(&client, &session);
    let again = post(&client, &format!("{session}/ui-messages"), &json!({"messages": [user("m-1", "Look")]})).1;
    for part in ["I look.", "It is done.", r#""status":"completed""#] {
        assert!(again.contains(part), "{part}: {again}");
    }
}

/// What a person was not asked about costs something: a turn whose limit is higher by now waits for `continue`.
#[test]
fn a_limit_that_was_raised_in_the_settings_asks_nobody() {
    let model = Model::start();
    let place = place(&model, STEPS);
    let running = start(&place);
    let session = asked(&Client::new(&running, ""), &model);
    place.write("tidegate.toml", &model.settings("[limits.session]\nsteps = 9\n"));
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    let (status, body) = client.post(&format!("{session}/commands"), &decide("limit-1", "approve"));
    assert_eq!((status, &body["code"]), (409, &json!("no_such_request")), "{body}");
    assert_eq!(client.get(&session).1["state"], "interrupted");
    client.command(&session, &json!({"command": "continue"}));
    model.request().say("Done.").end();
    until_idle(&client, &session);
}

/// A decision that is sent again has the rest of its own turn, however late.
#[test]
fn a_decision_that_is_sent_again_later_has_the_stream_of_its_turn() {
    let model = Model::start();
    let place = place(&model, STEPS);
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = asked(&client, &model);
    let mut answer = ag_ui_answer("limit-1");
    answer["resume"][0]["payload"]["max"] = json!(100);
    let path = format!("{session}/ag-ui");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| post(&client, &path, &answer));
        model.request().say("It is done.").end();
        assert_eq!(first.join().unwrap().0, 200);
    });
    client.prompt(&session, "m-2", "More");
    let mut events = client.events(&session, None);
    say_more_than_is_kept(model.request());
    events.until(|event| event.line() == "turn_finish" && event.data["turn"] == 2);
    let body = post(&client, &path, &answer).1;
    assert!(body.contains("It is done.") && !body.contains("xxx") && !body.contains("I look."), "{body}");
    // Another session does not know what was decided before it was opened.
    let running = restarted(running, &place);
    let client = Client::new(&running, "");
    let body = post(&client, &path, &answer).1;
    assert!(body.contains("RUN_ERROR") && body.contains("no_such_question"), "{body}");
}
