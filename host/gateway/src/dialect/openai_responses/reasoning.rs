//! The reasoning that an answer has streamed, against what its ends repeat.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::dialect::texts;

/// The index of an item, whether it is the reasoning itself and not a summary, and the index of the part.
type Key = (u64, bool, u64);

/// The parts of the reasoning, as rules have read them.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    parts: BTreeMap<Key, String>,
    /// The part that was streamed last.
    latest: Option<Key>,
    /// The items that have ended, by their index and id: rules read nothing of them afterwards.
    ended: Vec<(u64, String)>,
}

impl Reasoning {
    /// Notes an event about reasoning. Returns whether it contradicts the events before it; `None`: it is about something else.
    pub(super) fn contradicts(&mut self, event: &Value) -> Option<bool> {
        let index = |key: &str| event[key].as_u64().unwrap_or(0);
        let summary = (index("output_index"), false, index("summary_index"));
        let itself = (index("output_index"), true, index("content_index"));
        Some(match event["type"].as_str().unwrap_or_default() {
            "response.reasoning_summary_text.delta" => self.streams(summary, &event["delta"]),
            "response.reasoning_text.delta" => self.streams(itself, &event["delta"]),
            "response.reasoning_summary_text.done" => self.repeats(summary, &texts(&event["text"])),
            "response.reasoning_text.done" => self.repeats(itself, &texts(&event["text"])),
            // Rules do not read the first event of a part.
            "response.reasoning_summary_part.added" => !texts(&event["part"]).is_empty(),
            "response.reasoning_summary_part.done" => self.repeats(summary, &texts(&event["part"])),
            "response.content_part.done" if event["part"]["type"] == "reasoning_text" => {
                self.repeats(itself, &texts(&event["part"]))
            }
            "response.output_item.done" if event["item"]["type"] == "reasoning" => self.ends(itself.0, &event["item"]),
            _ => return None,
        })
    }

    /// Returns whether the end of the answer has reasoning that rules have not read.
    pub(super) fn finishes(&self, output: &Value) -> bool {
        let items = output.as_array().into_iter().flatten().filter(|item| item["type"] == "reasoning");
        let is_unread = |item: &Value| parts_of(item).any(|(_, text)| self.adds(&text));
        // Without any before it, it is read from the end.
        !(self.parts.is_empty() && self.ended.is_empty()) && items.into_iter().any(is_unread)
    }

    /// A client puts the parts in their order, so a later delta of an earlier part would be read elsewhere than it is shown.
    fn streams(&mut self, key: Key, delta: &Value) -> bool {
        let delta = delta.as_str().unwrap_or_default();
        self.parts.entry(key).or_default().push_str(delta);
        let has_ended = !delta.is_empty() && self.has_ended(key.0, "");
        self.latest.replace(key).is_some_and(|latest| latest > key) || has_ended
    }

    /// The end of a part repeats it, or has it alone, unless its item has ended.
    fn repeats(&mut self, key: Key, whole: &str) -> bool {
        let has_ended = self.has_ended(key.0, "");
        let known = self.parts.entry(key).or_default();
        if known.is_empty() && !has_ended {
            whole.clone_into(known);
        }
        !whole.is_empty() && known != whole
    }

    /// Returns whether a text is another one than a part, and than all parts of one kind of an item.
    fn adds(&self, text: &str) -> bool {
        let mut whole: BTreeMap<(u64, bool), String> = BTreeMap::new();
        for ((index, is_itself, _), part) in &self.parts {
            whole.entry((*index, *is_itself)).or_default().push_str(part);
        }
        !text.is_empty() && !self.parts.values().chain(whole.values()).any(|known| known == text)
    }

    fn has_ended(&self, index: u64, id: &str) -> bool {
        self.ended.iter().any(|(at, known)| *at == index || (!id.is_empty() && known == id))
    }

    fn ends(&mut self, index: u64, item: &Value) -> bool {
        let id = item["id"].as_str().unwrap_or_default();
        let has_ended = self.has_ended(index, id);
        self.ended.push((index, id.to_owned()));
        let is_streamed = self.parts.iter().any(|((known, ..), part)| *known == index && !part.is_empty());
        if is_streamed || has_ended {
            return parts_of(item).any(|(_, text)| self.adds(&text));
        }
        self.parts.extend(parts_of(item).map(|((is_itself, part), text)| ((index, is_itself, part), text)));
        false
    }
}

/// Returns the texts of an item, each with its place.
fn parts_of(item: &Value) -> impl Iterator<Item = ((bool, u64), String)> {
    [("summary", false), ("content", true)].into_iter().flat_map(move |(key, is_itself)| {
        let parts = item[key].as_array().into_iter().flatten().zip(0..);
        parts.map(move |(part, at)| ((is_itself, at), texts(part)))
    })
}
