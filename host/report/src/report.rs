//! The session as a report has it: turns, their steps, the attempts of each step, and what happened in them.

mod entry;

use std::collections::BTreeMap;

use record::Record;

pub use self::entry::{Answer, Callback, Entry, Log, Reasoning, Sent, ToolCall, What};
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
    /// The id in its manifest.
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
    /// What happened in it, the calls of its answer included.
    pub log: Log,
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
