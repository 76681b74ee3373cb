//! Dialogs that are decided elsewhere, commands of child agents, and notices to the user.

use serde_json::json;

use super::editor::Editor;
use super::model::Model;
use super::{place, set};

#[test]
fn a_question_that_times_out_closes_its_dialog() {
    let model = Model::start();
    let place = place(&model);
    set(&place, "[tools.question]\ntimeout_ms = 50\non_timeout = \"deny\"\n");
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.hold("session/request_permission");
    let id = editor.prompt(&session, "write a.txt one");
    editor.request_of("session/request_permission");
    editor.notification_of("$/cancel_request");
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    assert!(!place.path("a.txt").exists());
}

#[test]
fn a_limit_that_is_decided_elsewhere_closes_its_dialog() {
    let model = Model::start();
    let place = place(&model);
    place.write(".tidegate/thread_limits.toml", "schema_version = \"1.0.0\"\n[limits]\nsteps = 1\n");
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.ask(&session, "say first");
    editor.hold("session/request_permission");
    let id = editor.prompt(&session, "say second");
    editor.request_of("session/request_permission");
    let output = place.run(&["session", "approve", &session]);
    assert!(output.status.success(), "{output:?}");
    editor.notification_of("$/cancel_request");
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    let ended =
        |update: &serde_json::Value| update["sessionUpdate"] == "tool_call_update" && update["status"] == "completed";
    assert!(editor.updates().iter().any(ended));
}

#[test]
fn a_dialog_about_a_limit_that_the_user_closes_leaves_the_limit_and_ends_the_turn() {
    let model = Model::start();
    let place = place(&model);
    place.write(".tidegate/thread_limits.toml", "schema_version = \"1.0.0\"\n[limits]\nsteps = 1\n");
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.ask(&session, "say first");
    editor.answers = Box::new(|_, _| Ok(json!({"outcome": {"outcome": "cancelled"}})));
    let id = editor.prompt(&session, "say second");
    let error = editor.response(id).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("steps"), "{error}");
    let updates = editor.updates();
    let entry = updates.iter().rfind(|update| update["sessionUpdate"] == "tool_call_update").unwrap();
    assert_eq!(entry["status"], "failed");
    assert!(entry.to_string().contains("the user closed the question"), "{entry}");
    // The response says how the turn ended, and nothing else does.
    let said = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    assert_eq!(said.count(), 0, "{updates:?}");
}

#[test]
fn a_command_of_an_agent_has_its_own_entry_with_its_terminal() {
    let model = Model::start();
    let place = place(&model);
    place.write(".tidegate/agents/helper.md", "---\ndescription: Runs commands.\n---\nYou help.\n");
    let mut editor = Editor::start(place.command(&["acp", "--permission", "shell=allow"]));
    let session = editor.open(json!({"terminal": true}), &place.path(""));
    editor.answers = Box::new(move |method, _| {
        Ok(match method {
            "terminal/create" => json!({"terminalId": "t1"}),
            "terminal/wait_for_exit" => json!({"exitCode": 0}),
            "terminal/output" => json!({"output": "from the agent", "truncated": false}),
            _ => json!({}),
        })
    });
    let id = editor.prompt(&session, "spawn helper run echo hello");
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    let updates = editor.updates();
    let calls: Vec<_> = updates.iter().filter(|update| update["sessionUpdate"] == "tool_call").collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    let (own, command) = (calls[0]["toolCallId"].as_str().unwrap(), calls[1]["toolCallId"].as_str().unwrap());
    assert_eq!(
        (calls[1]["title"].as_str(), calls[1]["content"][0]["terminalId"].as_str()),
        (Some("`echo hello`"), Some("t1"))
    );
    let of = |id: &str| updates.iter().rfind(|update| update["toolCallId"] == *id).unwrap();
    assert_eq!((&of(own)["status"], &of(command)["status"]), (&json!("completed"), &json!("completed")));
    // The terminal is not in the call that has started the agent.
    let is_own = |update: &&serde_json::Value| update["toolCallId"] == *own;
    assert!(!updates.iter().filter(is_own).any(|update| update.to_string().contains("\"t1\"")), "{updates:?}");
}

#[test]
fn warnings_are_thoughts_where_the_client_has_no_notices() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({}));
    let server = json!({"name": "one", "command": "/bin/true", "args": [], "env": []});
    editor.request("session/new", json!({"cwd": place.path(""), "mcpServers": [server]}));
    let thought = editor.update(|update| update["sessionUpdate"] == "agent_thought_chunk");
    assert!(thought["content"]["text"].as_str().unwrap().starts_with("warning: The MCP servers"), "{thought}");
    assert_eq!(thought["_meta"]["tidegate/notice"]["severity"], "warning");
}

#[test]
fn a_turn_that_no_prompt_has_asked_for_reports_how_it_fails() {
    let model = Model::start();
    let place = place(&model);
    set(&place, "[turn]\nmax_steps = 1\n");
    let mut editor = Editor::start(place.command(&["acp", "--permission", "write_file=allow"]));
    let session = editor.open(json!({}), &place.path(""));
    let steered = json!({"sessionId": session, "prompt": [{"type": "text", "text": "write a.txt one"}]});
    assert_eq!(editor.request("_session/steering", steered)["outcome"], "startedNewTurn");
    let message = editor.update(|update| update["sessionUpdate"] == "agent_message_chunk");
    assert!(message["content"]["text"].as_str().unwrap().contains("limit of 1 steps"), "{message}");
    // A prompt has it in its response, and in one message.
    let session = editor.new_session(&place.path(""));
    let id = editor.prompt(&session, "write b.txt one");
    assert_eq!(editor.response(id).unwrap()["stopReason"], "max_turn_requests");
    let updates = editor.updates();
    let said = updates.iter().filter(|update| update.to_string().contains("limit of 1 steps"));
    assert_eq!(said.count(), 1, "{updates:?}");
}
