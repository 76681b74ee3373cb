//! What is particular to a wire format in an answer that several attempts make: how its frames are read and written, how one message goes on
//! after a stop, and how it ends in the place of an answer.

mod anthropic;
mod openai_chat;
mod openai_responses;
pub(crate) mod shapes;

use std::fmt::Debug;

use flow::{StreamKind, Usage};
use serde_json::Value;
use wire::Wire;

use crate::frame::Frame;

/// The message that a client receives, in its wire format.
pub(crate) trait Message: Debug + Send + Sync {
    /// The text that a frame adds to the answer, where the frame carries nothing else: such a frame can be sent in parts.
    fn text(&self, frame: &Frame) -> Option<String>;

    /// Puts another text in its place.
    fn set_text(&self, frame: &mut Frame, text: &str);

    /// Whether a frame has the beginning of a call that the client would run.
    fn begins_call(&self, frame: &Frame) -> bool;

    /// Whether the provider reports with it that the answer has failed.
    fn is_failure(&self, frame: &Frame) -> bool;

    /// Returns whether rules read this frame unmodified. Decides by the bytes alone; `false` if they do not suffice.
    fn reads_raw(&self, _: &[u8]) -> bool {
        true
    }

    /// A frame as rules read it, where that is not as it came: a call whose input is not JSON has it as the argument `input`.
    fn for_rules(&mut self, _: &Frame) -> Option<Vec<u8>> {
        None
    }

    /// Why a frame, or a whole answer, cannot be checked, in words that follow "because"; `None`: it can be.
    fn unreadable(&mut self, _: &Value) -> Option<&'static str> {
        None
    }

    /// Whether a frame begins something that is empty without the text of the next ones: it waits for that.
    fn opens(&self, frame: &Frame) -> bool;

    /// Sends a frame of the attempt under way, as a part of the message.
    fn send(&mut self, frame: Frame, out: &mut Vec<u8>);

    /// An attempt was stopped, and another one follows: ends what is open. `usage`: the tokens of the attempt, as far as they are known.
    fn go_on(&mut self, usage: Usage, out: &mut Vec<u8>);

    /// Ends the message with these words.
    fn close(&mut self, words: &str, out: &mut Vec<u8>);

    /// What keeps the connection alive while nothing is sent.
    fn keep_alive(&self) -> &'static [u8] {
        b": keep-alive\n\n"
    }

    /// Returns the id of the message as the client has it, by which a later request can continue it.
    fn id(&self) -> Option<String> {
        None
    }

    /// Returns the id by which the server knows the message: that of the last attempt.
    fn accepted_id(&self) -> Option<String> {
        None
    }

    /// The blocks of an answer that came as one body.
    fn blocks(&self, body: &Value) -> Vec<(StreamKind, String)>;

    /// A whole answer with these words.
    fn whole(&self, words: &str) -> Value;
}

/// A message that has not begun. `model`: as the client asked for it.
pub(crate) fn message(wire: Wire, model: &str) -> Box<dyn Message> {
    let model = model.to_owned();
    match wire {
        Wire::Anthropic => Box::new(anthropic::Anthropic::new(model)),
        Wire::OpenAiChat => Box::new(openai_chat::OpenAiChat::new(model)),
        Wire::OpenAiResponses => Box::new(openai_responses::OpenAiResponses::new(model)),
    }
}

/// The text at a path; empty where there is none.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Adds to a count of tokens in `usage` of an object, where the provider states it.
fn add(object: &mut Value, key: &str, more: Option<u64>) {
    let count = object.get_mut("usage").and_then(|usage| usage.get_mut(key));
    if let (Some(count), Some(more)) = (count, more)
        && let Some(stated) = count.as_u64()
    {
        *count = Value::from(stated.saturating_add(more));
    }
}

/// All texts of a value: itself, or those of its parts.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(texts).collect(),
        Value::Object(part) => ["text", "refusal"].iter().filter_map(|key| part.get(*key)).map(texts).collect(),
        _ => String::new(),
    }
}

/// Arguments as the text that rules read.
fn arguments(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The input of a call that is not JSON, as arguments.
fn as_arguments(input: &Value) -> String {
    serde_json::json!({"input": input}).to_string()
}

/// A part of that, and what is before the first.
fn escaped(part: &str) -> String {
    let text = Value::from(part).to_string();
    text[1..text.len() - 1].to_owned()
}

const INPUT: &str = "{\"input\":\"";

fn call(id: &Value, name: &Value) -> StreamKind {
    StreamKind::Tool { call: flow::CallId::new(text(id)), name: text(name) }
}

/// Returns whether JSON with these bytes can contain a text, written as it is or with escapes.
fn may_contain(json: &[u8], text: &str) -> bool {
    [text.as_bytes(), b"\\u"].into_iter().any(|part| memchr::memmem::find(json, part).is_some())
}
