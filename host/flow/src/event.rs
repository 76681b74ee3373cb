//! What happened, in order: the one vocabulary of transcripts, front ends and `--output stream-json`.
//!
//! Names and payloads follow the thread-event specification; the crate `record` gives each its record.

mod kind;

pub use kind::{EventKind, EventView};

use crate::{CallFailure, CallbackKind, ErrorClass, PluginId, StopReason, StreamKind, SuspendReason};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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

impl Event {
    /// The event number `seq`, which happened `at_ms` milliseconds after 1970-01-01 UTC.
    pub fn new(seq: u64, at_ms: u64, place: RunPosition, kind: EventKind) -> Self {
        Self { seq, at_ms, place, kind }
    }
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
    /// The model did not get any further: it repeated itself after it had been told so, or its answers were cut off again and again.
    NoProgress {
        /// The cause in one sentence.
        message: String,
    },
    /// The thread is suspended: it can be continued without another input.
    Suspended {
        /// Why it is suspended.
        reason: SuspendReason,
        /// The cause in one sentence.
        message: String,
    },
}

impl TurnStatus {
    /// The turn failed, and the same input would fail again.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { class: ErrorClass::Permanent, message: message.into() }
    }

    /// The status's word on every surface.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Rejected { .. } => "rejected",
            Self::StoppedByRule { .. } => "stopped_by_rule",
            Self::Cancelled => "cancelled",
            Self::Failed { .. } => "failed",
            Self::StepLimit { .. } => "step_limit",
            Self::NoProgress { .. } => "no_progress",
            Self::Suspended { .. } => "suspended",
        }
    }
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepEnd {
    /// An answer was accepted, which ended for this reason.
    Answered(StopReason),
    /// There is no accepted answer: the turn was cancelled.
    Cancelled,
    /// There is no accepted answer, for another reason, which the end of the turn gives.
    Failed,
}

/// What of an answer stays in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retained {
    /// Nothing: the answer is void, or had nothing to keep.
    Nothing,
    /// The whole answer, with the last rewrite in the place of its text. Tool calls without a result are left out.
    Answer,
    /// The first bytes of its text, as a message of the model.
    Start {
        /// How many bytes of the text.
        bytes: u64,
    },
    /// All of its text, followed by a blank line and `[Stream interrupted: ERROR]`, with the estimated percentage where one is known; before it the
    /// reasoning, where that is retained.
    Marked,
}

/// How an answer ended that did not complete.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Partial {
    /// The cause in human-readable words.
    pub error: String,
    /// The number of bytes of its text that had been shown, including the prefix kept from an earlier attempt.
    pub shown_bytes: u64,
    /// The number of shown bytes, from the start of the answer, that the next attempt continues. The rest of the answer is
    /// discarded; 0: all of it.
    pub kept_bytes: u64,
    /// How much of the answer was received, in percent of the most tokens that it could have: an estimate, which is too low for most answers.
    /// `None` where no most is known.
    pub completion: Option<f64>,
}

impl Partial {
    /// An answer that ended with `error`, of which `shown_bytes` were shown and `kept_bytes` are kept.
    pub fn new(error: impl Into<String>, shown_bytes: u64, kept_bytes: u64) -> Self {
        Self { error: error.into(), shown_bytes, kept_bytes, completion: None }
    }

    /// The same answer, of which this many percent are estimated to be there.
    #[must_use]
    pub fn with_completion(mut self, percent: Option<f64>) -> Self {
        self.completion = percent;
        self
    }
}

/// A block of an answer as it was received. The list of them splits the joined text of an answer into blocks again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerBlock {
    /// The stream that the block belongs to.
    pub kind: StreamKind,
    /// Its length in bytes. The text blocks joined are the answer's text, the thinking blocks its reasoning.
    pub bytes: u64,
    /// Of thinking: the number of bytes of the answer's text that come before it.
    pub text_before: u64,
    /// Of thinking: opaque data that its provider requires back.
    pub signature: Option<String>,
    /// Of thinking: the provider gave the signature instead of words.
    pub redacted: bool,
    /// The number of those bytes, from the start, that an earlier attempt wrote.
    pub prefix_bytes: u64,
    /// For a tool call: the JSON of the arguments, as far as it was received. Where what was shown of calls is kept: as they were shown;
    /// empty where they were not.
    pub arguments: Option<String>,
    /// For a tool call: what is shown of the arguments, where that is another text: those that extensions put in their place, or a
    /// marker; empty where nothing of them is.
    pub shown: Option<String>,
    /// For a tool call: the arguments are not those that the model wrote, which are in no record.
    pub changed: bool,
    /// Whether the block is complete.
    pub complete: bool,
}

impl AnswerBlock {
    /// What is shown of the arguments of a tool call.
    pub fn shown_arguments(&self) -> Option<&str> {
        self.shown.as_deref().or(self.arguments.as_deref())
    }

    /// A complete block of prose: text or thinking.
    pub fn prose(kind: StreamKind, bytes: u64) -> Self {
        Self {
            kind,
            bytes,
            text_before: 0,
            signature: None,
            redacted: false,
            prefix_bytes: 0,
            arguments: None,
            shown: None,
            changed: false,
            complete: true,
        }
    }
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
    /// There was nothing for it to do, or an earlier extension ended the chain; the string gives the reason.
    Skipped(String),
    /// It should have been called and was not: its circuit breaker is open, or it has used up its time of the turn. What follows
    /// is as after a failure.
    NotPermitted(String),
    /// It failed. The chain continued with the value it was given, unless it fails closed: then `extension_withheld`
    /// follows.
    Failed(CallFailure),
    /// Its answer was not used; the string gives the reason.
    Ignored(String),
}

impl CallbackOutcome {
    /// The outcome's word on every surface.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Changed => "changed",
            Self::Skipped(_) => "skipped",
            Self::NotPermitted(_) => "not_permitted",
            Self::Failed(_) => "error",
            Self::Ignored(_) => "ignored",
        }
    }

    /// Returns why the call has no result, or why its result is not used.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed | Self::Changed => None,
            Self::Skipped(why) | Self::NotPermitted(why) | Self::Ignored(why) => Some(why),
            Self::Failed(failure) => Some(&failure.message),
        }
    }

    /// Returns the failure, if it failed.
    pub fn failure(&self) -> Option<&CallFailure> {
        if let Self::Failed(failure) = self { Some(failure) } else { None }
    }
}

/// One call of a callback, or the reason why it was not called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallbackReport {
    /// The extension that was called.
    pub plugin: PluginId,
    /// The callback that was called, or was to be called.
    pub callback: CallbackKind,
    /// The result of the call.
    pub outcome: CallbackOutcome,
    /// How many calls these are: 1, or in a transcript more, of one turn, whose times are added.
    pub calls: u32,
    /// How long it took, in nanoseconds; 0 where it was not called.
    pub nanos: u64,
    /// How many values of its state the extension has read since its last report. Callbacks that run at the same time share
    /// the count: whichever ends first reports the reads of both.
    pub state_reads: u64,
}

impl CallbackReport {
    /// A report of a call that took `nanos` nanoseconds.
    pub fn new(plugin: PluginId, callback: CallbackKind, outcome: CallbackOutcome, nanos: u64) -> Self {
        Self { plugin, callback, outcome, calls: 1, nanos, state_reads: 0 }
    }

    /// The same report, of an extension that has read `reads` values of its state.
    #[must_use]
    pub fn with_state_reads(mut self, reads: u64) -> Self {
        self.state_reads = reads;
        self
    }
}
