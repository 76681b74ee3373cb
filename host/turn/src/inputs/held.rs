//! Inputs of an earlier process that no turn takes on its own, because whoever continues the session has asked for something else.

use super::state::Entry;
use super::{Claim, Inputs};

/// Characters of a held message that its notice has.
const HELD_TEXT: usize = 80;

impl Inputs {
    /// What waits now is held: no turn takes it on its own, until it is released.
    pub(crate) fn hold(&self) {
        self.lock().entries.iter_mut().for_each(|entry| entry.held = true);
    }

    /// Says what is held. `None`: nothing is.
    pub(crate) fn held_notice(&self) -> Option<String> {
        let state = self.lock();
        let held: Vec<&Entry> = state.entries.iter().filter(|entry| entry.held).collect();
        let text = held.first()?.message.plain_text();
        let first: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(HELD_TEXT).collect();
        let what = match held.len() {
            1 => "1 message waits in the session from before and is not sent:".to_owned(),
            count => format!("{count} messages wait in the session from before and are not sent; the first is"),
        };
        Some(format!(
            "{what} {first:?}. Continuing the session without a prompt sends the first, and a chat that continues it lists them (`/queue`)"
        ))
    }

    /// What was held waits as any other input from now on.
    pub fn release(&self) {
        self.lock().entries.iter_mut().for_each(|entry| entry.held = false);
    }

    /// Claims the oldest input, held or not, for a turn that has nothing else to start with.
    pub(crate) fn claim_first(&self) -> Option<Claim> {
        let mut state = self.lock();
        let first = state.entries.iter().find(|entry| !entry.taken)?.id.clone();
        let taken = state.take(|entry| entry.id == first);
        drop(state);
        Claim::new(self, taken)
    }
}
