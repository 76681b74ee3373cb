//! The plan that the model shows with its tool `plan`.

use serde_json::{Value, json};

use super::editor::Editor;
use super::model::Model;
use super::place;

fn plans(updates: &[Value]) -> Vec<&Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == "plan").map(|update| &update["entries"]).collect()
}

#[test]
fn a_plan_is_an_update_and_is_shown_again_when_the_session_is_loaded() {
    let model = Model::start();
    let place = place(&model);
    let mut editor = Editor::start(place.command(&["acp"]));
    let session = editor.open(json!({}), &place.path(""));
    let call = |entries: Value| format!("call plan {}", json!({"entries": entries}));
    let entry = |content: &str, status: &str| json!({"content": content, "status": status});
    let ask = |editor: &mut Editor, prompt: &str| {
        let id = editor.prompt(&session, prompt);
        editor.response(id).unwrap();
        editor.updates()
    };
    editor.updates();
    ask(&mut editor, &call(json!([entry("Read the code", "in_progress"), entry("Change it", "pending")])));
    let updates =
        ask(&mut editor, &call(json!([entry("Read the code", "completed"), entry("Change  it", "in_progress")])));
    let shown = json!([
        {"content": "Read the code", "priority": "medium", "status": "completed"},
        {"content": "Change it", "priority": "medium", "status": "in_progress"},
    ]);
    assert_eq!(plans(&updates), [&shown]);
    let sent = model.requests.lock().unwrap().last().unwrap().to_string();
    assert!(sent.contains("the user sees the plan: 2 steps, 1 completed"), "{sent}");
    // A call that fails shows no plan, and the model learns why.
    let updates = ask(&mut editor, &call(json!([entry("", "pending")])));
    assert!(plans(&updates).is_empty(), "{updates:?}");
    let sent = model.requests.lock().unwrap().last().unwrap().to_string();
    assert!(sent.contains("entry 1 has no content"), "{sent}");
    editor.request("session/close", json!({"sessionId": session}));
    editor.updates();
    editor.request("session/load", json!({"sessionId": session, "cwd": place.path(""), "mcpServers": []}));
    assert_eq!(plans(&editor.updates()), [&shown]);
    let updates = ask(&mut editor, &call(json!([])));
    assert_eq!(plans(&updates), [&json!([])]);
}
