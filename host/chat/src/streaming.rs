//! The text of the answer so far, for front ends that show nothing else.

use std::borrow::Cow;

use flow::{Event, EventKind, RunPosition};
use serde::{Deserialize, Serialize};

use crate::answer::{End, end, seen};
use crate::message::Changed;
use crate::text::{Str, Text};

/// The text of the current answer as the user has seen it, without what is void. It begins again with each step.
///
/// A snapshot is a clone, which takes constant time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamingText {
    text: Text,
    reasoning: Text,
    active: bool,
    turn: u32,
    step: u32,
    next_seq: u64,
    /// Shown bytes that earlier attempts have left, including those of `carried`.
    kept: usize,
    /// The start of what the events call its shown text, which belongs to the answer before.
    carried: Str,
    /// The next text is that of another answer.
    over: bool,
}

impl StreamingText {
    /// The text so far.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The reasoning so far, as far as it is shown.
    pub fn reasoning(&self) -> &Text {
        &self.reasoning
    }

    /// Whether more of it can follow.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// The same where the thread is at another event.
    pub(crate) fn at(self, next_seq: u64) -> Self {
        Self { next_seq, ..self }
    }

    /// Takes the next event of the thread.
    pub fn process(&mut self, event: &Event) -> Changed {
        if event.seq < self.next_seq {
            return Changed::No;
        }
        self.next_seq = event.seq.saturating_add(1);
        match &event.kind {
            EventKind::TurnStart => self.restart(event.place),
            EventKind::TurnFinish { .. } | EventKind::ThreadResumed { .. } => std::mem::take(&mut self.active).into(),
            EventKind::StepStart { .. } => self.restart(event.place),
            EventKind::CognitionOutDelta { text, .. } if !text.is_empty() => {
                self.begin(event.place);
                self.text.push(text);
                Changed::Yes
            }
            EventKind::CognitionReasoningDelta { text } if !text.is_empty() => {
                self.begin(event.place);
                self.reasoning.push(text);
                Changed::Yes
            }
            EventKind::CognitionOut { text, shown, partial, retained, .. } => {
                let before = self.clone();
                self.begin(event.place);
                let seen = seen(text, shown.as_deref(), partial.as_ref());
                let seen = seen.map_or_else(|| format!("{}{}", self.carried, self.text).into(), Cow::Borrowed);
                self.ended(&seen, end(partial.as_ref(), *retained, self.kept));
                Changed::from(!self.looks_like(&before))
            }
            _ => Changed::No,
        }
    }

    fn ended(&mut self, seen: &str, end: End<'_>) {
        let own = seen.strip_prefix(&*self.carried).unwrap_or(seen);
        let same = self.text.common_prefix(own);
        if (same, same) != (self.text.len(), own.len()) {
            self.text.split_off(same);
            self.text.push(&own[same..]);
        }
        match end {
            End::Accepted => (self.active, self.over) = (false, true),
            End::Stays { carried, .. } => {
                let carried = seen.floor_char_boundary(carried);
                (self.active, self.over, self.kept) = (false, true, carried);
                self.carried = seen[..carried].into();
            }
            End::Continues { kept, .. } => {
                self.kept = kept;
                self.text.split_off(kept.saturating_sub(self.carried.len()));
                self.reasoning = Text::default();
            }
        }
    }

    /// Whether the next delta at `place` is added to what there is, and nothing else changes.
    pub fn adds(&self, place: RunPosition) -> bool {
        self.active && !self.over && (self.turn, self.step) == (place.turn, place.step)
    }

    fn looks_like(&self, other: &Self) -> bool {
        self.active == other.active && self.text == other.text && self.reasoning == other.reasoning
    }

    /// Text of this step follows.
    fn begin(&mut self, place: RunPosition) {
        let other = (self.turn, self.step) != (place.turn, place.step);
        if other {
            let _changed = self.restart(place);
        } else if self.over {
            (self.text, self.reasoning) = Default::default();
        }
        (self.active, self.over) = (true, false);
    }

    fn restart(&mut self, place: RunPosition) -> Changed {
        let next =
            Self { turn: place.turn, step: place.step, next_seq: self.next_seq, active: true, ..Self::default() };
        let changed = !self.active || !self.text.is_empty() || !self.reasoning.is_empty();
        *self = next;
        changed.into()
    }
}
