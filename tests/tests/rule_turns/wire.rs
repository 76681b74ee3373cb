//! Answers of a case as the bytes that a vendor's server sends, in each of the three wire formats.

use serde_json::{Value, json};

use super::case::{Answer, Block};

/// How an answer is cut: into chunks of text by the server, and into chunks of bytes by the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Whole,
    One,
    Twelve,
    Random(u64),
}

pub(crate) const CUTS: [Cut; 6] = [Cut::Whole, Cut::One, Cut::Twelve, Cut::Random(1), Cut::Random(2), Cut::Random(3)];

/// Lengths, one after the other.
struct Lengths(Cut);

impl Lengths {
    fn next(&mut self) -> usize {
        match &mut self.0 {
            Cut::Whole => usize::MAX,
            Cut::One => 1,
            Cut::Twelve => 12,
            Cut::Random(state) => {
                *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (*state >> 33) as usize % 17 + 1
            }
        }
    }
}

/// A text in the chunks that the server sends.
fn pieces(text: &str, cut: Cut) -> Vec<String> {
    let (mut lengths, mut chars, mut out) = (Lengths(cut), text.chars().peekable(), Vec::new());
    while chars.peek().is_some() {
        out.push(chars.by_ref().take(lengths.next()).collect());
    }
    out
}

/// Bytes in the chunks that the network brings.
pub(crate) fn chunks(bytes: &[u8], cut: Cut) -> Vec<Vec<u8>> {
    let (mut lengths, mut rest, mut out) = (Lengths(cut), bytes, Vec::new());
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(lengths.next().min(rest.len()));
        out.push(chunk.to_vec());
        rest = after;
    }
    out
}

/// The bytes of an answer.
pub(crate) fn encode(wire: ::wire::Wire, answer: &Answer, cut: Cut) -> Vec<u8> {
    let events = match wire {
        ::wire::Wire::Anthropic => anthropic(answer, cut),
        ::wire::Wire::OpenAiChat => openai_chat(answer, cut),
        ::wire::Wire::OpenAiResponses => openai_responses(answer, cut),
    };
    events.concat().into_bytes()
}

/// An event that names itself by its `type`.
fn named(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn anthropic(answer: &Answer, cut: Cut) -> Vec<String> {
    let start = json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "usage": {"input_tokens": 10, "output_tokens": 1}}});
    let mut out = vec![named(&start)];
    let mut index = 0;
    for block in &answer.block {
        if block.anew {
            out.push(named(&start));
            index = 0;
            continue;
        }
        let (begin, kind, key) = match block {
            Block { text: Some(_), .. } => (json!({"type": "text", "text": ""}), "text_delta", "text"),
            Block { thinking: Some(_), .. } => {
                (json!({"type": "thinking", "thinking": "", "signature": ""}), "thinking_delta", "thinking")
            }
            Block { tool, call, .. } => {
                (json!({"type": "tool_use", "id": call, "name": tool, "input": {}}), "input_json_delta", "partial_json")
            }
        };
        out.push(named(&json!({"type": "content_block_start", "index": index, "content_block": begin})));
        for piece in pieces(block.words(), cut) {
            let delta = json!({"type": kind, key: piece});
            out.push(named(&json!({"type": "content_block_delta", "index": index, "delta": delta})));
        }
        out.push(named(&json!({"type": "content_block_stop", "index": index})));
        index += 1;
    }
    match &answer.fail {
        Some(message) => {
            out.push(named(&json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})));
        }
        None => {
            let reason = if answer.calls() { "tool_use" } else { "end_turn" };
            let delta = json!({"stop_reason": reason, "stop_sequence": null});
            out.push(named(&json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 20}})));
            out.push(named(&json!({"type": "message_stop"})));
        }
    }
    out
}

fn openai_chat(answer: &Answer, cut: Cut) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let data =
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]});
        format!("data: {data}\n\n")
    };
    let mut out = vec![chunk(json!({"role": "assistant", "content": null}), Value::Null)];
    let mut number = 0;
    for block in &answer.block {
        assert!(!block.anew, "this format cannot begin anew: name the wires of the case");
        if block.tool.is_some() {
            let head = json!({"index": number, "id": block.call, "type": "function",
                "function": {"name": block.tool, "arguments": ""}});
            out.push(chunk(json!({"tool_calls": [head]}), Value::Null));
        }
        for piece in pieces(block.words(), cut) {
            let delta = match block {
                Block { text: Some(_), .. } => json!({"content": piece}),
                Block { thinking: Some(_), .. } => json!({"reasoning_content": piece}),
                _ => json!({"tool_calls": [{"index": number, "function": {"arguments": piece}}]}),
            };
            out.push(chunk(delta, Value::Null));
        }
        number += usize::from(block.tool.is_some());
    }
    match &answer.fail {
        Some(message) => {
            let error = json!({"error": {"type": "invalid_request_error", "message": message, "code": null}});
            out.push(format!("data: {error}\n\n"));
        }
        None => {
            let reason = if answer.calls() { "tool_calls" } else { "stop" };
            out.push(chunk(json!({}), json!(reason)));
            out.push("data: [DONE]\n\n".into());
        }
    }
    out
}

fn openai_responses(answer: &Answer, cut: Cut) -> Vec<String> {
    let response =
        |status: &str| json!({"id": "r", "object": "response", "model": "m", "status": status, "output": []});
    let mut out = vec![named(&json!({"type": "response.created", "response": response("in_progress")}))];
    for (at, block) in answer.block.iter().enumerate() {
        assert!(!block.anew, "this format cannot begin anew: name the wires of the case");
        out.extend(responses_item(at, block, cut));
    }
    match &answer.fail {
        Some(message) => {
            let mut failed = response("failed");
            failed["error"] = json!({"code": "invalid_prompt", "message": message});
            out.push(named(&json!({"type": "response.failed", "response": failed})));
        }
        None => {
            let mut completed = response("completed");
            completed["usage"] = json!({"input_tokens": 10, "output_tokens": 20, "total_tokens": 30});
            out.push(named(&json!({"type": "response.completed", "response": completed})));
        }
    }
    out
}

fn responses_item(at: usize, block: &Block, cut: Cut) -> Vec<String> {
    let id = format!("item_{at}");
    let (begun, done, kind) = match block {
        Block { text: Some(text), .. } => (
            json!({"id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": []}),
            json!({"id": id, "type": "message", "status": "completed", "role": "assistant",
                "content": [{"type": "output_text", "annotations": [], "text": text}]}),
            "response.output_text.delta",
        ),
        Block { thinking: Some(text), .. } => (
            json!({"id": id, "type": "reasoning", "summary": []}),
            json!({"id": id, "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}),
            "response.reasoning_summary_text.delta",
        ),
        Block { tool, call, json, .. } => (
            json!({"id": id, "type": "function_call", "status": "in_progress", "call_id": call, "name": tool,
                "arguments": ""}),
            json!({"id": id, "type": "function_call", "status": "completed", "call_id": call, "name": tool,
                "arguments": json}),
            "response.function_call_arguments.delta",
        ),
    };
    let mut out = vec![named(&json!({"type": "response.output_item.added", "output_index": at, "item": begun}))];
    if block.text.is_some() {
        let part = json!({"type": "output_text", "annotations": [], "text": ""});
        let added = json!({"type": "response.content_part.added", "item_id": id, "output_index": at,
            "content_index": 0, "part": part});
        out.push(named(&added));
    }
    for piece in pieces(block.words(), cut) {
        let delta = json!({"type": kind, "item_id": id, "output_index": at, "content_index": 0, "summary_index": 0,
            "delta": piece});
        out.push(named(&delta));
    }
    out.push(named(&json!({"type": "response.output_item.done", "output_index": at, "item": done})));
    out
}
