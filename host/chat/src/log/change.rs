//! What differs between two snapshots of a log, for front ends that have a copy of the messages elsewhere.

use serde::Serialize;

use super::state::Thread;
use super::{LogSnapshot, MessageLog, RenderMode};
use crate::list::{List, Shared};
use crate::message::{Block, ChatMessage, ChildThread, Note, ToolEntry};
use crate::text::Str;

/// What changed in a log since an earlier snapshot: what a copy of the messages elsewhere needs, and no more. Transforms are the
/// copy's own: this is about messages before them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LogChange {
    /// The thread's own messages.
    #[serde(skip_serializing_if = "ThreadChange::is_empty")]
    pub own: ThreadChange,
    /// Those of its children, each with its index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<(usize, ChildThread, ThreadChange)>,
    /// There are no children any more but those in `children`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cleared: bool,
}

/// What changed among the messages of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThreadChange {
    /// The number of messages, visible or not, where it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<usize>,
    /// The messages that changed, each with its index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<(usize, MessageChange)>,
}

/// How a message changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "it is serialized at once")]
pub enum MessageChange {
    /// It is this one now.
    Whole(Shared<ChatMessage>),
    /// Parts of it changed.
    Part(MessagePart),
    /// It is not visible.
    Hidden(bool),
}

/// The parts of a message that changed. What is absent stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MessagePart {
    /// The number of blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub len: Option<usize>,
    /// The blocks that changed, each with its index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<(usize, BlockChange)>,
    /// The new [`ChatMessage::complete`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete: Option<bool>,
    /// The new [`ChatMessage::partial`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Option<Str>>,
    /// The new [`ChatMessage::extension`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<Str>,
    /// The number of calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_len: Option<usize>,
    /// The calls that changed, each with its index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<(usize, ToolEntry)>,
    /// The new [`ChatMessage::notes`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<List<Note>>,
}

/// How a block changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockChange {
    /// It is this one now.
    Whole(Block),
    /// Text was added at its end, and whether it is complete now.
    Added(String, bool),
}

impl ThreadChange {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.len.is_none() && self.messages.is_empty()
    }
}

impl LogChange {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl LogSnapshot {
    /// What changed since `before`, an earlier snapshot of the same log. It takes time in what changed, not in the number of messages.
    #[must_use]
    pub fn change_since(&self, before: &Self) -> LogChange {
        let (now, old) = (&self.0, &before.0);
        let mut change = LogChange { own: now.thread_change(&now.state.own, &old.state.own), ..LogChange::default() };
        change.cleared = now.state.children.len() < old.state.children.len();
        let none = Thread::default();
        for index in now.state.children.differing(&old.state.children) {
            let Some(child) = now.state.children.get(index) else { continue };
            let known = old.state.children.get(index).filter(|known| known.thread == child.thread && !change.cleared);
            let log = now.thread_change(&child.log, known.map_or(&none, |known| &known.log));
            if known.is_none() || !log.is_empty() {
                change.children.push((index, child.thread.clone(), log));
            }
        }
        change
    }
}

impl MessageLog {
    fn thread_change(&self, now: &Thread, before: &Thread) -> ThreadChange {
        let len = Some(now.messages.len()).filter(|len| *len != before.messages.len());
        let mut indices = now.messages.differing(&before.messages);
        if self.render_mode != RenderMode::Streaming && now.settled != before.settled {
            // Messages of the turn that has ended are visible from now on.
            indices.extend(before.settled.min(now.settled)..now.settled);
            indices.sort_unstable();
            indices.dedup();
        }
        let visible = |thread: &Thread, index: usize| {
            self.part(thread.messages.get(index)?, index < thread.settled).map(|message| (index, message))
        };
        let changed = indices.into_iter().filter_map(|index| {
            let change = match (visible(before, index), visible(now, index)) {
                (None, None) => None,
                (Some(_), None) => Some(MessageChange::Hidden(true)),
                (None, Some((_, now))) => Some(MessageChange::Whole(now)),
                (Some((_, before)), Some((_, now))) => difference(&before, now),
            };
            change.map(|change| (index, change))
        });
        ThreadChange { len, messages: changed.collect() }
    }
}

/// How a message differs from the one in its place before.
fn difference(before: &ChatMessage, now: Shared<ChatMessage>) -> Option<MessageChange> {
    let head = |one: &ChatMessage| (one.author, one.turn, one.step, one.at_ms, one.steered);
    let same = before.id == now.id && head(before) == head(&now);
    if !same || before.input != now.input || before.images != now.images {
        return Some(MessageChange::Whole(now));
    }
    let part = MessagePart {
        len: changed(&before.blocks.len(), &now.blocks.len()),
        blocks: blocks(&before.blocks, &now.blocks),
        complete: changed(&before.complete, &now.complete),
        partial: changed(&before.partial, &now.partial),
        extension: now.extension.clone().filter(|_| before.extension != now.extension),
        calls_len: changed(&before.calls.len(), &now.calls.len()),
        calls: calls(&before.calls, &now.calls),
        notes: changed(&before.notes, &now.notes),
    };
    (part != MessagePart::default()).then_some(MessageChange::Part(part))
}

fn changed<T: PartialEq + Clone>(before: &T, now: &T) -> Option<T> {
    (before != now).then(|| now.clone())
}

fn blocks(before: &List<Block>, now: &List<Block>) -> Vec<(usize, BlockChange)> {
    if now.is_same(before) {
        return Vec::new();
    }
    let change = |(index, block): (usize, &Block)| {
        let old = before.get(index).filter(|old| old.kind == block.kind && old.void == block.void);
        let added = old.and_then(|old| Some((old, block.text.added_since(&old.text)?)));
        match added {
            Some((old, added)) if added.is_empty() && old.complete == block.complete => None,
            Some((_, added)) => Some((index, BlockChange::Added(added, block.complete))),
            None => Some((index, BlockChange::Whole(block.clone()))),
        }
    };
    now.iter().enumerate().filter_map(change).collect()
}

fn calls(before: &List<ToolEntry>, now: &List<ToolEntry>) -> Vec<(usize, ToolEntry)> {
    if now.is_same(before) {
        return Vec::new();
    }
    let entries = now.iter().enumerate().filter(|(index, entry)| before.get(*index) != Some(*entry));
    entries.map(|(index, entry)| (index, entry.clone())).collect()
}
