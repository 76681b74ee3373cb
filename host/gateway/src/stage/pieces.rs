//! The places of the texts for callbacks in the frames of each wire format.

use flow::TextStream;
use serde_json::Value;
use wire::Wire;

use super::repeats::Repeats;
use crate::frame::Frame;

/// A text in a frame.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) stream: TextStream,
    pub(crate) text: String,
    /// Its place in the data, as a JSON pointer.
    pub(crate) path: String,
    /// The block of the message that it belongs to: the index of the block, and that of the part in it.
    pub(crate) block: (u64, u64),
}

impl Piece {
    /// Replaces the text. Members that repeat it token by token are removed.
    pub(super) fn set(&self, frame: &mut Frame, text: &str) {
        let Some(data) = &mut frame.data else { return };
        if let Some(value) = data.pointer_mut(&self.path) {
            *value = Value::from(text);
        }
        for (parent, empty) in [("", Value::Array(Vec::new())), ("/choices/0", Value::Null)] {
            let object = data.pointer_mut(parent).and_then(Value::as_object_mut);
            if let Some(logprobs) = object.and_then(|object| object.get_mut("logprobs")) {
                *logprobs = empty;
            }
        }
    }
}

/// Returns the texts of a frame. `known`: the texts that were streamed before, which ends of blocks repeat.
pub(super) fn of(wire: Wire, data: &Value, known: &Repeats) -> Vec<Piece> {
    let paths = match wire {
        Wire::Anthropic => anthropic(data),
        Wire::OpenAiChat => chat(data),
        Wire::OpenAiResponses => responses(data, known),
    };
    let piece = |(stream, path, block): (TextStream, String, (u64, u64))| {
        let text = data.pointer(&path)?.as_str()?.to_owned();
        Some(Piece { stream, text, path, block })
    };
    paths.into_iter().filter_map(piece).collect()
}

/// A stream, a JSON pointer, and a block.
pub(super) type Found = (TextStream, String, (u64, u64));

fn anthropic(data: &Value) -> Vec<Found> {
    let block = (data["index"].as_u64().unwrap_or(0), 0);
    let found = |stream, path: &str| vec![(stream, path.to_owned(), block)];
    match (data["type"].as_str(), data["delta"]["type"].as_str(), data["content_block"]["type"].as_str()) {
        (Some("content_block_delta"), Some("text_delta"), _) => found(TextStream::Answer, "/delta/text"),
        (Some("content_block_delta"), Some("thinking_delta"), _) => found(TextStream::Thinking, "/delta/thinking"),
        (Some("content_block_start"), _, Some("text")) => found(TextStream::Answer, "/content_block/text"),
        (Some("content_block_start"), _, Some("thinking")) => found(TextStream::Thinking, "/content_block/thinking"),
        _ => Vec::new(),
    }
}

fn chat(data: &Value) -> Vec<Found> {
    let (choice, mut found) = (&data["choices"][0], Vec::new());
    for at in ["delta", "message"] {
        let Some(part) = choice[at].as_object() else { continue };
        let path = |key: &str| part.get(key).is_some_and(Value::is_string).then(|| format!("/choices/0/{at}/{key}"));
        let thinking = ["reasoning_content", "reasoning"].into_iter().filter_map(path);
        found.extend(thinking.map(|path| (TextStream::Thinking, path, (0, 1))));
        let parts = part.get("content").and_then(Value::as_array).map_or(0, Vec::len);
        let parts = (0..parts).map(|part| format!("/choices/0/{at}/content/{part}/text"));
        let texts = parts.chain(["content", "refusal"].into_iter().filter_map(path));
        found.extend(texts.map(|path| (TextStream::Answer, path, (0, 0))));
    }
    if choice["text"].is_string() {
        found.push((TextStream::Answer, "/choices/0/text".to_owned(), (0, 0)));
    }
    found
}

fn responses(data: &Value, known: &Repeats) -> Vec<Found> {
    let block = |number: &str, flag: u64| {
        let index = |key: &str| data[key].as_u64().unwrap_or(0);
        (index("output_index"), flag | index(number))
    };
    let delta = |stream, block| vec![(stream, "/delta".to_owned(), block)];
    match data["type"].as_str().unwrap_or_default() {
        "response.output_text.delta" | "response.refusal.delta" => delta(TextStream::Answer, block("content_index", 0)),
        "response.reasoning_summary_text.delta" => delta(TextStream::Thinking, block("summary_index", 0)),
        "response.reasoning_text.delta" => delta(TextStream::Thinking, block("content_index", REASONING)),
        // Text that was not streamed is read from the end of its block.
        _ => {
            let found = of_end(data).into_iter().flatten();
            found.filter(|(stream, _, block)| !known.has(*stream, *block)).collect()
        }
    }
}

/// Reasoning itself has other numbers than its summaries.
pub(super) const REASONING: u64 = 1 << 32;

/// Returns the places of the texts in a frame of the Responses API that ends a part, an item or the answer.
pub(super) fn ended(data: &Value) -> Vec<Found> {
    of_end(data).unwrap_or_else(|| {
        let output = data["response"]["output"].as_array().into_iter().flatten().zip(0..);
        output.flat_map(|(item, index)| of_item(item, &format!("/response/output/{index}"), index)).collect()
    })
}

/// Returns the places of the texts in a frame that ends a part or an item; `None` for any other frame.
fn of_end(data: &Value) -> Option<Vec<Found>> {
    let index = |key: &str| data[key].as_u64().unwrap_or(0);
    let (item, part, summary) = (index("output_index"), index("content_index"), index("summary_index"));
    let at = |path: &str, stream, number: u64| vec![(stream, path.to_owned(), (item, number))];
    let (answer, thinking) = (TextStream::Answer, TextStream::Thinking);
    Some(match data["type"].as_str().unwrap_or_default() {
        "response.output_text.done" => at("/text", answer, part),
        "response.refusal.done" => at("/refusal", answer, part),
        "response.reasoning_text.done" => at("/text", thinking, REASONING | part),
        "response.reasoning_summary_text.done" => at("/text", thinking, summary),
        "response.reasoning_summary_part.done" => at("/part/text", thinking, summary),
        "response.content_part.done" if data["part"]["type"] == "reasoning_text" => {
            at("/part/text", thinking, REASONING | part)
        }
        "response.content_part.done" => [at("/part/text", answer, part), at("/part/refusal", answer, part)].concat(),
        "response.output_item.done" => of_item(&data["item"], "/item", item),
        _ => return None,
    })
}

/// Returns the places of the texts of an item that is complete.
fn of_item(item: &Value, path: &str, index: u64) -> Vec<Found> {
    let parts = |key: &str| 0..item[key].as_array().map_or(0, Vec::len) as u64;
    let at = |key: &str, member: &str, stream, (flag, part): (u64, u64)| {
        (stream, format!("{path}/{key}/{part}/{member}"), (index, flag | part))
    };
    let (answer, thinking) = (TextStream::Answer, TextStream::Thinking);
    match item["type"].as_str() {
        Some("reasoning") => {
            let summaries = parts("summary").map(|part| at("summary", "text", thinking, (0, part)));
            summaries.chain(parts("content").map(|part| at("content", "text", thinking, (REASONING, part)))).collect()
        }
        Some("message") | None => {
            let of_part = |part| ["text", "refusal"].map(|member| at("content", member, answer, (0, part)));
            parts("content").flat_map(of_part).collect()
        }
        Some(_) => Vec::new(),
    }
}

/// Whether the texts of a frame are complete: no frame that follows has more of them.
pub(super) fn is_complete(wire: Wire, frame: &Frame) -> bool {
    wire == Wire::OpenAiResponses && frame.kind().ends_with(".done")
}

/// Returns whether a frame ends the reasoning before it, if there is any.
pub(super) fn ends_reasoning(wire: Wire, frame: &Frame) -> bool {
    let Some(data) = &frame.data else { return false };
    match wire {
        Wire::Anthropic => frame.kind() == "content_block_stop",
        Wire::OpenAiChat => {
            let (delta, choice) = (&data["choices"][0]["delta"], &data["choices"][0]);
            let says = |key: &str| !delta[key].is_null() && delta[key] != "";
            says("content") || says("tool_calls") || !choice["finish_reason"].is_null()
        }
        Wire::OpenAiResponses => {
            let kind = frame.kind();
            kind.starts_with("response.reasoning") && kind.ends_with(".done") || kind == "response.output_item.done"
        }
    }
}

/// Returns whether nothing is left of a frame whose texts are empty.
pub(super) fn is_alone(wire: Wire, frame: &Frame) -> bool {
    let Some(data) = &frame.data else { return false };
    match wire {
        Wire::Anthropic => frame.kind() == "content_block_delta",
        Wire::OpenAiResponses => frame.kind().ends_with(".delta"),
        Wire::OpenAiChat => {
            let choice = &data["choices"][0];
            let is_empty = |value: &Value| value.is_null() || value == "";
            let says_nothing = choice["delta"].as_object().is_some_and(|delta| delta.values().all(is_empty));
            says_nothing && choice["finish_reason"].is_null() && data["usage"].is_null()
        }
    }
}

/// Returns the index of a text block that a frame begins, in formats in which a block without text is refused later.
pub(super) fn opened(wire: Wire, frame: &Frame) -> Option<u64> {
    let data = frame.data.as_ref().filter(|_| wire == Wire::Anthropic)?;
    let is_text = frame.kind() == "content_block_start" && data["content_block"]["type"] == "text";
    (is_text && data["content_block"]["text"] == "").then(|| data["index"].as_u64()).flatten()
}

/// Lowers the index of a block. Returns whether there is one.
pub(super) fn lower_index(frame: &mut Frame, by: u64) -> bool {
    let Some(index) = frame.data.as_mut().and_then(|data| data.get_mut("index")) else { return false };
    let Some(lower) = index.as_u64().and_then(|index| index.checked_sub(by)) else { return false };
    *index = Value::from(lower);
    true
}
