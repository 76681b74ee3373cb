//! The Anthropic Messages wire format: the events of its stream, and its request.

mod prefill;
mod request;

use flow::{BlockId, CallId, ModelError, StopReason, StreamKind, Usage};
use serde::Deserialize;

pub use self::prefill::goes_on;
pub use self::request::DEFAULT_MAX_TOKENS;
pub(crate) use self::request::encode;
use crate::decode::{Answer, ended_without, is_done, misplaced, parse};
use crate::failure;
use crate::loose::{Number, Text, or_default};
use crate::sse::SseEvent;

/// Decodes one answer.
#[derive(Debug, Default)]
pub(crate) struct Decode {
    blocks: Vec<Block>,
    reason: Option<StopReason>,
}

/// A content block that has begun and not ended.
#[derive(Debug)]
struct Block {
    index: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text(BlockId),
    Thinking(BlockId),
    Call {
        id: BlockId,
        /// Input that came whole with the start, in case no parts follow.
        whole: Option<String>,
    },
    /// Tools that run at the provider, and whatever comes later: passed over, but for text in it.
    Unknown,
}

impl Content {
    fn block(&self) -> Option<BlockId> {
        match self {
            Self::Text(id) | Self::Thinking(id) | Self::Call { id, .. } => Some(*id),
            Self::Unknown => None,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Thinking(_) => "thinking",
            Self::Call { .. } => "a tool call",
            Self::Unknown => "of an unknown type",
        }
    }
}

impl Decode {
    pub(crate) fn event(&mut self, event: &SseEvent<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        if is_done(event) {
            return Ok(()); // sent by servers that speak several formats
        }
        let wire: Event<'_> = parse(event)?;
        let kind = if wire.kind.is_empty() { event.name.as_ref() } else { wire.kind.as_str() };
        let index = wire.index.0.unwrap_or(0);
        match kind {
            "message_start" => {
                *self = Self::default();
                answer.start(wire.message.model.given().map(str::to_owned));
                answer.usage(wire.message.usage.into());
            }
            "content_block_start" => self.begin(index, wire.content_block, answer),
            "content_block_delta" => self.delta(index, wire.delta, answer)?,
            "content_block_stop" => self.end(index, answer),
            "message_delta" => {
                answer.usage(wire.usage.into());
                if let Some(word) = wire.delta.stop_reason.given() {
                    self.reason = Some(stop_reason(word));
                }
            }
            "message_stop" => {
                self.end_all(answer);
                answer.stop(self.reason.take().unwrap_or(StopReason::EndTurn));
            }
            "error" => return Err(failure::in_stream(&event.data)),
            _ => {} // `ping`, and whatever comes later
        }
        Ok(())
    }

    /// The stream ended without `message_stop`. With the stop reason known, all of the answer is there.
    pub(crate) fn finish(&mut self, answer: &mut Answer) -> Result<(), ModelError> {
        let missing = if answer.is_started() { "stop_reason" } else { "message_start" };
        let reason = self.reason.take().ok_or_else(|| ended_without(missing))?;
        self.end_all(answer);
        answer.stop(reason);
        Ok(())
    }

    fn begin(&mut self, index: u64, block: ContentBlock<'_>, answer: &mut Answer) {
        self.end(index, answer); // an index that is used again names a new block
        let content = match block.kind.as_str() {
            "text" => Content::Text(answer.begin(StreamKind::Text)),
            "thinking" | "redacted_thinking" => Content::Thinking(answer.begin(StreamKind::Thinking)),
            "tool_use" => {
                let call = CallId::new(block.id.as_str());
                let input = block.input.filter(|input| input.as_object().is_some_and(|map| !map.is_empty()));
                let id = answer.begin(StreamKind::Tool { call, name: block.name.into_string() });
                Content::Call { id, whole: input.map(|input| input.to_string()) }
            }
            "" => return, // its deltas say what it is
            kind => {
                answer.passed_over(|| format!("content blocks of type {kind:?}"));
                Content::Unknown
            }
        };
        let whole = if let Content::Call { whole: Some(whole), .. } = &content { whole.len() } else { 0 };
        answer.keeps(self.blocks.len(), whole);
        if let Some(id) = content.block() {
            answer.text(id, block.text);
            answer.text(id, block.thinking);
            answer.signature(id, block.signature.into_string(), false);
            answer.signature(id, block.data.into_string(), true);
        }
        self.blocks.push(Block { index, content });
    }

    /// More of a block. Text and thinking begin their block where the server did not, or has ended it; arguments cannot,
    /// because only the start of a block names its tool.
    fn delta(&mut self, index: u64, delta: BlockDelta<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        let kind = delta.kind();
        let open = self.blocks.iter_mut().find(|block| block.index == index).map(|block| &mut block.content);
        match (kind, open) {
            (DeltaKind::Unknown, _) | (DeltaKind::Signature | DeltaKind::Arguments, Some(Content::Unknown)) => {}
            (DeltaKind::Text, Some(Content::Text(id))) => answer.text(*id, delta.text),
            (DeltaKind::Thinking, Some(Content::Thinking(id))) => answer.text(*id, delta.thinking),
            (DeltaKind::Signature, Some(Content::Thinking(id))) => {
                answer.signature(*id, delta.signature.into_string(), false);
            }
            (DeltaKind::Arguments, Some(Content::Call { id, whole })) => {
                if !delta.partial_json.is_empty() {
                    *whole = None;
                }
                answer.text(*id, delta.partial_json);
            }
            _ if delta.is_empty() => {}
            (DeltaKind::Arguments, None) => {
                return Err(misplaced(format_args!(
                    "received arguments of a tool call for content block {index} outside of its `content_block_start` \
                     and `content_block_stop`, so the tool is not known"
                )));
            }
            (DeltaKind::Arguments, Some(other)) | (_, Some(other @ Content::Call { .. })) => {
                let (kind, other) = (delta.kind.as_str(), other.word());
                return Err(misplaced(format_args!("received `{kind}` for content block {index}, which is {other}")));
            }
            (DeltaKind::Text, None | Some(Content::Thinking(_) | Content::Unknown)) => {
                self.end(index, answer);
                let id = answer.begin(StreamKind::Text);
                answer.text(id, delta.text);
                self.blocks.push(Block { index, content: Content::Text(id) });
            }
            (DeltaKind::Thinking | DeltaKind::Signature, None | Some(Content::Text(_) | Content::Unknown)) => {
                self.end(index, answer);
                let id = answer.begin(StreamKind::Thinking);
                answer.text(id, delta.thinking);
                answer.signature(id, delta.signature.into_string(), false);
                self.blocks.push(Block { index, content: Content::Thinking(id) });
            }
        }
        Ok(())
    }

    fn end(&mut self, index: u64, answer: &mut Answer) {
        if let Some(at) = self.blocks.iter().position(|block| block.index == index) {
            end(self.blocks.remove(at), answer);
        }
    }

    /// What the server did not end ends with the answer.
    fn end_all(&mut self, answer: &mut Answer) {
        self.blocks.drain(..).for_each(|block| end(block, answer));
    }
}

fn end(block: Block, answer: &mut Answer) {
    let Some(id) = block.content.block() else { return };
    if let Content::Call { whole: Some(whole), .. } = block.content {
        answer.piece(id, whole);
    }
    answer.end(id);
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

/// What a delta is more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeltaKind {
    Text,
    Thinking,
    Signature,
    Arguments,
    /// `citations_delta`, and whatever comes later.
    Unknown,
}

impl BlockDelta<'_> {
    /// If the server omits the type, the present field determines it.
    fn kind(&self) -> DeltaKind {
        match self.kind.as_str() {
            "text_delta" => DeltaKind::Text,
            "thinking_delta" => DeltaKind::Thinking,
            "signature_delta" => DeltaKind::Signature,
            "input_json_delta" => DeltaKind::Arguments,
            "" if !self.text.is_empty() => DeltaKind::Text,
            "" if !self.thinking.is_empty() => DeltaKind::Thinking,
            "" if !self.signature.is_empty() => DeltaKind::Signature,
            "" if !self.partial_json.is_empty() => DeltaKind::Arguments,
            _ => DeltaKind::Unknown,
        }
    }

    fn is_empty(&self) -> bool {
        [&self.text, &self.thinking, &self.signature, &self.partial_json].iter().all(|field| field.is_empty())
    }
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
