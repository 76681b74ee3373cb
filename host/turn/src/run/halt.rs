//! An attempt that ends before its answer is complete, because the user interrupts or the turn ends: what was received is kept, marked as
//! partial.
//!
//! The stream is dropped by now. The inputs of an interrupt are the turn's already, and nobody can withdraw them any more: they are
//! delivered before the next request.

use flow::{SuspendReason, TurnStatus};

use super::{Phase, Turn};
use crate::inputs::Claim;
use flow::ports::EventSink;
use guard::Beginning;
use guard::attempt::Unfinished;

/// The cause in the record of the answer, and in what the model reads of it.
pub(super) const INTERRUPTED: &str = "the user interrupted it";

impl Turn<'_> {
    /// Settles the attempt that was stopped for these inputs, and the step with it.
    pub(super) fn halt(&mut self, claim: Claim) {
        self.halted = Some(claim);
        self.settle_stopped(INTERRUPTED);
    }

    /// Settles the attempt that was stopped for this cause: what was received of its answer is kept, marked as partial.
    pub(super) fn settle_stopped(&mut self, why: &str) {
        // What was noted in it does not reach the model.
        self.attempt.noted.roll_back(&mut self.session.rules);
        (self.phase, self.beginning) = (Phase::Between, Beginning::None);
        if self.keep_partial(why) {
            self.accept_attempt();
        } else {
            self.discard_attempt();
        }
    }

    /// How a turn ends that is cancelled. Where its session is closed before a person has answered or decided, the thread waits for that.
    pub(crate) fn cancelled(&self) -> TurnStatus {
        let questions = &self.session.handles.questions;
        let open = match (questions.kept(), self.undecided) {
            (0, Some(limit)) if questions.keeps_open() => {
                format!("a decision about the limit `{limit}` was waited for; it is")
            }
            (0, _) => return TurnStatus::Cancelled,
            (1, _) => "a question about a tool call was open; it is".to_owned(),
            (open, _) => format!("{open} questions about tool calls were open; they are"),
        };
        let message = format!("the session was closed while {open} asked again when it is resumed");
        TurnStatus::Suspended { reason: SuspendReason::Approval, message }
    }

    /// Settles the attempt under way at the end of its turn.
    pub(super) fn settle_answer(&mut self, status: &TurnStatus) {
        self.keep_partial(cause(status));
    }

    /// Records the answer as it is. Its text, and what it continues from, joins the conversation, with a note that gives the cause. Returns
    /// whether there was anything.
    fn keep_partial(&mut self, why: &str) -> bool {
        let with_reasoning = !self.session.parts.model.signs_reasoning();
        let Some(Unfinished { events, message }) = self.attempt.cut(&self.session.rules, why, with_reasoning) else {
            return false;
        };
        events.into_iter().for_each(|event| self.session.handles.hub.emit(event));
        message.into_iter().for_each(|message| self.session.handles.history.push_partial(message));
        true
    }
}

/// The cause in the record of what a turn was doing when it ended so.
pub(super) fn cause(status: &TurnStatus) -> &str {
    match status {
        TurnStatus::Failed { message, .. }
        | TurnStatus::NoProgress { message }
        | TurnStatus::Suspended { message, .. } => message,
        TurnStatus::Completed
        | TurnStatus::Cancelled
        | TurnStatus::Rejected { .. }
        | TurnStatus::StoppedByRule { .. }
        | TurnStatus::StepLimit { .. } => "cancelled",
    }
}

/// Whether a turn has ended before a person has answered, so that its calls are still to be asked about.
pub(super) fn is_waiting(status: &TurnStatus) -> bool {
    matches!(status, TurnStatus::Suspended { reason: SuspendReason::Approval, .. })
}
