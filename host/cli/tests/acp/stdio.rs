//! Methods of the protocol, and the errors that peers make with them.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::{Value, json};

use super::editor::{Editor, Sent, shown};
use super::model::Model;
use super::place;
use crate::support::{Place, code, err, out};

fn kinds(updates: &[Value]) -> Vec<&str> {
    updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect()
}

#[test]
fn a_prompt_is_answered_when_all_of_its_updates_were_sent() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let initialized = editor.initialize(json!({}));
    assert_eq!(initialized["protocolVersion"], 1);
    assert_eq!(initialized["agentInfo"]["name"], "tidegate");
    assert_eq!(initialized["agentCapabilities"]["loadSession"], true);
    assert_eq!(initialized["_meta"]["steering"]["supported"], true);
    let session = editor.new_session(&place.path(""));
    assert_eq!(editor.ask(&session, "say Good morning"), ("end_turn".into(), "Good morning".into()));
    let (stop, text) = editor.ask(&session, "think Good evening");
    assert_eq!((stop.as_str(), text.as_str()), ("end_turn", "Good evening"));
    assert!(editor.close().success());
}

#[test]
fn the_live_prompt_is_not_repeated_and_reasoning_and_usage_are_sent() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    let id = editor.prompt(&session, "think Yes");
    editor.response(id).unwrap();
    let updates = editor.updates();
    let kinds = kinds(&updates);
    assert!(!kinds.contains(&"user_message_chunk"), "{kinds:?}");
    for kind in ["available_commands_update", "agent_thought_chunk", "agent_message_chunk", "usage_update"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
}

#[test]
fn a_cancel_in_flight_answers_cancelled_and_the_session_goes_on() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    // When nothing runs, a cancel changes nothing.
    editor.notify("session/cancel", json!({"sessionId": session}));
    let first = editor.prompt(&session, "hang");
    let second = editor.prompt(&session, "say Never");
    editor.update(|update| update["sessionUpdate"] == "agent_message_chunk");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(first).unwrap()["stopReason"], "cancelled");
    assert_eq!(editor.response(second).unwrap()["stopReason"], "cancelled");
    assert_eq!(editor.ask(&session, "say Here"), ("end_turn".into(), "Here".into()));
}

#[test]
fn a_session_is_opened_right_behind_the_initialization() {
    let model = Model::start();
    let place = place(&model);
    for _ in 0..5 {
        let mut editor = Editor::start(place.command(&["acp"]));
        let initialize = json!({"protocolVersion": 1, "clientCapabilities": {}});
        let new = json!({"cwd": place.path(""), "mcpServers": []});
        let [first, second] = editor.send_together([("initialize", initialize), ("session/new", new)]);
        assert_eq!(editor.response(first).unwrap()["protocolVersion"], 1);
        assert!(editor.response(second).unwrap()["sessionId"].is_string());
    }
}

#[test]
fn a_second_prompt_waits_for_the_first_and_both_are_answered_in_order() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    let ids: Vec<u64> = ["say one", "say two", "say three"].map(|text| editor.prompt(&session, text)).to_vec();
    for id in ids {
        assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    }
    assert_eq!(shown(&editor.updates()), "onetwothree");
}

#[test]
fn a_command_that_is_none_or_has_arguments_is_not_sent_to_the_model() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    for (prompt, answer) in [
        ("/rules", "- `an-ai`: matched 0 times"),
        ("/rulse", "There is no command `/rulse`. The commands are `/plugins`, `/rules`"),
        ("/rules all", "The command `/rules` takes no arguments. Nothing was sent"),
    ] {
        let (stop, text) = editor.ask(&session, prompt);
        assert!(stop == "end_turn" && text.starts_with(answer), "{prompt}: {text}");
    }
    assert_eq!(model.requests.lock().unwrap().len(), 0);
    for text in ["/etc/hosts is a file", " /rules all", "/"] {
        assert_eq!(editor.ask(&session, text), ("end_turn".into(), format!("Unknown: {}", text.trim())));
    }
}

#[test]
fn what_a_rule_stopped_is_retracted_and_each_attempt_has_its_own_message() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({"session": {"notices": {}}}), &place.path(""));
    let id = editor.prompt(&session, "forbidden");
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    let updates = editor.updates();
    let text = shown(&updates);
    assert!(text.starts_with("Well") && text.ends_with("Corrected.") && !text.contains("language model"), "{text}");
    let retracted = updates.iter().find_map(|update| update["_meta"].get("tidegate/retracted")).unwrap();
    assert_eq!(retracted["rule"], "an-ai");
    let messages: Vec<&Value> = updates.iter().filter_map(|update| update.get("messageId")).collect();
    assert_eq!(messages.first(), Some(&&retracted["messageId"]), "{updates:?}");
    assert_ne!(messages.last(), messages.first());
    assert!(kinds(&updates).contains(&"notice"));
}

#[test]
fn a_call_is_allowed_or_rejected_by_the_user() {
    let model = Model::start();
    let place = place(&model);
    for (option, status, written) in [("allow", "completed", true), ("reject", "failed", false)] {
        let mut editor = Editor::start(place.command(&["acp"]));
        let session = editor.open(json!({}), &place.path(""));
        editor.answers = Box::new(move |method, params| {
            assert_eq!(method, "session/request_permission");
            assert!(params["options"].as_array().unwrap().iter().any(|one| one["optionId"] == option), "{params}");
            Ok(json!({"outcome": {"outcome": "selected", "optionId": option}}))
        });
        let file = place.path(&format!("{option}.txt"));
        let id = editor.prompt(&session, &format!("write {option}.txt content"));
        assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
        let updates = editor.updates();
        let call = updates.iter().find(|update| update["sessionUpdate"] == "tool_call").unwrap();
        assert_eq!((call["kind"].as_str(), call["name"].as_str()), (Some("edit"), Some("write_file")));
        assert_eq!(
            call["locations"][0]["path"],
            json!(place.path("").canonicalize().unwrap().join(format!("{option}.txt")))
        );
        let last = updates.iter().rfind(|update| update["sessionUpdate"] == "tool_call_update").unwrap();
        assert_eq!((&last["toolCallId"], &last["status"]), (&call["toolCallId"], &json!(status)), "{last}");
        assert_eq!(file.exists(), written);
    }
}

#[test]
fn a_pattern_is_allowed_for_the_session() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    let asked = Rc::new(RefCell::new(0));
    let count = Rc::clone(&asked);
    editor.answers = Box::new(move |_, params| {
        *count.borrow_mut() += 1;
        let always = params["options"].as_array().unwrap().iter().find(|one| one["kind"] == "allow_always").unwrap();
        Ok(json!({"outcome": {"outcome": "selected", "optionId": always["optionId"]}}))
    });
    for text in ["one", "two"] {
        editor.ask(&session, &format!("write same.txt {text}"));
        assert_eq!(std::fs::read_to_string(place.path("same.txt")).unwrap(), text);
    }
    assert_eq!(*asked.borrow(), 1);
}

#[test]
fn commands_run_in_the_terminals_of_the_client() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp", "--permission", "shell=allow"]));
    let session = editor.open(json!({"terminal": true}), &place.path(""));
    let calls = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&calls);
    editor.answers = Box::new(move |method, params| {
        seen.borrow_mut().push((method.to_owned(), params.clone()));
        Ok(match method {
            "terminal/create" => json!({"terminalId": "t1"}),
            "terminal/wait_for_exit" => json!({"exitCode": 3}),
            "terminal/output" => json!({"output": "from the terminal\n", "truncated": false}),
            _ => json!({}),
        })
    });
    let id = editor.prompt(&session, "run echo hello");
    editor.response(id).unwrap();
    let updates = editor.updates();
    assert_eq!(shown(&updates), "Result: from the terminal\n[exit code 3]");
    let of_call = |update: &&Value| update["sessionUpdate"] == "tool_call_update";
    let contents = updates.iter().filter(of_call).filter_map(|update| update["content"].as_array());
    let contents: Vec<&Vec<Value>> = contents.collect();
    assert!(!contents.is_empty());
    for content in contents {
        assert_eq!(content[..], [json!({"type": "terminal", "terminalId": "t1"})]);
    }
    let methods: Vec<String> = calls.borrow().iter().map(|(method, _)| method.clone()).collect();
    assert_eq!(methods, ["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"]);
    let create = calls.borrow()[0].1.clone();
    assert_eq!((&create["command"], &create["args"][3]), (&json!("sh"), &json!("echo hello")));
}

/// The client starts the command as it is asked to, with all that it has in its own environment.
#[test]
fn a_command_in_a_terminal_gets_the_short_list_of_variables() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp", "--permission", "shell=allow"]));
    let session = editor.open(json!({"terminal": true}), &place.path(""));
    let output = RefCell::new(String::new());
    editor.answers = Box::new(move |method, params| {
        if method == "terminal/create" {
            let mut command = std::process::Command::new(params["command"].as_str().unwrap());
            command.args(params["args"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()));
            command.envs([("EDITOR_WEB_HOOK", "https://hooks.example/x"), ("LANG", "C.UTF-8"), ("TERM", "xterm")]);
            for variable in params["env"].as_array().unwrap() {
                command.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
            }
            *output.borrow_mut() = String::from_utf8(command.output().unwrap().stdout).unwrap();
        }
        Ok(match method {
            "terminal/create" => json!({"terminalId": "t1"}),
            "terminal/wait_for_exit" => json!({"exitCode": 0}),
            "terminal/output" => json!({"output": *output.borrow(), "truncated": false}),
            _ => json!({}),
        })
    });
    let id = editor.prompt(&session, "run env");
    editor.response(id).unwrap();
    let said = shown(&editor.updates());
    for kept in ["LANG=C.UTF-8\n", "TERM=dumb\n", "GIT_TERMINAL_PROMPT=0\n", "PATH="] {
        assert!(said.contains(kept), "{kept} is not in {said}");
    }
    assert!(!said.contains("EDITOR_WEB_HOOK") && !said.contains("TIDEGATE"), "{said}");
}

#[test]
fn a_cancel_stops_the_command_of_a_terminal() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp", "--permission", "shell=allow"]));
    let session = editor.open(json!({"terminal": true}), &place.path(""));
    let id = editor.prompt(&session, "run sleep 1000");
    editor.hold("terminal/wait_for_exit");
    editor.answers =
        Box::new(|method, _| Ok(if method == "terminal/create" { json!({"terminalId": "t1"}) } else { json!({}) }));
    editor.request_of("terminal/wait_for_exit");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(id).unwrap()["stopReason"], "cancelled");
    editor.request_of("terminal/kill");
    editor.request_of("terminal/release");
    let last = editor.updates().into_iter().rfind(|update| update["sessionUpdate"] == "tool_call_update").unwrap();
    assert_eq!(last["status"], "failed");
}

#[test]
fn what_the_host_cannot_use_is_reported() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({"session": {"notices": {}}}));
    let server = json!({"name": "one", "command": "/bin/true", "args": [], "env": []});
    editor.request("session/new", json!({"cwd": place.path(""), "mcpServers": [server]}));
    let notice = editor.update(|update| update["sessionUpdate"] == "notice");
    assert!(notice["title"].as_str().unwrap().contains("MCP"), "{notice}");
}

#[test]
fn a_host_that_cannot_be_opened_refuses_sessions_and_not_the_connection() {
    let model = Model::start();
    let place = place(&model);
    let settings = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place
        .write("tidegate.toml", &settings.replace("api_key_env = \"\"", "api_key_env = \"TIDEGATE_TEST_NO_SUCH_KEY\""));
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.initialize(json!({}));
    let error = editor.refused("session/new", json!({"cwd": place.path(""), "mcpServers": []}));
    assert_eq!(error["code"], -32000, "{error}");
    assert!(error["message"].as_str().unwrap().contains("TIDEGATE_TEST_NO_SUCH_KEY"), "{error}");
    place.write("tidegate.toml", "[provider]\nkindd = \"anthropic\"\n");
    let error = editor.refused("session/new", json!({"cwd": place.path(""), "mcpServers": []}));
    assert_eq!(error["code"], -32603, "{error}");
    place.write("tidegate.toml", &settings);
    let session = editor.new_session(&place.path(""));
    assert_eq!(editor.ask(&session, "say Now").1, "Now");
}

#[test]
fn sessions_of_several_folders_run_at_once_each_with_its_own_settings() {
    let (one, two) = (Model::start(), Model::start());
    let (first, second) = (place(&one), place(&two));
    let mut editor = Editor::start(first.command(&["acp"]));
    let a = editor.open(json!({}), &first.path(""));
    let b = editor.new_session(&second.path(""));
    let hanging = editor.prompt(&a, "hang");
    editor.update(|update| update["sessionUpdate"] == "agent_message_chunk");
    assert_eq!(editor.ask(&b, "say While").1, "While");
    editor.notify("session/cancel", json!({"sessionId": a}));
    assert_eq!(editor.response(hanging).unwrap()["stopReason"], "cancelled");
    assert_eq!((one.requests.lock().unwrap().len(), two.requests.lock().unwrap().len()), (1, 1));
}

#[test]
fn hidden_messages_stay_with_the_model() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.ask(&session, "forbidden");
    editor.request("session/close", json!({"sessionId": session}));
    editor.request("session/load", json!({"sessionId": session, "cwd": place.path(""), "mcpServers": []}));
    let sent = model.requests.lock().unwrap().last().unwrap().to_string();
    assert!(sent.contains("Answer the question."), "the model got the reminder: {sent}");
    let all = format!("{:?}", editor.traffic);
    assert!(!all.contains("Answer the question.") && !all.contains("system-interrupt"), "{all}");
    let replayed = shown(&editor.updates());
    assert!(replayed.ends_with("Corrected.") && !replayed.contains("language model"), "{replayed}");
}

/// A line that is no UTF-8 is an error of that line, and nothing else ends for it.
#[test]
fn a_line_that_is_not_utf_8_is_refused() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    editor.write_line(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"session/new\",\"params\":{\"cwd\":\"/tmp/caf\xe9\",\"mcpServers\":[]}}");
    assert_eq!(editor.ask(&session, "say Here"), ("end_turn".into(), "Here".into()));
    let refused = |sent: &Sent| matches!(sent, Sent::Failure { error } if error["code"] == -32700);
    assert!(editor.traffic.iter().any(refused), "{:?}", editor.traffic);
    assert!(editor.close().success());
}

#[test]
fn a_blank_line_is_no_message_and_a_cursor_that_nobody_has_given_is_an_error() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.write_line(b"");
    let session = editor.open(json!({}), &place.path(""));
    editor.write_line(b" \r\n\t");
    assert_eq!(editor.ask(&session, "say Here"), ("end_turn".into(), "Here".into()));
    let is_failure = |sent: &&Sent| matches!(sent, Sent::Failure { .. });
    assert!(!editor.traffic.iter().any(|sent| is_failure(&sent)), "{:?}", editor.traffic);
    let error = editor.refused("session/list", json!({"cwd": place.path(""), "cursor": "2"}));
    assert_eq!(error["code"], -32602, "{error}");
}

#[test]
fn no_folder_is_chosen_for_all_sessions() {
    let place = Place::new();
    let help = out(&place.run(&["acp", "--help"]));
    assert!(help.contains("--config") && !help.contains("--workspace"), "{help}");
    for arguments in [["acp", "--workspace", "other"], ["--workspace", "other", "acp"]] {
        let output = place.run(&arguments);
        assert!(code(&output) == 2 && err(&output).contains("names a folder for each session"), "{output:?}");
    }
    assert!(place.run(&["acp", "--workspace", "."]).status.success(), "the default is nobody's choice");
}
