//! What a thread has spent by its records, and what was decided about its limits.

use std::time::Duration;

use flow::{Limit, Spend, SuspendReason};

use super::{Body, Record, Resumed};
use crate::budget::Spent;

/// Counts over the records of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Spending {
    spent: Spent,
    is_unpriced: bool,
    raised: Vec<(Limit, f64)>,
    requests: u64,
    open: Option<(String, Limit)>,
    suspended: Option<SuspendReason>,
    /// When the turn began that is under way.
    turn_began: Option<u64>,
    /// When a decision was asked for that is waited for.
    asked: Option<u64>,
    /// Milliseconds of the turn in which one was waited for.
    waited: u64,
    /// The time of the last record.
    last: u64,
}

impl Spending {
    pub(super) fn take(&mut self, record: &Record) {
        self.last = record.ts;
        match &record.body {
            Body::TurnStart(_) => {
                self.end_turn();
                (self.turn_began, self.waited, self.asked) = (Some(record.ts), 0, None);
            }
            Body::TurnFinish(_) => self.end_turn(),
            Body::StepFinish(finish) => {
                self.spent.steps += u64::from(finish.stop_reason.is_some());
                self.add(&finish.tokens, finish.cost);
            }
            Body::ContextCompactionEnd(end) => {
                if let Some(tokens) = &end.tokens {
                    self.add(tokens, end.cost);
                }
            }
            Body::LimitEscalationRequested(request) => {
                let limit = Limit::from_code(&request.limit_code);
                let is_new = self.open.as_ref().is_none_or(|(id, _)| *id != request.approval_request_id);
                self.requests += u64::from(is_new);
                self.open = limit.map(|limit| (request.approval_request_id.clone(), limit));
                self.asked = Some(record.ts);
            }
            Body::LimitEscalationResolved(resolved) => {
                self.end_wait();
                let limit = Limit::from_code(&resolved.limit_code);
                if let (Some(limit), Some(max)) = (limit, resolved.new_max) {
                    self.raised.push((limit, max));
                }
                if resolved.decision != "timed_out" {
                    self.open = None;
                }
            }
            Body::ThreadSuspended(suspended) => {
                self.suspended = SuspendReason::from_word(&suspended.suspend_reason);
            }
            Body::ThreadResumed(_) => self.suspended = None,
            _ => {}
        }
    }

    /// The thread continues from here.
    pub(super) fn finish(mut self, resumed: &mut Resumed) {
        // The process ended in the middle of a turn.
        self.end_turn();
        resumed.spend = (!self.is_unpriced).then_some(self.spent.spend);
        resumed.spent = self.spent;
        resumed.raised = self.raised;
        resumed.limit_requests = self.requests;
        resumed.open_request = self.open;
        resumed.suspended = self.suspended;
    }

    fn add(&mut self, tokens: &super::Tokens, cost: Option<f64>) {
        let sum = tokens.input_tokens.unwrap_or(0).saturating_add(tokens.output_tokens.unwrap_or(0));
        self.spent.tokens = self.spent.tokens.saturating_add(sum);
        self.spent.spend = self.spent.spend.plus(cost.map(Spend::of_dollars).unwrap_or_default());
        self.is_unpriced |= cost.is_none();
    }

    fn end_wait(&mut self) {
        if let Some(asked) = self.asked.take() {
            self.waited += self.last.saturating_sub(asked);
        }
    }

    fn end_turn(&mut self) {
        self.end_wait();
        if let Some(began) = self.turn_began.take() {
            let took = self.last.saturating_sub(began).saturating_sub(self.waited);
            self.spent.turns += 1;
            self.spent.duration = self.spent.duration.saturating_add(Duration::from_millis(took));
        }
    }
}
