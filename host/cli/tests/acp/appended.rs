//! What a person reads in a client that appends the text of all messages to one another, as most do.

use std::process::Command;

use serde_json::{Value, json};
use tidegate_servers::{ensure_editors_js, node_of};

use super::clients::ends;
use super::editor::Editor;
use super::model::Model;
use super::place;

const RETRIED: &str = "attempts say I call this as an AI language model and more | say A clean answer instead.";

/// The text of messages as such a client shows it.
fn shown(updates: &[Value]) -> String {
    let chunks = updates.iter().filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[test]
fn text_that_a_rule_retracted_is_named_in_a_line_of_its_own() {
    let model = Model::start();
    let place = place(&model);
    let long = "a word of it ".repeat(10);
    let mut editor = Editor::start(place.command(&["acp"]));
    editor.open(json!({}), &place.path(""));
    for (prompt, expected) in [
        (
            RETRIED.to_owned(),
            "I call this \n\n[Retracted by the rule `an-ai`: `I call this`]\n\nA clean answer instead.".to_owned(),
        ),
        ("attempts say As an AI language model. | say Clean.".to_owned(), "Clean.".to_owned()),
        (
            "attempts say See:\n```rust\nfn f() as an AI | say Clean.".to_owned(),
            "See:\n```rust\nfn f() \n```\n\n[Retracted by the rule `an-ai`: `See: '''rust fn f()`]\n\nClean."
                .to_owned(),
        ),
        (
            format!("attempts say {long}as an AI | say Clean."),
            format!(
                "{long}\n\n[Retracted by the rule `an-ai`: all from `a word of it a word of it a word of it a…` on]\n\nClean."
            ),
        ),
    ] {
        let session = editor.new_session(&place.path(""));
        editor.updates();
        let id = editor.prompt(&session, &prompt);
        assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
        assert_eq!(shown(&editor.updates()), expected);
    }
}

#[test]
fn a_client_that_takes_text_back_gets_no_line_about_it() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({"_meta": {"tidegate/retracted": true}}), &place.path(""));
    let id = editor.prompt(&session, RETRIED);
    editor.response(id).unwrap();
    let updates = editor.updates();
    assert_eq!(shown(&updates), "I call this A clean answer instead.");
    assert!(updates.iter().any(|update| update["_meta"]["tidegate/retracted"]["keptBytes"] == 0), "{updates:?}");
}

#[test]
fn acpx_prints_a_line_about_it() {
    let (model, folder) = (Model::start(), ensure_editors_js().unwrap());
    let place = place(&model);
    let mut client = Command::new(node_of(&folder));
    let agent = format!("{} acp --trust-workspace", env!("CARGO_BIN_EXE_tidegate"));
    client.arg(folder.join("node_modules/acpx/dist/cli.js")).args(["--agent", &agent, "exec", RETRIED]);
    let output = String::from_utf8(ends(&place, client, 0).stdout).unwrap();
    let expected = "\nI call this \n\n[Retracted by the rule `an-ai`: `I call this`]\n\nA clean answer instead.\n";
    assert!(output.contains(expected), "{output}");
}

/// What a question about a call shows: its kind, and its content, each part as a kind and a text.
fn question(prompt: &str) -> (String, Vec<(String, Value)>) {
    let model = Model::start();
    let place = place(&model);
    place.write("same.txt", "one");
    place.write("Makefile", "all:\n");
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    let (asked, questions) = std::sync::mpsc::channel();
    editor.answers = Box::new(move |_, params| {
        asked.send(params["toolCall"].clone()).unwrap();
        Ok(json!({"outcome": {"outcome": "selected", "optionId": "allow"}}))
    });
    let id = editor.prompt(&session, prompt);
    editor.response(id).unwrap();
    let Ok(call) = questions.try_recv() else { return (String::new(), Vec::new()) };
    let part = |one: &Value| match one["type"].as_str() {
        Some("diff") => ("diff".to_owned(), one.as_object().unwrap().get("oldText").unwrap().clone()),
        _ => ("text".to_owned(), one["content"]["text"].clone()),
    };
    (call["kind"].as_str().unwrap().to_owned(), call["content"].as_array().unwrap().iter().map(part).collect())
}

#[test]
fn a_question_shows_all_that_it_is_about_in_its_content() {
    let text = |text: &str| ("text".to_owned(), json!(text));
    let diff = |old: Value| ("diff".to_owned(), old);
    for (prompt, kind, content) in [
        // A client that looks for the field shows no content without it.
        ("write new.txt one", "edit", vec![diff(Value::Null), text("creates the file `new.txt`")]),
        ("write same.txt two", "edit", vec![diff(json!("one")), text("changes the file `same.txt`")]),
        // A person has to know why, and a client that shows the diffs of an edit alone would not say it.
        (
            "write Makefile one",
            "other",
            vec![
                diff(json!("all:\n")),
                text("changes the file `Makefile`"),
                text(
                    "`Makefile` is executed by a build, or names what is; only a permission that names it allows it unasked, such as \
                     \"write_file(Makefile)\" = \"allow\"",
                ),
            ],
        ),
        ("write same.txt one", "", vec![]),
    ] {
        assert_eq!(question(prompt), (kind.to_owned(), content), "{prompt}");
    }
}
