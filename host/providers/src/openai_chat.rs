//! The OpenAI Chat Completions wire format, as OpenAI and the many servers that imitate it speak it.

mod request;

use flow::{BlockId, BlockKind, CallId, ModelError, StopReason, Usage};
use serde::Deserialize;

pub(crate) use self::request::encode;
use crate::decode::{Answer, ended_without, parse};
use crate::failure;
use crate::loose::{Number, Text, or_default};
use crate::sse::SseEvent;
use crate::surrogates::Half;

/// Decodes one answer.
#[derive(Debug, Default)]
pub(crate) struct Decode {
    /// The block of text or thinking that goes on, if one does.
    prose: Option<(Prose, BlockId)>,
    /// All calls so far. They end with the answer, because servers may send their pieces in turns.
    calls: Vec<Call>,
    refused: bool,
    reason: Option<StopReason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prose {
    Text,
    Thinking,
}

#[derive(Debug)]
struct Call {
    index: u64,
    id: String,
    /// `None` until the name is known.
    block: Option<BlockId>,
    /// What came before the name, and the first half of a character that it ends with.
    early: String,
    half: Half,
}

impl Decode {
    pub(crate) fn event(&mut self, event: &SseEvent<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        if event.data == "[DONE]" {
            return self.done(answer);
        }
        let chunk: Chunk<'_> = parse(event)?;
        if chunk.error.is_some_and(|error| !error.is_null()) || event.name == "error" {
            return Err(failure::in_stream(&event.data));
        }
        if !answer.is_started() {
            answer.start(chunk.model.given().map(str::to_owned));
        }
        for choice in chunk.choices.into_iter().filter(|choice| choice.index.0.unwrap_or(0) == 0) {
            self.choice(choice, answer);
        }
        answer.usage(chunk.usage.into());
        Ok(())
    }

    /// The stream ended without `[DONE]`, which many servers leave out: the reason to finish is what counts.
    pub(crate) fn finish(&mut self, answer: &mut Answer) -> Result<(), ModelError> {
        if self.reason.is_none() {
            return Err(ended_without("finish_reason"));
        }
        self.done(answer)
    }

    fn done(&mut self, answer: &mut Answer) -> Result<(), ModelError> {
        let Some(reason) = self.reason.take() else { return Err(ended_without("finish_reason")) };
        if let Some(call) = self.calls.iter().find(|call| call.block.is_none()) {
            let message = format!("the model called a tool without naming it (call {:?})", call.id);
            return Err(ModelError::new(flow::ErrorClass::Permanent, message));
        }
        answer.stop(match reason {
            // Some servers say `stop` after tool calls; without the right reason nobody would run them.
            StopReason::EndTurn if !self.calls.is_empty() => StopReason::ToolUse,
            StopReason::EndTurn if self.refused => StopReason::Refusal,
            reason => reason,
        });
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>, answer: &mut Answer) {
        let delta = choice.delta;
        // Two names for one thing; servers that send both send the same words twice.
        let thinking = if delta.reasoning_content.is_empty() { delta.reasoning } else { delta.reasoning_content };
        self.prose(Prose::Thinking, thinking, answer);
        self.prose(Prose::Text, delta.content, answer);
        self.refused |= !delta.refusal.is_empty();
        self.prose(Prose::Text, delta.refusal, answer);
        for piece in delta.tool_calls.into_iter().flatten() {
            self.tool(piece, answer);
        }
        if let Some(word) = choice.finish_reason.given() {
            self.reason = Some(stop_reason(word));
            self.end_prose(answer); // only counts of tokens come after it
        }
    }

    fn prose(&mut self, kind: Prose, text: Text<'_>, answer: &mut Answer) {
        if text.is_empty() {
            return;
        }
        let block = match self.prose {
            Some((open, block)) if open == kind => block,
            _ => {
                self.end_prose(answer);
                let block = answer.begin(match kind {
                    Prose::Text => BlockKind::Text,
                    Prose::Thinking => BlockKind::Thinking,
                });
                self.prose = Some((kind, block));
                block
            }
        };
        answer.text(block, text);
    }

    fn end_prose(&mut self, answer: &mut Answer) {
        if let Some((_, block)) = self.prose.take() {
            answer.end(block);
        }
    }

    fn tool(&mut self, piece: ToolPiece<'_>, answer: &mut Answer) {
        self.end_prose(answer);
        let at = self.find_call(&piece);
        let call = &mut self.calls[at];
        if call.block.is_none() && !piece.function.name.is_empty() {
            let kind =
                BlockKind::Tool { call: CallId::new(call.id.as_str()), name: piece.function.name.into_string() };
            let block = answer.begin(kind);
            answer.piece(block, std::mem::take(&mut call.early));
            if let Some(half) = answer.half(block) {
                *half = std::mem::take(&mut call.half);
            }
            call.block = Some(block);
        }
        match call.block {
            Some(block) => answer.text(block, piece.function.arguments),
            None => {
                let more = piece.id.as_str().len() + piece.function.arguments.as_str().len();
                call.early.push_str(&call.half.join(piece.function.arguments));
                let calls = self.calls.len();
                answer.keeps(calls, more);
            }
        }
    }

    /// Which call a piece belongs to, made where it is new. By index; but a server that gives every call the same index
    /// (or none) tells them apart by id.
    fn find_call(&mut self, piece: &ToolPiece<'_>) -> usize {
        let id = piece.id.as_str();
        let same_id = |call: &Call| id.is_empty() || call.id == id;
        let found = match piece.index.0 {
            Some(index) => self.calls.iter().rposition(|call| call.index == index && same_id(call)),
            None => self.calls.iter().rposition(same_id),
        };
        found.unwrap_or_else(|| {
            let at = self.calls.len();
            // An id is minted where the server gives none: the result must name the call.
            let id = if id.is_empty() { format!("call_{at}") } else { id.to_owned() };
            let index = piece.index.0.unwrap_or(at as u64);
            self.calls.push(Call { index, id, block: None, early: String::new(), half: Half::default() });
            at
        })
    }
}

fn stop_reason(word: &str) -> StopReason {
    match word {
        "stop" | "end_turn" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

#[derive(Debug, Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    choices: Vec<Choice<'a>>,
    #[serde(default, deserialize_with = "or_default")]
    usage: WireUsage,
    error: Option<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Number,
    #[serde(borrow, default, deserialize_with = "or_default")]
    delta: ChoiceDelta<'a>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct ChoiceDelta<'a> {
    #[serde(borrow, default)]
    content: Text<'a>,
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolPiece<'a>>>,
}

#[derive(Debug, Deserialize)]
struct ToolPiece<'a> {
    #[serde(default)]
    index: Number,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    function: FunctionPiece<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionPiece<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct WireUsage {
    #[serde(default)]
    prompt_tokens: Number,
    #[serde(default)]
    completion_tokens: Number,
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens_details: PromptDetails,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Number,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        Self {
            input: wire.prompt_tokens.0,
            output: wire.completion_tokens.0,
            cache_read: wire.prompt_tokens_details.cached_tokens.0,
            cache_write: None,
        }
    }
}
