//! What was held back in a stream, for how long and for which rules: counted as it happens, reported once.

use std::time::Duration;

use flow::{EventKind, HoldOutcome, StreamKind};

/// The most names of rules in one report.
const MAX_RULES: usize = 16;

/// The holds of one stream.
#[derive(Debug)]
pub(crate) struct Holds {
    rules: Vec<String>,
    count: u32,
    bytes_max: u64,
    ms_max: u64,
    /// The start of the current hold.
    since: Option<Duration>,
    /// Determining the rules that hold is expensive: it is done when this many bytes are held.
    ask_at: u64,
    outcome: HoldOutcome,
}

impl Holds {
    pub(crate) fn new() -> Self {
        let (rules, outcome) = (Vec::new(), HoldOutcome::RuledOut);
        Self { rules, count: 0, bytes_max: 0, ms_max: 0, since: None, ask_at: 1, outcome }
    }

    /// After a chunk so many bytes are held back; `who` names the rules.
    pub(crate) fn waiting(&mut self, bytes: u64, now: &dyn Fn() -> Duration, who: impl FnOnce() -> Vec<String>) {
        if self.since.is_none() {
            self.since = Some(now());
            self.count = self.count.saturating_add(1);
        }
        self.bytes_max = self.bytes_max.max(bytes);
        if bytes >= self.ask_at {
            self.ask_at = bytes.saturating_mul(2);
            for rule in who() {
                if self.rules.len() < MAX_RULES && !self.rules.contains(&rule) {
                    self.rules.push(rule);
                }
            }
        }
    }

    /// Nothing is held back any more.
    pub(crate) fn over(&mut self, now: &dyn Fn() -> Duration) {
        if let Some(since) = self.since.take() {
            let ms = u64::try_from(now().saturating_sub(since).as_millis()).unwrap_or(u64::MAX);
            self.ms_max = self.ms_max.max(ms);
        }
    }

    /// Sets the outcome unless it is already `Matched`; the default is `RuledOut`.
    pub(crate) fn ended(&mut self, outcome: HoldOutcome) {
        if self.outcome != HoldOutcome::Matched {
            self.outcome = outcome;
        }
    }

    /// The rules for which bytes were held back.
    pub(crate) fn rules(&self) -> &[String] {
        &self.rules
    }

    /// The event that reports the holds.
    pub(crate) fn report(mut self, stream: StreamKind, now: &dyn Fn() -> Duration) -> EventKind {
        if self.since.is_some() && self.outcome == HoldOutcome::RuledOut {
            self.outcome = HoldOutcome::Cut;
        }
        self.over(now);
        let Self { rules, count: holds, bytes_max, ms_max, outcome, .. } = self;
        EventKind::RuleHeld { stream, rules, holds, bytes_max, ms_max, outcome }
    }
}
