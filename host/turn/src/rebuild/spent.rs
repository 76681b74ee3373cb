//! What a thread has spent by its records, and what was decided about its limits.

use std::time::Duration;

use flow::{Limit, Spend, SuspendReason};

use record::{Body, Record, Tokens};

use super::Resumed;
use crate::budget::Spent;

/// Counts over the records of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Spending {
    spent: Spent,
    /// What the requests of the thread itself have cost, as far as it is known.
    spend: Spend,
    is_unpriced: bool,
    /// The turn under way has asked the model.
    has_asked: bool,
    raised: Vec<(Limit, f64)>,
    requests: u64,
    open: Option<(String, Limit)>,
    /// The limit about which a decision is waited for, and its value; turns of which nothing has become leave it to the next.
    waits: Option<(Limit, f64)>,
    /// The turn under way has asked for the decision.
    has_requested: bool,
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
        // A turn without an end was over when its process ended, and not when the next one began.
        if matches!(record.body, Body::ThreadStarted(_) | Body::ThreadResumed(_) | Body::TurnStart(_)) {
            self.end_turn();
        }
        self.last = record.ts;
        match &record.body {
            Body::TurnStart(_) => {
                (self.turn_began, self.waited, self.asked) = (Some(record.ts), 0, None);
                (self.has_asked, self.has_requested) = (false, false);
            }
            Body::StepStart(_) => {
                // It continues without an answer to an open request: nobody needs one any more.
                (self.has_asked, self.open, self.waits) = (true, None, None);
            }
            Body::InputReceived(_) => self.waits = None,
            Body::TurnFinish(finish) => {
                // Where the session was closed, the next process asks.
                if self.has_requested && finish.status != "suspended" {
                    self.waits = None;
                }
                self.end_turn();
            }
            // The user has interrupted a request: it waits from when it is made again.
            Body::SteeringMessage(_) => self.end_wait(),
            Body::StepFinish(finish) => {
                self.spent.steps += u64::from(finish.stop_reason.is_some());
                self.add(&finish.tokens, finish.cost, finish.charged.as_ref());
            }
            Body::ChildThreadStarted(_) => self.spent.spawns += 1,
            Body::ContextCompactionEnd(end) => {
                if let Some(tokens) = &end.tokens {
                    self.add(tokens, end.cost, end.charged.as_ref());
                }
            }
            Body::LimitEscalationRequested(request) => {
                let limit = Limit::from_code(&request.limit_code);
                let is_new = self.open.as_ref().is_none_or(|(id, _)| *id != request.approval_request_id);
                self.requests += u64::from(is_new);
                self.open = limit.map(|limit| (request.approval_request_id.clone(), limit));
                // A call waits for a decision about agents: it is not repeated.
                self.waits = limit.filter(|limit| *limit != Limit::Spawns).map(|limit| (limit, request.current_max));
                (self.asked, self.has_requested) = (Some(record.ts), true);
            }
            Body::LimitEscalationResolved(resolved) => {
                self.waits = None;
                self.end_wait();
                let limit = Limit::from_code(&resolved.limit_code);
                if let (Some(limit), Some(max)) = (limit, resolved.new_max) {
                    self.raised.push((limit, max));
                }
                // A call that wanted to start an agent has failed then: nobody asks again.
                if resolved.decision != "timed_out" || limit == Some(Limit::Spawns) {
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
        resumed.spend = (!self.is_unpriced).then_some(self.spend);
        resumed.spent = self.spent;
        resumed.raised = self.raised;
        resumed.limit_requests = self.requests;
        resumed.open_request = self.open;
        resumed.undecided = self.waits;
        resumed.suspended = self.suspended;
    }

    /// `charged`: what counts for the limits by then, in which everything before is contained. Without it, it is what was counted.
    fn add(&mut self, tokens: &Tokens, cost: Option<f64>, charged: Option<&record::Charged>) {
        self.spend = self.spend.plus(cost.map(Spend::of_dollars).unwrap_or_default());
        self.is_unpriced |= cost.is_none();
        if let Some(charged) = charged {
            self.spent.tokens = charged.tokens;
            self.spent.spend = Spend::of_dollars(charged.spend);
            self.spent.spawns = charged.spawns;
            return;
        }
        let sum = tokens.input_tokens.unwrap_or(0).saturating_add(tokens.output_tokens.unwrap_or(0));
        self.spent.tokens = self.spent.tokens.saturating_add(sum);
        self.spent.spend = self.spent.spend.plus(cost.map(Spend::of_dollars).unwrap_or_default());
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
            self.spent.turns += u64::from(self.has_asked);
            self.spent.duration = self.spent.duration.saturating_add(Duration::from_millis(took));
        }
    }
}
