//! Sessions that are opened again: after the end of their process, while they are open, and with another model.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::state::{DiskStore, StateBatch, StateChange, StateEntry, StateLifetime, StateStore, StoreOptions};
use tidegate::{SessionId, SystemClock};

use super::editor::{Editor, Sent, shown};
use super::model::Model;
use super::{place, set};
use crate::support::Place;
use crate::support::age::age;

fn load(editor: &mut Editor, place: &Place, session: &str) {
    editor.request("session/load", json!({"sessionId": session, "cwd": place.path(""), "mcpServers": []}));
}

/// Chooses this kind of option in each dialog.
fn choose(editor: &mut Editor, kind: &'static str) {
    editor.answers = Box::new(move |_, params| {
        let option = params["options"].as_array().unwrap().iter().find(|one| one["kind"] == kind).unwrap();
        Ok(json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}}))
    });
}

/// The statuses of calls in updates, by id, the last of each.
fn statuses(updates: &[Value]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for update in updates {
        let (Some(id), Some(status)) = (update["toolCallId"].as_str(), update["status"].as_str()) else { continue };
        all.retain(|(known, _)| known != id);
        all.push((id.to_owned(), status.to_owned()));
    }
    all
}

/// The calls that an editor was sent new entries or questions of, in order: the ids.
fn entries(editor: &Editor) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for sent in &editor.traffic {
        let id = match sent {
            Sent::Notification { params, .. } => {
                let update = &params["update"];
                if update["sessionUpdate"] == "tool_call" { &update["toolCallId"] } else { continue }
            }
            Sent::Request { params, .. } => {
                let id = &params["toolCall"]["toolCallId"];
                if ids.last().map(String::as_str) == id.as_str() { continue } else { id }
            }
            _ => continue,
        };
        ids.extend(id.as_str().map(str::to_owned));
    }
    ids
}

#[test]
fn a_question_of_a_process_or_an_editor_that_is_gone_is_asked_again() {
    for (method, kind, written, is_killed) in [
        ("session/load", "allow_once", true, true),
        ("session/resume", "allow_once", true, true),
        ("session/load", "reject_once", false, true),
        ("session/load", "allow_once", true, false),
    ] {
        let model = Model::start();
        let place = place(&model);
        let mut editor = Editor::start(place.command(&["acp"]));
        let session = editor.open(json!({}), &place.path(""));
        editor.prompt(&session, "write a.txt one");
        editor.hold("session/request_permission");
        editor.request_of("session/request_permission");
        let shown = entries(&editor);
        if is_killed {
            editor.kill();
        } else {
            // The editor is gone, and nobody has cancelled.
            assert!(editor.close().success());
        }
        let mut editor = Editor::start(place.command(&["acp"]));
        choose(&mut editor, kind);
        editor.initialize(json!({}));
        editor.request(method, json!({"sessionId": session, "cwd": place.path(""), "mcpServers": []}));
        // Until its answer nothing runs.
        editor.request_of("session/request_permission");
        editor.update(|update| update["sessionUpdate"] == "agent_message_chunk");
        assert_eq!(place.path("a.txt").exists(), written, "{method} {kind}");
        // The editor, which may still show the call, gets no second entry.
        assert_eq!(shown.len(), 1);
        let mut again = entries(&editor);
        assert_eq!(again.len(), 1, "{method}: {:?}", editor.traffic);
        assert_eq!(again.pop(), shown.first().cloned(), "{method}");
        // It waits for the turn that was continued.
        let (stop, text) = editor.ask(&session, "say after");
        assert!(stop == "end_turn" && text.ends_with("after"), "{stop}: {text}");
        assert_eq!(model.requests.lock().unwrap().len(), 3, "the call was not asked for twice");
    }
}

#[test]
fn a_call_that_a_killed_process_was_running_does_not_run_and_its_turn_can_be_continued() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp", "--permission", "shell=allow"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.prompt(&session, "run sleep 1000");
    editor.update(|update| update["status"] == "in_progress");
    editor.kill();
    let mut editor = Editor::start(place.command(&["acp", "--permission", "shell=allow"]));
    editor.initialize(json!({"session": {"notices": {}}}));
    load(&mut editor, &place, &session);
    let updates = editor.updates();
    let statuses = statuses(&updates);
    assert!(statuses.len() == 1 && statuses[0].1 == "failed", "{updates:?}");
    let notice = editor.update(|update| update["sessionUpdate"] == "notice");
    assert!(notice["title"].as_str().unwrap().contains("/continue"), "{notice}");
    assert_eq!(model.requests.lock().unwrap().len(), 1, "nothing was asked of the model");
    let (stop, text) = editor.ask(&session, "/continue");
    assert!(stop == "end_turn" && text.contains("its outcome is not known"), "{stop}: {text}");
    assert_eq!(entries(&editor), [statuses[0].0.clone()], "what became of it is in its entry");
    let (stop, text) = editor.ask(&session, "/continue");
    assert!(stop == "end_turn" && text.contains("nothing to continue"), "{stop}: {text}");
}

/// A client cannot show what waits: it must not find turns that nobody has asked it for.
#[test]
fn messages_that_waited_are_given_back_and_not_sent() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.prompt(&session, "hang");
    editor.prompt(&session, "say Never");
    editor.update(|update| update["sessionUpdate"] == "agent_message_chunk");
    // A request that is answered: the prompts before it are with the session, and on the disk when it is.
    editor
        .request("_session/steering", json!({"sessionId": session, "prompt": [{"type": "text", "text": "Nor this"}]}));
    editor.kill();
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({"session": {"notices": {}}}));
    load(&mut editor, &place, &session);
    for text in ["say Never", "Nor this"] {
        editor.update(|update| update["description"] == text);
    }
    let (stop, text) = editor.ask(&session, "say Here");
    assert!(stop == "end_turn" && text.ends_with("Here"), "{stop}: {text}");
    assert!(editor.close().success());
    assert_eq!(model.requests.lock().unwrap().len(), 2, "that of the killed process, and one");
}

#[test]
fn a_session_that_is_open_is_loaded_with_what_it_shows_now() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.ask(&session, "say first");
    let running = editor.prompt(&session, "hang");
    editor.update(|update| update["sessionUpdate"] == "agent_message_chunk");
    editor.updates();
    load(&mut editor, &place, &session);
    let updates = editor.updates();
    let users = updates.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk");
    let users: Vec<&str> = users.filter_map(|update| update["content"]["text"].as_str()).collect();
    assert_eq!((users, shown(&updates)), (vec!["say first", "hang"], "firstWorking ".to_owned()));
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(running).unwrap()["stopReason"], "cancelled");
    assert_eq!(shown(&editor.updates()), "", "nothing is sent twice");
    assert_eq!(editor.ask(&session, "say after").1, "after");
}

/// The ids of the messages of one kind of chunk, one after the other.
fn ids(updates: &[Value], kind: &str) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for update in updates.iter().filter(|update| update["sessionUpdate"] == kind) {
        let id = update["messageId"].as_str().unwrap().to_owned();
        if ids.last() != Some(&id) {
            ids.push(id);
        }
    }
    ids
}

#[test]
fn what_a_loaded_answer_continues_with_is_of_the_same_message() {
    let model = Model::start();
    let place = place(&model);
    for (text, answers) in [("done.", 1), ("as an AI language model I cannot. Never mind, more text follows.", 2)] {
        let mut editor = Editor::start(place.command(&["acp"]));
        let session = editor.open(json!({"_meta": {"tidegate/retracted": true}}), &place.path(""));
        let go = place.path(&format!("go-{answers}"));
        let running = editor.prompt(&session, &format!("wait {} {text}", go.display()));
        editor.update(|update| update["sessionUpdate"] == "agent_message_chunk");
        load(&mut editor, &place, &session);
        std::fs::write(&go, "").unwrap();
        assert_eq!(editor.response(running).unwrap()["stopReason"], "end_turn");
        let updates = editor.updates();
        let ids = ids(&updates, "agent_message_chunk");
        assert_eq!(ids.len(), answers, "{updates:?}");
        assert!(shown(&updates).starts_with("Working "), "{updates:?}");
        // What is retracted is of the message that the client has.
        let retracted = updates.iter().filter_map(|update| update["_meta"].get("tidegate/retracted"));
        let retracted: Vec<_> = retracted.map(|one| (one["messageId"].as_str(), &one["keptBytes"])).collect();
        let expected = [(Some(&*ids[0]), &json!(0))];
        assert_eq!(retracted, expected[..answers - 1], "{updates:?}");
    }
}

#[test]
fn the_user_chooses_among_the_models_of_the_operator() {
    let model = Model::start();
    let place = place(&model);
    let file = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", &file.replace("[rules]", "models = [\"claude-other\"]\n[rules]"));
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({}));
    let opened = editor.request("session/new", json!({"cwd": place.path(""), "mcpServers": []}));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    let choice = |options: &Value| options.as_array().unwrap().iter().find(|one| one["id"] == "model").unwrap().clone();
    let offered = choice(&opened["configOptions"]);
    let names: Vec<&str> =
        offered["options"].as_array().unwrap().iter().filter_map(|one| one["value"].as_str()).collect();
    assert_eq!((names, offered["category"].as_str()), (vec!["claude-test", "claude-other"], Some("model")));
    editor.request("session/set_mode", json!({"sessionId": session, "modeId": "deny"}));
    editor.ask(&session, "say first");
    let choose = |value: &str| json!({"sessionId": session, "configId": "model", "value": value});
    assert_eq!(editor.refused("session/set_config_option", choose("claude-none"))["code"], -32602);
    let running = editor.prompt(&session, "hang");
    let refused = editor.refused("session/set_config_option", choose("claude-other"));
    assert!(refused["message"].as_str().unwrap().contains("a turn runs"), "{refused}");
    editor.update(|update| update["content"]["text"] == "Working ");
    let steered = json!([{"type": "text", "text": "say steered"}]);
    editor.request("_session/steering", json!({"sessionId": session, "prompt": steered}));
    editor.notify("session/cancel", json!({"sessionId": session}));
    editor.response(running).unwrap();
    let options = editor.request("session/set_config_option", choose("claude-other"));
    assert_eq!(choice(&options["configOptions"])["currentValue"], "claude-other");
    // The conversation, the settings and what waits stay.
    assert_eq!(editor.ask(&session, "say second").1, "steered");
    assert!(editor.ask(&session, "write a.txt one").1.contains("chosen to refuse"));
    // It is that of the session, also in another process, as long as it is offered.
    assert!(editor.close().success());
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({}));
    let known = json!({"sessionId": session, "cwd": place.path(""), "mcpServers": []});
    let loaded = editor.request("session/load", known.clone());
    assert_eq!(choice(&loaded["configOptions"])["currentValue"], "claude-other");
    editor.request("session/close", json!({"sessionId": session}));
    let resumed = editor.request("session/resume", known.clone());
    assert_eq!(choice(&resumed["configOptions"])["currentValue"], "claude-other");
    assert!(editor.close().success());
    place.write("tidegate.toml", &file);
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({}));
    let loaded = editor.request("session/load", known);
    assert_eq!(choice(&loaded["configOptions"])["currentValue"], "claude-test");
    editor.ask(&session, "say third");
    let sent = format!("{:?}", editor.traffic);
    assert!(sent.contains("had the model `claude-other`, which the operator's file does not offer"), "{sent}");
    let requests = model.requests.lock().unwrap();
    let names: Vec<&str> = requests.iter().filter_map(|request| request["model"].as_str()).collect();
    assert_eq!(names[..3], ["claude-test", "claude-test", "claude-other"]);
    for said in ["say first", "say second", "say steered"] {
        assert!(requests[2]["messages"].to_string().contains(said), "{}", requests[2]);
    }
    drop(requests);
    assert!(editor.close().success());
    // A model of the same name at another provider is another model.
    place.write("tidegate.toml", &file.replace("kind = \"anthropic\"", "kind = \"openai-chat\""));
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({}));
    editor.request("session/load", json!({"sessionId": session, "cwd": place.path(""), "mcpServers": []}));
    let id = editor.prompt(&session, "say fourth");
    // The test's server has no other wire format: only the error before the request matters.
    let _answer = editor.response(id);
    let sent = format!("{:?}", editor.traffic);
    assert!(sent.contains("had the model `claude-test`, of the provider `anthropic`, and the host has `"), "{sent}");
}

#[test]
fn old_sessions_are_removed_when_the_editor_closes_the_connection() {
    let model = Model::start();
    let place = place(&model);
    set(&place, "[transcript]\nkeep_days = 1\n");
    let mut editor = Editor::start(place.command(&["acp"]));
    let old = editor.open(json!({}), &place.path(""));
    editor.ask(&old, "say old");
    assert!(editor.close().success());
    age(&place.path("state"));
    let mut editor = Editor::start(place.command(&["acp"]));
    let new = editor.open(json!({}), &place.path(""));
    editor.ask(&new, "say new");
    assert!(editor.close().success());
    let list = place.json(&["session", "list", "--json"]);
    let ids: Vec<&str> =
        list["sessions"].as_array().unwrap().iter().filter_map(|one| one["session"].as_str()).collect();
    assert_eq!(ids, [new.as_str()]);
}

/// Otherwise a later session with the same id would find it.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_session_leaves_no_state_of_plugins() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.ask(&session, "say one");
    editor.request("session/close", json!({"sessionId": session}));
    let folder = place.path("state/tidegate/state");
    let store = DiskStore::new(folder, StoreOptions::default(), Arc::new(SystemClock)).unwrap();
    let state = store.open(&SessionId::new(session.as_str())).await.unwrap();
    let changes = vec![StateChange::Set(StateEntry::written("todo", *b"1", StateLifetime::Session, 0))];
    state.apply(&"notes".parse().unwrap(), StateBatch { changes, version: None });
    state.close(Duration::from_secs(5)).await.unwrap();
    let stored = || place.json(&["state", "list", "--json"])["sessions"].as_array().unwrap().len();
    assert_eq!(stored(), 1);
    editor.request("session/delete", json!({"sessionId": session}));
    assert_eq!(stored(), 0);
}
