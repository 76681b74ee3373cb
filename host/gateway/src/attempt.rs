//! The attempt under way: passes the deltas of its frames to the rules, and holds frames back until their verdict.

use flow::{Delta, StreamKind};
use guard::attempt::{Attempt, Prefix};
use rules::{RuleSession, Scope};
use wire::{AnswerDecoder, SseDecoder, Wire};

use crate::dialect::Message;
use crate::frame::Frame;
use crate::queue::Queue;

/// The attempt under way.
#[derive(Debug)]
pub(crate) struct Now {
    /// The core that decides.
    pub(crate) core: Attempt,
    pub(crate) input: Input,
    pub(crate) queue: Queue,
    /// The stream kinds of the blocks of the answer.
    kinds: Vec<StreamKind>,
    watches_thinking: bool,
}

/// The form in which the answer arrives.
#[derive(Debug)]
pub(crate) enum Input {
    /// No answer is read: it has not begun, or it is over.
    None,
    Stream {
        sse: SseDecoder,
        decoder: Box<AnswerDecoder>,
    },
    Whole(Vec<u8>),
}

impl Input {
    pub(crate) fn new(wire: Wire, is_stream: bool) -> Self {
        match is_stream {
            true => Self::Stream { sse: SseDecoder::new(), decoder: Box::new(AnswerDecoder::new(wire)) },
            false => Self::Whole(Vec::new()),
        }
    }
}

impl Now {
    /// Returns an attempt that continues a message with the text `said`, which has been shown: nothing is to be shown at its start.
    pub(crate) fn new(rules: &RuleSession, said: &str) -> Self {
        let prefix = Prefix { text: said.to_owned(), released: said.len() };
        let core = Attempt::new(rules, prefix, &mut Vec::new());
        let mut scopes = rules.rules().active_rules().flat_map(|rule| &rule.scopes);
        let watches_thinking = scopes.any(|scope| matches!(scope, Scope::Thinking));
        Self { core, input: Input::None, queue: Queue::default(), kinds: Vec::new(), watches_thinking }
    }

    /// Returns the number of bytes that wait for a verdict.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.input {
            Input::Whole(body) => body.len(),
            _ => self.queue.bytes(),
        }
    }

    /// Returns whether nothing has come of the answer that a client shows or runs.
    pub(crate) fn is_blank(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Adds a frame with its deltas, which waits for the verdict of the rules.
    pub(crate) fn push(&mut self, frame: Frame, deltas: &[Delta], message: &dyn Message) {
        let is_first = self.kinds.is_empty();
        let (mut text, mut thinking) = (String::new(), String::new());
        let (mut restarts, mut begins_call, mut begins_reasoning) = (false, message.begins_call(&frame), false);
        let mut ends_reasoning = false;
        for delta in deltas {
            match delta {
                Delta::Start { .. } if !self.kinds.is_empty() => {
                    self.kinds.clear();
                    restarts = !is_first;
                }
                Delta::BlockStart { kind, .. } => {
                    begins_call |= kind.is_tool();
                    begins_reasoning |= *kind == StreamKind::Thinking;
                    self.kinds.push(kind.clone());
                }
                Delta::Piece { block, text: more } => match self.kinds.get(*block as usize) {
                    Some(StreamKind::Text) => text.push_str(more),
                    Some(StreamKind::Thinking) => thinking.push_str(more),
                    _ => {}
                },
                Delta::BlockEnd { block } => {
                    ends_reasoning |= self.kinds.get(*block as usize) == Some(&StreamKind::Thinking);
                }
                _ => {}
            }
        }
        if restarts {
            self.queue.restart();
        }
        self.queue.push(frame, text, thinking, message);
        if begins_call {
            self.queue.call_begins();
        }
        if begins_reasoning && self.watches_thinking {
            // Providers would later refuse a part of it without its signature.
            self.queue.reasoning_begins();
        }
        if ends_reasoning {
            self.queue.reasoning_ends();
        }
    }
}
