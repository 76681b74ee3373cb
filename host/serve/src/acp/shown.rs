//! The text of an answer as the client has it: each attempt has written a message, and what a rule stopped is retracted from them.

use tidegate::event::{Partial, Retained, RunPosition};

/// The messages of the answer that is being written. Offsets are in what its events call the shown text.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// Bytes that remain of the attempts before the next one.
    kept: u64,
    /// Bytes at the start that are in messages of an answer before this one: a rule in the mode `keep` has ended that.
    carried: u64,
    /// The attempts whose text counts, oldest first, each with the offset of its message. The message of one ends where the next one's
    /// begins.
    parts: Vec<(RunPosition, u64)>,
}

/// The first `kept` bytes of the message of an attempt count, and the rest does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retraction {
    pub(super) attempt: RunPosition,
    pub(super) kept: u64,
}

impl Shown {
    /// An attempt writes. What it continues is in the messages before.
    pub(super) fn written(&mut self, attempt: RunPosition) {
        if self.parts.last().is_none_or(|(last, _)| *last != attempt) {
            self.parts.push((attempt, self.kept));
        }
    }

    /// The client has loaded the session, and has the whole answer in one message. Returns the attempt whose id that message has to have;
    /// `None`: nothing of an answer counts that is not complete.
    pub(super) fn loaded(&mut self) -> Option<RunPosition> {
        let (attempt, _) = *self.parts.last()?;
        self.parts = vec![(attempt, self.carried)];
        Some(attempt)
    }

    /// An attempt broke off. Returns what of the messages does not count any more, the latest first.
    pub(super) fn broken(&mut self, partial: &Partial, retained: Retained) -> Vec<Retraction> {
        let kept = partial.kept_bytes;
        match retained {
            Retained::Nothing => {}
            Retained::Start { .. } if kept > self.kept => {}
            // What was shown stays, and what follows is another answer.
            Retained::Start { .. } => {
                *self = Self { kept, carried: kept, parts: Vec::new() };
                return Vec::new();
            }
            Retained::Marked | Retained::Answer => {
                *self = Self::default();
                return Vec::new();
            }
        }
        self.kept = kept;
        self.cut(kept, partial.shown_bytes)
    }

    /// Retracts the bytes from `kept` to `end`.
    fn cut(&mut self, kept: u64, mut end: u64) -> Vec<Retraction> {
        let mut retracted = Vec::new();
        while let Some((attempt, start)) = self.parts.last().copied().filter(|_| kept < end) {
            if start < end {
                retracted.push(Retraction { attempt, kept: kept.saturating_sub(start) });
            }
            if start < kept {
                break;
            }
            self.parts.pop();
            end = start;
        }
        retracted
    }
}
