//! The messages of a request in each wire format, as far as they identify the conversation.

use flow::StreamKind;
use serde_json::{Value, json};
use wire::Wire;

use crate::dialect;
use crate::requests::canonical;

/// An answer of the model, or the messages between two answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) is_answer: bool,
    /// Whether it has the result of a call.
    pub(super) is_result: bool,
    /// Its text, without white space.
    pub(super) text: String,
    /// The ids of the calls that it makes, or gives the results of.
    pub(super) ids: Vec<String>,
}

impl Item {
    pub(super) fn answer<'c>(text: &str, calls: impl Iterator<Item = &'c str>) -> Self {
        let mut own = Self { is_answer: true, ids: calls.map(str::to_owned).collect(), ..Self::default() };
        own.say(text);
        own
    }

    fn say(&mut self, text: &str) {
        // Data about a client's environment, which changes with each request.
        if self.is_answer || !text.trim_start().starts_with("<system-reminder>") {
            self.text.extend(text.chars().filter(|c| !c.is_whitespace()));
        }
    }

    fn has(&mut self, id: &Value) {
        self.ids.extend(id.as_str().map(str::to_owned));
    }
}

/// A call without its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) name: String,
    /// Its arguments in canonical form.
    pub(super) arguments: String,
}

/// Returns the calls among the blocks of an answer.
pub(super) fn calls(blocks: &[(StreamKind, String)]) -> Vec<Called> {
    let call = |(kind, given): &(StreamKind, String)| match kind {
        StreamKind::Tool { name, .. } => {
            let given = if given.trim().is_empty() { "{}" } else { given };
            Some(Called { name: name.clone(), arguments: canonical(given) })
        }
        _ => None,
    };
    blocks.iter().filter_map(call).collect()
}

/// Returns the calls of the last answer in a request.
pub(super) fn last_calls(wire: Wire, request: &Value) -> Vec<Called> {
    let input = &request[if wire == Wire::OpenAiResponses { "input" } else { "messages" }];
    let all = input.as_array().map_or(&[][..], Vec::as_slice);
    let side_at = |at: &usize| side(wire, &all[*at]);
    let Some(last) = (0..all.len()).rfind(|at| side_at(at) == Some(true)) else { return Vec::new() };
    let first = (0..last).rfind(|at| side_at(at) == Some(false)).map_or(0, |before| before + 1);
    let (answer, message) = (&all[first..=last], dialect::message(wire, ""));
    let blocks: Vec<(StreamKind, String)> = match wire {
        Wire::Anthropic => answer.iter().flat_map(|one| message.blocks(one)).collect(),
        Wire::OpenAiChat => {
            answer.iter().flat_map(|one| message.blocks(&json!({"choices": [{"message": one}]}))).collect()
        }
        Wire::OpenAiResponses => message.blocks(&json!({"output": answer})),
    };
    calls(&blocks)
}

/// Returns the answers in a request, and the messages between them. Adjacent messages of one side are one item.
pub(super) fn items(wire: Wire, request: &Value) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let input = &request[if wire == Wire::OpenAiResponses { "input" } else { "messages" }];
    if let Some(text) = input.as_str() {
        let mut item = Item::default();
        item.say(text);
        items.push(item);
    }
    for message in input.as_array().into_iter().flatten() {
        let Some(is_answer) = side(wire, message) else { continue };
        if items.last().is_none_or(|last| last.is_answer != is_answer) {
            items.push(Item { is_answer, ..Item::default() });
        }
        let Some(item) = items.last_mut() else { continue };
        if wire == Wire::OpenAiResponses {
            item.has(&message["call_id"]);
            item.is_result |= message["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
        }
        content(item, &message["content"]);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            item.has(&call["id"]);
        }
        item.has(&message["tool_call_id"]);
        item.is_result |= message["role"] == "tool";
    }
    items
}

/// Returns whether a message is the model's; `None` if it belongs to no side, such as a system prompt or reasoning.
fn side(wire: Wire, message: &Value) -> Option<bool> {
    let kind = message["type"].as_str().unwrap_or("message");
    if wire == Wire::OpenAiResponses && kind != "message" {
        return match kind {
            "reasoning" | "item_reference" => None,
            _ if kind.ends_with("_output") => Some(false),
            _ if message["call_id"].is_string() => Some(true),
            _ => None,
        };
    }
    match message["role"].as_str()? {
        "assistant" => Some(true),
        "user" | "tool" | "function" => Some(false),
        _ => None,
    }
}

fn content(item: &mut Item, content: &Value) {
    if let Some(text) = content.as_str() {
        return item.say(text);
    }
    for part in content.as_array().into_iter().flatten() {
        match part["type"].as_str().unwrap_or_default() {
            "text" | "input_text" | "output_text" => item.say(part["text"].as_str().unwrap_or_default()),
            "refusal" => item.say(part["refusal"].as_str().unwrap_or_default()),
            "tool_use" => item.has(&part["id"]),
            "tool_result" => {
                item.has(&part["tool_use_id"]);
                item.is_result = true;
            }
            _ => {}
        }
    }
}
