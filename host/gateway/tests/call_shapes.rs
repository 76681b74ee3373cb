//! Calls in all the shapes in which servers write them: a client gets the arguments that extensions have decided on, or none.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_gateway::Memory;
use wire::Wire;

use crate::plugins::{caller, first, mask, none, play};
use crate::script::CUTS;

const UNWRITTEN: &str = "because a call in it is written in a way in which extensions cannot change it";

fn sse(events: &[Value], wire: Wire) -> Vec<u8> {
    let mut out: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    if wire == Wire::OpenAiChat {
        out.push_str("data: [DONE]\n\n");
    }
    out.into_bytes()
}

/// What a client gets of an answer whose calls `mask` changes.
fn got(wire: Wire, answer: &[u8], is_stream: bool, cut: usize) -> String {
    let caller = caller(vec![mask(&Arc::default())], true);
    let memory: Arc<Mutex<Memory>> = Arc::default();
    let answers = [answer.to_vec()];
    let (got, _) = play(&caller, &memory, (wire, &none()), &first(wire), &answers, (is_stream, cut));
    String::from_utf8(got).unwrap()
}

/// Asserts that these words, and nothing that is masked, arrive of a stream.
fn arrive(wire: Wire, events: &[Value], words: &[&str]) {
    for cut in CUTS {
        let text = got(wire, &sse(events, wire), true, cut);
        assert!(!text.contains("MASK"), "{text}");
        let missing: Vec<_> = words.iter().filter(|word| !text.contains(**word)).collect();
        assert!(missing.is_empty(), "{missing:?} {text}");
    }
}

fn chunk(delta: &Value, reason: &Value) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
}

fn chunks(deltas: &[Value]) -> Vec<Value> {
    let parts = deltas.iter().map(|delta| chunk(delta, &Value::Null));
    parts.chain([chunk(&json!({}), &json!("tool_calls"))]).collect()
}

fn call(index: Value, id: Value, name: &str, arguments: &str) -> Value {
    let mut call = json!({"type": "function", "function": {"arguments": arguments}});
    for (key, value) in [("index", index), ("id", id)] {
        if !value.is_null() {
            call[key] = value;
        }
    }
    if !name.is_empty() {
        call["function"]["name"] = json!(name);
    }
    json!({"tool_calls": [call]})
}

#[test]
fn calls_of_a_chat_stream_are_changed_whatever_their_ids() {
    let none = || Value::Null;
    let (a, b) = (r#"{\"k\":\"key one\"}"#, r#"{\"k\":\"key two\"}"#);
    let (one, two) = (r#"{"k":"MASK one"}"#, r#"{"k":"MASK two"}"#);
    for id in [none(), json!("")] {
        arrive(
            Wire::OpenAiChat,
            &chunks(&[
                call(json!(0), id.clone(), "write", ""),
                call(json!(0), id.clone(), "", one),
                call(json!(1), id.clone(), "write", ""),
                call(json!(1), id, "", two),
            ]),
            &[a, b],
        );
    }
    // The same index, or none, for all; and the same id.
    for index in [none(), json!(0)] {
        let calls = [call(index.clone(), json!("x"), "write", one), call(index, json!("y"), "write", two)];
        arrive(Wire::OpenAiChat, &chunks(&calls), &[a, b]);
    }
    let calls = [call(json!("0"), json!("x"), "write", one), call(json!("1"), json!("x"), "write", two)];
    arrive(Wire::OpenAiChat, &chunks(&calls), &[a, b]);
    let old = |function: Value| json!({"function_call": function});
    let parts = [old(json!({"name": "write", "arguments": ""})), old(json!({"arguments": one}))];
    arrive(Wire::OpenAiChat, &chunks(&parts), &[a]);
    // A name behind its arguments, and one message in the place of parts.
    let late = [call(json!(0), json!("x"), "", one), call(json!(0), none(), "write", "")];
    arrive(Wire::OpenAiChat, &chunks(&late), &[a, "\"write\""]);
    let mut whole = chunk(&json!({}), &json!("tool_calls"));
    whole["choices"][0]["message"] = call(none(), json!("x"), "write", one);
    arrive(Wire::OpenAiChat, &[whole], &[a]);
}

#[test]
fn calls_of_an_anthropic_stream_are_changed_whatever_their_ids() {
    for ids in [["t", "t"], ["", ""]] {
        let block = |at: usize, input: Value, part: &str| {
            let start = json!({"type": "tool_use", "id": ids[at], "name": "write", "input": input});
            let delta = json!({"type": "input_json_delta", "partial_json": part});
            [
                json!({"type": "content_block_start", "index": at, "content_block": start}),
                json!({"type": "content_block_delta", "index": at, "delta": delta}),
                json!({"type": "content_block_stop", "index": at}),
            ]
        };
        let mut events = vec![json!({"type": "message_start", "message": {"id": "m", "usage": {}}})];
        events.extend(block(0, json!({}), r#"{"k":"MASK one"}"#));
        events.extend(block(1, json!({"k": "MASK two"}), ""));
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
        events.push(json!({"type": "message_stop"}));
        arrive(Wire::Anthropic, &events, &[r#"{\"k\":\"key one\"}"#, r#"{\"k\":\"key two\"}"#]);
    }
}

fn response(events: Vec<Value>, output: &Value) -> Vec<Value> {
    let begin = json!({"type": "response.created", "response": {"id": "r", "output": []}});
    let end = json!({"type": "response.completed", "response": {"id": "r", "output": output}});
    std::iter::once(begin).chain(events).chain([end]).collect()
}

fn items() -> Vec<(Value, &'static [&'static str])> {
    let item = |kind: &str, more: Value| {
        let mut item = json!({"id": "i", "call_id": "c", "type": kind});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        item
    };
    vec![
        (item("apply_patch_call", json!({"operation": {"diff": "MASK"}})), &[r#"{"diff":"key"}"#]),
        (item("computer_call", json!({"actions": [{"text": "MASK"}]})), &[r#""actions":[{"text":"key"}]"#]),
        (
            item("computer_call", json!({"action": {"text": "MASK 1"}, "actions": [{"text": "MASK 2"}]})),
            &[r#""action":{"text":"key 1"}"#, r#""actions":[{"text":"key 2"}]"#],
        ),
        (item("local_shell_call", json!({"action": {"command": ["MASK"]}})), &[r#"["key"]"#]),
        (item("function_call", json!({"name": "w", "arguments": "{\"k\":\"MASK\"}"})), &[r#"{\"k\":\"key\"}"#]),
        (item("custom_tool_call", json!({"name": "w", "input": "MASK"})), &[r#""input":"key""#]),
    ]
}

#[test]
fn items_that_are_calls_are_changed_in_each_place_that_says_them() {
    let wire = Wire::OpenAiResponses;
    for (item, words) in items() {
        let done = |index: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
        arrive(wire, &response(vec![done(json!(0))], &json!([item])), words);
        arrive(wire, &response(vec![], &json!([item])), words);
        let body = json!({"id": "r", "object": "response", "output": [item]}).to_string();
        let text = got(wire, body.as_bytes(), false, 50);
        assert!(words.iter().all(|word| text.contains(word)) && !text.contains("MASK"), "{text}");
    }
}

#[test]
fn functions_of_a_response_are_changed_whatever_their_ids() {
    let wire = Wire::OpenAiResponses;
    let given = r#"{"k":"MASK"}"#;
    let mut item = json!({"type": "function_call", "name": "w", "arguments": given});
    let delta = json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": given});
    let done = json!({"type": "response.output_item.done", "output_index": 0, "item": item});
    let mut begun = json!({"type": "response.output_item.added", "output_index": 0, "item": item});
    begun["item"]["arguments"] = json!("");
    arrive(wire, &response(vec![begun, delta.clone(), done.clone()], &json!([item])), &[r#"{\"k\":\"key\"}"#]);
    // Not begun, and with an id at the end alone.
    arrive(wire, &response(vec![delta, done], &json!([item])), &[r#"{\"k\":\"key\"}"#]);
    item["call_id"] = json!("late");
    arrive(wire, &response(vec![], &json!([item, item])), &[r#"{\"k\":\"key\"}"#]);
}

#[test]
fn calls_of_a_whole_body_are_changed_whatever_their_ids() {
    let two = [r#"{\"k\":\"key one\"}"#, r#"{\"k\":\"key two\"}"#];
    let chat = |message: Value| json!({"id": "c", "choices": [{"index": 0, "message": message}]});
    let function = |arguments: &str| json!({"name": "w", "arguments": arguments});
    let call = |id: Value, arguments: &str| json!({"id": id, "type": "function", "function": function(arguments)});
    let both = |id: Value| json!([call(id.clone(), r#"{"k":"MASK one"}"#), call(id, r#"{"k":"MASK two"}"#)]);
    let tool = |text: &str| json!({"type": "tool_use", "id": "t", "name": "w", "input": {"k": text}});
    let bodies: [(Wire, Value, &[&str]); 4] = [
        (Wire::OpenAiChat, chat(json!({"tool_calls": both(json!("x"))})), &two),
        (Wire::OpenAiChat, chat(json!({"tool_calls": both(Value::Null)})), &two),
        (Wire::OpenAiChat, chat(json!({"function_call": function(r#"{"k":"MASK one"}"#)})), &two[..1]),
        (
            Wire::Anthropic,
            json!({"type": "message", "content": [tool("MASK one"), tool("MASK two")]}),
            &[r#"{"k":"key one"}"#, r#"{"k":"key two"}"#],
        ),
    ];
    for (wire, body, words) in bodies {
        let text = got(wire, body.to_string().as_bytes(), false, 50);
        assert!(words.iter().all(|word| text.contains(word)) && !text.contains("MASK"), "{text}");
    }
}

/// A shape of calls that cannot be changed: nothing of it is sent, in the place of the model's own arguments.
#[test]
fn a_call_that_cannot_be_changed_ends_the_answer() {
    // The name comes in two parts, the second behind the arguments of another call.
    let parts = [
        call(json!(0), json!("x"), "", r#"{"k":"MASK one"}"#),
        call(json!(1), json!("y"), "write", r#"{"k":"MASK two"}"#),
    ];
    arrive(Wire::OpenAiChat, &chunks(&parts), &[UNWRITTEN]);
}
