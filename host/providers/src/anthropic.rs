//! The Anthropic Messages wire format: the events of its stream, and its request.

mod prefill;
mod request;

use flow::{BlockId, BlockKind, CallId, ModelError, StopReason, Usage};
use serde::Deserialize;

pub(crate) use self::prefill::goes_on;
pub(crate) use self::request::encode;
use crate::decode::{Answer, ended_without, parse};
use crate::failure;
use crate::loose::{Number, Text, or_default};
use crate::sse::SseEvent;

/// Decodes one answer.
#[derive(Debug, Default)]
pub(crate) struct Decode {
    blocks: Vec<Block>,
    reason: Option<StopReason>,
}

/// A block of the wire that we know; others (tools that run at the provider) are passed over with all their deltas.
#[derive(Debug)]
struct Block {
    index: u64,
    id: BlockId,
    /// Input that came whole with the start, in case no pieces follow.
    whole: Option<String>,
}

impl Decode {
    pub(crate) fn event(&mut self, event: &SseEvent<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        if event.data == "[DONE]" {
            return Ok(()); // sent by servers that speak several formats
        }
        let wire: Event<'_> = parse(event)?;
        let kind = if wire.kind.is_empty() { event.name.as_ref() } else { wire.kind.as_str() };
        match kind {
            "message_start" => {
                self.blocks.clear();
                answer.start(wire.message.model.given().map(str::to_owned));
                answer.usage(wire.message.usage.into());
            }
            "content_block_start" => self.begin(wire.index, wire.content_block, answer),
            "content_block_delta" => self.delta(wire.index, wire.delta, answer),
            "content_block_stop" => self.end(wire.index, answer),
            "message_delta" => {
                answer.usage(wire.usage.into());
                if let Some(word) = wire.delta.stop_reason.given() {
                    self.reason = Some(stop_reason(word));
                }
            }
            "message_stop" => answer.stop(self.reason.take().unwrap_or(StopReason::EndTurn)),
            "error" => return Err(failure::in_stream(&event.data)),
            _ => {} // `ping`, and whatever comes later
        }
        Ok(())
    }

    /// The stream ended without `message_stop`. With the stop reason known, all of the answer is there.
    pub(crate) fn finish(&mut self, answer: &mut Answer) -> Result<(), ModelError> {
        let missing = if answer.is_started() { "stop_reason" } else { "message_start" };
        let reason = self.reason.take().ok_or_else(|| ended_without(missing))?;
        answer.stop(reason);
        Ok(())
    }

    fn begin(&mut self, index: Number, content: ContentBlock<'_>, answer: &mut Answer) {
        let index = index.0.unwrap_or(0);
        self.end(Number(Some(index)), answer); // an index that is used again names a new block
        let (kind, whole) = match content.kind.as_str() {
            "text" => (BlockKind::Text, None),
            "thinking" | "redacted_thinking" => (BlockKind::Thinking, None),
            "tool_use" => {
                let call = CallId::new(content.id.as_str());
                let whole = content.input.filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                (BlockKind::Tool { call, name: content.name.into_string() }, whole.map(|input| input.to_string()))
            }
            _ => return,
        };
        let id = answer.begin(kind);
        answer.keeps(self.blocks.len(), whole.as_ref().map_or(0, String::len));
        answer.text(id, content.text);
        answer.text(id, content.thinking);
        answer.signature(id, content.signature.into_string(), false);
        answer.signature(id, content.data.into_string(), true);
        self.blocks.push(Block { index, id, whole });
    }

    fn delta(&mut self, index: Number, delta: BlockDelta<'_>, answer: &mut Answer) {
        let index = index.0.unwrap_or(0);
        let Some(block) = self.blocks.iter_mut().find(|block| block.index == index) else { return };
        match delta.kind.as_str() {
            "text_delta" => answer.text(block.id, delta.text),
            "thinking_delta" => answer.text(block.id, delta.thinking),
            "signature_delta" => answer.signature(block.id, delta.signature.into_string(), false),
            "input_json_delta" => {
                if !delta.partial_json.is_empty() {
                    block.whole = None;
                }
                answer.text(block.id, delta.partial_json);
            }
            _ => {} // `citations_delta` and what comes later
        }
    }

    fn end(&mut self, index: Number, answer: &mut Answer) {
        let index = index.0.unwrap_or(0);
        let Some(at) = self.blocks.iter().position(|block| block.index == index) else { return };
        let block = self.blocks.remove(at);
        if let Some(whole) = block.whole {
            answer.piece(block.id, whole);
        }
        answer.end(block.id);
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "end_turn" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" => StopReason::MaxTokens,
        "stop_sequence" => StopReason::StopSequence,
        "refusal" => StopReason::Refusal,
        "pause_turn" => StopReason::Pause,
        "model_context_window_exceeded" => StopReason::ContextFull,
        other => StopReason::Other(other.to_owned()),
    }
}

/// Any event: the fields of those we know, side by side, because no name has two meanings in them.
#[derive(Debug, Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    message: MessageStart<'a>,
    #[serde(default)]
    index: Number,
    #[serde(borrow, default, deserialize_with = "or_default")]
    content_block: ContentBlock<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    delta: BlockDelta<'a>,
    #[serde(default, deserialize_with = "or_default")]
    usage: WireUsage,
}

#[derive(Debug, Default, Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(default, deserialize_with = "or_default")]
    usage: WireUsage,
}

#[derive(Debug, Default, Deserialize)]
struct ContentBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    data: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    input: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
struct BlockDelta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct WireUsage {
    #[serde(default)]
    input_tokens: Number,
    #[serde(default)]
    output_tokens: Number,
    #[serde(default)]
    cache_read_input_tokens: Number,
    #[serde(default)]
    cache_creation_input_tokens: Number,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        Self {
            input: wire.input_tokens.0,
            output: wire.output_tokens.0,
            cache_read: wire.cache_read_input_tokens.0,
            cache_write: wire.cache_creation_input_tokens.0,
        }
    }
}
