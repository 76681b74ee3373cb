//! The initial data of a conversation that branches off another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use flow::PluginId;
use flow::ports::{SessionState, StateBatch, StateChange, StateError, StoredState};

use super::Conversation;
use super::kept::Kept;
use crate::HostError;

/// The data of a conversation with which another one can begin. It keeps nothing else of the conversation or its host in memory.
#[derive(Clone)]
pub(crate) struct Heritage {
    /// The state of its plugins, while it is open in its store.
    state: Arc<dyn SessionState>,
    kept: Kept,
}

impl Heritage {
    /// Returns the size of the state of plugins and of the notes of the host, in bytes; 0 if they cannot be read.
    pub(crate) async fn bytes(&self) -> usize {
        let mut bytes = 0;
        for plugin in self.state.plugins().await.unwrap_or_default() {
            let state = self.state.load(&plugin).await.unwrap_or_default();
            bytes += state.entries.iter().map(|entry| entry.key.len() + entry.value.len()).sum::<usize>();
        }
        bytes
    }

    /// Returns the number of turns that have ended.
    pub(crate) fn completed_turns(&self) -> u64 {
        self.kept.rules.completed
    }
}

impl Conversation {
    /// Returns its current data, for a conversation that begins with it.
    pub(crate) fn heritage(&self) -> Heritage {
        let state = self.state();
        Heritage { state: Arc::clone(&state.store), kept: state.kept() }
    }

    /// Begins with the data of another conversation at a point behind which `completed` turns had ended: the records of rules until then,
    /// and the state of its plugins.
    ///
    /// # Errors
    /// The state cannot be read; it has the records.
    pub(crate) async fn inherit(&self, from: &Heritage, point: &str, completed: u64) -> Result<(), HostError> {
        let kept = &from.kept;
        let until = kept.points.iter().position(|(known, _)| known == point).map_or(0, |at| at + 1);
        let points = kept.points[..until].to_vec();
        let rules = kept.rules.until(completed);
        let store = {
            let mut state = self.state();
            state.has_begun = true;
            state.take(Kept { rules, memory: kept.memory.clone(), points });
            Arc::clone(&state.store)
        };
        Ok(copy(&*from.state, &*store).await?)
    }
}

/// Copies the state of plugins from one session to another. It becomes durable with the next write there.
pub(super) async fn copy(from: &dyn SessionState, to: &dyn SessionState) -> Result<(), StateError> {
    Copied::default().copy(from, to).await
}

/// The state that was copied from one session to another.
#[derive(Debug, Default)]
pub(super) struct Copied(BTreeMap<PluginId, BTreeMap<String, Arc<[u8]>>>);

impl Copied {
    /// Copies the state that was not copied before: values that the other session has by now are kept.
    pub(super) async fn copy(&mut self, from: &dyn SessionState, to: &dyn SessionState) -> Result<(), StateError> {
        for plugin in from.plugins().await?.into_iter().filter(|plugin| *plugin != PluginId::host()) {
            let StoredState { mut entries, version } = from.load(&plugin).await?;
            let copied = self.0.entry(plugin.clone()).or_default();
            entries.retain(|entry| copied.get(&entry.key) != Some(&entry.value));
            if entries.is_empty() && !copied.is_empty() {
                continue;
            }
            copied.extend(entries.iter().map(|entry| (entry.key.clone(), Arc::clone(&entry.value))));
            to.apply(&plugin, StateBatch { changes: entries.into_iter().map(StateChange::Set).collect(), version });
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::time::Duration;

    use flow::SessionId;
    use flow::ports::{StateEntry, StateLifetime, StateStore as _};
    use store::{MemoryStore, StoreOptions};

    use super::*;

    fn set(key: &str, value: u8) -> StateBatch {
        vec![StateChange::Set(StateEntry::written(key, [value], StateLifetime::Session, 1))].into()
    }

    #[tokio::test]
    async fn what_was_copied_before_does_not_replace_what_is_there_by_now() {
        let store = MemoryStore::new(StoreOptions::default(), Arc::new(system::SystemClock));
        let from = store.open(&SessionId::new("from")).await.unwrap();
        let to = store.open(&SessionId::new("to")).await.unwrap();
        let plugin: PluginId = "masks".parse().unwrap();
        let mut copied = Copied::default();
        // Nothing of it is durable yet.
        from.apply(&plugin, set("one", 1));
        copied.copy(&*from, &*to).await.unwrap();
        to.settle(Duration::ZERO).await.unwrap();
        to.apply(&plugin, set("one", 2));
        from.apply(&plugin, set("other", 3));
        copied.copy(&*from, &*to).await.unwrap();
        let values: Vec<u8> = to.load(&plugin).await.unwrap().entries.iter().map(|entry| entry.value[0]).collect();
        assert_eq!(values, [2, 3]);
    }
}
