//! Creating, listing, forking and deleting sessions, and each of that twice.

use serde_json::json;

use super::client::{Client, text};
use super::{USERS, place, start, users};
use crate::support::script::Model;

#[test]
fn a_session_is_created_once_for_an_id_of_a_user() {
    let model = Model::start();
    let place = place(&model, USERS);
    let running = start(&place);
    let [anna, bert] = users(&running);
    let create = |client: &Client| client.post("/v1/sessions", &json!({"id": "w-1", "agent": "reviewer"}));
    let (status, one) = create(&anna);
    assert_eq!((status, one["owner"].as_str(), one["agent"].as_str()), (201, Some("anna"), Some("reviewer")));
    assert_eq!((one["model"].as_str(), one["state"].as_str()), (Some("scripted"), Some("idle")));
    assert_eq!((one["turns"].as_u64(), &one["users"]), (Some(0), &json!([])));
    assert_eq!(create(&anna), (201, one.clone()));
    let (_, other) = create(&bert);
    assert_ne!(other["id"], one["id"], "ids of writes are each user's own");
    assert_ne!(anna.create(), anna.create());
    assert_eq!(anna.get("/v1/sessions").1["sessions"].as_array().unwrap().len(), 3);
    for agent in ["", "a b", "../a"] {
        assert_eq!(anna.post("/v1/sessions", &json!({"agent": agent})).0, 400);
    }
    assert_eq!(anna.post("/v1/sessions", &json!({"unknown": 1})).0, 400);
}

#[test]
fn a_session_is_forked_after_a_turn_and_deleted_after_its_forks() {
    let model = Model::start();
    let place = place(&model, "");
    let running = start(&place);
    let client = Client::new(&running, "");
    let session = client.create();
    let fork = |body: serde_json::Value| client.post(&format!("{session}/fork"), &body);
    assert_eq!(fork(json!({})).1["code"], "no_such_turn");
    let mut events = client.events(&session, None);
    for (number, words) in ["first words", "second words"].into_iter().enumerate() {
        client.prompt(&session, &format!("m-{number}"), words);
        model.request().say(&format!("answer {number}")).end();
        events.line("turn_finish");
    }
    let shown = client.get(&session).1;
    assert_eq!((shown["title"].as_str(), shown["turns"].as_u64()), (Some("first words"), Some(2)), "{shown}");
    let (status, forked) = fork(json!({"id": "f-1", "turn": 1}));
    assert_eq!(status, 201, "{forked}");
    assert_eq!(fork(json!({"id": "f-1", "turn": 1})).1["id"], forked["id"]);
    assert_eq!(fork(json!({"turn": 9})).1["code"], "no_such_turn");
    let child = format!("/v1/sessions/{}", forked["id"].as_str().unwrap());
    let mut of_child = client.events(&child, None);
    client.prompt(&child, "m-9", "third words");
    let mut request = model.request();
    assert!(request.text().contains("answer 0") && !request.text().contains("answer 1"), "{}", request.text());
    request.say("of the fork").end();
    let events = of_child.line("turn_finish");
    assert!(of_child.bytes.contains("third words") && text(&events).contains("of the fork"), "{}", of_child.bytes);
    let (status, problem) = client.delete(&session);
    assert_eq!((status, problem["code"].as_str()), (409, Some("has_forks")));
    assert_eq!(client.get(&session).0, 200, "it is still there");
    assert_eq!(client.delete(&child).0, 204);
    assert_eq!(client.delete(&session).0, 204);
    assert_eq!(client.delete(&session).0, 404);
    assert_eq!(client.get("/v1/sessions").1, json!({"sessions": []}));
}

#[test]
fn sessions_of_the_terminal_are_those_of_the_user_of_the_machine() {
    let model = Model::start();
    let place = place(&model, "");
    std::thread::scope(|scope| {
        scope.spawn(|| model.request().say("From the terminal.").end());
        assert!(place.run(&["run", "Hello", "--session", "of-the-terminal"]).status.success());
    });
    let running = start(&place);
    let client = Client::new(&running, "");
    let all = client.get("/v1/sessions").1;
    assert_eq!(all["sessions"][0]["id"], "of-the-terminal", "{all}");
    let export = client.send("GET", "/v1/sessions/of-the-terminal/export", &[], "").body;
    assert!(export.contains("From the terminal."), "{export}");
    drop(running);
    // Users with tokens have none of it.
    place.write("tidegate.toml", &model.settings(USERS));
    let running = start(&place);
    let [anna, _] = users(&running);
    assert_eq!(anna.get("/v1/sessions").1, json!({"sessions": []}));
    assert_eq!(anna.get("/v1/sessions/of-the-terminal").0, 404);
    drop(running);
    // Unless one of them is the user of the machine.
    place.write("tidegate.toml", &model.settings(&USERS.replace("anna", "local")));
    let running = start(&place);
    let [own, _] = users(&running);
    assert_eq!(own.get("/v1/sessions").1["sessions"][0]["id"], "of-the-terminal");
}
