//! What happened, in order: the one vocabulary of transcripts, front ends and `--output stream-json`.
//!
//! Names and payloads follow the thread-event specification; `turn::transcript` gives each its record.

mod kind;

pub use kind::{EventKind, EventView};

use crate::{CallFailure, CallbackKind, ErrorClass, PluginId, StreamKind};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Position in the thread: 0, 1, 2, … without gaps. A subscriber that lags gets adjacent chunks of text joined,
    /// under the last of their numbers.
    pub seq: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Where in the run of the thread.
    pub place: RunPosition,
    /// What happened, with its payload.
    pub kind: EventKind,
}

/// Turn, step and attempt, each counted from 1; 0 = before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RunPosition {
    /// From one user input to idle.
    pub turn: u32,
    /// One accepted assistant message.
    pub step: u32,
    /// One request to the model.
    pub attempt: u32,
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnStatus {
    /// The model (or an extension) gave its answer.
    Completed,
    /// An extension refused the input.
    Rejected {
        /// The extension that refused it.
        by: PluginId,
        /// For the user.
        reason: String,
    },
    /// A rule ended it: `action = "stop"`, or its budget was spent under `on_budget = "stop"`.
    StoppedByRule {
        /// The name of the rule.
        rule: String,
    },
    /// Somebody cancelled it.
    Cancelled,
    /// An error ended it, after all retries.
    Failed {
        /// What kind of failure.
        class: ErrorClass,
        /// The error in one sentence.
        message: String,
    },
    /// The greatest number of steps was reached with the model still asking for tools.
    StepLimit {
        /// The limit that was reached.
        steps: u32,
    },
}

/// An answer that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// What stopped it, human-readable.
    pub error: String,
    /// The bytes of its text that had been shown, those of a beginning that an earlier attempt left included.
    pub shown_bytes: u64,
    /// The number of bytes shown that are kept, from the start of the answer: the next attempt continues from there.
    /// The rest of it is void; 0: all of it.
    pub stands_bytes: u64,
}

/// A block of an answer as it came, so that the answer can be taken apart again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerBlock {
    /// The blocks of the answer, in order.
    pub kind: StreamKind,
    /// Its bytes; those of text blocks joined are the answer's text, those of thinking blocks its reasoning.
    pub bytes: u64,
    /// The number of them, from its start, that an earlier attempt wrote.
    pub stood_bytes: u64,
    /// For a tool: the arguments as far as they came.
    pub arguments: Option<String>,
    /// It came to its end.
    pub complete: bool,
}

/// How the last hold of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HoldOutcome {
    /// A match stopped the answer: what was held was never shown.
    Matched,
    /// No match came of it, and it was shown.
    RuledOut,
    /// A bound let it go, at least once.
    Released,
    /// The answer broke off.
    Cut,
}

impl HoldOutcome {
    /// The outcome's word on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::RuledOut => "ruled_out",
            Self::Released => "released",
            Self::Cut => "cut",
        }
    }
}

/// What a callback did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackOutcome {
    /// It ran and changed nothing.
    Passed,
    /// It ran and its answer was used.
    Changed,
    /// It was registered and not called; the string gives the reason.
    Skipped(String),
    /// It failed. The chain continued with the value it was given, unless it fails closed: then `extension_withheld`
    /// follows.
    Failed(CallFailure),
    /// Its answer was not used; the string gives the reason.
    Ignored(String),
}

/// One call (or one non-call) of a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackReport {
    /// The extension that was called.
    pub plugin: PluginId,
    /// The callback that was called, or was to be called.
    pub callback: CallbackKind,
    /// What became of it.
    pub outcome: CallbackOutcome,
    /// How long it took, in nanoseconds; 0 where it was not called.
    pub nanos: u64,
}
