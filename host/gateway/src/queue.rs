//! Frames behind held text. Their order never changes: a frame waits until the gate has released what it carries, and everything behind
//! it waits with it.

use std::collections::VecDeque;

use crate::dialect::Message;
use crate::frame::Frame;

/// What of an attempt was not sent yet.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    /// Frames that were taken out of it.
    taken: u64,
    /// What the gate has released of the text and of the reasoning, and was not sent yet.
    text: String,
    thinking: String,
    /// Text that was sent.
    sent: String,
    /// Bytes of text that were sent, including those that a provider made void.
    passed_bytes: u64,
    /// From this frame on, all wait for the end of the answer: it has the first tool call.
    call: Option<u64>,
    /// From this frame on, all wait for the end of its block of reasoning.
    reasoning: Option<u64>,
    /// The answer has passed: nothing waits any more.
    is_done: bool,
    /// The bytes of the frames that wait.
    bytes: usize,
}

#[derive(Debug)]
struct Waiting {
    frame: Frame,
    text: String,
    thinking: String,
    /// Its text can be sent in parts, each as a frame of its own.
    splits: bool,
    /// What is sent of it is not what arrived.
    changed: bool,
    /// It waits for a frame behind it that is no opening, so that nothing is begun that stays empty.
    opens: bool,
}

impl Queue {
    /// A frame with what was decoded of it.
    pub(crate) fn push(&mut self, frame: Frame, text: String, thinking: String, message: &dyn Message) {
        let own = message.text(&frame).filter(|_| !frame.has_halves);
        let splits = own.is_some();
        // What is sent is what the rules have seen.
        let changed = own.is_some_and(|own| own != text);
        let opens = message.opens(&frame) && text.is_empty();
        self.bytes += frame.raw.len();
        self.waiting.push_back(Waiting { frame, text, thinking, splits, changed, opens });
    }

    /// The frame that was pushed last has the first tool call.
    pub(crate) fn call_begins(&mut self) {
        let last = self.last();
        self.call.get_or_insert(last);
    }

    /// The frame that was pushed last begins a block of reasoning that is sent whole.
    pub(crate) fn reasoning_begins(&mut self) {
        let last = self.last();
        self.reasoning.get_or_insert(last);
    }

    pub(crate) fn reasoning_ends(&mut self) {
        self.reasoning = None;
    }

    /// Restarts the answer with the frame that follows: the frames that wait and the text that was sent are void.
    pub(crate) fn restart(&mut self) {
        self.taken += self.waiting.len() as u64;
        self.waiting.clear();
        self.bytes = 0;
        [&mut self.text, &mut self.thinking, &mut self.sent].into_iter().for_each(String::clear);
        (self.call, self.reasoning) = (None, None);
    }

    /// The answer has passed.
    pub(crate) fn complete(&mut self) {
        (self.call, self.reasoning, self.is_done) = (None, None, true);
    }

    pub(crate) fn release_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(crate) fn release_thinking(&mut self, text: &str) {
        self.thinking.push_str(text);
    }

    /// The text of the attempt that the client has.
    pub(crate) fn sent(&self) -> &str {
        &self.sent
    }

    /// Returns the number of bytes of text that were sent.
    pub(crate) fn passed_bytes(&self) -> u64 {
        self.passed_bytes
    }

    fn passed(&mut self, text: &str) {
        self.sent.push_str(text);
        self.passed_bytes += text.len() as u64;
    }

    /// Returns the size of the waiting frames in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of frames that wait.
    pub(crate) fn frames(&self) -> usize {
        self.waiting.len()
    }

    /// Whether anything waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends what can be sent.
    pub(crate) fn send(&mut self, message: &mut dyn Message, out: &mut Vec<u8>) {
        while self.opens_onto_something()
            && let Some(first) = self.waiting.front_mut()
        {
            let waits = |from: Option<u64>| from.is_some_and(|from| self.taken >= from);
            if waits(self.call) || waits(self.reasoning) || !self.thinking.starts_with(&first.thinking) {
                return;
            }
            if !self.text.starts_with(&first.text) {
                if first.splits && !self.text.is_empty() && first.text.starts_with(&self.text) {
                    let part = std::mem::take(&mut self.text);
                    first.text.drain(..part.len());
                    first.changed = true;
                    let mut frame = first.frame.clone();
                    message.set_text(&mut frame, &part);
                    self.passed(&part);
                    message.send(frame, out);
                }
                return;
            }
            let Some(mut first) = self.waiting.pop_front() else { return };
            self.taken += 1;
            self.bytes -= first.frame.raw.len();
            self.text.drain(..first.text.len());
            self.thinking.drain(..first.thinking.len());
            if first.changed {
                message.set_text(&mut first.frame, &first.text);
            }
            self.passed(&first.text);
            message.send(first.frame, out);
        }
    }

    /// Whether the first frame is no opening, or what it opens can be sent as well.
    fn opens_onto_something(&self) -> bool {
        let mut openings = 0;
        for waiting in &self.waiting {
            if waiting.opens {
                openings += 1;
                continue;
            }
            let number = self.taken + openings;
            let waits = [self.call, self.reasoning].into_iter().flatten().any(|from| number >= from);
            let is_any = self.text.starts_with(&waiting.text) || (waiting.splits && !self.text.is_empty());
            return openings == 0 || (!waits && is_any);
        }
        self.is_done
    }

    fn last(&self) -> u64 {
        self.taken + self.waiting.len().saturating_sub(1) as u64
    }
}
