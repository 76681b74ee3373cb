//! A session's budget, and how a thread that was suspended continues.

use std::sync::Arc;

use flow::{EventKind, Role, Spend, TurnStatus, Usage};
use tokio_util::sync::CancellationToken;

use super::{Given, Session, TurnReport};
use crate::budget::Budget;
use flow::ports::{Approvals, EventSink};

/// What the model reads where it continues an answer that was interrupted, without another input.
const CONTINUE: &str = "Your last answer was interrupted. Continue it from where it ends.";

impl Session {
    /// Limits what its thread may spend; before [`Session::with_journal`]. `approvals` decides about more; without it, the thread is
    /// suspended when it reaches a limit.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget, approvals: Option<Arc<dyn Approvals>>) -> Self {
        (self.handles.budget, self.approvals) = (budget, approvals);
        self
    }

    /// Its limits, and what is spent of them.
    pub fn budget(&self) -> &Budget {
        &self.handles.budget
    }

    /// Runs a turn without an input: the conversation continues where it was suspended, cancelled or interrupted. `by`: what resumes it,
    /// for the record, such as `continue`. The turn fails where there is nothing to continue, because the last answer is complete.
    pub async fn resume(&mut self, by: &str, cancel: &CancellationToken) -> TurnReport {
        self.start(Given::Nothing, by, cancel).await
    }

    /// Counts what a request took, and returns its cost as far as that is known. `prompt`: tokens of its prompt; `None`: it was the
    /// conversation. `bytes`: of the answer. By both, its tokens are estimated for the limits where the provider has not counted them.
    pub(crate) fn spend(&mut self, usage: Usage, prompt: Option<u64>, bytes: u64) -> Option<Spend> {
        let (uncached, price) = (self.parts.model.uncached_tokens(usage), self.parts.settings.price);
        let spend = price.and_then(|price| price.of(uncached, usage));
        // With what came from the provider's cache, however it counts that.
        let counted = self.parts.model.context_tokens(Usage { output: None, ..usage });
        let prompt = counted.or(prompt).unwrap_or_else(|| self.next_prompt());
        let answer = usage.output.unwrap_or(bytes / 4);
        let estimated = || {
            let counted = Usage { output: Some(answer), ..usage };
            price.and_then(|price| price.of(uncached.or(Some(prompt)), counted)).unwrap_or_default()
        };
        self.handles.budget.add(prompt.saturating_add(answer), spend.unwrap_or_else(estimated));
        self.thread.spent(spend);
        spend
    }

    /// Prepares the conversation to continue without an input. Returns why that is not possible.
    pub(crate) fn continue_history(&self) -> Option<String> {
        let messages = self.handles.history.messages();
        match messages.iter().rev().find(|message| message.role != Role::System) {
            None => Some("there is nothing to continue: the conversation is empty".to_owned()),
            Some(last) if last.role != Role::Assistant => None,
            Some(_) if self.handles.history.ends_partial() => {
                self.inform("continue", CONTINUE.to_owned());
                None
            }
            Some(_) => Some("there is nothing to continue: the last answer is complete".to_owned()),
        }
    }

    /// Reports that the thread is suspended, if the turn that has ended suspended it.
    pub(crate) fn emit_suspended(&mut self) {
        let Some(TurnStatus::Suspended { reason, message }) = self.thread.last_status() else { return };
        let suspended = self.thread.suspend(*reason, message.clone(), self.parts.clock.now_ms());
        self.handles.hub.emit(suspended);
    }
}

impl super::Thread {
    /// The event of a suspension.
    pub(super) fn suspend(&mut self, reason: flow::SuspendReason, message: String, now_ms: u64) -> EventKind {
        self.suspended = Some(reason);
        let duration_ms = now_ms.saturating_sub(self.started_ms.unwrap_or(now_ms));
        EventKind::ThreadSuspended {
            reason,
            message,
            turns: self.turns,
            usage: self.usage,
            spend: self.known_spend(),
            duration_ms,
        }
    }
}
