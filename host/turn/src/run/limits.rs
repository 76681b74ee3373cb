//! Limits: before a request would exceed one, somebody is asked whether it may. Where nobody permits it, the thread is suspended.
//!
//! A request that is under way is cut off by the time of the thread alone (`deadline`): a step that has begun is finished within every
//! other limit.

use std::time::Duration;

use flow::{EventKind, LimitDecision, LimitRequest};

use super::{Stop, Turn};
use crate::budget::{Exceeded, Next};
use flow::ports::{BoxFuture, EventSink, LimitAnswer};

impl Turn<'_> {
    /// Returns when the next request for an answer exceeds no limit, or when the user interrupts the question about one: the inputs are in
    /// `halted` then.
    ///
    /// # Errors
    /// It would exceed one that nobody raises.
    pub(super) async fn within_limits(&mut self) -> Result<(), Stop> {
        let tokens = self.session.next_prompt();
        self.permit(tokens).await
    }

    /// Returns when a request with a prompt of so many tokens exceeds no limit, or when the user interrupts.
    ///
    /// # Errors
    /// As [`Turn::within_limits`].
    pub(super) async fn permit(&mut self, tokens: u64) -> Result<(), Stop> {
        self.session.handles.budget.set_running(self.duration());
        while let Some(exceeded) = self.session.handles.budget.exceeded(&self.next_request(tokens)) {
            self.escalate(exceeded).await?;
            if self.halted.is_some() {
                return Ok(());
            }
        }
        // A limit that was raised elsewhere needs no decision any more.
        self.session.thread.open_request = None;
        self.session.handles.questions.expect_no_more();
        Ok(())
    }

    fn next_request(&self, tokens: u64) -> Next {
        let price = self.session.parts.settings.price;
        Next {
            is_first: !self.spending.has_asked(),
            tokens,
            spend: price.map(|price| price.of_prompt(tokens)).unwrap_or_default(),
            duration: self.duration(),
        }
    }

    /// The time of the turn so far, without that in which decisions about limits were waited for.
    pub(super) fn duration(&self) -> Duration {
        let turn = Duration::from_millis(self.spending.turn_ms(self.session.parts.clock.now_ms()));
        turn.saturating_sub(self.session.handles.budget.waited())
    }

    /// Asks for a higher limit. Where the user interrupts, the request remains open, and is made again after the message is delivered.
    ///
    /// # Errors
    /// It is not raised: the turn ends, and with it the thread is suspended.
    async fn escalate(&mut self, exceeded: Exceeded) -> Result<(), Stop> {
        let Exceeded { limit, current, max, proposed, is_inherited } = exceeded;
        let mut request = LimitRequest::new(self.session.thread.limit_requests + 1, limit, current, max, proposed);
        let approvals = self.session.approvals.clone().filter(|_| !is_inherited);
        let suspended = |why: String| Stop::Limit { reason: limit.suspends_for(), message: why };
        let Some(approvals) = approvals else {
            let whose = if is_inherited { "the session that started this one" } else { "the session" };
            let max = limit.amount(max);
            return Err(suspended(format!("{whose} has reached its limit `{limit}` of {max}")));
        };
        match self.session.thread.open_request.take() {
            // The question of an earlier process is asked again.
            Some((id, of)) if of == limit => request.id = id,
            _ => self.session.thread.limit_requests += 1,
        }
        // It stays open where the turn is cancelled now.
        self.session.thread.open_request = Some((request.id.clone(), limit));
        self.undecided = Some(limit);
        let decided = approvals.decide(&request);
        self.session.handles.hub.emit(EventKind::LimitEscalationRequested(request.clone()));
        self.recorded().await?;
        // Front ends have the event.
        self.session.handles.questions.expect_no_more();
        let answer = self.unless_interrupted(decided).await;
        self.undecided = None;
        let Some(LimitAnswer { decision, by }) = answer else { return Ok(()) };
        if decision != LimitDecision::TimedOut {
            self.session.thread.open_request = None;
        }
        // Who reads the event finds the limit as it is now.
        if let LimitDecision::Approved { max } = decision {
            self.session.handles.budget.set(limit, max);
        }
        let resolved =
            EventKind::LimitEscalationResolved { request: request.id.clone(), limit, decision: decision.clone(), by };
        self.session.handles.hub.emit(resolved);
        match decision {
            LimitDecision::Approved { .. } => Ok(()),
            LimitDecision::Denied { reason } if reason.trim().is_empty() => {
                Err(suspended(format!("{}; it was denied", request.message)))
            }
            LimitDecision::Denied { reason } => Err(suspended(format!("{}; it was denied: {reason}", request.message))),
            LimitDecision::TimedOut => Err(suspended(format!("{}; nobody has decided in time", request.message))),
        }
    }

    /// Waits for a decision. `None`: the user interrupts.
    async fn unless_interrupted(&mut self, decision: BoxFuture<'_, LimitAnswer>) -> Option<LimitAnswer> {
        self.spending.begin_wait(self.session.parts.clock.now_ms());
        let decided = tokio::select! {
            biased;
            answer = decision => Some(answer),
            claim = self.session.handles.inputs.interrupting() => {
                self.halted = Some(claim);
                None
            }
        };
        self.spending.end_wait(self.session.parts.clock.now_ms());
        decided
    }
}
