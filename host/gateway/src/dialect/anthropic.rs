//! The Messages API of Anthropic: blocks in order, each with its index.

use flow::{StreamKind, Usage};
use serde_json::{Value, json};

use super::{Message, add, arguments, call, text, texts};
use crate::frame::Frame;

/// A message of the Messages API.
#[derive(Debug, Default)]
pub(crate) struct Anthropic {
    model: String,
    has_begun: bool,
    /// The index of the block that is open.
    open: Option<u64>,
    /// The index of the next block.
    next: u64,
    /// The index of the last block of text in the attempt, and that of the last one of reasoning.
    latest: (u64, u64),
    /// Blocks of earlier attempts; `None` in the first.
    earlier: Option<u64>,
    lost: Usage,
}

impl Anthropic {
    pub(super) fn new(model: String) -> Self {
        Self { model, ..Self::default() }
    }

    /// Returns whether an event has text of a block before the last one. A client puts the blocks in their order, so that it would show the text
    /// elsewhere than rules read it.
    fn goes_back(&mut self, event: &Value) -> bool {
        let index = event["index"].as_u64().unwrap_or(0);
        let kinds = [&event["delta"]["type"], &event["content_block"]["type"]];
        let latest = match kinds.into_iter().find_map(Value::as_str) {
            Some("text_delta" | "text") => &mut self.latest.0,
            Some("thinking_delta" | "thinking") => &mut self.latest.1,
            _ => return false,
        };
        std::mem::replace(latest, index) > index
    }

    fn end_open(&mut self, out: &mut Vec<u8>) {
        if let Some(open) = self.open.take() {
            push(out, "content_block_stop", json!({"index": open}));
        }
    }
}

impl Message for Anthropic {
    fn text(&self, frame: &Frame) -> Option<String> {
        let delta = &frame.data.as_ref()?["delta"];
        (frame.kind() == "content_block_delta" && delta["type"] == "text_delta").then(|| text(&delta["text"]))
    }

    fn set_text(&self, frame: &mut Frame, text: &str) {
        if let Some(data) = &mut frame.data {
            data["delta"]["text"] = Value::from(text);
            frame.write();
        }
    }

    fn unreadable(&mut self, data: &Value) -> Option<&'static str> {
        // Clients begin with the message of the start.
        let places = match data["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.latest = (0, 0);
                [&data["message"]["content"], &Value::Null]
            }
            "content_block_start" | "content_block_delta" => {
                return self.goes_back(data).then_some("it returns to an earlier block");
            }
            "message_delta" => [&data["delta"]["content"], &data["content"]],
            _ => return None,
        };
        let says = |content: &&Value| !(content.is_null() || content.as_array().is_some_and(Vec::is_empty));
        places.iter().any(says).then_some("it has content outside of its blocks")
    }

    fn begins_call(&self, frame: &Frame) -> bool {
        let data = frame.data.as_ref();
        frame.kind() == "content_block_start" && data.is_some_and(|data| data["content_block"]["type"] == "tool_use")
    }

    fn opens(&self, frame: &Frame) -> bool {
        let data = frame.data.as_ref();
        frame.kind() == "content_block_start" && data.is_some_and(|data| data["content_block"]["type"] == "text")
    }

    fn is_failure(&self, frame: &Frame) -> bool {
        frame.kind() == "error"
    }

    fn send(&mut self, mut frame: Frame, out: &mut Vec<u8>) {
        let kind = frame.kind().to_owned();
        match kind.as_str() {
            "message_start" if self.earlier.is_some() => {
                // The provider may also restart its answer: open blocks of the void start are closed.
                self.end_open(out);
                self.earlier = Some(self.next);
                return;
            }
            "message_start" => (self.has_begun, self.open, self.next) = (true, None, 0),
            "message_delta" if self.earlier.is_some() => {
                if let Some(data) = &mut frame.data {
                    add(data, "output_tokens", self.lost.output);
                    add(data, "input_tokens", self.lost.input);
                    frame.write();
                }
            }
            _ => {}
        }
        if let Some(index) = frame.data.as_ref().and_then(|data| data["index"].as_u64()) {
            let index = self.earlier.unwrap_or(0).saturating_add(index);
            match kind.as_str() {
                "content_block_start" => (self.open, self.next) = (Some(index), index.saturating_add(1)),
                "content_block_stop" => self.open = None,
                _ => {}
            }
            if let (Some(_), Some(data)) = (self.earlier, &mut frame.data) {
                data["index"] = Value::from(index);
                frame.write();
            }
        }
        out.extend_from_slice(&frame.raw);
    }

    fn go_on(&mut self, usage: Usage, out: &mut Vec<u8>) {
        self.end_open(out);
        self.lost.add(usage);
        self.latest = (0, 0);
        // A message that has not begun begins with the next attempt.
        self.earlier = self.has_begun.then_some(self.next);
    }

    fn close(&mut self, words: &str, out: &mut Vec<u8>) {
        if !self.has_begun {
            let mut message = self.whole("");
            (message["content"], message["stop_reason"]) = (json!([]), Value::Null);
            push(out, "message_start", json!({"message": message}));
        }
        self.end_open(out);
        let index = self.next;
        push(out, "content_block_start", json!({"index": index, "content_block": {"type": "text", "text": ""}}));
        push(out, "content_block_delta", json!({"index": index, "delta": {"type": "text_delta", "text": words}}));
        push(out, "content_block_stop", json!({"index": index}));
        let usage = json!({"output_tokens": self.lost.output.unwrap_or(0)});
        push(
            out,
            "message_delta",
            json!({"delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": usage}),
        );
        push(out, "message_stop", json!({}));
    }

    fn keep_alive(&self) -> &'static [u8] {
        // A client counts events, and the format has one for this.
        if self.has_begun { b"event: ping\ndata: {\"type\":\"ping\"}\n\n" } else { b": keep-alive\n\n" }
    }

    fn blocks(&self, body: &Value) -> Vec<(StreamKind, String)> {
        let block = |block: &Value| match block["type"].as_str()? {
            "text" => Some((StreamKind::Text, text(&block["text"]))),
            "thinking" => Some((StreamKind::Thinking, text(&block["thinking"]))),
            "tool_use" => Some((call(&block["id"], &block["name"]), arguments(&block["input"]))),
            _ => None,
        };
        match &body["content"] {
            Value::Array(content) => content.iter().filter_map(block).collect(),
            other => vec![(StreamKind::Text, texts(other))],
        }
    }

    fn whole(&self, words: &str) -> Value {
        json!({
            "id": "msg_tidegate", "type": "message", "role": "assistant", "model": self.model,
            "content": [{"type": "text", "text": words}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": self.lost.input.unwrap_or(0), "output_tokens": self.lost.output.unwrap_or(0)},
        })
    }
}

fn push(out: &mut Vec<u8>, kind: &str, mut fields: Value) {
    let mut data = json!({"type": kind});
    if let (Some(data), Some(fields)) = (data.as_object_mut(), fields.as_object_mut()) {
        data.append(fields);
    }
    out.extend_from_slice(&Frame::of(kind, data).raw);
}
