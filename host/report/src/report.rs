//! The session as a report has it: turns, their steps, the attempts of each step, and what happened in them.

use std::collections::BTreeMap;

use turn::transcript as record;
use turn::transcript::Record;

use crate::collect::Collector;

/// A recorded session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The session's id.
    pub session: String,
    /// The agent's name, where the transcript has it.
    pub agent: Option<String>,
    /// The workspace's folder; empty where there is none.
    pub workspace: String,
    /// The models that the session used, in the order of their first use.
    pub models: Vec<ModelName>,
    /// The extensions that were registered, in that order.
    pub extensions: Vec<Extension>,
    /// When the first record was written, in milliseconds since 1970-01-01 UTC.
    pub started_ms: Option<u64>,
    /// When the last record was written.
    pub ended_ms: Option<u64>,
    /// Before the first turn, and after the last.
    pub log: Log,
    /// The turns, in the order in which they began.
    pub turns: Vec<Turn>,
    /// Records that were read.
    pub records: u64,
    /// Droppable events that were lost while the session was recorded.
    pub dropped: u64,
    /// How many records there are of each type that this version does not know.
    pub unknown: BTreeMap<String, u64>,
}

/// A model of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelName {
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
}

/// An extension of the session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extension {
    /// Its id.
    pub id: String,
    /// The version that was registered last.
    pub version: String,
}

/// Everything from one input to idle.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Turn {
    /// The number of the turn, from 1.
    pub number: u32,
    /// The time of its first record.
    pub started_ms: u64,
    /// The time of its last record.
    pub ended_ms: u64,
    /// What is about no step: the input, mostly.
    pub log: Log,
    /// Its steps, in the order in which they began.
    pub steps: Vec<Step>,
    /// How it ended; `None`: the transcript ends before.
    pub finish: Option<record::TurnFinish>,
}

/// One accepted answer, or the attempts to get one.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// The number of the step in its turn, from 1.
    pub number: u32,
    /// What is about no attempt.
    pub log: Log,
    /// Its attempts, in the order in which they began.
    pub attempts: Vec<Attempt>,
    /// How it ended, with its tokens.
    pub finish: Option<record::StepFinish>,
}

/// One request to the model, and the calls of its answer.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Attempt {
    /// The number of the attempt in its step, from 1.
    pub number: u32,
    /// What happened.
    pub log: Log,
}

/// What happened at one position, in order.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Log {
    /// What happened, in order.
    pub entries: Vec<Entry>,
    /// The callbacks that were called, in the order of their first call.
    pub callbacks: Vec<Callback>,
}

/// The calls of one callback of one extension at one position.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Callback {
    /// The extension.
    pub extension: String,
    /// The callback's name.
    pub callback: String,
    /// Reports of any outcome, also of calls that were not made.
    pub calls: u64,
    /// Calls that changed something.
    pub changed: u64,
    /// Calls that failed.
    pub failed: u64,
    /// The time that all calls took, in microseconds.
    pub total_us: f64,
    /// The time that the longest call took, in microseconds.
    pub max_us: f64,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum What {
    /// The user wrote something.
    Input(record::Spoken),
    /// A message arrived while the turn was running.
    Steering(record::Spoken),
    /// A message joined the conversation.
    Sent(Sent),
    /// A hidden message of the host to the model.
    Message(record::CustomMessage),
    /// The reasoning of the answer that follows.
    Reasoning(record::CognitionReasoning),
    /// An answer, complete or not.
    Answer(Answer),
    /// A tool call that ran, waited or was refused.
    Tool(ToolCall),
    /// A rule matched.
    Rule(record::RuleFired),
    /// Output was held back because it could have belonged to a match.
    Held(record::RuleHeld),
    /// Held output was released because a limit was reached.
    HoldReleased(record::RuleHoldReleased),
    /// Reminders went to the model.
    Injection(record::TtsrInjection),
    /// Rules act again whose reminder is no longer in the context.
    Rearmed(record::TtsrRearmed),
    /// A request failed.
    Error(record::ErrorClassified),
    /// The request is sent again.
    Retry(record::RetryScheduled),
    /// A request succeeded after it was sent again.
    Retried(record::RetrySucceeded),
    /// A callback failed, was not permitted, or its result was ignored.
    CallbackProblem(record::ExtensionCallback),
    /// A tool of an extension failed or was not permitted.
    ToolProblem(record::ExtensionTool),
    /// Text was withheld because an extension did not check it.
    Withheld(record::ExtensionWithheld),
    /// A circuit breaker of an extension changed its state.
    Breaker(record::ExtensionBreaker),
    /// An extension has the model read these texts.
    Prompt(record::ExtensionPrompt),
    /// The older part of the conversation is to be summarised.
    CompactionStart(record::ContextCompactionStart),
    /// The older part of the conversation was summarised, or that failed.
    CompactionEnd(record::ContextCompactionEnd),
    /// The conversation was replaced by one of so many messages.
    HistoryReplaced(u64),
    /// A line of an extension's log.
    Log(record::ExtensionLog),
    /// A sentence for the user, of the kind that its record has: `notice`, `state_lost`, `thread_error` and others.
    Notice(&'static str, String),
}

/// A message that joined the conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sent {
    /// The message as the model reads it.
    pub message: record::Spoken,
    /// It is an input of this turn that nothing changed.
    pub unchanged: bool,
}

/// An answer of the model, or of an extension in its place.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The record.
    pub record: record::CognitionOut,
    /// The parts of its text on which rules matched, as byte ranges, in order and without overlaps.
    pub matches: Vec<std::ops::Range<usize>>,
}

/// A tool call, from the question to the result.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// Pairs the call with its result.
    pub call_id: String,
    /// The tool's name.
    pub tool: String,
    /// It ran.
    pub started: bool,
    /// The arguments as JSON; `None` where the call neither ran nor was asked about.
    pub arguments: Option<String>,
    /// Why a person was asked; `None`: nobody was.
    pub question: Option<String>,
    /// What was decided.
    pub decision: Option<record::ToolConfirmationResolved>,
    /// The lines of progress that are recorded.
    pub progress: Vec<String>,
    /// The result; `None`: the transcript has none.
    pub result: Option<record::ToolCallResult>,
}

impl Report {
    /// Makes the report of a session's records, which are read once, in order. Records of unknown types are counted.
    pub fn of(records: impl Iterator<Item = Record>) -> Self {
        let mut collector = Collector::default();
        records.for_each(|record| collector.take(record));
        collector.finish()
    }

    /// Returns the logs of all positions, in order; those of turns with the turn.
    pub fn logs(&self) -> impl Iterator<Item = (Option<&Turn>, &Log)> {
        let turns = self.turns.iter().flat_map(|turn| turn.logs().map(move |(_, _, log)| (Some(turn), log)));
        std::iter::once((None, &self.log)).chain(turns)
    }
}

impl Turn {
    /// Returns the logs of the turn in order, each with its step and attempt, which are 0 where it is about none.
    pub fn logs(&self) -> impl Iterator<Item = (u32, u32, &Log)> {
        std::iter::once((0, 0, &self.log)).chain(self.steps.iter().flat_map(Step::logs))
    }

    /// Returns the milliseconds from its first record to its last.
    pub fn duration_ms(&self) -> u64 {
        self.ended_ms.saturating_sub(self.started_ms)
    }
}

impl Step {
    fn logs(&self) -> impl Iterator<Item = (u32, u32, &Log)> {
        let number = self.number;
        let attempts = self.attempts.iter().map(move |attempt| (number, attempt.number, &attempt.log));
        std::iter::once((number, 0, &self.log)).chain(attempts)
    }
}

impl Answer {
    /// Returns the text that the user has seen of it.
    pub fn shown(&self) -> &str {
        let record = &self.record;
        if let Some(shown) = &record.shown {
            return shown;
        }
        let bytes = if record.is_partial { record.shown_bytes } else { None };
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        bytes.and_then(|bytes| record.text.get(..bytes)).unwrap_or(&record.text)
    }
}
