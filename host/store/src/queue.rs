//! The write-behind queue of a session: applied batches, coalesced, until the backend has them.
//!
//! What is handed to the backend is a flight. While it is not known whether a flight has arrived, it is sent again unchanged, and
//! later batches wait behind it: so only its keys, and those that are known to be stored, can need a deletion, and the queue stays
//! bounded however often the backend fails.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use flow::PluginId;
use flow::ports::{StateBatch, StateChange, StateEntry, StoredState};

use crate::activity::{Activity, Recorded};
use crate::changes::{KeyChange, PluginChanges};
use crate::lifetime::ExpiryCheck;

/// What is written in one atomic step: first the changes, then the sweeps, then the activity.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    /// Grows with every flight of an open session. A backend ignores a flight that is not newer than the last one it has written:
    /// one that was given up can arrive late, after it was sent again.
    pub(crate) number: u64,
    pub(crate) plugins: BTreeMap<PluginId, PluginChanges>,
    pub(crate) sweeps: Vec<ExpiryCheck>,
    pub(crate) activity: Recorded,
}

impl Flight {
    /// Whether something is stored that was not there before. Otherwise it needs no memory.
    pub(crate) fn adds(&self) -> bool {
        self.plugins.values().any(PluginChanges::adds)
    }

    fn has_key(&self, plugin: &PluginId, key: &str) -> bool {
        self.plugins.get(plugin).is_some_and(|changes| changes.keys.contains_key(key))
    }
}

/// The queue. It contains at most one change of a key, and the same again in flight; the deletion of a key only where the backend can
/// have the key. So it is bounded by the size of the state and of what is stored.
#[derive(Debug)]
pub(crate) struct Queue {
    pending: BTreeMap<PluginId, PluginChanges>,
    sweeps: Vec<ExpiryCheck>,
    /// What was handed to the backend and is not known to be durable.
    flight: Option<Arc<Flight>>,
    /// Whether the flight was sent without a definite answer.
    is_uncertain: bool,
    last_number: u64,
    /// The keys that the backend has, of the plugins of which this is known.
    stored: HashMap<PluginId, HashSet<String>>,
    pub(crate) activity: Activity,
}

impl Queue {
    pub(crate) fn new(activity: Activity) -> Self {
        Self {
            pending: BTreeMap::new(),
            sweeps: Vec::new(),
            flight: None,
            is_uncertain: false,
            last_number: 0,
            stored: HashMap::new(),
            activity,
        }
    }

    /// Queues a batch.
    pub(crate) fn push(&mut self, plugin: &PluginId, batch: StateBatch) {
        for change in &batch.changes {
            if let StateChange::Set(entry) = change {
                self.activity.has_entry(entry.lifetime);
            }
        }
        let (stored, flight) = (&self.stored, self.flight.as_deref());
        let can_be_stored =
            |key: &str| is_stored(stored, plugin, key) || flight.is_some_and(|flight| flight.has_key(plugin, key));
        self.pending.entry(plugin.clone()).or_default().push(batch, can_be_stored);
    }

    /// Queues the deletion of all that a plugin keeps.
    pub(crate) fn forget(&mut self, plugin: &PluginId) {
        self.pending.entry(plugin.clone()).or_default().forget();
    }

    /// A turn starts: what expired before it is queued for removal.
    pub(crate) fn turn_started(&mut self, now_ms: u64) {
        self.sweeps.extend(self.activity.start(now_ms));
    }

    /// Whether batches are queued, or under way.
    pub(crate) fn has_changes(&self) -> bool {
        let changes = |plugins: &BTreeMap<PluginId, PluginChanges>| plugins.values().any(|changes| !changes.is_empty());
        changes(&self.pending) || self.flight.as_ref().is_some_and(|flight| changes(&flight.plugins))
    }

    /// Returns the plugins with queued or running writes, which the backend need not have.
    pub(crate) fn adding(&self) -> Vec<PluginId> {
        let queued = self.flight.iter().flat_map(|flight| &flight.plugins).chain(&self.pending);
        queued.filter(|(_, changes)| changes.adds()).map(|(plugin, _)| plugin.clone()).collect()
    }

    /// Whether a flight is under way: everything that is queued takes one flight more.
    pub(crate) fn has_flight(&self) -> bool {
        self.flight.is_some()
    }

    /// Returns what is to be sent next, to be answered by [`Queue::landed`], [`Queue::refused`], or not at all; `None` if there is
    /// nothing.
    pub(crate) fn take(&mut self, now_ms: u64) -> Option<Arc<Flight>> {
        if self.flight.is_some() {
            self.is_uncertain = true;
            return self.flight.clone();
        }
        if !self.has_changes() && self.sweeps.is_empty() && !self.activity.is_due(now_ms) {
            return None;
        }
        self.sweeps.extend(self.activity.sweep(now_ms));
        let mut plugins = std::mem::take(&mut self.pending);
        plugins.retain(|_, changes| !changes.is_empty());
        self.last_number += 1;
        let (number, sweeps) = (self.last_number, std::mem::take(&mut self.sweeps));
        let flight = Arc::new(Flight { number, plugins, sweeps, activity: self.activity.to_record(now_ms) });
        self.is_uncertain = false;
        self.flight = Some(Arc::clone(&flight));
        Some(flight)
    }

    /// The backend has refused the flight: it was not written, and will not be. What is queued joins it, unless an earlier copy of it
    /// can still arrive: a deletion can make room for what was refused.
    pub(crate) fn refused(&mut self) {
        let Some(flight) = self.flight.take_if(|_| !self.is_uncertain) else { return };
        let flight = Arc::unwrap_or_clone(flight);
        let later = std::mem::replace(&mut self.pending, flight.plugins);
        for (plugin, later) in later {
            let changes = self.pending.entry(plugin.clone()).or_default();
            changes.extend(later, |key| is_stored(&self.stored, &plugin, key));
        }
        let later = std::mem::replace(&mut self.sweeps, flight.sweeps);
        self.sweeps.extend(later);
    }

    /// The backend has made the flight durable, and removed these keys as expired.
    pub(crate) fn landed(&mut self, flight: &Flight, swept: Vec<(PluginId, String)>) {
        for (plugin, changes) in &flight.plugins {
            let Some(stored) = self.stored.get_mut(plugin) else { continue };
            if changes.cleared {
                stored.clear();
            }
            for (key, change) in &changes.keys {
                match change {
                    KeyChange::Set(_) => drop(stored.insert(key.clone())),
                    KeyChange::Delete => drop(stored.remove(key)),
                    KeyChange::Touch { .. } => {}
                }
            }
        }
        for (plugin, key) in swept {
            if let Some(stored) = self.stored.get_mut(&plugin) {
                stored.remove(&key);
            }
        }
        self.activity.recorded(flight.activity);
        self.flight = None;
    }

    /// The backend has lost everything.
    pub(crate) fn lost(&mut self) {
        self.stored.values_mut().for_each(HashSet::clear);
    }

    /// Completes what the backend has of a plugin by what is queued, and leaves out what has expired.
    pub(crate) fn complete(&mut self, plugin: &PluginId, stored: StoredState, now_ms: u64) -> StoredState {
        self.stored.insert(plugin.clone(), stored.entries.iter().map(|entry| entry.key.clone()).collect());
        let mut version = stored.version;
        let mut entries: BTreeMap<String, StateEntry> =
            stored.entries.into_iter().map(|entry| (entry.key.clone(), entry)).collect();
        let flight = self.flight.as_deref();
        let queued = flight.map(|flight| &flight.plugins).into_iter().chain([&self.pending]);
        for changes in queued.filter_map(|plugins| plugins.get(plugin)) {
            changes.apply_to(&mut entries);
            version = changes.version.apply(version);
        }
        let mut entries: Vec<StateEntry> = entries.into_values().collect();
        let sweeps = flight.map_or(&[][..], |flight| &flight.sweeps).iter().chain(&self.sweeps);
        for check in sweeps {
            entries.retain(|entry| !check.had_expired(entry.lifetime, entry.expires_ms, entry.used_ms));
        }
        self.activity.check(now_ms).retain(&mut entries);
        StoredState { entries, version }
    }
}

fn is_stored(stored: &HashMap<PluginId, HashSet<String>>, plugin: &PluginId, key: &str) -> bool {
    stored.get(plugin).is_none_or(|keys| keys.contains(key))
}

#[cfg(test)]
mod tests;
