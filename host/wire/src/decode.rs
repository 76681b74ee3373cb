//! Bytes of a provider's stream → deltas. What the wire formats share: their choice, block numbers, the order of deltas.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use flow::{BlockId, CallId, Delta, FailureKind, ModelError, StopReason, StreamKind, Usage};

use crate::limits::{AnswerLimits, exceeded};
use crate::loose::Text;
use crate::sse::{SseDecoder, SseEvent, TooLarge};
use crate::surrogates::Half;
use crate::{Wire, anthropic, failure, openai_chat, openai_responses, surrogates};

/// Decodes one answer. The deltas are the same for every way its bytes are cut into chunks, but for the cuts between
/// chunks of the provider.
#[derive(Debug)]
pub struct AnswerDecoder {
    sse: SseDecoder,
    format: Format,
    answer: Answer,
    /// Bytes of the body so far.
    read: usize,
    /// The first of them, until there is an event.
    first: Vec<u8>,
}

/// The most bytes of a body without an event that an error repeats.
const FIRST_BYTES: usize = 400;

impl AnswerDecoder {
    /// A decoder at the beginning of an answer, with the default [`AnswerLimits`].
    pub fn new(wire: Wire) -> Self {
        Self::with_limits(wire, AnswerLimits::default())
    }

    /// A decoder at the beginning of an answer that may become so large.
    pub fn with_limits(wire: Wire, limits: AnswerLimits) -> Self {
        let format = match wire {
            Wire::Anthropic => Format::Anthropic(anthropic::Decode::default()),
            Wire::OpenAiChat => Format::OpenAiChat(openai_chat::Decode::default()),
            Wire::OpenAiResponses => Format::OpenAiResponses(openai_responses::Decode::default()),
        };
        Self {
            sse: SseDecoder::new(),
            format,
            answer: Answer { limits, ..Answer::default() },
            read: 0,
            first: Vec::new(),
        }
    }

    /// Reads the next bytes. What they complete is given by [`AnswerDecoder::next_delta`], also when this fails.
    ///
    /// # Errors
    /// The provider reported an error inside the stream, an event cannot be read, or something is larger than its
    /// limit. The answer has ended then.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        let (format, answer) = (&mut self.format, &mut self.answer);
        if !answer.evented && self.first.len() < FIRST_BYTES {
            self.first.extend(bytes.iter().take(FIRST_BYTES - self.first.len()));
        }
        // What lies within the limit counts, however the bytes were cut.
        let most = answer.limits.wire_bytes;
        let fits = bytes.len().min(most - self.read);
        self.read += fits;
        self.sse.push(&bytes[..fits], |event| format.event(event, answer))?;
        if fits < bytes.len() && !answer.stopped {
            return Err(exceeded("wire_bytes", "bytes received", most + 1, most));
        }
        Ok(())
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// The answer was not complete: the error names what is missing.
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
        if !answer.evented {
            return Err(without_event(self.read, &self.first));
        }
        let finished = match format {
            Format::Anthropic(decode) => decode.finish(answer),
            Format::OpenAiChat(decode) => decode.finish(answer),
            Format::OpenAiResponses(decode) => decode.finish(answer),
        };
        answer.over.take().map_or(finished, Err)
    }

    /// The next delta of what was read.
    pub fn next_delta(&mut self) -> Option<Delta> {
        self.answer.out.pop_front()
    }

    /// Whether the body had any event.
    pub fn has_events(&self) -> bool {
        self.answer.evented
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
        answer.evented = true;
        // After its end nothing changes an answer; an event without data keeps a connection alive.
        if answer.stopped || event.data.trim_ascii().is_empty() {
            return Ok(());
        }
        let taken = match self {
            Self::Anthropic(decode) => decode.event(event, answer),
            Self::OpenAiChat(decode) => decode.event(event, answer),
            Self::OpenAiResponses(decode) => decode.event(event, answer),
        };
        // What goes over a limit is the cause of whatever else the event did.
        answer.over.take().map_or(taken, Err)
    }
}

/// The deltas of one answer under construction. Keeps the promises of [`Delta`]: blocks numbered in order of their
/// start, no empty chunk, an end for every block, one stop; and no two calls of one id, none without.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    out: VecDeque<Delta>,
    /// The body has events.
    evented: bool,
    started: bool,
    stopped: bool,
    next: BlockId,
    /// Blocks that began and did not end, oldest first.
    open: Vec<Open>,
    /// Ids of the calls so far.
    calls: HashSet<CallId>,
    limits: AnswerLimits,
    /// Blocks, calls and bytes so far. An answer that restarts continues the count, since it can restart any number
    /// of times.
    counted: Counted,
    /// The first limit that was exceeded, or why the answer is none; nothing is given after it.
    over: Option<ModelError>,
    /// The first content that no wire format's decoder reads.
    passed_over: Option<String>,
}

/// A block under construction.
#[derive(Debug)]
struct Open {
    id: BlockId,
    /// Its bytes so far.
    bytes: usize,
    /// The first half of a character that its text ends with.
    half: Half,
}

#[derive(Debug, Default)]
struct Counted {
    blocks: usize,
    calls: usize,
    bytes: usize,
}

impl Answer {
    /// The answer begins or restarts.
    pub(crate) fn start(&mut self, model: Option<String>) {
        self.started = true;
        self.next = 0;
        self.open.clear();
        self.calls.clear();
        self.passed_over = None;
        self.count(model.as_ref().map_or(0, String::len));
        self.out.push_back(Delta::Start { model });
    }

    pub(crate) fn is_started(&self) -> bool {
        self.started
    }

    pub(crate) fn begin(&mut self, kind: StreamKind) -> BlockId {
        if !self.started {
            self.start(None);
        }
        let block = self.next;
        self.next += 1;
        self.count_block(kind.is_tool());
        self.open.push(Open { id: block, bytes: 0, half: Half::default() });
        let named = if let StreamKind::Tool { call, name } = &kind { call.as_str().len() + name.len() } else { 0 };
        self.count(named);
        if self.over.is_none() {
            let kind = self.told_apart(block, kind);
            self.out.push_back(Delta::BlockStart { block, kind });
        }
        block
    }

    /// Results, and rules that forbid a call, find it by its id: what a server leaves out or gives twice is minted.
    fn told_apart(&mut self, block: BlockId, kind: StreamKind) -> StreamKind {
        let StreamKind::Tool { mut call, name } = kind else { return kind };
        let mut number = block;
        while call.as_str().is_empty() || !self.calls.insert(call.clone()) {
            call = CallId::new(format!("call_{number}"));
            number = number.wrapping_add(1);
        }
        StreamKind::Tool { call, name }
    }

    /// Gives more of a block as it came; a half of a character waits for its other half.
    pub(crate) fn text(&mut self, block: BlockId, text: Text<'_>) {
        let text = self.join(block, text);
        self.piece(block, text);
    }

    /// Converts more text of a block; to be emitted with [`Answer::piece`].
    pub(crate) fn join<'t>(&mut self, block: BlockId, text: Text<'t>) -> Cow<'t, str> {
        self.half(block).map_or(Cow::Borrowed(""), |half| half.join(text))
    }

    /// The first half of a character that an open block's text ends with.
    pub(crate) fn half(&mut self, block: BlockId) -> Option<&mut Half> {
        self.open.iter_mut().find(|open| open.id == block).map(|open| &mut open.half)
    }

    pub(crate) fn piece(&mut self, block: BlockId, text: impl AsRef<str> + Into<String>) {
        if !text.as_ref().is_empty() && self.fits(block, text.as_ref().len()) {
            self.out.push_back(Delta::Piece { block, text: text.into() });
        }
    }

    pub(crate) fn signature(&mut self, block: BlockId, data: String, redacted: bool) {
        if !data.is_empty() && self.fits(block, data.len()) {
            self.out.push_back(Delta::Signature { block, data, redacted });
        }
    }

    /// Ends a block; a second end of the same block is passed over.
    pub(crate) fn end(&mut self, block: BlockId) {
        let half = self.half(block).map_or("", Half::give_up);
        self.piece(block, half);
        if let Some(at) = self.open.iter().position(|open| open.id == block && self.over.is_none()) {
            self.open.remove(at);
            self.out.push_back(Delta::BlockEnd { block });
        }
    }

    pub(crate) fn usage(&mut self, usage: Usage) {
        if usage != Usage::default() {
            if !self.started {
                self.start(None);
            }
            self.out.push_back(Delta::Usage(usage));
        }
    }

    /// Content of a kind that is not read: tools that run at the provider, and whatever comes later. An answer that
    /// consists of nothing else is an error, which names the first of it.
    pub(crate) fn passed_over(&mut self, what: impl FnOnce() -> String) {
        self.passed_over.get_or_insert_with(|| {
            let what = what();
            tracing::warn!("the model's answer contains {what}, which is not supported");
            what
        });
    }

    /// Whether any block has begun.
    pub(crate) fn has_blocks(&self) -> bool {
        self.next > 0
    }

    /// The answer is complete: what is still open ends, then comes the stop.
    pub(crate) fn stop(&mut self, reason: StopReason) {
        if self.stopped || self.over.is_some() {
            return;
        }
        if let Some(what) = self.passed_over.take().filter(|_| !self.has_blocks()) {
            let message = format!("the answer contains nothing that is supported: it consists of {what}");
            self.over = Some(ModelError::of_kind(FailureKind::Unsupported, message));
            return;
        }
        if !self.started {
            self.start(None);
        }
        while let Some(block) = self.open.first().map(|open| open.id).filter(|_| self.over.is_none()) {
            self.end(block);
        }
        if self.over.is_some() {
            return;
        }
        self.stopped = true;
        self.out.push_back(Delta::Stop { reason });
    }

    /// For what a format keeps back or must remember: so many things by now, so many bytes more.
    pub(crate) fn keeps(&mut self, things: usize, more: usize) {
        let most = self.limits.blocks;
        if things > most {
            self.exceed("blocks", "blocks", things, most);
        }
        self.count(more);
    }

    fn count_block(&mut self, call: bool) {
        let AnswerLimits { blocks, calls, .. } = self.limits;
        self.counted.blocks += 1;
        self.counted.calls += usize::from(call);
        if self.counted.blocks > blocks {
            self.exceed("blocks", "blocks", self.counted.blocks, blocks);
        }
        if self.counted.calls > calls {
            self.exceed("calls", "tool calls", self.counted.calls, calls);
        }
    }

    /// Counts bytes of a block and returns whether they are within the limits.
    fn fits(&mut self, block: BlockId, bytes: usize) -> bool {
        let most = self.limits.block_bytes;
        let open = self.open.iter_mut().find(|open| open.id == block);
        let in_block = open.map_or(bytes, |open| {
            open.bytes += bytes;
            open.bytes
        });
        if in_block > most {
            self.exceed("block_bytes", "bytes in one block", in_block, most);
        }
        self.count(bytes);
        self.over.is_none()
    }

    fn count(&mut self, bytes: usize) {
        let most = self.limits.answer_bytes;
        self.counted.bytes += bytes;
        if self.counted.bytes > most {
            self.exceed("answer_bytes", "bytes in all blocks", self.counted.bytes, most);
        }
    }

    fn exceed(&mut self, limit: &str, what: &str, measured: usize, most: usize) {
        self.over.get_or_insert_with(|| exceeded(limit, what, measured, most));
    }
}

/// Whether an event is the end of a stream as OpenAI's servers mark it.
pub(crate) fn is_done(event: &SseEvent<'_>) -> bool {
    event.data.trim_ascii() == "[DONE]"
}

/// Reads an event's JSON. What garbles one event (a proxy, a server that is restarted) need not garble the next answer:
/// the default table has it as transient as a stream that was cut off.
pub(crate) fn parse<'de, T: serde::Deserialize<'de>>(event: &'de SseEvent<'_>) -> Result<T, ModelError> {
    surrogates::from_str(&event.data).map_err(|cause| {
        let begin = failure::excerpt(event.data.as_bytes());
        ModelError::of_kind(
            FailureKind::Decode,
            format!("cannot read an event of the stream: {cause}; it begins: {begin}"),
        )
    })
}

/// The error of content that does not belong to anything: what was received, where, and what is missing.
pub(crate) fn misplaced(what: impl std::fmt::Display) -> ModelError {
    ModelError::of_kind(FailureKind::Unsupported, format!("the provider's stream is inconsistent: {what}"))
}

/// The error of a stream that ended too early.
pub(crate) fn ended_without(missing: &str) -> ModelError {
    ModelError::of_kind(
        FailureKind::Incomplete,
        format!("the stream ended before the answer was complete: no {missing} was received"),
    )
}

/// The error of a body that is not a stream of events.
fn without_event(bytes: usize, first: &[u8]) -> ModelError {
    let message = match bytes {
        0 => "the provider answered with an empty body: 0 bytes".to_owned(),
        1 => "the provider answered with 1 byte and no event".to_owned(),
        bytes => {
            format!("the provider answered with {bytes} bytes and no event; they begin: {}", failure::excerpt(first))
        }
    };
    ModelError::of_kind(FailureKind::Incomplete, message)
}

fn is_whole(data: &str) -> bool {
    data.trim_ascii() == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}

impl From<TooLarge> for ModelError {
    fn from(cause: TooLarge) -> Self {
        Self::of_kind(FailureKind::Limit, format!("cannot read the stream: {cause}"))
    }
}
