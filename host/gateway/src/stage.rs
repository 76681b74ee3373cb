//! Stage: passes the answer for the client through the callbacks of extensions.
//!
//! It is behind the gate: the frames that come in are those that a client without extensions would get. Each frame is sent unchanged and in
//! order as soon as none of its text waits for a callback; only strings that callbacks change are rewritten.

mod calls;
mod lane;
mod pieces;
mod repeats;
mod shares;
mod whole;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use flow::{CallFailure, TextStream};
use guard::attempt::Answer;
use guard::{Caller, Completed, Segments};
use wire::{SseDecoder, TooLarge, Wire};

pub(crate) use self::calls::{Decided, check};
use self::lane::Lane;
use self::pieces::Piece;
use self::repeats::Repeats;
pub(crate) use self::whole::Whole;
use crate::dialect::{self, Message};
use crate::frame::Frame;

/// Frames on their way through the callbacks.
#[derive(Debug)]
pub(crate) struct Stage {
    wire: Wire,
    caller: Arc<Caller>,
    /// The message as the client has it.
    client: Box<dyn Message>,
    sse: SseDecoder,
    text: Lane,
    thinking: Lane,
    waiting: VecDeque<Waiting>,
    /// The size of the waiting frames in bytes.
    bytes: usize,
    /// The number of the next frame.
    next: u64,
    repeats: Repeats,
    calls: Decided,
    /// The number of blocks without any text left: the indexes of later blocks are lower by this number.
    dropped: u64,
}

/// A frame that waits for the results of callbacks for its text.
#[derive(Debug)]
struct Waiting {
    number: u64,
    frame: Frame,
    pieces: Vec<Piece>,
}

/// The original text of an answer, and the text that the client has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Both {
    pub(crate) original: String,
    pub(crate) shown: String,
}

/// What a record has in place of a line that the client got otherwise than the model wrote it: neither what an extension took out nor what it
/// unmasked is in a record that front ends read.
const CHANGED: &str = "[changed by an extension]";

impl Both {
    /// Returns the lines of the text that the client has as far as the model wrote them so; `None`: that is all of it.
    pub(crate) fn unchanged(&self) -> Option<String> {
        if self.original == self.shown {
            return None;
        }
        let own: HashSet<&str> = self.original.lines().collect();
        let ends = |line: &str| if line.ends_with('\n') { "\n" } else { "" };
        let line = |line: &str| match own.contains(line.trim_end_matches(['\r', '\n'])) {
            true => line.to_owned(),
            false => format!("{CHANGED}{}", ends(line)),
        };
        Some(self.shown.split_inclusive('\n').map(line).collect())
    }
}

impl Stage {
    /// Creates a stage for a message that has not begun; `None` if no callback gets anything of answers.
    pub(crate) fn new(wire: Wire, model: &str, caller: &Arc<Caller>) -> Option<Self> {
        let text = Lane::new(Segments::new(Arc::clone(caller)), caller.has_rewriter());
        let thinking = Lane::new(Segments::of_thinking(Arc::clone(caller)), false);
        let acts = !(text.is_idle() && thinking.is_idle()) || caller.gets_outputs() || caller.gets_calls();
        acts.then(|| Self {
            wire,
            caller: Arc::clone(caller),
            client: dialect::message(wire, model),
            sse: SseDecoder::new(),
            text,
            thinking,
            waiting: VecDeque::new(),
            bytes: 0,
            next: 0,
            repeats: Repeats::default(),
            calls: Decided::default(),
            dropped: 0,
        })
    }

    /// Takes frames. Nothing is sent before [`Stage::send`]. `is_last`: no bytes follow, so that a frame without its blank line is complete.
    ///
    /// Returns whether they could be read: a frame that grew, because it repeats what earlier attempts have sent, can be too large.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(crate) async fn take(&mut self, bytes: &[u8], is_last: bool) -> Result<bool, CallFailure> {
        let (frames, is_read) = self.frames(bytes, is_last);
        for frame in frames {
            self.frame(frame).await?;
        }
        Ok(is_read)
    }

    /// Returns the frames before the first one that is too large, and whether all of them could be read.
    fn frames(&mut self, bytes: &[u8], is_last: bool) -> (Vec<Frame>, bool) {
        let mut frames = Vec::new();
        let mut each = |frame: &wire::Frame<'_>| -> Result<(), TooLarge> {
            frames.push(Frame::new(frame.raw, frame.event.as_ref()));
            Ok(())
        };
        let mut read = self.sse.push_frames(bytes, &mut each);
        if is_last && read.is_ok() {
            read = std::mem::take(&mut self.sse).finish_frames(&mut each);
        }
        (frames, read.is_ok())
    }

    async fn frame(&mut self, mut frame: Frame) -> Result<(), CallFailure> {
        if let Some(added) = self.calls.edit(self.wire, &mut frame) {
            self.enqueue(frame).await?;
            return self.enqueue(added).await;
        }
        if frame.raw.is_empty() { Ok(()) } else { self.enqueue(frame).await }
    }

    async fn enqueue(&mut self, frame: Frame) -> Result<(), CallFailure> {
        let number = self.next;
        self.next += 1;
        let pieces = frame.data.as_ref().map(|data| pieces::of(self.wire, data, &self.repeats)).unwrap_or_default();
        if pieces::ends_reasoning(self.wire, &frame) && pieces.iter().all(|piece| piece.stream != TextStream::Thinking)
        {
            self.thinking.finish().await?;
        }
        for (at, piece) in pieces.iter().enumerate() {
            self.repeats.begin(piece);
            self.lane(piece.stream).push((number, at), piece.block, &piece.text).await?;
            if piece.stream == TextStream::Thinking && pieces::is_complete(self.wire, &frame) {
                self.thinking.finish().await?;
            }
        }
        self.bytes += frame.raw.len();
        self.waiting.push_back(Waiting { number, frame, pieces });
        Ok(())
    }

    fn lane(&mut self, stream: TextStream) -> &mut Lane {
        if stream == TextStream::Thinking { &mut self.thinking } else { &mut self.text }
    }

    /// Sends the frames that have no waiting text. `is_over`: whether no frame follows.
    pub(crate) fn send(&mut self, is_over: bool, out: &mut Vec<u8>) {
        while let Some(first) = self.waiting.front() {
            if !first.pieces.iter().enumerate().all(|(at, piece)| self.is_resolved(first.number, at, piece)) {
                return;
            }
            match self.opens_block() {
                Opens::Nothing | Opens::Text => self.send_first(out),
                Opens::Empty(last) => self.drop_first(last + 1),
                Opens::Unknown if is_over => self.send_first(out),
                Opens::Unknown => return,
            }
        }
    }

    /// Drops this number of frames, of which no text is left.
    fn drop_first(&mut self, number: usize) {
        for Waiting { number, frame, pieces } in self.waiting.drain(..number).collect::<Vec<_>>() {
            self.bytes -= frame.raw.len();
            for (at, piece) in pieces.iter().enumerate() {
                let shown = self.lane(piece.stream).take((number, at)).unwrap_or_default();
                self.repeats.end(piece, &shown);
            }
        }
        self.dropped += 1;
    }

    fn is_resolved(&self, number: u64, at: usize, piece: &Piece) -> bool {
        let lane = if piece.stream == TextStream::Thinking { &self.thinking } else { &self.text };
        lane.is_resolved((number, at))
    }

    fn send_first(&mut self, out: &mut Vec<u8>) {
        let Some(Waiting { number, mut frame, pieces }) = self.waiting.pop_front() else { return };
        self.bytes -= frame.raw.len();
        // What is in the frame for the first time is written after it, over what is equal to it.
        let (mut is_changed, mut is_empty) = (self.repeats.apply(self.wire, &mut frame), !pieces.is_empty());
        for (at, piece) in pieces.iter().enumerate() {
            let shown = self.lane(piece.stream).take((number, at)).unwrap_or_default();
            self.repeats.end(piece, &shown);
            is_empty &= shown.is_empty() && !piece.text.is_empty();
            is_changed |= shown != piece.text;
            if shown != piece.text {
                piece.set(&mut frame, &shown);
            }
        }
        if is_changed && is_empty && pieces::is_alone(self.wire, &frame) {
            return;
        }
        if self.dropped > 0 && self.wire == Wire::Anthropic {
            is_changed |= pieces::lower_index(&mut frame, self.dropped);
        }
        if is_changed {
            frame.write();
        }
        self.client.send(frame, out);
    }

    /// Returns which block the first frame begins.
    fn opens_block(&self) -> Opens {
        let Some(index) = self.waiting.front().and_then(|first| pieces::opened(self.wire, &first.frame)) else {
            return Opens::Nothing;
        };
        let mut was_text = false;
        for (at, waiting) in self.waiting.iter().enumerate().skip(1) {
            let is_of_block = waiting.frame.data.as_ref().is_some_and(|data| data["index"].as_u64() == Some(index));
            if !is_of_block {
                continue;
            }
            if waiting.frame.kind() == "content_block_stop" {
                return if was_text { Opens::Empty(at) } else { Opens::Text };
            }
            for (number, piece) in waiting.pieces.iter().enumerate() {
                was_text |= !piece.text.is_empty();
                match self.text.resolved((waiting.number, number)) {
                    None => return Opens::Unknown,
                    Some(shown) if !shown.is_empty() => return Opens::Text,
                    Some(_) => {}
                }
            }
        }
        Opens::Unknown
    }

    /// Ends the answer, and sends everything that waits. `answer`: the model's complete answer, if there is one. Returns whether it could:
    /// calls that were not written as decided are kept back.
    ///
    /// # Errors
    /// The failure of a `required` extension.
    pub(crate) async fn finish(&mut self, answer: Option<&mut Answer>, out: &mut Vec<u8>) -> Result<bool, CallFailure> {
        if answer.is_some() && !self.calls.are_sent() {
            return Ok(false);
        }
        self.send(false, out);
        self.thinking.finish().await?;
        self.complete(answer).await?;
        self.send(true, out);
        Ok(true)
    }

    /// Resolves all text, and gives extensions the complete answer.
    async fn complete(&mut self, answer: Option<&mut Answer>) -> Result<(), CallFailure> {
        let Some(answer) = answer.filter(|_| self.caller.gets_outputs()) else { return self.text.finish().await };
        if self.text.is_held() {
            let segments = Segments::new(Arc::clone(&self.caller));
            Completed::new(&self.caller, answer, segments, false).await?;
            self.text.replace(answer.shown());
            return Ok(());
        }
        self.text.finish().await?;
        answer.was_shown(&self.text.both().shown);
        Completed::new(&self.caller, answer, Segments::new(Arc::clone(&self.caller)), true).await?;
        Ok(())
    }

    /// Begins another attempt, while the client keeps its text: text that waits is void. Returns the text that the client has of this
    /// attempt.
    pub(crate) fn keep_shown(&mut self, out: &mut Vec<u8>) -> String {
        self.text.void(Segments::new(Arc::clone(&self.caller)));
        self.send(true, out);
        self.text.take_shown()
    }

    /// Takes frames of the gateway that end the message: callbacks get none of them.
    pub(crate) fn pass(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let (frames, is_read) = self.frames(bytes, true);
        if !is_read {
            return out.extend_from_slice(bytes);
        }
        for mut frame in frames {
            // They repeat what the client has of the answer.
            let mut is_changed = self.repeats.apply(self.wire, &mut frame);
            if self.dropped > 0 && self.wire == Wire::Anthropic {
                is_changed |= pieces::lower_index(&mut frame, self.dropped);
            }
            if is_changed {
                frame.write();
            }
            self.client.send(frame, out);
        }
    }

    /// Ends the message with this text. Frames that wait are not sent.
    pub(crate) fn close(&mut self, words: &str, out: &mut Vec<u8>) {
        self.waiting.clear();
        self.bytes = 0;
        self.client.close(words, out);
    }

    /// Returns the bytes that keep the client's connection alive while nothing is sent.
    pub(crate) fn keep_alive(&self) -> &'static [u8] {
        self.client.keep_alive()
    }

    /// Returns the size in bytes and the number of the frames that wait for callbacks.
    pub(crate) fn held(&self) -> (usize, usize) {
        (self.bytes, self.waiting.len())
    }

    /// Returns whether all text that was passed on has arrived here.
    pub(crate) fn has_all(&self, bytes: u64) -> bool {
        self.text.is_idle() || self.text.bytes() == bytes
    }

    /// Returns both versions of the text of the answer.
    pub(crate) fn both(&self) -> &Both {
        self.text.both()
    }

    /// Sets the decisions of extensions about the calls of the answer.
    pub(crate) fn decide(&mut self, calls: Decided) {
        self.calls = calls;
    }

    pub(crate) fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    pub(crate) fn repeats(&self) -> &Repeats {
        &self.repeats
    }

    pub(crate) fn calls(&self) -> &Decided {
        &self.calls
    }
}

/// The block that a frame begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opens {
    /// No text block.
    Nothing,
    /// A block with text, or one that is empty from the start.
    Text,
    /// A block without any text left, which ends with the frame at this index.
    Empty(usize),
    /// A block whose text is still to come.
    Unknown,
}
