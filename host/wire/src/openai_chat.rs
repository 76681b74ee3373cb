//! The OpenAI Chat Completions wire format, as OpenAI and the many servers that imitate it speak it.

mod request;

use flow::{BlockId, CallId, ModelError, StopReason, StreamKind, Usage};
use serde::Deserialize;

pub(crate) use self::request::encode;
use crate::decode::{Answer, ended_without, is_done, misplaced, parse};
use crate::failure;
use crate::loose::{Number, Text, Value, or_default};
use crate::sse::SseEvent;
use crate::surrogates::Half;

/// Decodes one answer.
#[derive(Debug, Default)]
pub(crate) struct Decode {
    /// The open block of text or thinking, if there is one.
    prose: Option<(Prose, BlockId)>,
    /// All calls so far. They end with the answer, because servers can interleave their chunks.
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
    /// The server gave no id so far.
    minted: bool,
    /// What came of the name. It is complete when arguments, another call or anything else follows.
    name: String,
    /// `None` until then.
    block: Option<BlockId>,
    /// Arguments that came before the name, and the first half of a character that they end with.
    early: String,
    half: Half,
}

impl Decode {
    pub(crate) fn event(&mut self, event: &SseEvent<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        if is_done(event) {
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
            self.choice(choice, answer)?;
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
        self.begin_calls(None, answer);
        // A call without a name is a mistake of the model, which reads about it in the result.
        for call in self.calls.iter_mut().filter(|call| call.block.is_none() && call.is_any()) {
            call.begin(answer);
        }
        answer.stop(match reason {
            // Some servers send `stop` after tool calls; without the right reason the calls would not run.
            StopReason::EndTurn if self.calls.iter().any(|call| call.block.is_some()) => StopReason::ToolUse,
            StopReason::EndTurn if self.refused => StopReason::Refusal,
            reason => reason,
        });
        Ok(())
    }

    fn choice(&mut self, choice: Choice<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        // A server that does not stream sends all of the answer as one message; others repeat it at the end.
        let whole = choice.message.filter(|_| !answer.has_blocks() && self.calls.is_empty());
        for delta in [choice.delta, whole].into_iter().flatten() {
            self.delta(delta, answer)?;
        }
        self.prose(Prose::Text, choice.text, answer);
        if let Some(word) = choice.finish_reason.given() {
            self.reason = Some(stop_reason(word));
            self.end_prose(answer); // only counts of tokens come after it
        }
        Ok(())
    }

    fn delta(&mut self, delta: ChoiceDelta<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        // Two names for one thing; servers that send both send the same words twice.
        let thinking = if delta.reasoning_content.is_empty() { delta.reasoning } else { delta.reasoning_content };
        self.prose(Prose::Thinking, thinking, answer);
        self.content(delta.content, Prose::Text, answer);
        self.refused |= !delta.refusal.is_empty();
        self.prose(Prose::Text, delta.refusal, answer);
        for piece in delta.tool_calls.into_iter().flatten() {
            self.tool(piece, answer)?;
        }
        // What the format had before `tool_calls`: one call, without an id.
        match delta.function_call {
            Some(function) if !function.is_empty() => self.tool(ToolPiece { function, ..ToolPiece::default() }, answer),
            _ => Ok(()),
        }
    }

    /// Text as most servers send it, or a list of parts with text and thinking.
    fn content(&mut self, content: Value<'_>, kind: Prose, answer: &mut Answer) {
        match content {
            Value::Text(text) => self.prose(kind, text, answer),
            Value::List(parts) => parts.into_iter().for_each(|part| self.content(part, kind, answer)),
            Value::Map(fields) => {
                let mut read = false;
                let mut named = String::new();
                for (field, value) in fields {
                    match (field.as_str(), value) {
                        ("text", value @ Value::Text(_)) => {
                            read = true;
                            self.content(value, kind, answer);
                        }
                        ("thinking", value) => {
                            read = true;
                            self.content(value, Prose::Thinking, answer);
                        }
                        ("type", Value::Text(word)) => named = word.into_string(),
                        _ => {}
                    }
                }
                if !read {
                    answer.passed_over(|| format!("content parts of type {named:?}"));
                }
            }
            Value::Number(_) | Value::Other => {}
        }
    }

    fn prose(&mut self, kind: Prose, text: Text<'_>, answer: &mut Answer) {
        if text.is_empty() {
            return;
        }
        self.begin_calls(None, answer);
        let block = match self.prose {
            Some((open, block)) if open == kind => block,
            _ => {
                self.end_prose(answer);
                let block = answer.begin(match kind {
                    Prose::Text => StreamKind::Text,
                    Prose::Thinking => StreamKind::Thinking,
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

    fn tool(&mut self, piece: ToolPiece<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        self.end_prose(answer);
        let at = self.find_call(&piece);
        self.begin_calls(Some(at), answer);
        let function = piece.function;
        let kept = piece.id.as_str().len() + function.name.as_str().len();
        let calls = self.calls.len();
        let call = &mut self.calls[at];
        call.name(function.name.as_str())?;
        match call.block {
            Some(block) => answer.text(block, function.arguments),
            None if call.name.is_empty() => {
                answer.keeps(calls, kept + function.arguments.as_str().len());
                call.early.push_str(&call.half.join(function.arguments));
            }
            None if function.arguments.is_empty() => answer.keeps(calls, kept),
            None => {
                let block = call.begin(answer);
                answer.text(block, function.arguments);
            }
        }
        Ok(())
    }

    /// Begins the calls whose names are complete because something else follows them.
    fn begin_calls(&mut self, but: Option<usize>, answer: &mut Answer) {
        for (at, call) in self.calls.iter_mut().enumerate() {
            if Some(at) != but && call.block.is_none() && !call.name.is_empty() {
                call.begin(answer);
            }
        }
    }

    /// The call that a chunk belongs to, created if it is new. By index; but a server that gives every call the same
    /// index (or none) distinguishes them by id.
    fn find_call(&mut self, piece: &ToolPiece<'_>) -> usize {
        let id = piece.id.as_str();
        let same_id = |call: &Call| id.is_empty() || call.id == id || call.minted;
        let found = match piece.index.0 {
            Some(index) => self.calls.iter().rposition(|call| call.index == index && same_id(call)),
            None => self.calls.iter().rposition(same_id),
        };
        let at = found.unwrap_or_else(|| {
            let at = self.calls.len();
            // An id is minted where the server gives none: the result must name the call.
            let index = piece.index.0.unwrap_or(at as u64);
            self.calls.push(Call::new(index, format!("call_{at}")));
            at
        });
        let call = &mut self.calls[at];
        if call.minted && call.block.is_none() && !id.is_empty() {
            (call.id, call.minted) = (id.to_owned(), false);
        }
        at
    }
}

impl Call {
    fn new(index: u64, id: String) -> Self {
        Self { index, id, minted: true, name: String::new(), block: None, early: String::new(), half: Half::default() }
    }

    /// Whether the server has sent anything of it.
    fn is_any(&self) -> bool {
        !self.minted || !self.name.is_empty() || !self.early.is_empty()
    }

    /// More of the name: most servers send it once, some with each chunk, some the name so far, some in parts.
    fn name(&mut self, more: &str) -> Result<(), ModelError> {
        if more.is_empty() || more == self.name {
            return Ok(());
        }
        if self.block.is_some() {
            let (id, name) = (&self.id, &self.name);
            return Err(misplaced(format_args!(
                "received {more:?} for the name of tool call {id:?} after arguments of {name:?} had begun"
            )));
        }
        if more.starts_with(&self.name) {
            self.name.clear();
        }
        self.name.push_str(more);
        Ok(())
    }

    fn begin(&mut self, answer: &mut Answer) -> BlockId {
        let kind = StreamKind::Tool { call: CallId::new(self.id.as_str()), name: self.name.clone() };
        let block = answer.begin(kind);
        answer.piece(block, std::mem::take(&mut self.early));
        if let Some(half) = answer.half(block) {
            *half = std::mem::take(&mut self.half);
        }
        self.block = Some(block);
        block
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
    #[serde(borrow, default)]
    delta: Option<ChoiceDelta<'a>>,
    #[serde(borrow, default)]
    message: Option<ChoiceDelta<'a>>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct ChoiceDelta<'a> {
    #[serde(borrow, default)]
    content: Value<'a>,
    #[serde(borrow, default)]
    reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    reasoning: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolPiece<'a>>>,
    #[serde(borrow)]
    function_call: Option<FunctionPiece<'a>>,
}

#[derive(Debug, Default, Deserialize)]
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

impl FunctionPiece<'_> {
    fn is_empty(&self) -> bool {
        self.name.is_empty() && self.arguments.is_empty()
    }
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
