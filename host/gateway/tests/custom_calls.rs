//! Calls whose input is no JSON, such as a patch or a command: rules watch it as the argument `input`, whether it streams or comes whole.

use serde_json::{Value, json};
use tidegate_kit::rule_set;
use wire::Wire;

use crate::script::{Said, play, stream};

const PATCH: &str = "*** Begin Patch\n+\"forbidden\"\n";

fn pieces() -> impl Iterator<Item = &'static str> {
    PATCH.as_bytes().chunks(3).map(|piece| std::str::from_utf8(piece).unwrap())
}

fn responses(kind: &str, key: &str, given: &Value, streams: bool) -> Vec<u8> {
    let item = |given: &Value| json!({"id": "ct", "type": kind, "call_id": "c", "name": "patch", key: given});
    let mut events = vec![
        json!({"type": "response.created", "response": {"id": "r", "model": "m", "output": []}}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item(&Value::Null)}),
    ];
    if streams {
        let at = |kind: &str, key: &str, text: &str| json!({"type": format!("response.custom_tool_call_input.{kind}"), "item_id": "ct", "output_index": 0, key: text});
        events.extend(pieces().map(|piece| at("delta", "delta", piece)));
        events.push(at("done", "input", PATCH));
    }
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item(given)}));
    events.push(json!({"type": "response.completed", "response": {"id": "r", "output": [item(given)]}}));
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

fn chat() -> Vec<u8> {
    let chunk = |delta: Value, reason: Value| json!({"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let call = |custom: Value| json!({"tool_calls": [{"index": 0, "type": "custom", "custom": custom}]});
    let mut first = call(json!({"name": "patch", "input": ""}));
    first["tool_calls"][0]["id"] = Value::from("c");
    let mut chunks = vec![chunk(first, Value::Null)];
    chunks.extend(pieces().map(|piece| chunk(call(json!({"input": piece})), Value::Null)));
    chunks.push(chunk(json!({}), Value::from("tool_calls")));
    let chunks: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    [chunks.as_bytes(), b"data: [DONE]\n\n"].concat()
}

#[test]
fn calls_that_are_no_functions_are_watched() {
    let set =
        |word: &str| rule_set(&[("r", &format!("+++\ncondition = \"{word}\"\nscope = \"tool\"\n+++\nNever."))], |_| ());
    let command = json!({"type": "exec", "command": ["echo", "forbidden"]});
    for (wire, answer) in [
        (Wire::OpenAiResponses, responses("custom_tool_call", "input", &Value::from(PATCH), true)),
        (Wire::OpenAiResponses, responses("custom_tool_call", "input", &Value::from(PATCH), false)),
        (Wire::OpenAiResponses, responses("local_shell_call", "action", &command, false)),
        (Wire::OpenAiResponses, responses("computer_call", "actions", &json!([{"text": "forbidden"}]), false)),
        (Wire::OpenAiChat, chat()),
    ] {
        let fine = stream(wire, 2, &[Said::Text("Fine.")], 100);
        let watched = play(wire, &set("\\\"?forbidden"), &[answer.clone(), fine], true, 9);
        let text = String::from_utf8_lossy(&watched.bytes);
        assert_eq!((watched.requests.len(), text.contains("forb")), (2, false), "{text}");
        let passed = play(wire, &set("harmless"), std::slice::from_ref(&answer), true, 9);
        assert_eq!(String::from_utf8_lossy(&passed.bytes), String::from_utf8_lossy(&answer));
    }
}
