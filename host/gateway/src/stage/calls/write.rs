//! Writes new arguments into the frames of a stream. Calls are numbered in the order in which they begin, as the decoder numbers them: ids
//! can be missing, or equal for several calls.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use wire::Wire;

use super::input;
use super::items::Items;
use crate::frame::Frame;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Writer {
    /// Anthropic: the numbers of the calls that are open, by the index of their block.
    open: BTreeMap<u64, usize>,
    /// Anthropic: the calls that have begun.
    begun: usize,
    /// Chat Completions: the index and the id of each call; `None` if its server has given it no id.
    known: Vec<(u64, Option<String>)>,
    /// The calls whose arguments were sent.
    given: BTreeSet<usize>,
    items: Items,
}

impl Writer {
    /// Changes a frame. A frame without any content left has no bytes. Returns a frame to insert after it.
    pub(super) fn edit(&mut self, wire: Wire, frame: &mut Frame, new: &[Option<&str>]) -> Option<Frame> {
        match wire {
            Wire::Anthropic => return self.anthropic(frame, new),
            Wire::OpenAiChat => self.chat(frame, new),
            Wire::OpenAiResponses => self.items.edit(frame, new, &mut self.given),
        }
        None
    }

    fn anthropic(&mut self, frame: &mut Frame, new: &[Option<&str>]) -> Option<Frame> {
        let (kind, name) = (frame.kind().to_owned(), frame.name.clone());
        let data = frame.data.as_mut()?;
        let index = number(&data["index"]).unwrap_or(0);
        match kind.as_str() {
            "content_block_start" => {
                self.open.remove(&index);
                if data["content_block"]["type"] != "tool_use" {
                    return None;
                }
                self.begun += 1;
                let new = (*new.get(self.begun - 1)?)?;
                self.open.insert(index, self.begun - 1);
                let delta = json!({"type": "input_json_delta", "partial_json": new});
                let added = json!({"type": "content_block_delta", "index": data["index"], "delta": delta});
                if data["content_block"]["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    data["content_block"]["input"] = json!({});
                    frame.write();
                }
                Some(Frame::of(if name.is_empty() { "" } else { "content_block_delta" }, added))
            }
            "content_block_delta" if self.open.contains_key(&index) => {
                frame.raw.clear();
                None
            }
            "content_block_stop" => {
                self.open.remove(&index);
                None
            }
            _ => None,
        }
    }

    fn chat(&mut self, frame: &mut Frame, new: &[Option<&str>]) {
        let Some(choice) = frame.data.as_mut().and_then(|data| data.pointer_mut("/choices/0")) else { return };
        let ends = choice.get("finish_reason").is_some_and(|reason| !reason.is_null());
        // One message in place of deltas, which servers also send after them.
        let whole = choice.get_mut("message").and_then(Value::as_object_mut);
        let mut is_changed = whole.is_some_and(|message| {
            let before = std::mem::take(&mut self.given);
            let known = std::mem::take(&mut self.known);
            let is_changed = self.message(message, new);
            if !known.is_empty() {
                (self.given, self.known) = (before, known);
            }
            is_changed
        });
        let mut says = true;
        if let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) {
            is_changed |= self.message(delta, new);
            says = delta.values().any(|value| !value.is_null() && value != "");
        }
        match is_changed {
            true if says || ends => frame.write(),
            true => frame.raw.clear(),
            false => {}
        }
    }

    /// Changes the calls of a message or a delta.
    fn message(&mut self, message: &mut serde_json::Map<String, Value>, new: &[Option<&str>]) -> bool {
        let mut is_changed = false;
        if let Some(list) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            list.retain_mut(|call| {
                let at = self.at(number(&call["index"]), call["id"].as_str().unwrap_or_default());
                let Some(new) = new.get(at).copied().flatten() else { return true };
                let key = if call["custom"].is_object() { "custom" } else { "function" };
                is_changed = true;
                self.piece(call.get_mut(key), key == "custom", (at, new))
            });
            if list.is_empty() {
                message.remove("tool_calls");
            }
        }
        // The legacy form: one call, without an id.
        let old = message.get_mut("function_call").filter(|old| old.is_object());
        let Some(old) = old else { return is_changed };
        let at = self.at(None, "");
        let Some(new) = new.get(at).copied().flatten() else { return is_changed };
        if !self.piece(Some(old), false, (at, new)) {
            message.remove("function_call");
        }
        true
    }

    /// Writes all of the new arguments into the first delta of a call. Returns whether anything is left of a delta.
    fn piece(&mut self, part: Option<&mut Value>, is_custom: bool, (at, new): (usize, &str)) -> bool {
        let is_first = self.given.insert(at);
        let Some(part) = part.and_then(Value::as_object_mut) else {
            if is_first {
                self.given.remove(&at);
            }
            return is_first;
        };
        let key = if is_custom { "input" } else { "arguments" };
        let given = match (is_first, is_custom) {
            (false, _) => Value::from(""),
            (true, true) => input(new),
            (true, false) => Value::from(new),
        };
        part.insert(key.to_owned(), given);
        is_first || part.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty())
    }

    /// Returns the number of the call that a delta belongs to: by its index, or by its id for servers that give every call the same index,
    /// or none.
    fn at(&mut self, index: Option<u64>, id: &str) -> usize {
        let same_id = |known: &Option<String>| id.is_empty() || known.as_deref().is_none_or(|known| known == id);
        let found = match index {
            Some(index) => self.known.iter().rposition(|(known, of)| *known == index && same_id(of)),
            None => self.known.iter().rposition(|(_, of)| same_id(of)),
        };
        let at = found.unwrap_or_else(|| {
            let at = self.known.len();
            self.known.push((index.unwrap_or(at as u64), None));
            at
        });
        if self.known[at].1.is_none() && !id.is_empty() {
            self.known[at].1 = Some(id.to_owned());
        }
        at
    }
}

/// Parses an integer, also in quotes.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}
