//! The changes of a state, applied to the state before, give the state.

use serde_json::{Value, json};
use tidegate_chat::ChatState;

use super::support::{state, take};

/// Applies changes as a front end in another language does.
fn apply(to: &mut Value, changes: &Value) {
    for (key, change) in changes.as_object().unwrap() {
        match key.as_str() {
            "messages" => messages(&mut to["messages"], change),
            "children" => children(&mut to["children"], change),
            "streaming" => streaming(&mut to["streaming"], change),
            _ => to[key] = change.clone(),
        }
    }
}

fn messages(places: &mut Value, changes: &Value) {
    let places = places.as_array_mut().unwrap();
    if let Some(len) = changes["len"].as_u64() {
        places.resize(usize::try_from(len).unwrap(), Value::Null);
    }
    let place = |entry: &Value| usize::try_from(entry[0].as_u64().unwrap()).unwrap();
    for entry in changes["set"].as_array().into_iter().flatten() {
        places[place(entry)] = entry[1].clone();
    }
    for entry in changes["grown"].as_array().into_iter().flatten() {
        let block = places[place(entry)]["blocks"].as_array_mut().unwrap().last_mut().unwrap();
        block["text"] = json!(format!("{}{}", block["text"].as_str().unwrap(), entry[1].as_str().unwrap()));
    }
}

fn children(known: &mut Value, changes: &Value) {
    let before = known.clone();
    let child = |change: &Value| {
        let same = before.as_array().unwrap().iter().find(|one| one["thread"] == change["thread"]);
        let mut child = same.cloned().unwrap_or_else(|| json!({"thread": change["thread"], "messages": []}));
        messages(&mut child["messages"], change);
        child
    };
    *known = changes.as_array().unwrap().iter().map(child).collect();
}

fn streaming(text: &mut Value, changes: &Value) {
    for key in ["active", "text", "reasoning"] {
        if let Some(value) = changes.get(key) {
            text[key] = value.clone();
        }
    }
    for key in ["text", "reasoning"] {
        if let Some(more) = changes.get(format!("{key}_more")) {
            text[key] = json!(format!("{}{}", text[key].as_str().unwrap(), more.as_str().unwrap()));
        }
    }
}

/// The state with what is not shown left out.
fn shown(mut state: Value) -> Value {
    let is_shown = |message: &Value| !message.is_null();
    state["messages"].as_array_mut().unwrap().retain(is_shown);
    for child in state["children"].as_array_mut().unwrap() {
        child["messages"].as_array_mut().unwrap().retain(is_shown);
    }
    state
}

#[test]
fn changes_give_the_state_after_each_line() {
    let mut lines = 0;
    for (name, mut case) in super::corpus::sessions() {
        if let Some(options) = case.options.as_object_mut() {
            options.remove("transform");
        }
        for mode in ["at_end", "message", "block", "streaming"] {
            case.options["render_mode"] = mode.into();
            let mut chat = case.chat();
            let mut before: ChatState = chat.snapshot();
            let mut mirror = state(&before);
            for (number, input) in &case.lines {
                let _taken = take(&mut chat, &case.options, input);
                let after = chat.snapshot();
                let changes = after.changes_since(&before);
                let as_json = serde_json::to_value(&changes).unwrap();
                assert_eq!(changes.is_none(), as_json == json!({}), "{name}:{number}: {as_json}");
                apply(&mut mirror, &as_json);
                assert_eq!(shown(mirror.clone()), state(&after), "{name}:{number} {mode}: {as_json}");
                before = after;
                lines += 1;
            }
        }
    }
    assert!(lines > 1_000, "{lines}");
}

#[test]
fn a_delta_is_a_change_of_its_own_size() {
    use flow::EventKind;
    let mut chat = tidegate_chat::ChatSession::default();
    let delta = |seq: u64| {
        super::support::event(seq, EventKind::CognitionOutDelta { text: "word ".into(), index: 0, is_final: false })
    };
    let mut before = chat.snapshot();
    for seq in 0..5_000 {
        let _changed = chat.process(&delta(seq));
        let after = chat.snapshot();
        let changes = serde_json::to_string(&after.changes_since(&before)).unwrap();
        assert!(changes.len() < 300, "{changes}");
        if seq > 0 {
            assert_eq!(changes, r#"{"messages":{"grown":[[0,"word "]]},"streaming":{"text_more":"word "}}"#);
        }
        before = after;
    }
}
