//! The events of a stream as they are on the wire: every field may be absent, and of another type.

use flow::Usage;
use serde::Deserialize;

use super::item::ItemKind;
use crate::loose::{Number, Text, or_default};

/// Any event: the fields of those we know, side by side.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) item_id: Text<'a>,
    #[serde(default)]
    pub(super) output_index: Number,
    #[serde(default)]
    pub(super) content_index: Number,
    #[serde(default)]
    pub(super) summary_index: Number,
    #[serde(borrow, default)]
    pub(super) delta: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) item: WireItem<'a>,
    #[serde(borrow, default, deserialize_with = "or_default", rename = "part")]
    pub(super) whole: WirePart<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) response: Response<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WireItem<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) call_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Text<'a>,
    #[serde(borrow, default)]
    pub(super) encrypted_content: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) content: Vec<WirePart<'a>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) summary: Vec<WirePart<'a>>,
}

impl Event<'_> {
    /// The part of its item that it speaks of.
    pub(super) fn part(&self) -> Option<u64> {
        self.content_index.0.or(self.summary_index.0)
    }
}

impl WireItem<'_> {
    pub(super) fn kind(&self) -> ItemKind {
        match self.kind.as_str() {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call,
            _ => ItemKind::Unknown,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WirePart<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) refusal: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) usage: WireUsage,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) incomplete_details: Incomplete<'a>,
}

/// The last event once more, for its output: so an output of another shape does not make the rest of it unreadable.
#[derive(Debug, Deserialize)]
pub(super) struct Finished<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) response: Output<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Output<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) output: Vec<WireItem<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Incomplete<'a> {
    #[serde(borrow, default)]
    pub(super) reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WireUsage {
    #[serde(default)]
    pub(super) input_tokens: Number,
    #[serde(default)]
    pub(super) output_tokens: Number,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) input_tokens_details: InputDetails,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct InputDetails {
    #[serde(default)]
    pub(super) cached_tokens: Number,
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
