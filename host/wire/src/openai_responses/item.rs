//! Output items under construction: what was given of each part, so that what is repeated whole is not given twice.

use std::hash::Hasher as _;

use flow::{BlockId, CallId, StreamKind};
use fnv::FnvHasher;

use super::wire::{Event, WireItem};
use crate::decode::Answer;
use crate::loose::Text;
use crate::surrogates::Half;

/// An output item: an answer's message, a stretch of reasoning, or a call.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) call_id: String,
    pub(super) index: Option<u64>,
    pub(super) kind: ItemKind,
    /// The block under way. A message has one for each of its parts, the others one in all; a call has none until its
    /// tool is named.
    pub(super) block: Option<BlockId>,
    /// Arguments of a call that came before its name, and the first half of a character that they end with.
    early: String,
    half: Half,
    /// What was given of its parts, the latest last: what is repeated whole at their end is not taken again.
    parts: Vec<Part>,
    /// Every event so far named the part that it refers to.
    pub(super) numbered: bool,
    /// The item has ended, but for what only the end of the answer may bring.
    pub(super) done: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    Message,
    Reasoning,
    Call,
    /// Tools that run at the provider, and whatever comes later: passed over.
    Unknown,
}

/// What was given of one part of an item.
#[derive(Debug)]
struct Part {
    number: u64,
    len: usize,
    /// The hash of the emitted bytes: decides whether a longer string begins with them, without keeping them.
    hash: u64,
}

impl Part {
    fn new(number: u64) -> Self {
        Self { number, len: 0, hash: fnv(FnvHasher::default(), "") }
    }

    fn add(&mut self, text: &str) {
        self.len += text.len();
        self.hash = fnv(FnvHasher::with_key(self.hash), text);
    }

    /// What a whole text has beyond what was given; `None` where it begins otherwise.
    fn rest_of<'t>(&self, whole: &'t str) -> Option<&'t str> {
        let (given, rest) = whole.split_at_checked(self.len)?;
        (fnv(FnvHasher::default(), given) == self.hash).then_some(rest)
    }
}

fn fnv(mut hasher: FnvHasher, text: &str) -> u64 {
    hasher.write(text.as_bytes());
    hasher.finish()
}

impl Item {
    pub(super) fn new(kind: ItemKind, id: &str, call_id: &str, index: Option<u64>) -> Self {
        Self {
            id: id.to_owned(),
            call_id: call_id.to_owned(),
            index,
            kind,
            block: None,
            early: String::new(),
            half: Half::default(),
            parts: Vec::new(),
            numbered: true,
            done: false,
        }
    }

    pub(super) fn streamed(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Begins the block of a call whose tool is known now.
    pub(super) fn name(&mut self, name: &str, call_id: &str, answer: &mut Answer) {
        if self.kind != ItemKind::Call || self.block.is_some() || self.done || name.is_empty() {
            return;
        }
        if self.call_id.is_empty() {
            call_id.clone_into(&mut self.call_id);
        }
        self.begin_call(name, answer);
    }

    /// Begins the block of a call.
    pub(super) fn begin_call(&mut self, name: &str, answer: &mut Answer) {
        let call = if self.call_id.is_empty() { &self.id } else { &self.call_id };
        let block = answer.begin(StreamKind::Tool { call: CallId::new(call.as_str()), name: name.to_owned() });
        answer.piece(block, std::mem::take(&mut self.early));
        if let Some(half) = answer.half(block) {
            *half = std::mem::take(&mut self.half);
        }
        self.block = Some(block);
    }

    /// Whether an event refers to this item: by id, or by index where it has no id.
    pub(super) fn is_named_by(&self, wire: &Event<'_>) -> bool {
        let ids = [wire.item_id.given(), wire.item.id.given(), wire.item.call_id.given()];
        let mut ids = ids.into_iter().flatten().peekable();
        match (ids.peek(), wire.output_index.0) {
            (Some(_), _) => ids.any(|id| self.id == id || self.call_id == id),
            (None, Some(index)) => self.index == Some(index),
            (None, None) => false,
        }
    }

    pub(super) fn has_id_of(&self, item: &WireItem<'_>) -> bool {
        item.id.given().is_some_and(|id| self.id == id) || item.call_id.given().is_some_and(|id| self.call_id == id)
    }

    /// The block for further content. A call of an unknown tool has none; reasoning that continues after its end
    /// and a part of a message begin one.
    pub(super) fn block(&mut self, answer: &mut Answer) -> Option<BlockId> {
        if self.block.is_none() {
            self.block = match self.kind {
                ItemKind::Message => Some(answer.begin(StreamKind::Text)),
                ItemKind::Reasoning => Some(answer.begin(StreamKind::Thinking)),
                ItemKind::Call | ItemKind::Unknown => None,
            };
        }
        self.block
    }

    /// Gives more of one part.
    pub(super) fn give(&mut self, number: u64, text: Text<'_>, answer: &mut Answer) {
        if text.is_empty() {
            return;
        }
        let next_part = self.parts.last().is_some_and(|last| last.number != number);
        if let Some(open) = self.block.filter(|_| next_part) {
            if self.kind == ItemKind::Message {
                answer.end(open);
                self.block = None;
            } else {
                answer.text(open, Text::Whole("\n\n".into())); // summaries are paragraphs
            }
        }
        let at = self.parts.iter().position(|part| part.number == number);
        let mut part = at.map_or_else(|| Part::new(number), |at| self.parts.remove(at));
        let block = self.block(answer);
        let text = match block {
            Some(block) => answer.join(block, text),
            None => self.half.join(text),
        };
        part.add(&text);
        self.parts.push(part);
        answer.keeps(self.parts.len(), 0);
        if let Some(block) = block {
            answer.piece(block, text);
        } else {
            answer.keeps(0, text.len());
            self.early.push_str(&text);
        }
    }

    /// Emits the rest of a complete part; returns whether all of it was emitted.
    pub(super) fn give_rest(&mut self, number: u64, whole: &str, answer: &mut Answer) -> bool {
        let Some(part) = self.parts.iter().find(|part| part.number == number) else {
            // An earlier part than the one under way had its time.
            let later = self.parts.last().is_none_or(|last| last.number < number);
            if later {
                self.give(number, Text::Whole(whole.into()), answer);
            }
            return later;
        };
        let latest = self.parts.last().is_some_and(|last| last.number == number);
        match part.rest_of(whole) {
            Some("") => true,
            Some(rest) if latest => {
                // It contains the whole character whose first half was given.
                match self.block {
                    Some(block) => answer.half(block).into_iter().for_each(Half::forget),
                    None => self.half.forget(),
                }
                self.give(number, Text::Whole(rest.into()), answer);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Emits the rest of the finished item; returns whether it is a refusal.
    pub(super) fn fill(&mut self, whole: &WireItem<'_>, answer: &mut Answer) -> bool {
        let parts = match self.kind {
            ItemKind::Call => {
                self.give_rest(0, whole.arguments.as_str(), answer);
                return false;
            }
            // Summary and full text use the same indexes: which part was streamed is not known.
            ItemKind::Reasoning if self.streamed() => return false,
            ItemKind::Reasoning if whole.summary.is_empty() => &whole.content,
            ItemKind::Reasoning => &whole.summary,
            ItemKind::Message => &whole.content,
            ItemKind::Unknown => return false,
        };
        let mut refused = false;
        for (number, part) in (0..).zip(parts) {
            let text = part.text.given().unwrap_or(part.refusal.as_str());
            refused |= !part.refusal.is_empty();
            // Where parts are not as they were streamed, their borders are not known.
            if !self.give_rest(number, text, answer) || !self.numbered {
                break;
            }
        }
        refused
    }
}
