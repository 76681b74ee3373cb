//! Changes that are not durable yet, coalesced: of each key only the last one is kept.

use std::collections::BTreeMap;

use flow::ports::{StateBatch, StateChange, StateEntry};

/// The changes of one plugin, to be written as a whole: first the clearing, then the keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PluginChanges {
    /// Everything that is stored is removed first.
    pub(crate) cleared: bool,
    pub(crate) version: VersionChange,
    pub(crate) keys: BTreeMap<String, KeyChange>,
}

/// What becomes of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyChange {
    Set(StateEntry),
    /// New times for what is stored, if there is something.
    Touch {
        expires_ms: Option<u64>,
        used_ms: u64,
    },
    Delete,
}

/// What becomes of the version of a plugin's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum VersionChange {
    #[default]
    Keep,
    Set(u32),
    Remove,
}

impl VersionChange {
    pub(crate) fn apply(self, version: Option<u32>) -> Option<u32> {
        match self {
            Self::Keep => version,
            Self::Set(version) => Some(version),
            Self::Remove => None,
        }
    }
}

impl PluginChanges {
    pub(crate) fn is_empty(&self) -> bool {
        !self.cleared && self.version == VersionChange::Keep && self.keys.is_empty()
    }

    /// Whether they store something that was not there before.
    pub(crate) fn adds(&self) -> bool {
        let sets_version = matches!(self.version, VersionChange::Set(_));
        sets_version || self.keys.values().any(|change| matches!(change, KeyChange::Set(_)))
    }

    /// Adds a batch. `is_stored` returns whether the backend can have a key: only then its deletion has to be kept.
    pub(crate) fn push(&mut self, batch: StateBatch, is_stored: impl Fn(&str) -> bool) {
        for change in batch.changes {
            match change {
                StateChange::Set(entry) => {
                    self.keys.insert(entry.key.clone(), KeyChange::Set(entry));
                }
                StateChange::Touch { key, expires_ms, used_ms } => {
                    self.put(key, KeyChange::Touch { expires_ms, used_ms }, &is_stored);
                }
                StateChange::Delete(key) => self.put(key, KeyChange::Delete, &is_stored),
                StateChange::Clear => self.clear(),
            }
        }
        if let Some(version) = batch.version {
            self.version = VersionChange::Set(version);
        }
    }

    /// Removes everything, the version included.
    pub(crate) fn forget(&mut self) {
        self.clear();
        self.version = VersionChange::Remove;
    }

    /// Adds later changes.
    pub(crate) fn extend(&mut self, later: Self, is_stored: impl Fn(&str) -> bool) {
        if later.cleared {
            self.clear();
        }
        for (key, change) in later.keys {
            self.put(key, change, &is_stored);
        }
        if later.version != VersionChange::Keep {
            self.version = later.version;
        }
    }

    fn clear(&mut self) {
        self.cleared = true;
        self.keys.clear();
    }

    fn put(&mut self, key: String, change: KeyChange, is_stored: impl Fn(&str) -> bool) {
        let can_be_stored = !self.cleared && is_stored(&key);
        match (change, self.keys.get_mut(&key)) {
            (KeyChange::Touch { expires_ms, used_ms }, Some(KeyChange::Set(entry))) => {
                (entry.expires_ms, entry.used_ms) = (expires_ms, used_ms);
            }
            (KeyChange::Touch { .. }, Some(KeyChange::Delete)) => {}
            (KeyChange::Touch { .. }, None) | (KeyChange::Delete, None) if !can_be_stored => {}
            (KeyChange::Delete, Some(_)) if !can_be_stored => {
                self.keys.remove(&key);
            }
            (change, _) => {
                self.keys.insert(key, change);
            }
        }
    }

    /// Makes the changes in memory.
    pub(crate) fn apply_to(&self, entries: &mut BTreeMap<String, StateEntry>) {
        if self.cleared {
            entries.clear();
        }
        for (key, change) in &self.keys {
            match change {
                KeyChange::Set(entry) => {
                    entries.insert(key.clone(), entry.clone());
                }
                KeyChange::Touch { expires_ms, used_ms } => {
                    if let Some(entry) = entries.get_mut(key) {
                        (entry.expires_ms, entry.used_ms) = (*expires_ms, *used_ms);
                    }
                }
                KeyChange::Delete => {
                    entries.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
