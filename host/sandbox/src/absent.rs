//! What plugins keep in a session that the configuration does not name any more.
//!
//! A plugin that is missing can be a mistake, such as a line that somebody has commented out, or another file. So its state is kept for a
//! while from the first turn without it, which the host notes next to the state, and is deleted then.

use flow::PluginId;
use flow::ports::{
    AbsentState, KnownPlugins, PluginSummary, SessionState, StateChange, StateEntry, StateError, StateLifetime,
    StoredState,
};

/// The state of absent plugins in a session.
pub(crate) struct Absent<'a> {
    pub(crate) state: &'a dyn SessionState,
    pub(crate) now_ms: u64,
    /// Reports the removal of a plugin's state.
    pub(crate) removed: &'a (dyn Fn(&PluginId) + Send + Sync),
}

impl Absent<'_> {
    /// Notes which plugins are absent, and deletes what was kept long enough.
    pub(crate) async fn forget(&self, known: &KnownPlugins) -> Result<Vec<AbsentState>, StateError> {
        let (state, now_ms, host) = (self.state, self.now_ms, PluginId::host());
        let stored = state.plugins().await?;
        let notes = if stored.contains(&host) { state.load(&host).await? } else { StoredState::default() };
        let absent: Vec<&PluginId> = stored.iter().filter(|id| **id != host && !known.ids.contains(id)).collect();
        // Plugins that are configured again, or without any state left. Notes of other kinds have keys that are not ids of plugins.
        let about_plugins = notes.entries.iter().filter(|note| note.key.parse::<PluginId>().is_ok());
        let over = about_plugins.filter(|note| !absent.iter().any(|plugin| plugin.as_str() == note.key));
        let mut changes: Vec<StateChange> = over.map(|note| StateChange::Delete(note.key.clone())).collect();
        let mut found = Vec::new();
        for plugin in absent {
            let since_ms = notes.absent_since_ms(plugin);
            let is_kept = now_ms < since_ms.unwrap_or(now_ms).saturating_add(millis(known));
            if is_kept && since_ms.is_some() {
                continue;
            }
            let PluginSummary { keys, bytes, .. } = PluginSummary::of(plugin.clone(), &state.load(plugin).await?);
            if is_kept {
                let since = now_ms.to_string().into_bytes();
                let note = StateEntry::written(plugin.as_str(), since, StateLifetime::Session, now_ms);
                changes.push(StateChange::Set(note));
            } else {
                self.delete(plugin).await?;
                changes.push(StateChange::Delete(plugin.as_str().to_owned()));
            }
            let kept = is_kept.then_some(known.keep);
            // A version alone is nothing that anybody misses.
            if keys > 0 {
                found.push(AbsentState { plugin: plugin.clone(), keys, bytes, kept });
            }
        }
        if !changes.is_empty() {
            state.apply(&host, changes.into());
        }
        Ok(found)
    }

    async fn delete(&self, plugin: &PluginId) -> Result<(), StateError> {
        match self.state.clear(plugin).await {
            // It is queued, and done with the next write.
            Err(error) if !error.is_retryable() => return Err(error),
            Ok(()) | Err(_) => {}
        }
        (self.removed)(plugin);
        Ok(())
    }
}

fn millis(known: &KnownPlugins) -> u64 {
    u64::try_from(known.keep.as_millis()).unwrap_or(u64::MAX)
}
