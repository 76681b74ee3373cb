//! Repeated text at the ends of blocks: a text that was changed in the stream is changed there, too.

use std::collections::BTreeMap;

use flow::TextStream;
use serde_json::Value;
use wire::Wire;

use super::Both;
use super::pieces::Piece;
use crate::frame::Frame;

/// The texts of a message, block by block.
#[derive(Debug, Default)]
pub(crate) struct Repeats(BTreeMap<(bool, (u64, u64)), Both>);

impl Repeats {
    /// Adds a text that was received.
    pub(super) fn begin(&mut self, piece: &Piece) {
        self.0.entry((piece.stream == TextStream::Thinking, piece.block)).or_default();
    }

    /// Adds the text that was sent for it.
    pub(super) fn end(&mut self, piece: &Piece, shown: &str) {
        let both = self.0.entry((piece.stream == TextStream::Thinking, piece.block)).or_default();
        both.original.push_str(&piece.text);
        both.shown.push_str(shown);
    }

    pub(super) fn has(&self, stream: TextStream, block: (u64, u64)) -> bool {
        self.0.contains_key(&(stream == TextStream::Thinking, block))
    }

    /// Returns the blocks of a stream.
    pub(crate) fn blocks(&self, stream: TextStream) -> impl Iterator<Item = &Both> {
        let is_thinking = stream == TextStream::Thinking;
        self.0.iter().filter(move |((thinking, _), _)| *thinking == is_thinking).map(|(_, both)| both)
    }

    /// Changes a frame that repeats texts. Returns whether it does.
    pub(super) fn apply(&self, wire: Wire, frame: &mut Frame) -> bool {
        if wire != Wire::OpenAiResponses || frame.kind().ends_with(".delta") {
            return false;
        }
        let changed: Vec<&Both> = self.0.values().filter(|both| both.original != both.shown).collect();
        let Some(data) = frame.data.as_mut().filter(|_| !changed.is_empty()) else { return false };
        replace(data, &changed)
    }
}

/// Members that repeat a text.
const TEXTS: [&str; 3] = ["text", "refusal", "output_text"];

fn replace_text(text: &mut String, changed: &[&Both]) -> bool {
    let Some(both) = changed.iter().find(|both| both.original == *text) else { return false };
    text.clone_from(&both.shown);
    true
}

fn replace(value: &mut Value, changed: &[&Both]) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().fold(false, |any, item| replace(item, changed) | any),
        Value::Object(members) => {
            let mut is_changed = false;
            for (key, member) in members.iter_mut() {
                is_changed |= match member {
                    // Other members, such as a status, can have the same letters.
                    Value::String(text) => TEXTS.contains(&key.as_str()) && replace_text(text, changed),
                    other => replace(other, changed),
                };
            }
            if let Some(logprobs) = members.get_mut("logprobs").filter(|_| is_changed) {
                *logprobs = Value::Array(Vec::new());
            }
            is_changed
        }
        _ => false,
    }
}
