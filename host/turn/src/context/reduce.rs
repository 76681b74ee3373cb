//! What to leave out of a conversation so that its next request fits: decided here, done by [`leave_out`](super::leave_out()).
//!
//! A call and its result stay together. The input that the model works on stays as it is, and so does what it reads next, as far as that
//! fits.

use std::sync::Arc;

use flow::{LeftOut, Message, Origin, Part, Role, ToolResult};

use super::estimate::{Estimate, of_message};
use super::leave_out::{is_note, middle, note, shortened};
use crate::run::compact::is_summary;
use flow::ports::Model;

/// The bytes of the start and of the end of a result that remain, of results that the model has read.
const OLD: (usize, usize) = (1_500, 500);

/// The same where nothing else helps.
const LEAST: (usize, usize) = (150, 50);

/// The note in a result is about so long: a result that is hardly longer stays.
const NOTE_BYTES: usize = 300;

/// A conversation that is to become smaller.
pub(crate) struct Conversation<'c> {
    pub(crate) model: &'c dyn Model,
    pub(crate) messages: &'c [Arc<Message>],
    /// The turn in which each message joined.
    pub(crate) turns: &'c [u32],
}

/// What is left out, and how much that is.
#[derive(Debug, Default)]
pub(crate) struct Reduction {
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) freed: Estimate,
}

/// Whether enough is freed.
type Enough<'e> = &'e dyn Fn(Estimate) -> bool;

impl Conversation<'_> {
    /// The results that the model has read and the images before the input, oldest first, until it is enough.
    pub(crate) fn shorten_old(&self, enough: Enough<'_>) -> Reduction {
        let (last, input) = (self.unread(), self.input_turn());
        let is_old = |at: usize, part: &Part| match part {
            Part::Image(_) => Some(self.turns.get(at).copied().unwrap_or(0)) < input.or(Some(u32::MAX)),
            _ => at < last,
        };
        self.shorten(&is_old, OLD, enough)
    }

    /// Whatever can be shortened, to the least that says what it was, until it is enough.
    pub(crate) fn shorten_all(&self, enough: Enough<'_>) -> Reduction {
        self.shorten(&|_, _| true, LEAST, enough)
    }

    fn shorten(
        &self,
        is_meant: &dyn Fn(usize, &Part) -> bool,
        (head, tail): (usize, usize),
        enough: Enough<'_>,
    ) -> Reduction {
        let mut found = Reduction::default();
        for (at, message) in self.messages.iter().enumerate() {
            for (index, part) in message.parts.iter().enumerate().filter(|(_, part)| is_meant(at, part)) {
                if enough(found.freed) {
                    return found;
                }
                match part {
                    Part::ToolResult(result) => self.shorten_result((at, index), result, (head, tail), &mut found),
                    Part::Image(image) => {
                        let bytes = image.bytes() as u64;
                        found.left_out.push(LeftOut::Image { message: at as u64, part: index as u64, bytes });
                        let alone = |part: Part| Message { parts: vec![part], ..note() };
                        let (image, text) = (alone(part.clone()), note());
                        let freed = of_message(self.model, &image).minus(of_message(self.model, &text));
                        found.freed = found.freed.plus(freed);
                    }
                    Part::Text(_) | Part::Thinking { .. } | Part::ToolCall(_) => {}
                }
            }
        }
        found
    }

    /// Leaves out the middle of a result that is long enough for it.
    fn shorten_result(
        &self,
        (at, index): (usize, usize),
        result: &ToolResult,
        (head, tail): (usize, usize),
        found: &mut Reduction,
    ) {
        let Some(own) = result.content.last().filter(|own| own.len() > head + tail + NOTE_BYTES) else { return };
        let tool = self.tool(at, result);
        let (from, to) = middle(own, head, tail);
        let freed = Estimate::text(own).minus(Estimate::text(&shortened(own, &tool, head, tail)));
        let (message, part, bytes) = (at as u64, index as u64, (to - from) as u64);
        let (head, tail) = (head as u64, tail as u64);
        found.left_out.push(LeftOut::ToolResult { message, part, tool, bytes, head, tail });
        found.freed = found.freed.plus(freed);
    }

    /// The results of the last answer: as much of each as leaves enough, the same for all of them.
    pub(crate) fn shorten_last(&self, enough: Enough<'_>) -> Reduction {
        let last = self.unread();
        let of_size = |most: usize| {
            let mut found = Reduction::default();
            for (at, message) in self.messages.iter().enumerate().skip(last) {
                for (index, part) in message.parts.iter().enumerate() {
                    if let Part::ToolResult(result) = part {
                        self.shorten_result((at, index), result, (most - most / 4, most / 4), &mut found);
                    }
                }
            }
            found
        };
        if enough(Estimate::default()) {
            return Reduction::default();
        }
        let (mut fits, mut too_large) = (LEAST.0 + LEAST.1, self.longest_result(last));
        while too_large.saturating_sub(fits) > NOTE_BYTES {
            let between = fits + (too_large - fits) / 2;
            if enough(of_size(between).freed) {
                fits = between;
            } else {
                too_large = between;
            }
        }
        of_size(fits)
    }

    /// The oldest messages, until it is enough. `keeps_summary`: a summary of what was before them stays.
    pub(crate) fn drop_oldest(&self, keeps_summary: bool, enough: Enough<'_>) -> Reduction {
        let (last, input) = (self.unread(), self.input_turn());
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        let mut freed = Estimate::default();
        let mut at = 0;
        while at < last && !enough(freed) {
            let message = &self.messages[at];
            let is_call = message.role == Role::Assistant && message.tool_calls().next().is_some();
            let end =
                at + 1 + usize::from(is_call && self.messages.get(at + 1).is_some_and(|one| one.role == Role::Tool));
            let is_summary = at == 0 && is_summary(message);
            let is_pinned = if is_summary { keeps_summary } else { self.is_pinned(at, input) };
            if end <= last && !is_pinned {
                match ranges.last_mut() {
                    Some((_, to)) if *to == at => *to = end,
                    _ => {
                        ranges.push((at, end));
                        freed = freed.minus(of_message(self.model, &note()));
                    }
                }
                freed = freed.plus(self.messages[at..end].iter().map(|one| of_message(self.model, one)).sum());
            }
            at = end;
        }
        // What is a note alone has been left out before. From the end, so that the indexes of the others stay what they are.
        ranges.retain(|(from, to)| to - from > 1 || !is_note(&self.messages[*from]));
        let messages = ranges.into_iter().rev().map(|(from, to)| LeftOut::Messages {
            message: from as u64,
            count: (to - from) as u64,
            bytes: self.messages[from..to].iter().map(|one| one.bytes() as u64).sum(),
        });
        Reduction { left_out: messages.collect(), freed }
    }

    /// Where that begins which the model reads next: the results of its last answer with the answer, and what has joined since.
    pub(crate) fn unread(&self) -> usize {
        let role = |at: usize| self.messages.get(at).map(|message| message.role);
        let is_of_turn = |at: usize| self.turns.get(at).is_some_and(|turn| Some(turn) == self.turns.last());
        let mut at = self.messages.len();
        while at > 0 && role(at - 1) == Some(Role::User) && is_of_turn(at - 1) {
            at -= 1;
        }
        let is_result = at > 0 && role(at - 1) == Some(Role::Tool);
        at -= usize::from(is_result);
        // The start of an answer that a rule has stopped is the model's to continue.
        let is_answer = at > 0 && role(at - 1) == Some(Role::Assistant);
        at - usize::from(is_answer && (is_result || is_of_turn(at - 1)))
    }

    /// The turn of the last input.
    fn input_turn(&self) -> Option<u32> {
        let last = self.messages.iter().rposition(|message| is_input(message) && !message.hidden)?;
        self.turns.get(last).copied()
    }

    /// Whether a message stays, because it is the input that the model works on.
    fn is_pinned(&self, at: usize, input: Option<u32>) -> bool {
        let message = &self.messages[at];
        is_input(message) && self.turns.get(at).copied() == input
    }

    /// The name of the tool that gave a result.
    fn tool(&self, at: usize, result: &ToolResult) -> String {
        let before = self.messages[..at].iter().rev().flat_map(|message| message.tool_calls());
        before.filter(|call| call.id == result.call).map(|call| call.name.clone()).next().unwrap_or_default()
    }

    fn longest_result(&self, from: usize) -> usize {
        let parts = self.messages[from.min(self.messages.len())..].iter().flat_map(|message| &message.parts);
        let bytes = |part: &Part| match part {
            Part::ToolResult(result) => result.content.last().map_or(0, String::len),
            _ => 0,
        };
        parts.map(bytes).max().unwrap_or(0)
    }
}

/// Whether a message is the user's, or belongs to it.
fn is_input(message: &Message) -> bool {
    message.role == Role::User && message.origin != Origin::Host
}
