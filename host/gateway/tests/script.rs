//! Answers as a provider streams them, and what a client makes of what it receives.

use std::sync::Arc;
use std::time::Duration;

use flow::{Delta, StreamKind};
use rules::{RuleSession, RuleSet};
use serde_json::{Value, json};
use tidegate_gateway::{Exchange, Next, Then};
use wire::{AnswerDecoder, Wire};

pub(crate) const WIRES: [Wire; 3] = [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses];

/// How many bytes arrive at once.
pub(crate) const CUTS: [usize; 4] = [1, 7, 64, 1 << 20];

/// What a model says.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said<'a> {
    Text(&'a str),
    Thinking(&'a str),
    /// A call of the tool `write` with these arguments.
    Call(&'a str),
}

/// An answer as a provider of this wire format streams it. `number` is that of the request, which ids contain.
pub(crate) fn stream(wire: Wire, number: usize, said: &[Said<'_>], step: usize) -> Vec<u8> {
    let events = match wire {
        Wire::Anthropic => anthropic(number, said, step),
        Wire::OpenAiChat => chat(number, said, step),
        Wire::OpenAiResponses => responses(number, said, step),
    };
    let mut out = String::new();
    for event in events {
        let name = event["type"].as_str().filter(|_| wire != Wire::OpenAiChat);
        out.push_str(&name.map_or_else(String::new, |name| format!("event: {name}\n")));
        out.push_str(&format!("data: {event}\n\n"));
    }
    if wire == Wire::OpenAiChat {
        out.push_str("data: [DONE]\n\n");
    }
    out.into_bytes()
}

fn pieces(text: &str, step: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(step).map(|piece| piece.iter().collect()).collect()
}

fn anthropic(number: usize, said: &[Said<'_>], step: usize) -> Vec<Value> {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let mut events =
        vec![json!({"type": "message_start", "message": {"id": format!("msg_{number}"), "type": "message",
        "role": "assistant", "model": "m", "content": [], "stop_reason": null, "usage": usage}})];
    for (index, one) in said.iter().enumerate() {
        let (start, kind, key, text) = match one {
            Said::Text(text) => (json!({"type": "text", "text": ""}), "text_delta", "text", text),
            Said::Thinking(text) => {
                (json!({"type": "thinking", "thinking": "", "signature": ""}), "thinking_delta", "thinking", text)
            }
            Said::Call(text) => {
                let id = format!("toolu_{number}_{index}");
                let start = json!({"type": "tool_use", "id": id, "name": "write", "input": {}});
                (start, "input_json_delta", "partial_json", text)
            }
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        let delta = |piece| json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}});
        events.extend(pieces(text, step).into_iter().map(delta));
        if matches!(one, Said::Thinking(_)) {
            let delta = json!({"type": "signature_delta", "signature": "sig"});
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if said.iter().any(|one| matches!(one, Said::Call(_))) { "tool_use" } else { "end_turn" };
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn chat(number: usize, said: &[Said<'_>], step: usize) -> Vec<Value> {
    let chunk = |delta: Value, reason: Value| {
        json!({"id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "created": number, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let mut chunks = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    let mut calls = 0;
    for one in said {
        match one {
            Said::Text(text) => {
                chunks
                    .extend(pieces(text, step).into_iter().map(|piece| chunk(json!({"content": piece}), Value::Null)));
            }
            Said::Thinking(text) => {
                let delta = |piece| chunk(json!({"reasoning_content": piece}), Value::Null);
                chunks.extend(pieces(text, step).into_iter().map(delta));
            }
            Said::Call(text) => {
                let call = json!({"index": calls, "id": format!("call_{number}_{calls}"), "type": "function",
                    "function": {"name": "write", "arguments": ""}});
                chunks.push(chunk(json!({"tool_calls": [call]}), Value::Null));
                let delta = |piece| {
                    chunk(json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}), Value::Null)
                };
                chunks.extend(pieces(text, step).into_iter().map(delta));
                calls += 1;
            }
        }
    }
    chunks.push(chunk(json!({}), Value::from(if calls > 0 { "tool_calls" } else { "stop" })));
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30});
    let mut last = chunk(json!({}), Value::Null);
    (last["choices"], last["usage"]) = (json!([]), usage);
    chunks.push(last);
    chunks
}

fn responses(number: usize, said: &[Said<'_>], step: usize) -> Vec<Value> {
    let id = format!("resp_{number}");
    let response = |status: &str, output: Value| {
        json!({"id": id, "object": "response", "model": "m", "status": status, "output": output,
            "usage": {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30}})
    };
    let mut events = vec![json!({"type": "response.created", "response": response("in_progress", json!([]))})];
    let mut output = Vec::new();
    for (index, one) in said.iter().enumerate() {
        let item_id = format!("item_{number}_{index}");
        let (mut item, text, delta) = match one {
            Said::Text(text) => (
                json!({"id": item_id, "type": "message", "role": "assistant", "status": "in_progress", "content": []}),
                text,
                "response.output_text",
            ),
            Said::Thinking(text) => {
                (json!({"id": item_id, "type": "reasoning", "summary": []}), text, "response.reasoning_summary_text")
            }
            Said::Call(text) => (
                json!({"id": item_id, "type": "function_call", "call_id": format!("call_{number}_{index}"),
                    "name": "write", "arguments": ""}),
                text,
                "response.function_call_arguments",
            ),
        };
        let at = |kind: &str, key: &str, value: Value| json!({"type": kind, "item_id": item_id, "output_index": index, "content_index": 0, key: value});
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        let delta_kind = format!("{delta}.delta");
        events.extend(pieces(text, step).into_iter().map(|piece| at(&delta_kind, "delta", Value::from(piece))));
        let (key, whole) = match one {
            Said::Call(_) => ("arguments", Value::from(*text)),
            Said::Thinking(_) => ("summary", json!([{"type": "summary_text", "text": text}])),
            Said::Text(_) => ("content", json!([{"type": "output_text", "text": text, "annotations": []}])),
        };
        let repeated = if key == "arguments" { "arguments" } else { "text" };
        events.push(at(&format!("{delta}.done"), repeated, Value::from(*text)));
        item[key] = whole;
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        output.push(item);
    }
    events.push(json!({"type": "response.completed", "response": response("completed", Value::from(output))}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = Value::from(number);
    }
    events
}

/// The same as one body.
pub(crate) fn whole(wire: Wire, said: &[Said<'_>]) -> Vec<u8> {
    let mut content = Vec::new();
    let mut calls = Vec::new();
    for one in said {
        match (wire, one) {
            (Wire::Anthropic, Said::Text(text)) => content.push(json!({"type": "text", "text": text})),
            (Wire::Anthropic, Said::Call(text)) => {
                let input: Value = serde_json::from_str(text).unwrap();
                content.push(json!({"type": "tool_use", "id": "toolu_1", "name": "write", "input": input}));
            }
            (Wire::OpenAiChat, Said::Text(text)) => content.push(Value::from(*text)),
            (Wire::OpenAiChat, Said::Call(text)) => {
                calls.push(json!({"id": "c", "type": "function", "function": {"name": "write", "arguments": text}}));
            }
            (Wire::OpenAiResponses, Said::Text(text)) => {
                let parts = json!([{"type": "output_text", "text": text, "annotations": []}]);
                content.push(json!({"type": "message", "role": "assistant", "content": parts}));
            }
            (Wire::OpenAiResponses, Said::Call(text)) => {
                content.push(json!({"type": "function_call", "call_id": "c", "name": "write", "arguments": text}));
            }
            (_, Said::Thinking(_)) => {}
        }
    }
    let body = match wire {
        Wire::Anthropic => json!({"id": "msg_1", "type": "message", "role": "assistant", "content": content}),
        Wire::OpenAiChat => {
            let text: String = content.iter().filter_map(Value::as_str).collect();
            let message = json!({"role": "assistant", "content": text, "tool_calls": calls});
            json!({"id": "chatcmpl-1", "choices": [{"index": 0, "message": message}]})
        }
        Wire::OpenAiResponses => json!({"id": "resp_1", "object": "response", "output": content}),
    };
    body.to_string().into_bytes()
}

/// A request for an answer.
pub(crate) fn request(wire: Wire) -> Vec<u8> {
    let messages = json!([{"role": "user", "content": "Say it."}]);
    let key = if wire == Wire::OpenAiResponses { "input" } else { "messages" };
    // Its bytes are not those that a program of ours would write.
    format!("{{ \"model\": \"m\",\n \"stream\" : true, \"{key}\": {messages}, \"x-unknown\": 1.0 }}").into_bytes()
}

/// The result of an exchange.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// All that the client received.
    pub(crate) bytes: Vec<u8>,
    /// The bodies that went upstream.
    pub(crate) requests: Vec<Vec<u8>>,
    /// How it ended.
    pub(crate) then: Then,
    pub(crate) fired: Vec<String>,
}

/// Plays an exchange in which each request gets the next of `answers`, `cut` bytes at a time.
pub(crate) fn play(wire: Wire, set: &Arc<RuleSet>, answers: &[Vec<u8>], is_stream: bool, cut: usize) -> Seen {
    let mut rules = RuleSession::new(Arc::clone(set));
    rules.begin_turn();
    let mut exchange = Exchange::new(wire, request(wire).into(), "m", rules);
    let mut seen = Seen::default();
    for answer in answers {
        seen.requests.push(exchange.request().unwrap().to_vec());
        exchange.begin(is_stream);
        let mut then = Then::More;
        for bytes in answer.chunks(cut) {
            let next = exchange.receive(bytes, Duration::ZERO);
            seen.bytes.extend_from_slice(&next.send);
            then = next.then;
            if then != Then::More {
                break;
            }
        }
        if then == Then::More {
            let Next { send, then: end } = exchange.end(Duration::ZERO);
            seen.bytes.extend_from_slice(&send);
            then = end;
        }
        seen.then = then;
        if seen.then != Then::Ask {
            break;
        }
    }
    let fired = exchange.fired().iter().map(|fired| fired.found.rule.clone());
    seen.fired = fired.collect();
    seen
}

/// What a client reads in a stream: its text, its calls, and how often it began and ended.
pub(crate) fn read(wire: Wire, bytes: &[u8]) -> (String, Vec<String>) {
    let mut decoder = AnswerDecoder::new(wire);
    decoder.push(bytes).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)));
    decoder.finish().unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)));
    let (mut kinds, mut text, mut calls, mut starts) = (Vec::new(), String::new(), Vec::new(), 0);
    while let Some(delta) = decoder.next_delta() {
        match delta {
            Delta::Start { .. } => starts += 1,
            Delta::BlockStart { kind, .. } => {
                if let StreamKind::Tool { .. } = kind {
                    calls.push(String::new());
                }
                kinds.push(kind);
            }
            Delta::Piece { block, text: more } => match &kinds[block as usize] {
                StreamKind::Text => text.push_str(&more),
                StreamKind::Tool { .. } => calls.last_mut().unwrap().push_str(&more),
                StreamKind::Thinking => {}
            },
            _ => {}
        }
    }
    assert_eq!(starts, 1, "{}", String::from_utf8_lossy(bytes));
    (text, calls)
}
