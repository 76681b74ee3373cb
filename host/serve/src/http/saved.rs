//! The state of a chat for a reader in another process: only what was shown.

use chat::SavedChat;
use serde_json::{Map, Value};

/// Returns the state without what the shown stream does not have: arguments of calls that neither ran nor were asked about, the output of calls
/// that did not run, which can quote what a rule has found, and the notes of extensions.
pub(super) fn shown(saved: &SavedChat) -> Value {
    let mut value = serde_json::to_value(saved).unwrap_or_default();
    without(&mut value);
    value
}

/// What people, models and tools wrote is in strings, so that the names of fields are those of the state.
fn without(value: &mut Value) {
    match value {
        Value::Array(all) => {
            // The event of its start, or of its question, brings it.
            all.retain(|one| !one.as_object().is_some_and(|fields| is_call(fields) && status(fields) == "proposed"));
            all.iter_mut().for_each(without);
        }
        Value::Object(fields) if is_call(fields) => of_call(fields),
        Value::Object(fields) => {
            if fields.contains_key("blocks") {
                fields.remove("notes");
            }
            fields.values_mut().for_each(without);
        }
        _ => {}
    }
}

fn of_call(fields: &mut Map<String, Value>) {
    let has_run = fields.contains_key("duration_ms") || fields.contains_key("started_ms");
    let was_asked = fields.contains_key("waited_ms");
    if matches!(status(fields), "not_run" | "cancelled") && !has_run {
        fields.remove("output");
        fields.remove("summary");
        if !was_asked {
            fields.insert("arguments".to_owned(), "{}".into());
        }
    }
}

fn is_call(fields: &Map<String, Value>) -> bool {
    ["call", "tool", "status"].iter().all(|key| fields.contains_key(*key))
}

fn status(fields: &Map<String, Value>) -> &str {
    fields.get("status").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_has_nothing_of_calls_that_were_not_shown() {
        let call = |status: &str, more: Value| {
            let mut call = json!({"call": "c", "tool": "t", "status": status, "arguments": "held"});
            call.as_object_mut()
                .into_iter()
                .for_each(|call| call.extend(more.as_object().cloned().unwrap_or_default()));
            call
        };
        for (given, expected) in [
            (call("proposed", json!({})), json!([])),
            (
                call("not_run", json!({"output": "held", "summary": "held"})),
                json!([{"call": "c", "tool": "t", "status": "not_run", "arguments": "{}"}]),
            ),
            (
                call("not_run", json!({"output": "held", "waited_ms": 1})),
                json!([{"call": "c", "tool": "t", "status": "not_run", "arguments": "held", "waited_ms": 1}]),
            ),
            (
                call("done", json!({"output": "o", "duration_ms": 1})),
                json!([call("done", json!({"output": "o", "duration_ms": 1}))]),
            ),
        ] {
            let mut state = json!({"log": {"messages": [{"blocks": [], "notes": ["held"], "calls": [given]}]}});
            without(&mut state);
            assert_eq!(state, json!({"log": {"messages": [{"blocks": [], "calls": expected}]}}));
        }
    }
}
