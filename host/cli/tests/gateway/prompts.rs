//! Text that plugins add to the prompt, in front of agents that are not ours.

use serde_json::{Value, json};

use super::conversations::text;
use super::model::Model;
use super::plain;
use super::running::Running;
use crate::support::{Place, out};

const PLUGIN: &str = r#"
id = "notes"
version = "1.0.0"
api = "0.1"
description = "Adds text."
license = "Apache-2.0 OR MIT"
[capabilities]
prompt = "tells the model how to write"
[tools]
preferred_tools = ["Bash", "absent_tool"]
[[prompt]]
position = "system_suffix"
content = "Write short sentences."
[[prompt]]
position = "user_suffix"
content = "Think first."
[prompt.when.context_match]
turn = "2.."
[[prompt]]
position = "system_prefix"
content = "For shops only."
[prompt.when.context_match]
workspace = "/srv/shop"
"#;

fn running(model: &Model, more: &str) -> (Running, Place) {
    let place = Place::new();
    place.write("notes/plugin.toml", PLUGIN);
    place
        .write("tidegate.toml", &plain(model, &format!("[[plugin]]\npath = \"notes\"\ngrants = [\"prompt\"]\n{more}")));
    (Running::start(&place), place)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn system() -> Value {
    json!([{"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}])
}

fn body(messages: &[Value]) -> Value {
    json!({"model": "m", "stream": true, "system": system(), "messages": messages,
        "tools": [{"name": "Bash", "input_schema": {}}], "metadata": {"say": "Yes."}})
}

/// Returns the request that the model got last.
fn last(model: &Model) -> Value {
    let (_, body) = model.seen().pop().unwrap();
    serde_json::from_str(&body).unwrap()
}

#[test]
fn additions_and_guidance_are_in_requests_and_stay() {
    let model = Model::start();
    let (running, place) = running(&model, "");
    let lines = [
        "plugin notes adds this text to the prompt",
        "Write short sentences.",
        "conditions on `workspace` compare the folder",
    ];
    assert!(lines.iter().all(|line| running.log_has(0, line)), "{}", running.log());
    let ask = |running: &Running, messages: &[Value]| {
        assert_eq!(text(&running.ask("POST", "/v1/messages", &[], &body(messages).to_string())), "Yes.");
        last(&model)
    };
    let added = [
        json!({"type": "text", "text": "Prefer these tools where they fit: Bash."}),
        json!({"type": "text", "text": "Write short sentences."}),
    ];
    let expected: Value = system().as_array().unwrap().iter().cloned().chain(added).collect();
    let think = json!({"type": "text", "text": "Think first."});
    let with = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}, think]});
    let mut said = vec![user("One.")];
    let first = ask(&running, &said);
    assert_eq!((&first["system"], &first["messages"]), (&expected, &json!([user("One.")])));
    said.extend([json!({"role": "assistant", "content": "Yes."}), user("Two.")]);
    let second = ask(&running, &said);
    assert_eq!(second["system"], expected);
    assert_eq!(second["messages"], json!([said[0], said[1], with("Two.")]));
    // Tokens are counted of what is sent.
    let counted =
        json!({"model": "m", "system": system(), "messages": said, "tools": [{"name": "Bash", "input_schema": {}}]});
    running.ask("POST", "/v1/messages/count_tokens", &[], &counted.to_string());
    assert_eq!((&last(&model)["system"], &last(&model)["messages"]), (&expected, &second["messages"]));
    said.extend([json!({"role": "assistant", "content": "Yes."}), user("Three.")]);
    assert_eq!(ask(&running, &said)["messages"], json!([said[0], said[1], with("Two."), said[3], with("Three.")]));
    // A title, next to a conversation with a name, has none.
    let title =
        json!({"model": "m", "stream": true, "messages": [user("A title?")], "metadata": {"say": "Yes."}}).to_string();
    running.ask("POST", "/v1/messages", &["x-claude-code-session-id: a"], &title);
    assert_eq!(model.seen().pop().unwrap().1, title);
    let doctor = out(&place.run(&["doctor"]));
    assert!(doctor.contains("gateway plugin notes: in front of other agents: conditions on `workspace`"), "{doctor}");
}

/// With its state on the disk, another process sends the same bytes.
#[test]
fn additions_are_the_same_after_a_restart() {
    let model = Model::start();
    let (before, place) = running(&model, "[state]\nbackend = \"disk\"\nfolder = \"state\"\n");
    let mut said = vec![user("One."), json!({"role": "assistant", "content": "Yes."}), user("Two.")];
    before.ask("POST", "/v1/messages", &[], &body(&said[..1]).to_string());
    before.ask("POST", "/v1/messages", &[], &body(&said).to_string());
    let sent = last(&model);
    assert!(sent["messages"].to_string().contains("Think first."), "{sent}");
    drop(before);
    let after = Running::start(&place);
    said.extend([json!({"role": "assistant", "content": "Yes."}), user("Three.")]);
    after.ask("POST", "/v1/messages", &[], &body(&said).to_string());
    let again = last(&model);
    assert_eq!(again["system"], sent["system"]);
    assert_eq!(again["messages"].as_array().unwrap()[..3], sent["messages"].as_array().unwrap()[..]);
}

/// The log has each notice once, whatever becomes of the request.
#[test]
fn an_addition_without_a_place_is_reported() {
    let model = Model::start();
    let (running, _place) = running(&model, "");
    let mut body = body(&[user("One.")]);
    body["system"] = json!(5);
    for target in ["/v1/messages", "/v1/messages?do=failure", "/v1/messages/count_tokens"] {
        let from = running.log().len();
        running.ask("POST", target, &[], &body.to_string());
        let words = "what plugins add to the instructions is left out";
        assert!(running.log_has(from, words), "{target}: {}", &running.log()[from..]);
        running.ask("GET", "/healthz", &[], "");
        assert_eq!(running.log()[from..].matches(words).count(), 1, "{target}: {}", &running.log()[from..]);
    }
}
