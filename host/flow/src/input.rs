//! Inputs of a session on their way into the conversation: their names, how they were handed over, and what became of them.

use std::fmt;
use std::sync::Arc;

use crate::RunPosition;

/// Names one input of a session, from before it is delivered. Given by the front end that hands it over, or made by the session as
/// `input-<n>`; unique in a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InputId(Arc<str>);

impl InputId {
    /// Wraps `id` as it is.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How an input that waits is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InputWay {
    /// It starts a turn of its own, for a caller that waits for the turn's report.
    Prompt,
    /// It starts a turn when the turn before it has completed.
    Queue,
    /// It joins the running turn before its next request to the model, after the results of all calls.
    Steer,
    /// As [`InputWay::Steer`], and the running attempt or call is aborted for it.
    Interrupt,
}

impl InputWay {
    const ALL: [Self; 4] = [Self::Prompt, Self::Queue, Self::Steer, Self::Interrupt];

    /// The word on every surface: `prompt`, `queue`, `steer`, `interrupt`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Queue => "queue",
            Self::Steer => "steer",
            Self::Interrupt => "interrupt",
        }
    }

    /// The way with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.as_str() == word)
    }

    /// Whether it joins a turn that runs already.
    pub fn joins_turn(self) -> bool {
        matches!(self, Self::Steer | Self::Interrupt)
    }
}

/// Why an input does not wait any more, although it was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Withdrawal {
    /// Somebody removed it.
    Removed,
    /// Whoever handed it over has it back.
    Returned,
}

impl Withdrawal {
    /// The word on every surface: `removed` or `returned`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Returned => "returned",
        }
    }

    /// The withdrawal with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Removed, Self::Returned].into_iter().find(|withdrawal| withdrawal.as_str() == word)
    }
}

/// What became of an input. Once it is delivered or removed, it stays so; one that was returned can be handed over again under its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Receipt {
    /// It waits, or a turn is delivering it.
    Queued,
    /// The session has taken it: extensions got it, and can still reject or drop it, as any input.
    Delivered {
        /// The position of the run when it was taken: its turn, and the step after which it joined the turn; 0 before the first.
        place: RunPosition,
        /// The number of its event, `input_received` or `steering_message`.
        seq: u64,
    },
    /// Somebody removed it before it was delivered.
    Removed,
    /// Whoever handed it over has it back.
    Returned,
}

impl From<Withdrawal> for Receipt {
    fn from(withdrawal: Withdrawal) -> Self {
        match withdrawal {
            Withdrawal::Removed => Self::Removed,
            Withdrawal::Returned => Self::Returned,
        }
    }
}
