//! Bytes of a provider's stream → deltas. What the wire formats share: their choice, block numbers, the order of deltas.

use std::collections::{HashSet, VecDeque};

use flow::{BlockId, BlockKind, CallId, Delta, ErrorClass, ModelError, StopReason, Usage};

use crate::sse::{SseDecoder, SseEvent, TooLarge};
use crate::{Wire, anthropic, openai_chat, openai_responses};

/// Decodes one answer. The deltas are the same for every way its bytes are cut into chunks, but for the cuts between
/// pieces that the provider itself made.
#[derive(Debug)]
pub struct Decoder {
    sse: SseDecoder,
    format: Format,
    answer: Answer,
}

impl Decoder {
    /// A decoder at the beginning of an answer.
    pub fn new(wire: Wire) -> Self {
        let format = match wire {
            Wire::Anthropic => Format::Anthropic(anthropic::Decode::default()),
            Wire::OpenAiChat => Format::OpenAiChat(openai_chat::Decode::default()),
            Wire::OpenAiResponses => Format::OpenAiResponses(openai_responses::Decode::default()),
        };
        Self { sse: SseDecoder::new(), format, answer: Answer::default() }
    }

    /// Reads the next bytes. What they complete is given by [`Decoder::next_delta`], also when this fails.
    ///
    /// # Errors
    /// The provider reported an error inside the stream, an event cannot be read, or it is too large. The answer has
    /// ended then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let (format, answer) = (&mut self.format, &mut self.answer);
        self.sse.push(bytes, |event| format.event(event, answer))
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// The answer was not complete: what was missing is said, and the class is transient.
    pub fn finish(&mut self) -> Result<(), ModelError> {
        let (format, answer) = (&mut self.format, &mut self.answer);
        if !answer.stopped {
            // A last event without its blank line counts when it can be read; else it was cut off.
            let tail = std::mem::take(&mut self.sse)
                .finish(|event| if is_whole(&event.data) { format.event(event, answer) } else { Ok(()) });
            tail?;
        }
        if answer.stopped {
            return Ok(());
        }
        match format {
            Format::Anthropic(decode) => decode.finish(answer),
            Format::OpenAiChat(decode) => decode.finish(answer),
            Format::OpenAiResponses(decode) => decode.finish(answer),
        }
    }

    /// The next delta of what was read.
    pub fn next_delta(&mut self) -> Option<Delta> {
        self.answer.out.pop_front()
    }

    /// Whether the answer is complete: its [`Delta::Stop`] was decoded.
    pub fn is_stopped(&self) -> bool {
        self.answer.stopped
    }
}

#[derive(Debug)]
enum Format {
    Anthropic(anthropic::Decode),
    OpenAiChat(openai_chat::Decode),
    OpenAiResponses(openai_responses::Decode),
}

impl Format {
    fn event(&mut self, event: &SseEvent<'_>, answer: &mut Answer) -> Result<(), ModelError> {
        if answer.stopped {
            return Ok(()); // the answer was complete: nothing after its end changes it
        }
        match self {
            Self::Anthropic(decode) => decode.event(event, answer),
            Self::OpenAiChat(decode) => decode.event(event, answer),
            Self::OpenAiResponses(decode) => decode.event(event, answer),
        }
    }
}

/// The deltas of one answer under construction. Keeps the promises of [`Delta`]: blocks numbered in order of their
/// start, no empty piece, an end for every block, one stop; and no two calls of one id, none without.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    out: VecDeque<Delta>,
    started: bool,
    stopped: bool,
    next: BlockId,
    /// Blocks that began and did not end, oldest first.
    open: Vec<BlockId>,
    /// Ids of the calls so far.
    calls: HashSet<CallId>,
}

impl Answer {
    /// The answer begins, or begins anew.
    pub(crate) fn start(&mut self, model: Option<String>) {
        self.started = true;
        self.next = 0;
        self.open.clear();
        self.calls.clear();
        self.out.push_back(Delta::Start { model });
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started
    }

    pub(crate) fn begin(&mut self, kind: BlockKind) -> BlockId {
        if !self.started {
            self.start(None);
        }
        let block = self.next;
        self.next += 1;
        self.open.push(block);
        let kind = self.told_apart(block, kind);
        self.out.push_back(Delta::BlockStart { block, kind });
        block
    }

    /// Results, and rules that forbid a call, find it by its id: what a server leaves out or gives twice is minted.
    fn told_apart(&mut self, block: BlockId, kind: BlockKind) -> BlockKind {
        let BlockKind::Tool { mut call, name } = kind else { return kind };
        let mut number = block;
        while call.as_str().is_empty() || !self.calls.insert(call.clone()) {
            call = CallId::new(format!("call_{number}"));
            number = number.wrapping_add(1);
        }
        BlockKind::Tool { call, name }
    }

    pub(crate) fn piece(&mut self, block: BlockId, text: impl AsRef<str> + Into<String>) {
        if !text.as_ref().is_empty() {
            self.out.push_back(Delta::Piece { block, text: text.into() });
        }
    }

    pub(crate) fn signature(&mut self, block: BlockId, data: String, redacted: bool) {
        if !data.is_empty() {
            self.out.push_back(Delta::Signature { block, data, redacted });
        }
    }

    /// Ends a block; a second end of the same block is passed over.
    pub(crate) fn end(&mut self, block: BlockId) {
        if let Some(at) = self.open.iter().position(|open| *open == block) {
            self.open.remove(at);
            self.out.push_back(Delta::BlockEnd { block });
        }
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        if usage != Usage::default() {
            self.out.push_back(Delta::Usage(usage));
        }
    }

    /// The answer is complete: what is still open ends, then comes the stop.
    pub(crate) fn stop(&mut self, reason: StopReason) {
        if self.stopped {
            return;
        }
        if !self.started {
            self.start(None);
        }
        while let Some(block) = self.open.first().copied() {
            self.end(block);
        }
        self.stopped = true;
        self.out.push_back(Delta::Stop { reason });
    }
}

/// Reads an event's JSON.
pub(crate) fn parse<'de, T: serde::Deserialize<'de>>(event: &'de SseEvent<'_>) -> Result<T, ModelError> {
    serde_json::from_str(&event.data).map_err(|cause| {
        let begin: String = event.data.chars().take(120).collect();
        ModelError::new(
            ErrorClass::Permanent,
            format!("cannot read an event of the stream: {cause}; it begins {begin:?}"),
        )
    })
}

/// The error of a stream that ended too early.
pub(crate) fn ended_without(missing: &str) -> ModelError {
    ModelError::new(
        ErrorClass::Transient,
        format!("the stream ended before the answer was complete: no {missing} came"),
    )
}

fn is_whole(data: &str) -> bool {
    data == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}

impl From<TooLarge> for ModelError {
    fn from(cause: TooLarge) -> Self {
        Self::new(ErrorClass::Permanent, format!("cannot read the stream: {cause}"))
    }
}
