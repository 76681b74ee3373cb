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
    /// The text from `carried` on.
    text: String,
}

/// What an attempt that broke off leaves of its messages.
#[derive(Debug, Default)]
pub(super) struct Broken {
    /// What of the messages does not count any more, the latest first.
    pub(super) retracted: Vec<Retraction>,
    /// The text that does not count any more.
    pub(super) text: String,
    /// What follows is another answer, and not the rest of this one.
    pub(super) is_over: bool,
}

/// The first `kept` bytes of the message of an attempt count, and the rest does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retraction {
    pub(super) attempt: RunPosition,
    pub(super) kept: u64,
}

impl Shown {
    /// An attempt writes. What it continues is in the messages before. `text`: of the answer, and not of its reasoning.
    pub(super) fn written(&mut self, attempt: RunPosition, text: &str) {
        self.text.push_str(text);
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

    /// An attempt broke off.
    pub(super) fn broken(&mut self, partial: &Partial, retained: Retained) -> Broken {
        let kept = partial.kept_bytes;
        let over = Broken { is_over: true, ..Broken::default() };
        match retained {
            Retained::Nothing => {}
            Retained::Start { .. } if kept > self.kept => {}
            // What was shown stays, and what follows is another answer.
            Retained::Start { .. } => {
                *self = Self { kept, carried: kept, ..Self::default() };
                return over;
            }
            Retained::Marked | Retained::Answer => {
                *self = Self::default();
                return over;
            }
        }
        self.kept = kept;
        let start = usize::try_from(kept.saturating_sub(self.carried)).unwrap_or(usize::MAX);
        let text = self.text.get(start..).unwrap_or_default().to_owned();
        self.text.truncate(self.text.len() - text.len());
        Broken { retracted: self.cut(kept, partial.shown_bytes), text, is_over: false }
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
