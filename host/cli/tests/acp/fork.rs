//! `session/fork`: a session of its own from the end of another one's last turn.

use serde_json::{Value, json};

use super::editor::Editor;
use super::model::Model;
use super::place;

fn model_of(opened: &Value) -> &str {
    let options = opened["configOptions"].as_array().unwrap();
    options.iter().find(|one| one["id"] == "model").unwrap()["currentValue"].as_str().unwrap()
}

#[test]
fn a_fork_continues_the_conversation_with_its_model_and_changes_nothing_of_it() {
    let model = Model::start();
    let place = place(&model);
    let file = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", &file.replace("[rules]", "models = [\"claude-other\", \"claude-third\"]\n[rules]"));
    let mut editor = Editor::start(place.command(&["acp"]));
    let initialized = editor.initialize(json!({}));
    assert!(initialized["agentCapabilities"]["sessionCapabilities"]["fork"].is_object(), "{initialized}");
    let cwd = place.path("");
    let fork = |of: &str| json!({"sessionId": of, "cwd": cwd, "mcpServers": []});
    let session = editor.new_session(&cwd);
    let choose = |id: &str, value: &str| json!({"sessionId": id, "configId": "model", "value": value});
    editor.request("session/set_config_option", choose(&session, "claude-other"));
    // Nothing has happened yet: a fork is a new session with the same model.
    let empty = editor.request("session/fork", fork(&session));
    assert_eq!(model_of(&empty), "claude-other");
    editor.ask(&session, "say first");
    let forked = editor.request("session/fork", fork(&session));
    let child = forked["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(model_of(&forked), "claude-other");
    assert_eq!(editor.ask(&child, "history").1, "3 messages");
    assert_eq!(editor.ask(&child, "history").1, "5 messages");
    assert_eq!(editor.ask(&session, "history").1, "3 messages", "the fork is a session of its own");
    // A choice that no turn has used yet, and one of an earlier process.
    editor.request("session/set_config_option", choose(&session, "claude-third"));
    assert_eq!(model_of(&editor.request("session/fork", fork(&session))), "claude-third");
    assert!(editor.close().success());
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({}));
    let again = editor.request("session/fork", fork(&child));
    assert_eq!(model_of(&again), "claude-other");
    assert_eq!(editor.ask(again["sessionId"].as_str().unwrap(), "history").1, "7 messages");
    assert_eq!(editor.refused("session/fork", fork("none"))["code"], -32002);
    let requests = model.requests.lock().unwrap();
    assert!(requests.iter().all(|request| request["model"] == "claude-other"), "{requests:?}");
}

#[test]
fn a_fork_that_cannot_be_opened_is_no_session() {
    let model = Model::start();
    let place = place(&model);
    let file = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", &file.replace("[rules]", "[rules]\nrequired = [\"an-ai\"]"));
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({}));
    let cwd = place.path("");
    let session = editor.new_session(&cwd);
    editor.ask(&session, "say first");
    // The rule is required, and is gone: no session is opened without it.
    std::fs::remove_file(place.path(".tidegate/rules/an-ai.md")).unwrap();
    let refused = editor.refused("session/fork", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}));
    assert!(refused.to_string().contains("an-ai"), "{refused}");
    let listed = editor.request("session/list", json!({"cwd": cwd}));
    let ids: Vec<_> = listed["sessions"].as_array().unwrap().iter().map(|one| one["sessionId"].clone()).collect();
    assert_eq!(ids, [json!(session)]);
}
