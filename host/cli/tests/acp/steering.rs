//! Messages for the running turn.

use serde_json::{Value, json};

use super::editor::Editor;
use super::model::Model;
use super::place;

fn message(session: &str, text: &str, about: Value) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": about})
}

#[test]
fn a_command_is_not_taken_for_a_message_to_the_model() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    for is_running in [false, true] {
        if is_running {
            editor.prompt(&session, "hang");
            editor.update(|update| update["content"]["text"] == "Working ");
        }
        for (text, reason) in [
            ("/cost", "`/cost` is a command, and nothing was sent to the model: send it as a prompt"),
            ("/continue", "`/continue` is a command"),
            ("/compact", "There is no command `/compact`. The commands are"),
        ] {
            let error = editor.refused("_session/steering", message(&session, text, Value::Null));
            assert_eq!(error["code"], -32602, "{error}");
            assert!(error["message"].as_str().unwrap().starts_with(reason), "{error}");
            // A client that sends prompts instead gets the answer of the command.
            let instead = json!({"steering": {"idleBehavior": "promptRequired"}});
            let handed = editor.request("_session/steering", message(&session, text, instead));
            assert_eq!(handed, json!({"outcome": "promptRequired", "reason": "command"}));
        }
        let (stop, text) = editor.ask(&session, "/cost");
        assert!(stop == "end_turn" && text.contains("tokens"), "{stop}: {text}");
    }
    // A path and a line after a space are for the model.
    for text in ["/etc/hosts is a file", " /cost"] {
        assert_eq!(editor.request("_session/steering", message(&session, text, Value::Null))["outcome"], "injected");
    }
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(model.requests.lock().unwrap().len(), 1, "that of the turn");
}
