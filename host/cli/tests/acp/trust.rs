//! Workspaces whose `tidegate.toml` is not trusted, in an editor.

use serde_json::{Value, json};

use super::editor::{Editor, Sent, shown};
use super::model::Model;
use super::place;
use crate::support::Place;

/// The user's own file has a model, and two repositories bring files of their own.
fn two_repositories(model: &Model) -> Place {
    let place = place(model);
    std::fs::create_dir_all(place.path("user/tidegate")).unwrap();
    std::fs::rename(place.path("tidegate.toml"), place.path("user/tidegate/tidegate.toml")).unwrap();
    for (name, text) in [("one", "from one"), ("two", "from two")] {
        place.write(&format!("{name}/tidegate.toml"), &format!("[prompt]\nsystem = \"{text} \u{202e}x\"\n"));
    }
    place
}

/// The program without `--trust-workspace`.
fn agent(place: &Place) -> Editor {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("acp").current_dir(place.path(""));
    for (variable, folder) in [("XDG_CACHE_HOME", "cache"), ("XDG_CONFIG_HOME", "user"), ("XDG_STATE_HOME", "state")] {
        command.env(variable, place.path(folder));
    }
    let mut editor = Editor::start(command);
    editor.initialize(json!({}));
    editor
}

/// Chooses an option of each question; `None` closes them.
fn choose(editor: &mut Editor, option: Option<&'static str>) {
    editor.answers = Box::new(move |_, _| {
        Ok(match option {
            Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option}}),
            None => json!({"outcome": {"outcome": "cancelled"}}),
        })
    });
}

/// The questions that were asked.
fn questions(editor: &Editor) -> Vec<Value> {
    let asked = editor.traffic.iter().filter_map(|sent| match sent {
        Sent::Request { method, params } if method == "session/request_permission" => Some(params.clone()),
        _ => None,
    });
    asked.collect()
}

fn system(model: &Model) -> String {
    model.requests.lock().unwrap().last().map(|request| request["system"].to_string()).unwrap_or_default()
}

#[test]
fn a_workspace_counts_when_the_user_of_the_editor_trusts_it() {
    let model = Model::start();
    let place = two_repositories(&model);
    let mut editor = agent(&place);
    choose(&mut editor, Some("trust"));
    // The prompt waits for the answer, and comes before what the session begins with.
    let session = editor.new_session(&place.path("one"));
    assert_eq!(editor.ask(&session, "say hello"), ("end_turn".into(), "hello".into()));
    assert!(system(&model).contains("from one"), "{}", system(&model));
    let [question] = questions(&editor).try_into().unwrap();
    let text = question["toolCall"].to_string();
    for part in ["tidegate.toml?", "prompt.system", "instructs the model", "from one \\\\u{202e}x"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let kinds: Vec<&str> =
        question["options"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    // Who allows everything once works without the file.
    assert_eq!(kinds, ["allow_always", "allow_once", "reject_once"]);
    // It is kept, for this process and for others, and for this workspace alone.
    let again = editor.new_session(&place.path("one"));
    editor.ask(&again, "say more");
    assert_eq!(questions(&editor).len(), 1);
    let other = editor.new_session(&place.path("two"));
    editor.ask(&other, "say other");
    assert_eq!(questions(&editor).len(), 2);
    assert!(system(&model).contains("from two"), "{}", system(&model));
    editor.ask(&session, "say still");
    assert!(system(&model).contains("from one"), "{}", system(&model));
    drop(editor);
    let mut editor = agent(&place);
    let session = editor.new_session(&place.path("one"));
    editor.ask(&session, "say hello");
    assert_eq!(questions(&editor).len(), 0);
}

#[test]
fn without_trust_nothing_runs_and_the_next_prompt_asks_again() {
    let model = Model::start();
    let place = two_repositories(&model);
    let mut editor = agent(&place);
    for (times, option) in [(1, Some("stop")), (2, None)] {
        choose(&mut editor, option);
        let session = editor.new_session(&place.path("one"));
        let id = editor.prompt(&session, "say hello");
        let refused = editor.response(id).unwrap_err();
        assert!(refused["message"].as_str().unwrap().contains("`tidegate trust`"), "{refused}");
        assert!(questions(&editor).len() >= times);
        let refused = editor.refused("session/set_mode", json!({"sessionId": session, "modeId": "approve"}));
        assert!(refused["message"].as_str().unwrap().contains("not open yet"), "{refused}");
    }
    assert_eq!(model.requests.lock().unwrap().len(), 0, "nothing was sent to a model");
    // An editor that cannot ask.
    editor.answers = super::editor::no_answers();
    let session = editor.new_session(&place.path("one"));
    let id = editor.prompt(&session, "say hello");
    assert!(editor.response(id).unwrap_err()["message"].as_str().unwrap().contains("did not answer the question"));
    // The user has changed their mind, and the session goes on.
    choose(&mut editor, Some("without"));
    assert_eq!(editor.ask(&session, "say hello"), ("end_turn".into(), "hello".into()));
    assert!(!system(&model).contains("from one"), "{}", system(&model));
    let asked = questions(&editor).len();
    let another = editor.new_session(&place.path("one"));
    editor.ask(&another, "say more");
    assert_eq!(questions(&editor).len(), asked, "it is left out as long as the process runs");
}

#[test]
fn prompts_that_wait_are_answered_in_order_and_cancelled_as_others() {
    let model = Model::start();
    let place = two_repositories(&model);
    let mut editor = agent(&place);
    editor.hold("session/request_permission");
    let session = editor.new_session(&place.path("one"));
    editor.request_of("session/request_permission");
    let waits = editor.prompt(&session, "say never");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(waits).unwrap()["stopReason"], "cancelled");
    editor.request("session/close", json!({"sessionId": session}));
    let unknown = editor.prompt(&session, "say never");
    editor.response(unknown).unwrap_err();
    assert_eq!(model.requests.lock().unwrap().len(), 0);
}

#[test]
fn a_session_of_a_workspace_that_is_not_trusted_is_loaded_after_the_question() {
    let model = Model::start();
    let place = two_repositories(&model);
    let mut editor = agent(&place);
    choose(&mut editor, Some("trust"));
    let session = editor.new_session(&place.path("one"));
    editor.ask(&session, "say hello");
    editor.request("session/close", json!({"sessionId": session}));
    drop(editor);
    place.write("one/tidegate.toml", "[prompt]\nsystem = \"changed\"\n");
    let mut editor = agent(&place);
    choose(&mut editor, Some("stop"));
    let load = json!({"sessionId": session, "cwd": place.path("one"), "mcpServers": []});
    for method in ["session/load", "session/resume"] {
        let refused = editor.refused(method, load.clone());
        assert!(refused["message"].as_str().unwrap().contains("is not trusted"), "{refused}");
    }
    let text = questions(&editor)[0]["toolCall"].to_string();
    assert!(text.contains("-   from one") && text.contains("+   changed"), "{text}");
    // Lists are read where the user's own file says.
    let listed = editor.request("session/list", json!({"cwd": place.path("one")}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    choose(&mut editor, Some("trust"));
    editor.request("session/load", load);
    assert!(shown(&editor.updates()).contains("hello"));
    editor.ask(&session, "say more");
    assert!(system(&model).contains("changed"), "{}", system(&model));
}

#[test]
fn a_file_that_cannot_be_read_refuses_sessions() {
    let model = Model::start();
    let place = two_repositories(&model);
    std::os::unix::fs::symlink("gone", place.path("one/link.toml")).unwrap();
    std::fs::rename(place.path("one/link.toml"), place.path("one/tidegate.toml")).unwrap();
    let mut editor = agent(&place);
    let refused = editor.refused("session/new", json!({"cwd": place.path("one"), "mcpServers": []}));
    assert!(refused["message"].as_str().unwrap().contains("cannot read"), "{refused}");
}
