//! What an answer has streamed, against what its ends repeat. Rules read the stream and clients act on the end: both have to say the same.

use std::collections::BTreeMap;

use serde_json::Value;

use super::reasoning::Reasoning;
use super::{blocks_of, given};
use crate::dialect::texts;

/// What was streamed of an attempt.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    /// Its items, by their index.
    items: BTreeMap<u64, Item>,
    /// The item and the part of the last delta of text.
    latest: (u64, u64),
    reasoning: Reasoning,
}

#[derive(Debug, Default)]
struct Item {
    /// By the index of the part; arguments are one part.
    parts: BTreeMap<u64, String>,
    name: Option<String>,
    /// The content of its first event, which can have whole calls.
    begun: String,
    /// The id in its end.
    id: String,
    /// The item as its end has it: its name, and its text or arguments.
    end: Option<(String, String)>,
}

impl Streamed {
    /// Notes an event. Returns whether it contradicts the events before it.
    pub(super) fn contradicts(&mut self, event: &Value) -> bool {
        let index = event["output_index"].as_u64().unwrap_or(0);
        let part = event["content_index"].as_u64().unwrap_or(0);
        if let Some(contradicts) = self.reasoning.contradicts(event) {
            return contradicts;
        }
        match event["type"].as_str().unwrap_or_default() {
            // A second start: the events before it are void.
            "response.created" => {
                *self = Self::default();
                has_content(&event["response"])
            }
            "response.in_progress" | "response.queued" => has_content(&event["response"]),
            "response.output_text.delta" | "response.refusal.delta" => {
                let has_ended = self.streams(index, part, &event["delta"]);
                // A client puts the parts in their order, so a later delta of an earlier part would be read elsewhere than it is shown.
                has_ended || std::mem::replace(&mut self.latest, (index, part)) > (index, part)
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.streams(index, part, &event["delta"])
            }
            "response.output_text.done" => self.repeats(index, part, &texts(&event["text"])),
            "response.refusal.done" => self.repeats(index, part, &texts(&event["refusal"])),
            "response.function_call_arguments.done" => self.differs(index, part, &event["arguments"]),
            "response.custom_tool_call_input.done" => self.differs(index, part, &event["input"]),
            "response.content_part.added" => !texts(&event["part"]).is_empty(),
            "response.content_part.done" => self.repeats(index, part, &texts(&event["part"])),
            "response.output_item.added" => self.begins(index, &event["item"]),
            "response.output_item.done" => self.ends(event["output_index"].as_u64(), &event["item"]),
            "response.completed" | "response.incomplete" => {
                let output = &event["response"]["output"];
                self.finishes(output) || self.reasoning.finishes(output) || has_other_text(&event["response"])
            }
            "response.failed" => self.fails(&event["response"]),
            // An answer that does not stream.
            "" => has_other_text(event),
            _ => false,
        }
    }

    /// Notes the first event of an item. Text of a message is streamed after it.
    fn begins(&mut self, index: u64, item: &Value) -> bool {
        let known = self.items.entry(index).or_default();
        known.name = item["name"].as_str().map(str::to_owned);
        known.begun = said(item);
        item["type"] == "message" && !known.begun.is_empty()
    }

    /// An answer that fails repeats at most what was streamed.
    fn fails(&self, response: &Value) -> bool {
        let streamed = |item: &Item| item.parts.values().map(String::as_str).collect::<String>();
        let is_known = |said: &str| self.items.values().any(|item| streamed(item).starts_with(said));
        let items = response["output"].as_array().into_iter().flatten().filter(|item| item["type"] != "reasoning");
        let mut said = items.map(said).filter(|said| !said.is_empty());
        said.any(|said| !is_known(&said)) || has_other_text(response)
    }

    /// Notes a delta. Returns whether its item has ended: rules read nothing of it then.
    fn streams(&mut self, index: u64, part: u64, delta: &Value) -> bool {
        let delta = delta.as_str().unwrap_or_default();
        let item = self.items.entry(index).or_default();
        item.parts.entry(part).or_default().push_str(delta);
        !delta.is_empty() && item.end.is_some()
    }

    /// The end of a text repeats it, or has it alone. What follows the end of its item repeats that.
    fn repeats(&mut self, index: u64, part: u64, whole: &str) -> bool {
        let item = self.items.entry(index).or_default();
        let known = item.parts.entry(part).or_default();
        if known.is_empty() {
            whole.clone_into(known);
        }
        !whole.is_empty() && (known != whole || item.has_ended_without(whole))
    }

    /// What was not streamed at all is read from the end itself, unless its item has ended.
    fn differs(&self, index: u64, part: u64, whole: &Value) -> bool {
        let (Some(item), Some(whole)) = (self.items.get(&index), whole.as_str().filter(|whole| !whole.is_empty()))
        else {
            return false;
        };
        let text = item.parts.get(&part).filter(|text| !text.is_empty());
        text.is_some_and(|text| whole != text) || item.has_ended_without(whole)
    }

    /// `index`: as the event has it.
    fn ends(&mut self, index: Option<u64>, item: &Value) -> bool {
        let id = item["id"].as_str().unwrap_or_default();
        let end = (name(item), said(item));
        // Rules do not read what ends again, by its index or by its id.
        let mut again =
            self.items.iter().filter(|(at, known)| Some(**at) == index || (!id.is_empty() && known.id == id));
        if again.any(|(_, known)| known.end.as_ref().is_some_and(|known| *known != end)) {
            return true;
        }
        let (name, said) = end;
        let known = self.items.entry(index.unwrap_or(0)).or_default();
        id.clone_into(&mut known.id);
        let text: String = known.parts.values().map(String::as_str).collect();
        let is_other = (!text.is_empty() && !said.is_empty() && text != said)
            || (!known.begun.is_empty() && known.begun != said)
            || known.name.as_ref().is_some_and(|known| !name.is_empty() && *known != name);
        known.end = Some((name, said));
        is_other
    }

    /// The end of the answer repeats its items: each of them with content has to be one that has ended, where items have ended.
    fn finishes(&self, output: &Value) -> bool {
        if self.items.values().any(|item| !item.begun.is_empty() && item.end.is_none()) {
            return true;
        }
        let ended: Vec<&(String, String)> = self.items.values().filter_map(|item| item.end.as_ref()).collect();
        let mut items = output.as_array().into_iter().flatten().filter(|item| item["type"] != "reasoning");
        let is_known = |item: &Value| {
            let (name, said) = (name(item), said(item));
            said.is_empty() || ended.iter().any(|(known, text)| *known == name && *text == said)
        };
        if ended.is_empty() {
            // Nothing has ended by itself: the end may add to what was streamed, and takes nothing back.
            let streamed = |item: &Item| item.parts.values().map(String::as_str).collect::<String>();
            let streamed: Vec<String> = self.items.values().map(streamed).filter(|text| !text.is_empty()).collect();
            let goes_on = |item: &Value| streamed.iter().any(|text| said(item).starts_with(text.as_str()));
            return !streamed.is_empty() && items.any(|item| !said(item).is_empty() && !goes_on(item));
        }
        items.any(|item| !is_known(item))
    }
}

impl Item {
    /// Returns whether the item has ended, and its end does not have this text.
    fn has_ended_without(&self, text: &str) -> bool {
        self.end.as_ref().is_some_and(|(_, said)| !said.contains(text))
    }
}

/// Returns whether a response that begins has items with content.
fn has_content(response: &Value) -> bool {
    let mut items = response["output"].as_array().into_iter().flatten();
    items.any(|item| !said(item).is_empty()) || has_other_text(response)
}

/// Returns whether the text of a response that some servers write next to its items is another one than that of the items.
fn has_other_text(response: &Value) -> bool {
    let Some(text) = response["output_text"].as_str().filter(|text| !text.is_empty()) else { return false };
    let messages = response["output"].as_array().into_iter().flatten().filter(|item| item["type"] == "message");
    text != messages.map(said).collect::<String>()
}

fn name(item: &Value) -> String {
    item["name"].as_str().unwrap_or_default().to_owned()
}

/// The text of an item, or what a call is given.
fn said(item: &Value) -> String {
    match item["type"].as_str() {
        Some("custom_tool_call") => texts(&item["input"]),
        Some(_) if given(item).is_some() => given(item).unwrap_or_default(),
        _ => blocks_of(item).into_iter().map(|(_, text)| text).collect(),
    }
}
