//! The OpenAI Responses wire format, as OpenAI and llama.cpp speak it.
//!
//! Items are found by `item_id` first and by `output_index` where a server leaves the id out, and every index may be
//! absent: llama.cpp sends none, and names a call's item by its `call_id`.

mod request;

use flow::{BlockId, BlockKind, CallId, ModelError, StopReason, Usage};
use serde::{Deserialize, Serialize};

pub(crate) use self::request::encode;
use crate::decode::{Answer, ended_without, parse};
use crate::failure;
use crate::loose::{Number, Text, or_default};
use crate::sse::SseEvent;

/// Decodes one answer.
#[derive(Debug, Default)]
pub(crate) struct Decode {
    items: Vec<Item>,
    called: bool,
    refused: bool,
}

/// An output item: an answer's message, a stretch of reasoning, or a call.
#[derive(Debug)]
struct Item {
    id: String,
    call_id: String,
    index: Option<u64>,
    kind: ItemKind,
    /// The block under way. A message has one for each of its parts, the others one in all.
    block: Option<BlockId>,
    /// Which part of the item the block holds.
    part: u64,
    /// Something of the item (of the part, in a message) was streamed: what is repeated whole at its end is not taken.
    streamed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Message,
    Reasoning,
    Call,
    /// Tools that run at the provider, and whatever comes later: passed over.
    Unknown,
}

/// What goes back with a stretch of reasoning: the signature of a thinking block of this wire format.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Sealed {
    pub(crate) id: String,
    pub(crate) encrypted_content: String,
}

impl Decode {
    pub(crate) fn event(&mut self, event: &SseEvent<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        if event.data == "[DONE]" {
            return Ok(());
        }
        let wire: Event<'_> = parse(event)?;
        let kind = if wire.kind.is_empty() { event.name.as_ref() } else { wire.kind.as_str() };
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => start(&wire.response, answer),
            "response.output_item.added" => self.added(&wire, answer),
            "response.output_text.delta" => self.part(ItemKind::Message, &wire, &wire.delta, answer),
            "response.output_text.done" => self.whole_part(ItemKind::Message, &wire, &wire.text, answer),
            "response.refusal.delta" => {
                self.refused = true;
                self.part(ItemKind::Message, &wire, &wire.delta, answer);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.part(ItemKind::Reasoning, &wire, &wire.delta, answer);
            }
            "response.reasoning_summary_text.done" | "response.reasoning_text.done" => {
                self.whole_part(ItemKind::Reasoning, &wire, &wire.text, answer);
            }
            "response.function_call_arguments.delta" => self.part(ItemKind::Call, &wire, &wire.delta, answer),
            "response.function_call_arguments.done" => {
                self.whole_part(ItemKind::Call, &wire, &wire.arguments, answer);
            }
            "response.output_item.done" => self.done(&wire, answer),
            "response.completed" | "response.incomplete" => self.complete(&wire.response, answer),
            "response.failed" | "error" => return Err(failure::in_stream(&event.data)),
            _ => {}
        }
        Ok(())
    }

    /// The stream ended without one of the three events that end an answer.
    pub(crate) fn finish(&mut self, _: &mut Answer) -> Result<(), ModelError> {
        Err(ended_without("response.completed"))
    }

    fn added(&mut self, wire: &Event<'_>, answer: &mut Answer) {
        let kind = wire.item.kind();
        let mut item = Item {
            id: wire.item.id.as_str().to_owned(),
            call_id: wire.item.call_id.as_str().to_owned(),
            index: wire.output_index.0,
            kind,
            block: None,
            part: 0,
            streamed: false,
        };
        match kind {
            ItemKind::Call => {
                self.called = true;
                let call = if item.call_id.is_empty() { &item.id } else { &item.call_id };
                let kind =
                    BlockKind::Tool { call: CallId::new(call.as_str()), name: wire.item.name.as_str().to_owned() };
                item.block = Some(answer.begin(kind));
            }
            // A stretch of reasoning may be nothing but its encrypted content; a message's parts begin by themselves.
            ItemKind::Reasoning => item.block = Some(answer.begin(BlockKind::Thinking)),
            ItemKind::Message | ItemKind::Unknown => {}
        }
        self.items.push(item);
    }

    /// More of an item.
    fn part(&mut self, kind: ItemKind, wire: &Event<'_>, text: &Text<'_>, answer: &mut Answer) {
        if text.is_empty() {
            return;
        }
        let Some(item) = self.find(kind, wire) else { return };
        let part = wire.content_index.0.or(wire.summary_index.0).unwrap_or(0);
        let next_part = item.streamed && item.part != part;
        if let Some(open) = item.block.filter(|_| next_part) {
            if kind == ItemKind::Message {
                answer.end(open);
                item.block = None;
            } else {
                answer.piece(open, "\n\n"); // summaries are paragraphs
            }
        }
        item.part = part;
        item.streamed = true;
        let block = *item.block.get_or_insert_with(|| answer.begin(BlockKind::Text));
        answer.piece(block, text.as_str());
    }

    /// The end of a part that repeats it whole: taken where nothing of it was streamed.
    fn whole_part(&mut self, kind: ItemKind, wire: &Event<'_>, text: &Text<'_>, answer: &mut Answer) {
        let part = wire.content_index.0.or(wire.summary_index.0).unwrap_or(0);
        if self.find(kind, wire).is_some_and(|item| !item.streamed || item.part < part) {
            self.part(kind, wire, text, answer);
        }
    }

    fn done(&mut self, wire: &Event<'_>, answer: &mut Answer) {
        let kind = wire.item.kind();
        if kind == ItemKind::Unknown {
            return;
        }
        if self.position(kind, wire).is_none() {
            self.added(wire, answer); // it comes whole, without having been announced
        }
        self.fill(kind, wire, answer);
        let Some(at) = self.position(kind, wire) else { return };
        let item = self.items.remove(at);
        let Some(block) = item.block else { return };
        if kind == ItemKind::Reasoning && !wire.item.encrypted_content.is_empty() {
            let id = wire.item.id.given().unwrap_or(&item.id).to_owned();
            let sealed = Sealed { id, encrypted_content: wire.item.encrypted_content.as_str().to_owned() };
            // Two texts always become JSON.
            answer.signature(block, serde_json::to_string(&sealed).unwrap_or_default(), !item.streamed);
        }
        answer.end(block);
    }

    /// Takes what the finished item holds where nothing of it was streamed.
    fn fill(&mut self, kind: ItemKind, wire: &Event<'_>, answer: &mut Answer) {
        if self.find(kind, wire).is_none_or(|item| item.streamed) {
            return;
        }
        match kind {
            ItemKind::Call => self.part(kind, wire, &wire.item.arguments, answer),
            ItemKind::Message | ItemKind::Reasoning => {
                let parts = if kind == ItemKind::Message { &wire.item.content } else { &wire.item.summary };
                let text: Vec<&str> = parts.iter().filter_map(|part| part.text.given()).collect();
                self.part(kind, wire, &Text(text.join("\n\n").into()), answer);
            }
            ItemKind::Unknown => {}
        }
    }

    fn complete(&mut self, response: &Response<'_>, answer: &mut Answer) {
        start(response, answer);
        answer.usage((&response.usage).into());
        answer.stop(match response.incomplete_details.reason.as_str() {
            "max_output_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            "" if self.called => StopReason::ToolUse,
            "" if self.refused => StopReason::Refusal,
            "" => StopReason::EndTurn,
            other => StopReason::Other(other.to_owned()),
        });
    }

    fn find(&mut self, kind: ItemKind, wire: &Event<'_>) -> Option<&mut Item> {
        self.position(kind, wire).map(|at| &mut self.items[at])
    }

    /// The item an event speaks of: by id, else by index, else the latest of its kind that goes on.
    fn position(&self, kind: ItemKind, wire: &Event<'_>) -> Option<usize> {
        let named = |id: &str| {
            let same = |item: &Item| item.kind == kind && (item.id == id || item.call_id == id);
            self.items.iter().rposition(same)
        };
        for id in [wire.item_id.given(), wire.item.id.given(), wire.item.call_id.given()].into_iter().flatten() {
            if let Some(at) = named(id) {
                return Some(at);
            }
        }
        if let Some(index) = wire.output_index.0 {
            return self.items.iter().rposition(|item| item.kind == kind && item.index == Some(index));
        }
        self.items.iter().rposition(|item| item.kind == kind && item.index.is_none())
    }
}

fn start(response: &Response<'_>, answer: &mut Answer) {
    if !answer.is_started() {
        answer.start(response.model.given().map(str::to_owned));
    }
}

/// Any event: the fields of those we know, side by side.
#[derive(Debug, Default, Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    item_id: Text<'a>,
    #[serde(default)]
    output_index: Number,
    #[serde(default)]
    content_index: Number,
    #[serde(default)]
    summary_index: Number,
    #[serde(borrow, default)]
    delta: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    item: WireItem<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    response: Response<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct WireItem<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    call_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
    #[serde(borrow, default)]
    encrypted_content: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    content: Vec<WirePart<'a>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    summary: Vec<WirePart<'a>>,
}

impl WireItem<'_> {
    fn kind(&self) -> ItemKind {
        match self.kind.as_str() {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call,
            _ => ItemKind::Unknown,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(default, deserialize_with = "or_default")]
    usage: WireUsage,
    #[serde(borrow, default, deserialize_with = "or_default")]
    incomplete_details: Incomplete<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow, default)]
    reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: Number,
    #[serde(default)]
    output_tokens: Number,
    #[serde(default, deserialize_with = "or_default")]
    input_tokens_details: InputDetails,
}

#[derive(Debug, Default, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Number,
}

impl From<&WireUsage> for Usage {
    fn from(wire: &WireUsage) -> Self {
        Self {
            input: wire.input_tokens.0,
            output: wire.output_tokens.0,
            cache_read: wire.input_tokens_details.cached_tokens.0,
            cache_write: None,
        }
    }
}
