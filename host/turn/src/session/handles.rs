//! What others use of a session while a turn has it.

use std::sync::Arc;

use super::{Canceller, InjectedRules, Session};
use crate::budget::Budget;
use crate::events::Hub;
use crate::history::History;
use crate::inputs::Inputs;
use crate::notices::Triggers;
use crate::questions::Questions;

/// Handles of what a [`Session`] owns, for those who read and act while a turn runs. None is a copy: the session and all handles of it
/// have the same values.
#[derive(Clone)]
pub struct Handles {
    /// Where its events are emitted. Subscribers can join at any time.
    pub hub: Arc<Hub>,
    /// The conversation, hidden messages included.
    pub history: History,
    /// The inputs that wait for it. They can be handed over, edited and withdrawn.
    pub inputs: Inputs,
    /// Its questions about tool calls, which front ends answer.
    pub questions: Questions,
    /// Its limits, and what is spent of them.
    pub budget: Budget,
    /// Who cancels its turns: what is set there is reported at the end of its thread.
    pub canceller: Canceller,
    /// The rules whose reminders are in the conversation. Those of an earlier process are there from the start where the session is
    /// recorded, and otherwise from its first turn on.
    pub injected: InjectedRules,
    /// Where front ends subscribe to the rules that fire.
    pub triggers: Triggers,
}

impl std::fmt::Debug for Handles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handles").finish_non_exhaustive()
    }
}

impl Session {
    /// Handles of the session, for others than the task that runs its turns. To be taken when it has its budget and its journal.
    pub fn handles(&self) -> Handles {
        self.handles.clone()
    }
}
