//! A conversation that branches off another one: what it begins with.

use flow::PluginId;
use flow::ports::{SessionState, StateBatch, StateChange, StateError, StoredState};

use super::Conversation;
use super::kept::Kept;
use crate::HostError;

impl Conversation {
    /// Begins with what another conversation was at a point, behind which so many turns had ended: the records of rules until then, and the
    /// state of its plugins as it is now.
    ///
    /// # Errors
    /// The state cannot be read.
    pub(crate) async fn inherit(&self, parent: &Self, point: &str, completed: u64) -> Result<(), HostError> {
        let (from, kept) = {
            let state = parent.state();
            (std::sync::Arc::clone(&state.store), state.kept())
        };
        let store = std::sync::Arc::clone(&self.state().store);
        copy(&*from, &*store).await?;
        let until = kept.points.iter().position(|(known, _)| known == point).map_or(0, |at| at + 1);
        let points = kept.points[..until].to_vec();
        let rules = kept.rules.until(completed);
        let mut state = self.state();
        state.has_begun = true;
        state.take(Kept { rules, memory: kept.memory, points });
        Ok(())
    }
}

/// Copies what plugins keep from one session to another. It is durable with what is written there next.
pub(super) async fn copy(from: &dyn SessionState, to: &dyn SessionState) -> Result<(), StateError> {
    for plugin in from.plugins().await?.into_iter().filter(|plugin| *plugin != PluginId::host()) {
        let StoredState { entries, version } = from.load(&plugin).await?;
        to.apply(&plugin, StateBatch { changes: entries.into_iter().map(StateChange::Set).collect(), version });
    }
    Ok(())
}
