//! Answers in shapes that no format has: rules read them, or the client gets nothing of them.

use serde_json::{Value, json};
use tidegate_gateway::Then;
use wire::Wire;

use crate::evasions::{anthropic, check, events, forbidden_in, responses};
use crate::script::{Said, play, read, stream, whole};

/// Shapes that some client reads, and no format has.
#[test]
fn no_odd_shape_gets_past() {
    let delta = |given: Value| json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": given});
    let message = |content: Value| json!({"type": "message", "id": "i", "role": "assistant", "content": content});
    let parts = |text: &str| json!([{"type": "output_text", "text": text}]);
    let end = |kind: &str, content: Value| json!({"type": kind, "response": {"id": "r", "output": [message(content)]}});
    let completed = |content| end("response.completed", content);
    let twice = |one: &str, other: &str| {
        let response = |text: &str| completed(parts(text))["response"].to_string();
        let said = [
            delta(json!("fine")),
            json!({"type": "response.output_item.done", "output_index": 0, "item": message(parts("fine"))}),
        ];
        let twice = format!(
            "data: {{\"type\":\"response.completed\",\"response\":{},\"response\":{}}}\n\n",
            response(one),
            response(other)
        );
        [responses(&said), twice.into_bytes()].concat()
    };
    let chunk = |choice: Value| json!({"id": "1", "model": "m", "choices": [choice]});
    let fine = || chunk(json!({"index": 0, "delta": {"content": "fine"}}));
    let stops = || chunk(json!({"index": 0, "delta": {}, "finish_reason": "stop"}));
    let call = json!([{"index": 0, "id": "c", "function": {"name": "write", "arguments": "{\"a\":\"forbidden\"}"}}]);
    for (case, wire, answer) in [
        (
            "a delta that is an object",
            Wire::OpenAiResponses,
            responses(&[delta(json!({"text": "forbidden"})), completed(json!([]))]),
        ),
        (
            "a delta that is a list",
            Wire::OpenAiResponses,
            responses(&[delta(json!(["forbidden"])), completed(json!([]))]),
        ),
        ("a cancelled answer", Wire::OpenAiResponses, responses(&[end("response.cancelled", parts("forbidden"))])),
        ("two responses, one forbidden", Wire::OpenAiResponses, twice("forbidden", "fine")),
        ("two responses, the other one forbidden", Wire::OpenAiResponses, twice("fine", "forbidden")),
        ("a content that is a text", Wire::OpenAiResponses, responses(&[completed(json!("forbidden"))])),
        ("a part that is a text", Wire::OpenAiResponses, responses(&[completed(json!(["forbidden"]))])),
        (
            "a message in the place of a delta",
            Wire::OpenAiChat,
            events(&[fine(), chunk(json!({"index": 0, "message": {"content": "forbidden"}})), stops()]),
        ),
        (
            "calls of a message in the place of a delta",
            Wire::OpenAiChat,
            events(&[fine(), chunk(json!({"index": 0, "message": {"tool_calls": call}})), stops()]),
        ),
        (
            "a content that is an object",
            Wire::OpenAiChat,
            events(&[chunk(json!({"index": 0, "delta": {"content": {"value": "forbidden"}}})), stops()]),
        ),
        (
            "a part whose text is an object",
            Wire::OpenAiChat,
            events(&[
                chunk(json!({"index": 0, "delta": {"content": [{"type": "text", "text": {"value": "forbidden"}}]}})),
                stops(),
            ]),
        ),
        (
            "a refusal that is a list",
            Wire::OpenAiChat,
            events(&[chunk(json!({"index": 0, "delta": {"refusal": ["forbidden"]}})), stops()]),
        ),
        (
            "a delta of text that is an object",
            Wire::Anthropic,
            anthropic(&[
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": {"value": "forbidden"}}}),
            ]),
        ),
        (
            "a block that is a text",
            Wire::Anthropic,
            anthropic(&[json!({"type": "content_block_start", "index": 0, "content_block": "forbidden"})]),
        ),
    ] {
        check(case, wire, &answer);
    }
}

/// The same for answers that arrive as one body.
#[test]
fn no_odd_body_gets_past() {
    let content = |content: Value| json!({"id": "m", "type": "message", "role": "assistant", "content": content});
    let output = |output: Value| json!({"id": "r", "object": "response", "output": output});
    let message = |content: Value| output(json!([{"type": "message", "role": "assistant", "content": content}]));
    let choice = |choice: Value| json!({"id": "c", "choices": [choice]});
    let answer = |content: Value| choice(json!({"index": 0, "message": {"role": "assistant", "content": content}}));
    let twice = r#"{"id": "r", "output": [{"type": "message", "content": [{"type": "output_text", "text": "forbidden"}]}], "output": []}"#;
    for (case, wire, body) in [
        ("a block that is a text", Wire::Anthropic, content(json!(["forbidden"])).to_string()),
        ("a block without a type", Wire::Anthropic, content(json!([{"text": "forbidden"}])).to_string()),
        (
            "a text that is an object",
            Wire::Anthropic,
            content(json!([{"type": "text", "text": {"value": "forbidden"}}])).to_string(),
        ),
        ("a list", Wire::Anthropic, json!([content(json!([{"type": "text", "text": "forbidden"}]))]).to_string()),
        ("an item that is a text", Wire::OpenAiResponses, output(json!(["forbidden"])).to_string()),
        (
            "a part whose text is an object",
            Wire::OpenAiResponses,
            message(json!([{"type": "output_text", "text": {"a": "forbidden"}}])).to_string(),
        ),
        ("a list", Wire::OpenAiResponses, json!([message(json!("forbidden"))]).to_string()),
        ("two outputs", Wire::OpenAiResponses, twice.to_owned()),
        (
            "a delta in a body",
            Wire::OpenAiChat,
            choice(json!({"index": 0, "delta": {"content": "forbidden"}})).to_string(),
        ),
        ("a content that is an object", Wire::OpenAiChat, answer(json!({"value": "forbidden"})).to_string()),
        (
            "a part whose text is an object",
            Wire::OpenAiChat,
            answer(json!([{"type": "text", "text": {"value": "forbidden"}}])).to_string(),
        ),
        ("a list", Wire::OpenAiChat, json!([answer(json!("forbidden"))]).to_string()),
    ] {
        let fine = whole(wire, &[Said::Text("Good.")]);
        let seen = play(wire, &forbidden_in("\"text\", \"tool\"", ""), &[body.into_bytes(), fine], false, 1 << 20);
        let text = String::from_utf8_lossy(&seen.bytes);
        assert!(!text.contains("forbidden") && seen.then == Then::End, "{wire:?}, {case}: {text}");
    }
}

/// The error of a provider in an answer that continues another one: the client gets its text.
#[test]
fn an_error_after_a_stop_is_reported_with_its_text() {
    let error = json!({"type": "overloaded_error", "code": "busy", "message": "Come back later."});
    let failed = json!({"type": "response.failed", "response": {"id": "r", "error": error}});
    for (wire, event) in [
        (Wire::Anthropic, json!({"type": "error", "error": error})),
        (Wire::OpenAiChat, json!({"error": error})),
        (Wire::OpenAiResponses, failed),
    ] {
        let first = stream(wire, 1, &[Said::Text("Hi. forbidden")], 3);
        let seen = play(wire, &forbidden_in("\"text\"", ""), &[first, events(&[event])], true, 1 << 20);
        let (text, _) = read(wire, &seen.bytes);
        let expected = "because the model's server reported an error (`busy`): Come back later.]";
        assert!(text.starts_with("Hi. ") && text.ends_with(expected), "{wire:?}: {text}");
        assert_eq!(seen.then, Then::End);
    }
}
