//! What one plugin keeps in one session: entries with their lifetimes, and what an attempt has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flow::ports::{StateBatch, StateChange, StateEntry, StateLifetime, StoredState};

use super::SessionTotal;

/// The `state_version` of an extension that names none.
const FIRST_FORMAT: u32 = 1;

/// A value with its times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(super) value: Arc<[u8]>,
    lifetime: StateLifetime,
    /// Milliseconds since 1970 at which it is gone.
    expires: Option<u64>,
    used_ms: u64,
    /// Orders uses, also those within one millisecond.
    used: u64,
}

impl Entry {
    pub(super) fn new(value: Arc<[u8]>, lifetime: StateLifetime) -> Self {
        Self { value, lifetime, expires: None, used_ms: 0, used: 0 }
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The entry as the store keeps it.
    pub(super) fn stored(&self, key: &str) -> StateEntry {
        let mut stored = StateEntry::written(key, Arc::clone(&self.value), self.lifetime, self.used_ms);
        stored.expires_ms = self.expires;
        stored
    }
}

/// The bytes that an entry counts for.
pub(super) fn weight(key: &str, entry: &Entry) -> u64 {
    (key.len() + entry.value.len()) as u64
}

/// The undo log of an attempt that is suspended.
pub(super) struct Suspended(Option<BTreeMap<String, Option<Entry>>>);

/// What one plugin keeps in one session.
#[derive(Debug)]
pub(crate) struct Area {
    entries: BTreeMap<String, Entry>,
    total: Arc<SessionTotal>,
    /// Bytes of all entries, also of expired ones that are not removed yet.
    size: u64,
    /// Of `size`, the bytes that `total` counts.
    counted: u64,
    /// Counts the commits that changed something.
    version: u64,
    /// The number of the next use.
    next_use: u64,
    /// The earliest time at which an entry can expire; never later than the truth.
    next_expiry: u64,
    /// A turn runs: entries with the default lifetime do not expire.
    active: bool,
    /// What the keys had before the attempt that is under way changed them.
    undo: Option<BTreeMap<String, Option<Entry>>>,
    /// Keys that were read: the store does not know their new times yet.
    read: BTreeSet<String>,
    /// The `state_version` of the extension that wrote the entries.
    format: u32,
    /// The store has another `format`, and gets this one with the next batch.
    format_unsent: bool,
}

impl Area {
    pub(super) fn new(total: Arc<SessionTotal>) -> Self {
        Self {
            entries: BTreeMap::new(),
            total,
            size: 0,
            counted: 0,
            version: 0,
            next_use: 0,
            next_expiry: u64::MAX,
            active: false,
            undo: None,
            read: BTreeSet::new(),
            format: FIRST_FORMAT,
            format_unsent: false,
        }
    }

    /// The `state_version` of the extension that wrote what the plugin keeps; `None` where it keeps nothing.
    pub(crate) fn format(&self) -> Option<u32> {
        if self.entries.is_empty() { None } else { Some(self.format) }
    }

    /// What is kept has this format from now on. The store learns it with the next batch.
    pub(crate) fn set_format(&mut self, format: u32) {
        self.format_unsent |= format != self.format;
        self.format = format;
    }

    /// Adds to a batch for the store what it does not know of the format.
    pub(super) fn with_format(&mut self, batch: StateBatch) -> StateBatch {
        let version = std::mem::take(&mut self.format_unsent).then_some(self.format);
        StateBatch { version, ..batch }
    }

    /// Takes over what the store has.
    pub(crate) fn load(&mut self, stored: StoredState) {
        self.format = stored.version.unwrap_or(FIRST_FORMAT);
        let mut entries = stored.entries;
        entries.sort_by_key(|entry| entry.used_ms);
        for StateEntry { key, value, lifetime, expires_ms, used_ms } in entries {
            self.next_use += 1;
            self.put(key, Entry { value, lifetime, expires: expires_ms, used_ms, used: self.next_use });
        }
        self.total.add(self.size);
        self.counted = self.size;
    }

    /// Everything, for a store that has lost it: without what the attempt under way has changed, which may be undone.
    pub(crate) fn snapshot(&self) -> StateBatch {
        let none = BTreeMap::new();
        let undo = self.undo.as_ref().unwrap_or(&none);
        let settled = self.entries.iter().filter(|(key, _)| !undo.contains_key(*key));
        let before = undo.iter().filter_map(|(key, entry)| entry.as_ref().map(|entry| (key, entry)));
        let set = |(key, entry): (&String, &Entry)| StateChange::Set(entry.stored(key));
        let changes = std::iter::once(StateChange::Clear).chain(settled.chain(before).map(set)).collect();
        StateBatch { changes, version: Some(self.format) }
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    pub(super) fn total(&self) -> &SessionTotal {
        &self.total
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn is_alive(&self, entry: &Entry, now: u64) -> bool {
        let runs = !(self.active && matches!(entry.lifetime, StateLifetime::Default { .. }));
        !runs || entry.expires.is_none_or(|at| now < at)
    }

    /// Whether nothing can have expired, so that `size` is exact.
    pub(super) fn all_alive(&self, now: u64) -> bool {
        now < self.next_expiry
    }

    /// The entry is used now: its lifetime starts again.
    pub(super) fn stamp(&mut self, entry: &mut Entry, now: u64) {
        self.next_use += 1;
        (entry.used_ms, entry.used, entry.expires) = (now, self.next_use, entry.lifetime.expires_after(now));
    }

    /// The value under a key, without counting as a use of it.
    pub(crate) fn peek(&self, key: &str, now: u64) -> Option<Arc<[u8]>> {
        self.entries.get(key).filter(|entry| self.is_alive(entry, now)).map(|entry| Arc::clone(&entry.value))
    }

    /// The value under a key, whose lifetime starts again.
    pub(super) fn read(&mut self, key: &str, now: u64) -> Option<Arc<[u8]>> {
        let mut entry = self.entries.get(key).filter(|entry| self.is_alive(entry, now))?.clone();
        self.stamp(&mut entry, now);
        let value = Arc::clone(&entry.value);
        if !self.read.contains(key) {
            self.read.insert(key.to_owned());
        }
        if let Some(kept) = self.entries.get_mut(key) {
            *kept = entry;
        }
        Some(value)
    }

    /// What the store does not know yet and no attempt keeps back: the new times of what was read.
    pub(crate) fn flush(&mut self) -> StateBatch {
        if self.in_attempt() || self.read.is_empty() { StateBatch::default() } else { self.touched() }
    }

    /// The new times of what was read since this was last asked.
    pub(super) fn touched(&mut self) -> StateBatch {
        let read = std::mem::take(&mut self.read);
        let touch = |key: String| {
            let entry = self.entries.get(&key)?;
            Some(StateChange::Touch { expires_ms: entry.expires, used_ms: entry.used_ms, key })
        };
        read.into_iter().filter_map(touch).collect::<Vec<_>>().into()
    }

    pub(super) fn weight_of(&self, key: &str) -> u64 {
        self.entries.get(key).map_or(0, |entry| weight(key, entry))
    }

    pub(super) fn insert(&mut self, key: &str, entry: Entry) {
        self.remember(key);
        self.read.remove(key);
        self.put(key.to_owned(), entry);
    }

    pub(super) fn remove(&mut self, key: &str) -> bool {
        self.remember(key);
        self.read.remove(key);
        self.take(key)
    }

    pub(super) fn clear(&mut self) {
        let keys: Vec<String> = self.entries.keys().cloned().collect();
        for key in keys {
            self.remove(&key);
        }
    }

    /// Drops everything, and what an attempt could restore: the plugin was unregistered.
    pub(crate) fn forget(&mut self) {
        (self.entries, self.read, self.undo) = (BTreeMap::new(), BTreeSet::new(), None);
        (self.size, self.next_expiry) = (0, u64::MAX);
        self.committed();
    }

    /// A commit is complete: counts it, and its size towards the session's. Returns the size.
    pub(super) fn committed(&mut self) -> u64 {
        self.version += 1;
        self.count();
        self.size
    }

    /// A turn begins. What expired before stays expired.
    pub(crate) fn begin_turn(&mut self, now: u64) {
        self.remove_expired(now);
        self.active = true;
    }

    /// The turn has ended: default lifetimes start again.
    pub(crate) fn end_turn(&mut self, now: u64) {
        if !std::mem::take(&mut self.active) {
            return;
        }
        for entry in self.entries.values_mut() {
            if let StateLifetime::Default { .. } = entry.lifetime {
                entry.expires = entry.lifetime.expires_after(now);
            }
        }
        self.find_next_expiry();
    }

    /// An attempt begins: what is committed from now on can be undone. One that has begun continues.
    pub(crate) fn begin_attempt(&mut self) {
        self.undo.get_or_insert_default();
    }

    pub(crate) fn in_attempt(&self) -> bool {
        self.undo.is_some()
    }

    /// The attempt is accepted. Returns what it changed, for the store.
    pub(crate) fn accept_attempt(&mut self) -> StateBatch {
        let mut batch = self.touched();
        for key in self.undo.take().unwrap_or_default().into_keys() {
            batch.changes.push(match self.entries.get(&key) {
                Some(entry) => StateChange::Set(entry.stored(&key)),
                None => StateChange::Delete(key),
            });
        }
        if batch.changes.is_empty() { batch } else { self.with_format(batch) }
    }

    /// The attempt is discarded: its changes are undone. Returns the keys whose values were restored.
    pub(crate) fn discard_attempt(&mut self) -> Vec<String> {
        let mut restored = Vec::new();
        for (key, before) in self.undo.take().unwrap_or_default() {
            if self.entries.get(&key).map(|entry| &entry.value) != before.as_ref().map(|entry| &entry.value) {
                restored.push(key.clone());
            }
            match before {
                Some(entry) => {
                    // The attempt may have taken the note of an earlier read with it.
                    self.read.insert(key.clone());
                    self.put(key, entry);
                }
                None => {
                    self.take(&key);
                }
            }
        }
        if !restored.is_empty() {
            self.version += 1;
        }
        self.count();
        restored
    }

    /// Until [`Area::resume_attempt`], changes belong to no attempt.
    pub(super) fn suspend_attempt(&mut self) -> Suspended {
        Suspended(self.undo.take())
    }

    /// Continues an attempt. Keys that were changed in the meantime keep their values whatever becomes of it.
    pub(super) fn resume_attempt(&mut self, suspended: Suspended, changes: &[StateChange]) {
        self.undo = suspended.0;
        let Some(undo) = &mut self.undo else { return };
        for change in changes {
            match change {
                StateChange::Set(entry) => drop(undo.remove(&entry.key)),
                StateChange::Delete(key) => drop(undo.remove(key)),
                StateChange::Clear => undo.clear(),
                StateChange::Touch { .. } => {}
            }
        }
    }

    fn remember(&mut self, key: &str) {
        if let Some(undo) = &mut self.undo
            && !undo.contains_key(key)
        {
            undo.insert(key.to_owned(), self.entries.get(key).cloned());
        }
    }

    fn put(&mut self, key: String, entry: Entry) {
        self.take(&key);
        self.size += weight(&key, &entry);
        self.next_expiry = self.next_expiry.min(entry.expires.unwrap_or(u64::MAX));
        self.entries.insert(key, entry);
    }

    fn take(&mut self, key: &str) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.size = self.size.saturating_sub(weight(key, &entry));
        true
    }

    /// Removes what has expired. It was invisible before, whatever becomes of the transaction that looks.
    pub(super) fn remove_expired(&mut self, now: u64) {
        if self.all_alive(now) {
            return;
        }
        let dead: Vec<String> =
            self.entries.iter().filter(|(_, entry)| !self.is_alive(entry, now)).map(|(key, _)| key.clone()).collect();
        for key in &dead {
            self.take(key);
        }
        self.find_next_expiry();
        self.count();
    }

    fn find_next_expiry(&mut self) {
        self.next_expiry = self.entries.values().filter_map(|entry| entry.expires).min().unwrap_or(u64::MAX);
    }

    fn count(&mut self) {
        if self.size >= self.counted {
            self.total.add(self.size - self.counted);
        } else {
            self.total.release(self.counted - self.size);
        }
        self.counted = self.size;
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        self.total.release(self.counted);
    }
}
