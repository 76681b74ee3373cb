//! `tidegate state`: what plugins keep for sessions, as an operator inspects it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate::state::{DiskStore, StateBatch, StateChange, StateEntry, StateLifetime, StateStore, StoreOptions};
use tidegate::{SessionId, SystemClock};

use crate::support::{Place, Say, code, err, out, recording};

#[tokio::test]
async fn stored_state_is_listed_shown_and_cleared() {
    let place = Place::new();
    assert_eq!(
        out(&place.run(&["state", "list"])),
        "no session has stored state; plugins keep it in the sessions of `tidegate run`\n"
    );
    let folder = place.path("state/tidegate/state");
    let store = DiskStore::new(folder, StoreOptions::default(), Arc::new(SystemClock)).unwrap();
    let state = store.open(&SessionId::new("chat")).await.unwrap();
    let entry = |key: &str, value: &str| StateEntry::written(key, value.as_bytes(), StateLifetime::Session, 0);
    let changes = vec![StateChange::Set(entry("todo", "\"milk\"")), StateChange::Set(entry("odd\u{1b}[2J", "1"))];
    state.turn_started();
    state.apply(&"notes".parse().unwrap(), changes.into());
    // State that was written before versions were recorded has none.
    let versioned = StateBatch { changes: vec![StateChange::Set(entry("page", "7"))], version: Some(3) };
    state.apply(&"book".parse().unwrap(), versioned);
    state.settle(Duration::from_secs(5)).await.unwrap();
    state.turn_ended();
    state.settle(Duration::from_secs(5)).await.unwrap();

    let listed = out(&place.run(&["state", "list"]));
    let row = |at: usize| listed.lines().nth(at).unwrap().split_whitespace().take(6).collect::<Vec<_>>();
    assert!(listed.starts_with("SESSION  PLUGIN  KEYS  SIZE  STATE VERSION"), "{listed}");
    assert_eq!(row(1), ["chat", "book", "1", "5", "B", "3"], "{listed}");
    assert_eq!(row(2), ["chat", "notes", "2", "18", "B", "-"], "{listed}");
    assert!(listed.contains(&format!("process {}", std::process::id())), "who has it open: {listed}");
    let refused = place.run(&["state", "clear", "chat"]);
    assert_eq!(code(&refused), 1);
    assert!(err(&refused).contains("is open in process"), "{}", err(&refused));
    state.close(Duration::from_secs(5)).await.unwrap();

    // Its transcript is on another machine: a new conversation under its id would use what plugins keep for that one.
    place.write("hi.jsonl", &recording(&[&[Say::Text("Hi.")]]));
    let run =
        |more: &[&str]| place.run(&[&["run", "hi", "--session", "chat", "--recording", "hi.jsonl"], more].concat());
    let refused = run(&[]);
    assert_eq!(code(&refused), 2, "{}", err(&refused));
    let expected = "error[host-transcript-unavailable]: the session `chat` has state of plugins and no transcript in ";
    assert!(
        err(&refused).starts_with(expected) && err(&refused).contains("`tidegate state clear chat`"),
        "{}",
        err(&refused)
    );
    assert_eq!(code(&run(&["--no-transcript"])), 0, "it has none");

    let shown = place.run(&["state", "show", "chat"]);
    assert!(out(&shown).contains("todo  \"milk\"  (kept with the session)"), "{}", out(&shown));
    assert!(out(&shown).starts_with("book  1 key, state_version 3\n"), "{}", out(&shown));
    assert!(out(&shown).contains("\nnotes  2 keys\n"), "{}", out(&shown));
    crate::support::assert_harmless(&out(&shown));
    let json = place.json(&["state", "show", "chat", "--json"]);
    assert_eq!(json["plugins"][1]["entries"][1]["text"], "\"milk\"", "{json}");
    assert_eq!((&json["plugins"][0]["state_version"], &json["plugins"][1]["state_version"]), (&3.into(), &Value::Null));

    let missing = place.run(&["state", "show", "other"]);
    assert_eq!(code(&missing), 1);
    assert!(err(&missing).contains("nothing is stored for the session `other`"), "{}", err(&missing));
    let cleared = place.run(&["state", "clear", "chat"]);
    assert_eq!((code(&cleared), err(&cleared).as_str()), (0, "deleted the state of the session `chat`\n"));
    assert!(place.json(&["state", "list", "--json"])["sessions"].as_array().unwrap().is_empty());
    assert_eq!(code(&run(&[])), 0, "nothing is left that it could be mixed up with");
}

#[test]
fn the_id_of_a_session_is_checked() {
    let place = Place::new();
    for id in ["", " ", "a\nb", &"x".repeat(129)] {
        let output = place.run(&["state", "show", id]);
        assert_eq!(code(&output), 2, "{id:?}: {}", err(&output));
        assert!(err(&output).contains("the id of the session"), "{}", err(&output));
    }
}
