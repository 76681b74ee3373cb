//! Answers that would get past a reader of the usual frames: by other fields, by ends that contradict what was streamed, by the seam of two
//! attempts, by repetition, by shapes that no format has.

use std::sync::Arc;

use rules::RuleSet;
use serde_json::{Value, json};
use tidegate_gateway::{MAX_ATTEMPTS, Then};
use tidegate_kit::rule_set;
use wire::Wire;

use crate::script::{Said, WIRES, play, read, stream, whole};

fn forbidden(lines: &str) -> Arc<RuleSet> {
    forbidden_in("\"text\", \"tool\"", lines)
}

pub(crate) fn forbidden_in(scope: &str, lines: &str) -> Arc<RuleSet> {
    let rule = format!("+++\ncondition = \"forbidden\"\nscope = [{scope}]\nrepeat = \"always\"\n{lines}\n+++\nNever.");
    rule_set(&[("no-forbidden", &rule)], |_| ())
}

pub(crate) fn events(events: &[Value]) -> Vec<u8> {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

fn chat(delta: &Value) -> Vec<u8> {
    let chunk = |delta: &Value, reason: Value| json!({"id": "1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    [events(&[chunk(delta, Value::Null), chunk(&json!({}), json!("tool_calls"))]), b"data: [DONE]\n\n".to_vec()]
        .concat()
}

pub(crate) fn responses(more: &[Value]) -> Vec<u8> {
    let created = json!({"type": "response.created", "response": {"id": "r", "model": "m", "output": []}});
    events(&[&[created], more].concat())
}

pub(crate) fn anthropic(more: &[Value]) -> Vec<u8> {
    let start = json!({"type": "message_start", "message": {"id": "m", "model": "m", "content": [], "usage": {}}});
    events(&[&[start], more].concat())
}

/// Nothing of these reaches the client: it gets the cause, or another answer.
#[test]
fn no_field_gets_past() {
    let function = json!({"name": "write", "arguments": "{\"a\":\"forbidden\"}"});
    let call = |one: Value| chat(&json!({"tool_calls": [one]}));
    let item = |kind: &str, key: &str, given: Value| json!({"type": kind, "id": "i", "call_id": "c", "name": "write", key: given});
    let delta = |kind: &str, text: &str| json!({"type": kind, "item_id": "i", "output_index": 0, "content_index": 0, "delta": text});
    let completed = |output: Value| json!({"type": "response.completed", "response": {"id": "r", "output": output}});
    let message = |text: &str| item("message", "content", json!([{"type": "output_text", "text": text}]));
    let cases: Vec<(&str, Wire, Vec<u8>)> = vec![
        ("custom null", Wire::OpenAiChat, call(json!({"index": 0, "id": "c", "function": function, "custom": null}))),
        (
            "custom and function",
            Wire::OpenAiChat,
            call(json!({"index": 0, "id": "c", "function": function, "custom": {"name": "x", "input": "y"}})),
        ),
        (
            "arguments that are no text",
            Wire::OpenAiChat,
            call(json!({"index": 0, "id": "c", "function": {"name": "write", "arguments": {"a": "forbidden"}}})),
        ),
        (
            "arguments that end otherwise",
            Wire::OpenAiResponses,
            responses(&[
                json!({"type": "response.output_item.added", "output_index": 0, "item": item("function_call", "arguments", json!(""))}),
                delta("response.function_call_arguments.delta", "{}"),
                json!({"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "i",
                    "arguments": "{\"a\":\"forbidden\"}"}),
            ]),
        ),
        (
            "an item that ends otherwise",
            Wire::OpenAiResponses,
            responses(&[
                json!({"type": "response.output_item.added", "output_index": 0, "item": item("function_call", "arguments", json!(""))}),
                delta("response.function_call_arguments.delta", "{}"),
                json!({"type": "response.output_item.done", "output_index": 0,
                    "item": item("function_call", "arguments", json!("{\"a\":\"forbidden\"}"))}),
            ]),
        ),
        (
            "a text that ends otherwise",
            Wire::OpenAiResponses,
            responses(&[
                json!({"type": "response.output_item.added", "output_index": 0, "item": item("message", "content", json!([]))}),
                delta("response.output_text.delta", "Fine."),
                json!({"type": "response.output_item.done", "output_index": 0, "item": message("Fine.")}),
                completed(json!([message("Fine. forbidden")])),
            ]),
        ),
        (
            "a command in the end alone",
            Wire::OpenAiResponses,
            responses(&[completed(json!([item("local_shell_call", "action", json!({"command": ["forbidden"]}))]))]),
        ),
        (
            "several actions",
            Wire::OpenAiResponses,
            responses(&[
                json!({"type": "response.output_item.done", "output_index": 0,
                    "item": item("computer_call", "actions", json!([{"type": "type", "text": "forbidden"}]))}),
                completed(json!([])),
            ]),
        ),
        (
            "a start with text",
            Wire::Anthropic,
            events(&[
                json!({"type": "message_start", "message": {"id": "m", "model": "m", "usage": {},
                    "content": [{"type": "text", "text": "forbidden"}]}}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}),
                json!({"type": "message_stop"}),
            ]),
        ),
        (
            "an end with content",
            Wire::Anthropic,
            anthropic(&[json!({"type": "message_delta", "delta": {"stop_reason": "end_turn",
                "content": [{"type": "text", "text": "forbidden"}]}, "usage": {}})]),
        ),
        (
            "a response that begins with text",
            Wire::OpenAiResponses,
            responses(&[
                json!({"type": "response.in_progress", "response": {"id": "r", "output": [message("forbidden")]}}),
            ]),
        ),
        (
            "an item that begins with text",
            Wire::OpenAiResponses,
            responses(&[
                json!({"type": "response.output_item.added", "output_index": 0, "item": message("forbidden")}),
                completed(json!([])),
            ]),
        ),
        (
            "a call that begins whole and has no end",
            Wire::OpenAiResponses,
            responses(&[
                json!({"type": "response.output_item.added", "output_index": 0,
                    "item": item("function_call", "arguments", json!("{\"a\":\"forbidden\"}"))}),
                completed(json!([])),
            ]),
        ),
        (
            "a call that begins and ends otherwise",
            Wire::OpenAiResponses,
            responses(&[
                json!({"type": "response.output_item.added", "output_index": 0,
                    "item": item("function_call", "arguments", json!("{\"a\":\"forbidden\"}"))}),
                json!({"type": "response.output_item.done", "output_index": 0,
                    "item": item("function_call", "arguments", json!("{}"))}),
                completed(json!([item("function_call", "arguments", json!("{}"))])),
            ]),
        ),
        (
            "a failure with text",
            Wire::OpenAiResponses,
            responses(&[json!({"type": "response.failed", "response": {"id": "r", "output": [message("forbidden")]}})]),
        ),
        (
            "a text next to the items",
            Wire::OpenAiResponses,
            responses(&[json!({"type": "response.completed", "response": {"id": "r", "output": [message("Fine.")],
                "output_text": "forbidden"}})]),
        ),
        (
            "a part with text",
            Wire::OpenAiResponses,
            responses(&[json!({"type": "response.content_part.added", "output_index": 0, "content_index": 0,
                "part": {"type": "output_text", "text": "forbidden"}})]),
        ),
        (
            "another choice with half of a character",
            Wire::OpenAiChat,
            b"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"forbidden \\ud83d\"}}]}\n\n".to_vec(),
        ),
        (
            "an index as text",
            Wire::OpenAiChat,
            events(&[json!({"choices": [{"index": "1", "delta": {"content": "forbidden"}}]})]),
        ),
    ];
    for (case, wire, answer) in cases {
        check(case, wire, &answer);
    }
}

/// Nothing that is forbidden in a streamed answer reaches the client: it gets the cause, or another answer.
pub(crate) fn check(case: &str, wire: Wire, answer: &[u8]) {
    let fine = stream(wire, 2, &[Said::Text("Good.")], 100);
    for cut in [1, 1 << 20] {
        let seen = play(wire, &forbidden(""), &[answer.to_vec(), fine.clone()], true, cut);
        let text = String::from_utf8_lossy(&seen.bytes);
        assert!(!text.contains("forbidden") && seen.then == Then::End, "{case}: {text}");
        let (text, calls) = read(wire, &seen.bytes);
        assert!(calls.is_empty() && (text.contains("Good.") || text.contains("[Tidegate:")), "{case}: {text}");
    }
}

#[test]
fn a_match_that_begins_before_a_stop_is_found_after_it() {
    for wire in WIRES {
        let set = forbidden("");
        let answers = ["Hi: forforbidden", "bidden things.", "other things."];
        let answers: Vec<Vec<u8>> =
            (1..).zip(answers).map(|(number, text)| stream(wire, number, &[Said::Text(text)], 3)).collect();
        let seen = play(wire, &set, &answers, true, 10);
        let (text, _) = read(wire, &seen.bytes);
        assert_eq!((text.as_str(), seen.requests.len()), ("Hi: forother things.", 3));
    }
}

#[test]
fn a_model_that_insists_is_not_asked_for_ever() {
    for wire in WIRES {
        let set = forbidden("action = \"block\"");
        for is_stream in [true, false] {
            let call = [Said::Call("{\"a\":\"forbidden\"}")];
            let answer = if is_stream { stream(wire, 1, &call, 9) } else { whole(wire, &call) };
            let seen = play(wire, &set, &vec![answer; 50], is_stream, 100);
            let text = String::from_utf8_lossy(&seen.bytes);
            assert_eq!((seen.requests.len(), &seen.then), (MAX_ATTEMPTS as usize, &Then::End), "{text}");
            assert!(text.contains("stopped this answer 8 times") && !text.contains("forbidden\\\""), "{text}");
        }
    }
}

/// What is not written as a format says breaks nothing of ours.
#[test]
fn odd_shapes_break_nothing() {
    for wire in WIRES {
        for odd in [
            json!(["x"]),
            json!("x"),
            json!(7),
            json!({"choices": ["x"]}),
            json!({"choices": [{"delta": "x"}]}),
            json!({"choices": [{"delta": {"tool_calls": ["x", 7]}}]}),
            json!({"type": "message_delta", "usage": []}),
            json!({"type": "message_delta", "delta": 7}),
            json!({"type": "content_block_start", "index": u64::MAX, "content_block": 7}),
            json!({"type": "response.custom_tool_call_input.done", "input": []}),
            json!({"type": "response.output_item.added", "output_index": u64::MAX, "item": 7}),
            json!({"type": "response.completed", "response": 7}),
            json!({"type": "response.completed"}),
        ] {
            let bad = stream(wire, 1, &[Said::Text("A. forbidden")], 3);
            for answers in [vec![events(std::slice::from_ref(&odd))], vec![bad, events(&[odd])]] {
                let seen = play(wire, &forbidden(""), &answers, true, 1 << 20);
                assert!(seen.then != Then::More && !String::from_utf8_lossy(&seen.bytes).contains("forbidden"));
            }
        }
    }
}

/// What the provider runs itself has nothing that a client shows or runs: there is nothing to check, and its end is as it came.
#[test]
fn an_answer_without_words_and_calls_passes() {
    let search = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let paused = anthropic(&[
        json!({"type": "content_block_start", "index": 0, "content_block": search}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]);
    let item = json!({"type": "web_search_call", "id": "w", "status": "completed"});
    let searched = responses(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"id": "r", "output": [item]}}),
    ]);
    for (wire, answer) in [(Wire::Anthropic, paused), (Wire::OpenAiResponses, searched)] {
        let seen = play(wire, &forbidden(""), std::slice::from_ref(&answer), true, 10);
        assert_eq!((String::from_utf8_lossy(&seen.bytes), seen.then), (String::from_utf8_lossy(&answer), Then::End));
    }
}

#[test]
fn nothing_is_begun_that_stays_empty() {
    for wire in WIRES {
        let first = stream(wire, 1, &[Said::Text("forbidden")], 3);
        let second = stream(wire, 2, &[Said::Text("Good.")], 3);
        let seen = play(wire, &forbidden(""), &[first, second], true, 10);
        let text = String::from_utf8_lossy(&seen.bytes);
        assert_eq!(read(wire, &seen.bytes).0, "Good.", "{text}");
        let begun = ["content_block_start", "response.output_item.added"].map(|event| text.matches(event).count());
        assert!(begun.iter().all(|times| *times <= 2), "{text}");
        assert!(!text.contains("\"index\":1") && !text.contains("\"output_index\":1"), "{text}");
    }
}

/// Several parts of one item, and refusals, end as what they are when the answer is stopped.
#[test]
fn each_part_of_a_stopped_item_ends() {
    let item = json!({"id": "i", "type": "message", "role": "assistant", "content": []});
    let delta = |kind: &str, part: u64, text: &str| json!({"type": kind, "item_id": "i", "output_index": 0, "content_index": part, "delta": text});
    let first = responses(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        delta("response.output_text.delta", 0, "First. "),
        delta("response.refusal.delta", 1, "No. "),
        delta("response.output_text.delta", 2, "forbidden"),
    ]);
    let second = stream(Wire::OpenAiResponses, 2, &[Said::Text("Good.")], 100);
    let seen = play(Wire::OpenAiResponses, &forbidden(""), &[first, second], true, 10);
    let text = String::from_utf8_lossy(&seen.bytes);
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let done: Value =
        serde_json::from_str(data.find(|data| data.contains("response.output_item.done")).unwrap()).unwrap();
    assert_eq!(
        done["item"]["content"],
        json!([{"type": "output_text", "text": "First. ", "annotations": []}, {"type": "refusal", "refusal": "No. "}])
    );
}

/// A provider that restarts its answer after a stop restarts what it adds to the message, too.
#[test]
fn an_answer_that_restarts_after_a_stop_has_indexes_of_its_own() {
    let first = stream(Wire::Anthropic, 1, &[Said::Text("One. forbidden")], 3);
    let void = stream(Wire::Anthropic, 2, &[Said::Text("Void. ")], 3);
    let half: Vec<u8> = void.split_inclusive(|byte| *byte == b'\n').take(9).collect::<Vec<_>>().concat();
    let again = stream(Wire::Anthropic, 3, &[Said::Text("Good.")], 3);
    let seen = play(Wire::Anthropic, &forbidden(""), &[first, [half, again].concat()], true, 10);
    let text = String::from_utf8_lossy(&seen.bytes);
    let starts: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: ").filter(|data| data.contains("content_block_start")))
        .map(|data| serde_json::from_str::<Value>(data).unwrap()["index"].to_string())
        .collect();
    assert_eq!(starts, ["0", "1", "2"], "{text}");
    assert!(read(Wire::Anthropic, &seen.bytes).0.ends_with("Good."), "{text}");
}
