//! What a turn does at once when rules of an attempt have fired: it counts, and notifies.

use std::sync::Arc;

use flow::{RuleMatch, RunPosition};
use rules::Judgement;
use tracing::Span;

use crate::metrics::Metrics;
use crate::notices::Notices;
use flow::ports::{AnswerLog, Tools};
use guard::{Caller, Watcher};

/// Where it is counted and said.
pub(super) struct Watching<'a> {
    pub(super) metrics: &'a mut Metrics,
    /// The log of the answer, where the session is recorded.
    pub(super) log: Option<&'a dyn AnswerLog>,
    pub(super) notices: &'a mut Notices,
    /// Who is notified.
    pub(super) notified: (&'a Arc<Caller>, &'a Arc<dyn Tools>),
    pub(super) place: RunPosition,
    /// The span of the turn.
    pub(super) turn: &'a Span,
}

impl Watcher for Watching<'_> {
    fn fired(&mut self, matches: &[RuleMatch], judgement: &Judgement) {
        self.metrics.count(matches, judgement);
        if let Some(log) = self.log {
            matches.iter().zip(&judgement.actions).for_each(|(found, action)| log.fired(found, *action));
        }
        self.notices.send(self.notified, (matches, judgement), self.place, self.turn);
    }

    fn held(&mut self, rules: &[String]) {
        self.metrics.held(rules);
    }
}
