//! What was held back in a block, for how long and for which rules: counted as it happens, told once.

use flow::{EventKind, HoldOutcome, StreamKind};
use tokio::time::Instant;

/// The most names of rules in one report.
const MAX_RULES: usize = 16;

/// The holds of one block.
#[derive(Debug)]
pub(crate) struct Holds {
    rules: Vec<String>,
    count: u32,
    bytes_max: u64,
    ms_max: u64,
    /// When the hold under way began.
    since: Option<Instant>,
    /// Asking who holds costs something: it is done when this much is held.
    ask_at: u64,
    outcome: HoldOutcome,
}

impl Holds {
    pub(crate) fn new() -> Self {
        let (rules, outcome) = (Vec::new(), HoldOutcome::RuledOut);
        Self { rules, count: 0, bytes_max: 0, ms_max: 0, since: None, ask_at: 1, outcome }
    }

    /// A delta left so many bytes waiting; `who` names the rules they wait for.
    pub(crate) fn waiting(&mut self, bytes: u64, who: impl FnOnce() -> Vec<String>) {
        if self.since.is_none() {
            self.since = Some(Instant::now());
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

    /// Nothing waits any more.
    pub(crate) fn over(&mut self) {
        if let Some(since) = self.since.take() {
            let ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.ms_max = self.ms_max.max(ms);
        }
    }

    /// How it ended, where that is not that all was ruled out. What a match says is the last word.
    pub(crate) fn ended(&mut self, outcome: HoldOutcome) {
        if self.outcome != HoldOutcome::Matched {
            self.outcome = outcome;
        }
    }

    /// The rules that were held for.
    pub(crate) fn rules(&self) -> &[String] {
        &self.rules
    }

    /// What is told of it.
    pub(crate) fn report(mut self, stream: StreamKind) -> EventKind {
        if self.since.is_some() && self.outcome == HoldOutcome::RuledOut {
            self.outcome = HoldOutcome::Cut;
        }
        self.over();
        let Self { rules, count: holds, bytes_max, ms_max, outcome, .. } = self;
        EventKind::RuleHeld { stream, rules, holds, bytes_max, ms_max, outcome }
    }
}
