//! What follows an interrupt of the user: what was shown of the answer is kept, and the step ends.
//!
//! The stream is dropped by now. The inputs that have stopped it are the turn's already, and nobody can withdraw them any more: they are
//! delivered before the next request.

use flow::Retained;

use super::{Phase, Turn};
use crate::attempt::Answer;
use crate::beginning::Beginning;
use crate::inputs::Claim;

/// The cause in the record of the answer, and in what the model reads of it.
const INTERRUPTED: &str = "the user interrupted it";

impl Turn<'_> {
    /// Settles the attempt that was stopped for these inputs: its text is kept, marked as partial.
    pub(super) fn halt(&mut self, claim: Claim) {
        self.halted = Some(claim);
        let mut attempt = std::mem::take(&mut self.attempt);
        // What was noted in it does not reach the model.
        attempt.noted.roll_back(&mut self.session.rules);
        (self.phase, self.beginning) = (Phase::Between, Beginning::None);
        let answer = attempt.answer;
        if answer.blocks.is_empty() && answer.prefix == 0 {
            self.discard_attempt();
            return;
        }
        let message = Answer::marked_message(answer.text.clone(), INTERRUPTED);
        let retained = if message.is_some() { Retained::Marked } else { Retained::Nothing };
        answer.emit_partial(&self.session.hub, INTERRUPTED, 0, retained);
        self.accept_attempt();
        message.into_iter().for_each(|message| self.session.remember(message));
    }
}
