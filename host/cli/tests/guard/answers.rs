//! Answers of a model for tests that write bytes themselves, and a client's view of them.

use serde_json::{Value, json};

/// The endpoint of a wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Messages,
    Chat,
    Responses,
}

/// The kind of a block of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Reasoning,
    /// The arguments of a call of the tool `write`.
    Call,
}

impl Wire {
    pub(super) const ALL: [Self; 3] = [Self::Messages, Self::Chat, Self::Responses];

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    pub(super) fn of(head: &str) -> Self {
        let path = head.split(' ').nth(1).unwrap_or_default().split('?').next();
        Self::ALL.into_iter().find(|wire| Some(wire.path()) == path).unwrap()
    }

    pub(super) fn request(self, question: &str, stream: bool) -> Vec<u8> {
        let messages = json!([{"role": "user", "content": question}]);
        let key = if self == Self::Responses { "input" } else { "messages" };
        json!({"model": "m", "stream": stream, "max_tokens": 100, key: messages}).to_string().into_bytes()
    }

    /// Returns a stream of one block in these parts.
    pub(super) fn stream(self, kind: Kind, parts: &[&str]) -> Vec<u8> {
        let events = match self {
            Self::Messages => messages(kind, parts),
            Self::Chat => chat(kind, parts),
            Self::Responses => responses(kind, parts),
        };
        let frame = |event: &Value| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        let mut out: String = events.iter().map(frame).collect();
        if self == Self::Chat {
            out += "data: [DONE]\n\n";
        }
        out.into_bytes()
    }

    /// Returns the answer as one body. Chat Completions have no reasoning in it.
    pub(super) fn whole(self, kind: Kind, text: &str) -> Vec<u8> {
        let body = match self {
            Self::Messages => {
                let block = match kind {
                    Kind::Text => json!({"type": "text", "text": text}),
                    Kind::Reasoning => json!({"type": "thinking", "thinking": text, "signature": "c2ln"}),
                    Kind::Call => json!({"type": "tool_use", "id": "t", "name": "write", "input": parsed(text)}),
                };
                json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [block],
                    "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1}})
            }
            Self::Chat => {
                let call = json!([{"id": "t", "type": "function", "function": {"name": "write", "arguments": text}}]);
                let message = match kind {
                    Kind::Call => json!({"role": "assistant", "content": null, "tool_calls": call}),
                    _ => json!({"role": "assistant", "content": text}),
                };
                json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
            }
            Self::Responses => {
                json!({"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed",
                "output": [item(kind, text)]})
            }
        };
        body.to_string().into_bytes()
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn messages(kind: Kind, parts: &[&str]) -> Vec<Value> {
    let (block, delta, key, reason) = match kind {
        Kind::Text => (json!({"type": "text", "text": ""}), "text_delta", "text", "end_turn"),
        Kind::Reasoning => {
            (json!({"type": "thinking", "thinking": "", "signature": ""}), "thinking_delta", "thinking", "end_turn")
        }
        Kind::Call => {
            let block = json!({"type": "tool_use", "id": "t", "name": "write", "input": {}});
            (block, "input_json_delta", "partial_json", "tool_use")
        }
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": usage});
    let mut events = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
    ];
    events.extend(
        parts
            .iter()
            .map(|part| json!({"type": "content_block_delta", "index": 0, "delta": {"type": delta, key: part}})),
    );
    if kind == Kind::Reasoning {
        let signature = json!({"type": "signature_delta", "signature": "c2ln"});
        events.push(json!({"type": "content_block_delta", "index": 0, "delta": signature}));
    }
    events.push(json!({"type": "content_block_stop", "index": 0}));
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn chat(kind: Kind, parts: &[&str]) -> Vec<Value> {
    let chunk = |delta: Value, reason: Value| {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let call = |call: Value| json!({"tool_calls": [call]});
    let mut chunks = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    if kind == Kind::Call {
        let begun = json!({"index": 0, "id": "t", "type": "function", "function": {"name": "write", "arguments": ""}});
        chunks.push(chunk(call(begun), Value::Null));
    }
    let delta = |part: &&str| match kind {
        Kind::Text => json!({"content": part}),
        Kind::Reasoning => json!({"reasoning_content": part}),
        Kind::Call => call(json!({"index": 0, "function": {"arguments": part}})),
    };
    chunks.extend(parts.iter().map(|part| chunk(delta(part), Value::Null)));
    chunks.push(chunk(json!({}), Value::from(if kind == Kind::Call { "tool_calls" } else { "stop" })));
    chunks
}

fn item(kind: Kind, text: &str) -> Value {
    match kind {
        Kind::Text => {
            let parts = json!([{"type": "output_text", "text": text, "annotations": []}]);
            json!({"id": "i", "type": "message", "role": "assistant", "status": "completed", "content": parts})
        }
        Kind::Reasoning => {
            json!({"id": "i", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]})
        }
        Kind::Call => json!({"id": "i", "type": "function_call", "call_id": "t", "name": "write", "arguments": text,
            "status": "completed"}),
    }
}

fn responses(kind: Kind, parts: &[&str]) -> Vec<Value> {
    let text = parts.concat();
    let response = |status: &str, output: Value| json!({"id": "r", "object": "response", "created_at": 1, "model": "m", "status": status, "output": output});
    let mut begun = item(kind, "");
    let (event, repeated) = match kind {
        Kind::Text => ("response.output_text", "text"),
        Kind::Reasoning => ("response.reasoning_summary_text", "text"),
        Kind::Call => ("response.function_call_arguments", "arguments"),
    };
    let list = if kind == Kind::Text { "content" } else { "summary" };
    if kind != Kind::Call {
        begun[list] = json!([]);
    }
    let at = |kind: &str, key: &str, value: &str| json!({"type": kind, "item_id": "i", "output_index": 0, "content_index": 0, "summary_index": 0, key: value});
    let mut events = vec![
        json!({"type": "response.created", "response": response("in_progress", json!([]))}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
    ];
    events.extend(parts.iter().map(|part| at(&format!("{event}.delta"), "delta", part)));
    events.push(at(&format!("{event}.done"), repeated, &text));
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item(kind, &text)}));
    events.push(json!({"type": "response.completed", "response": response("completed", json!([item(kind, &text)]))}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = Value::from(number);
    }
    events
}

/// Returns the objects that a client reads: the events of a stream, or one body.
pub(super) fn values(body: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(body).unwrap();
    if let Ok(whole) = serde_json::from_str(text) {
        return vec![whole];
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Returns all text that a stream adds up to, of one kind.
pub(super) fn streamed(kind: Kind, values: &[Value]) -> String {
    let part = |value: &Value| {
        let choice = &value["choices"][0]["delta"];
        let (delta, event) = (&value["delta"], value["type"].as_str().unwrap_or_default());
        let places = match kind {
            Kind::Text => [&delta["text"], &choice["content"]],
            Kind::Reasoning => [&delta["thinking"], &choice["reasoning_content"]],
            Kind::Call => [&delta["partial_json"], &choice["tool_calls"][0]["function"]["arguments"]],
        };
        let own = match kind {
            Kind::Text => "response.output_text.delta",
            Kind::Reasoning => "response.reasoning_summary_text.delta",
            Kind::Call => "response.function_call_arguments.delta",
        };
        let text = places.into_iter().find_map(Value::as_str).or_else(|| delta.as_str().filter(|_| event == own));
        text.unwrap_or_default().to_owned()
    };
    values.iter().map(part).collect()
}

/// Returns all strings in values, each as it is.
pub(super) fn strings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(values) => values.iter().flat_map(strings).collect(),
        Value::Object(fields) => fields.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}
