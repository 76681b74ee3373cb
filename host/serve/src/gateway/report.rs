//! What a gateway has done, for the person who started it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gateway::{Exchange, Tally};
use tidegate::PluginId;
use tidegate::rule::Action;

/// The maximum number of different notices that are kept.
const MOST_NOTICES: usize = 20;

/// Counts of a gateway.
#[derive(Debug, Default)]
pub struct Report(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    answers: u64,
    rules: BTreeMap<String, RuleCount>,
    plugins: BTreeMap<String, PluginCount>,
    notices: BTreeMap<String, u64>,
}

impl Counts {
    fn note(&mut self, notice: &str) {
        if self.notices.len() < MOST_NOTICES || self.notices.contains_key(notice) {
            *self.notices.entry(notice.to_owned()).or_default() += 1;
        }
    }
}

/// What a rule has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleCount {
    /// Matches for which an answer was stopped, after which the model was asked again.
    pub stopped: u64,
    /// Matches for which an answer was ended for good.
    pub ended: u64,
    /// Matches of which the model was reminded in its next request.
    pub reminded: u64,
    /// Matches on which nothing was done.
    pub passed: u64,
}

/// The effects of a plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginCount {
    /// Calls of its callbacks that changed something.
    pub changed: u64,
    /// Calls that failed, or were skipped although they were due.
    pub failed: u64,
}

impl Report {
    /// The answers that were guarded.
    pub fn answers(&self) -> u64 {
        self.counts().answers
    }

    /// What rules have done, by their names.
    pub fn rules(&self) -> BTreeMap<String, RuleCount> {
        self.counts().rules.clone()
    }

    /// Returns the effects of plugins, by their ids.
    pub fn plugins(&self) -> BTreeMap<String, PluginCount> {
        self.counts().plugins.clone()
    }

    /// Adds the effects of plugins since the last call.
    pub(super) fn count_plugins(&self, tallies: impl Iterator<Item = (PluginId, Tally)>) {
        let mut counts = self.counts();
        for (plugin, tally) in tallies {
            let count = counts.plugins.entry(plugin.to_string()).or_default();
            count.changed += tally.changed;
            count.failed += tally.failed;
        }
    }

    /// Returns notices for the user, one sentence each, with their counts: parts that could not be checked, and parts that were sent before
    /// they were judged. At most twenty different notices are kept; all are logged.
    pub fn notices(&self) -> BTreeMap<String, u64> {
        self.counts().notices.clone()
    }

    /// An exchange is over.
    pub(super) fn count(&self, exchange: &Exchange) {
        let mut counts = self.counts();
        counts.answers += 1;
        for fired in exchange.fired() {
            let count = counts.rules.entry(fired.found.rule.clone()).or_default();
            match fired.action {
                Action::Interrupt | Action::Block => count.stopped += 1,
                Action::Stop => count.ended += 1,
                Action::Remind => count.reminded += 1,
                _ => count.passed += 1,
            }
        }
        exchange.notices().iter().for_each(|notice| counts.note(notice));
    }

    /// Adds a notice for the user.
    pub(super) fn note(&self, notice: &str) {
        self.counts().note(notice);
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
