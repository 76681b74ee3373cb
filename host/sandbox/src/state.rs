//! The `state` power: what plugins keep, and the transaction that one callback is.
//!
//! Kept in memory. An area belongs to one plugin in one session and outlives its instances.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::{PluginId, SessionId, SessionInUse};

use crate::limits::GuestLimits;

/// What all plugins keep, by session and plugin.
#[derive(Debug, Default)]
pub(crate) struct States(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    kept: HashMap<SessionId, Areas>,
    open: HashSet<SessionId>,
}

type Areas = HashMap<PluginId, SharedArea>;

/// An area, shared by the instances of its plugin in its session.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedArea(Arc<Mutex<Area>>);

impl SharedArea {
    /// Changes with every committed change.
    pub(crate) fn version(&self) -> u64 {
        lock(&self.0).version
    }
}

/// The state of an open session. While this exists, no other session with its id is opened.
#[derive(Debug)]
pub(crate) struct Lease {
    states: Arc<States>,
    session: SessionId,
}

impl States {
    /// Opens a session.
    pub(crate) fn open(self: &Arc<Self>, session: SessionId) -> Result<Lease, SessionInUse> {
        if !lock(&self.0).open.insert(session.clone()) {
            return Err(SessionInUse(session));
        }
        Ok(Lease { states: Arc::clone(self), session })
    }

    /// Drops what was kept for `session`.
    pub(crate) fn forget(&self, session: &SessionId) {
        lock(&self.0).kept.remove(session);
    }
}

impl Lease {
    /// The area of `plugin`; made when first asked for.
    pub(crate) fn area(&self, plugin: &PluginId) -> SharedArea {
        let mut sessions = lock(&self.states.0);
        let areas = sessions.kept.entry(self.session.clone()).or_default();
        areas.entry(plugin.clone()).or_default().clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&self.states.0).open.remove(&self.session);
    }
}

/// A lock whose holder panicked still guards whole values: every change below is made in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What one plugin keeps in one session.
#[derive(Debug, Default)]
pub(crate) struct Area {
    entries: BTreeMap<String, Entry>,
    /// Bytes of all entries, those that are past their time but still here included.
    size: u64,
    /// Counts the commits that changed something.
    version: u64,
}

impl Area {
    fn insert(&mut self, key: String, entry: Entry) {
        self.remove(&key);
        self.size += weight(&key, &entry);
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &str) -> bool {
        let Some(entry) = self.entries.remove(key) else { return false };
        self.size = self.size.saturating_sub(weight(key, &entry));
        true
    }

    /// Removes expired values. They are already invisible to everybody, whatever the outcome of a transaction.
    fn drop_dead(&mut self, now: u64) {
        self.entries.retain(|_, entry| entry.alive(now));
        self.size = self.entries.iter().map(|(key, entry)| weight(key, entry)).sum();
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.size = 0;
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Entry {
    value: Vec<u8>,
    ttl_ms: Option<u64>,
    /// Milliseconds since 1970 at which it is gone.
    expires: Option<u64>,
}

impl Entry {
    fn alive(&self, now: u64) -> bool {
        self.expires.is_none_or(|at| now < at)
    }

    fn touch(&mut self, now: u64) {
        self.expires = self.ttl_ms.map(|ttl| now.saturating_add(ttl));
    }
}

fn weight(key: &str, entry: &Entry) -> u64 {
    (key.len() + entry.value.len()) as u64
}

/// Why a power refuses. Mirrors the contract's `state-error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    BadKey(String),
    Limit(String),
    Unavailable(String),
}

/// A committed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) operation: &'static str,
    pub(crate) key: String,
    /// Bytes of the area after the whole commit.
    pub(crate) size: u64,
}

/// The writes of one callback on top of an area. Commits to one area are serial: nothing changes underneath a callback that
/// commits, with the exception that `SessionExtensions::notify` handles.
#[derive(Debug)]
pub(crate) struct Transaction {
    area: SharedArea,
    cleared: bool,
    writes: BTreeMap<String, Option<Entry>>,
    /// Bytes there would be after a commit, where it is known. Never less than the truth.
    size: Option<u64>,
}

impl Transaction {
    pub(crate) fn new(area: SharedArea) -> Self {
        Self { area, cleared: false, writes: BTreeMap::new(), size: None }
    }

    /// The value under `key`; reading restarts its lifetime.
    pub(crate) fn get(&mut self, key: &str, now: u64, limits: &GuestLimits) -> Result<Option<Vec<u8>>, Refusal> {
        check_key(key, limits)?;
        if let Some(written) = self.writes.get_mut(key) {
            let Some(entry) = written.as_mut().filter(|entry| entry.alive(now)) else { return Ok(None) };
            entry.touch(now);
            return Ok(Some(entry.value.clone()));
        }
        if self.cleared {
            return Ok(None);
        }
        let mut area = lock(&self.area.0);
        let Some(entry) = area.entries.get_mut(key).filter(|entry| entry.alive(now)) else { return Ok(None) };
        entry.touch(now);
        Ok(Some(entry.value.clone()))
    }

    /// Puts `value` under `key`.
    pub(crate) fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        ttl_ms: Option<u64>,
        now: u64,
        limits: &GuestLimits,
    ) -> Result<(), Refusal> {
        check_key(&key, limits)?;
        if value.len() > limits.state_value_bytes {
            let (size, max) = (value.len(), limits.state_value_bytes);
            return Err(Refusal::Limit(format!("the value has {size} bytes, the limit is {max}")));
        }
        let mut entry = Entry { value, ttl_ms, expires: None };
        entry.touch(now);
        let size = self.size_with(&key, &entry, now, limits.state_total_bytes);
        if size > limits.state_total_bytes {
            let max = limits.state_total_bytes;
            return Err(Refusal::Limit(format!("the state would have {size} bytes, the limit is {max}")));
        }
        self.size = Some(size);
        self.writes.insert(key, Some(entry));
        Ok(())
    }

    /// Removes `key`; returns whether it existed.
    pub(crate) fn delete(&mut self, key: &str, now: u64, limits: &GuestLimits) -> Result<bool, Refusal> {
        check_key(key, limits)?;
        let there = self.get(key, now, limits)?.is_some();
        if there {
            self.writes.insert(key.to_owned(), None);
            self.size = None;
        }
        Ok(there)
    }

    /// Removes everything; returns the number of keys.
    pub(crate) fn clear(&mut self, now: u64) -> u32 {
        let count = self.keys("", now).len();
        self.cleared = true;
        self.writes.clear();
        self.size = None;
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// All keys that begin with `prefix`, sorted.
    pub(crate) fn keys(&self, prefix: &str, now: u64) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        if !self.cleared {
            let area = lock(&self.area.0);
            let old = area.entries.iter().filter(|(key, entry)| entry.alive(now) && !self.writes.contains_key(*key));
            keys.extend(old.map(|(key, _)| key.clone()));
        }
        let written = self.writes.iter().filter(|(_, entry)| entry.as_ref().is_some_and(|entry| entry.alive(now)));
        keys.extend(written.map(|(key, _)| key.clone()));
        keys.retain(|key| key.starts_with(prefix));
        keys.sort_unstable();
        keys
    }

    /// Whether there is something to commit.
    pub(crate) fn has_written(&self) -> bool {
        self.cleared || !self.writes.is_empty()
    }

    /// Applies the writes and returns the changes; the transaction is empty afterwards.
    pub(crate) fn commit(&mut self) -> Vec<Change> {
        if !self.has_written() {
            return Vec::new();
        }
        let mut area = lock(&self.area.0);
        let mut done: Vec<(&'static str, String)> = Vec::new();
        if self.cleared {
            area.clear();
            done.push(("clear", String::new()));
        }
        for (key, entry) in std::mem::take(&mut self.writes) {
            match entry {
                Some(entry) => {
                    area.insert(key.clone(), entry);
                    done.push(("set", key));
                }
                None => {
                    if area.remove(&key) {
                        done.push(("delete", key));
                    }
                }
            }
        }
        self.cleared = false;
        self.size = None;
        area.version += 1;
        let size = area.size;
        done.into_iter().map(|(operation, key)| Change { operation, key, size }).collect()
    }

    /// Bytes after `entry` came under `key`. Counts all entries only where the cheap sum is over `max`: then what is
    /// past its time goes.
    fn size_with(&self, key: &str, entry: &Entry, now: u64, max: u64) -> u64 {
        let cheap = match self.size {
            Some(size) => size,
            None if self.writes.is_empty() && !self.cleared => lock(&self.area.0).size,
            None => self.sum(now, None),
        };
        let size = cheap.saturating_sub(self.weight_of(key, now)).saturating_add(weight(key, entry));
        if size <= max {
            return size;
        }
        lock(&self.area.0).drop_dead(now);
        self.sum(now, Some(key)).saturating_add(weight(key, entry))
    }

    /// Bytes that `key` has now. An expired value has none: an exact sum has not counted it.
    fn weight_of(&self, key: &str, now: u64) -> u64 {
        let of_alive = |entry: &Entry| if entry.alive(now) { weight(key, entry) } else { 0 };
        match self.writes.get(key) {
            Some(written) => written.as_ref().map_or(0, of_alive),
            None if self.cleared => 0,
            None => lock(&self.area.0).entries.get(key).map_or(0, of_alive),
        }
    }

    /// Bytes of what is alive, without `except`.
    fn sum(&self, now: u64, except: Option<&str>) -> u64 {
        let other = |key: &str| except != Some(key);
        let mut size = 0;
        if !self.cleared {
            let area = lock(&self.area.0);
            for (key, entry) in &area.entries {
                if entry.alive(now) && !self.writes.contains_key(key) && other(key) {
                    size += weight(key, entry);
                }
            }
        }
        for (key, entry) in &self.writes {
            if let Some(entry) = entry.as_ref().filter(|entry| entry.alive(now) && other(key)) {
                size += weight(key, entry);
            }
        }
        size
    }
}

fn check_key(key: &str, limits: &GuestLimits) -> Result<(), Refusal> {
    let max = limits.state_key_bytes;
    if key.is_empty() {
        return Err(Refusal::BadKey("a key must have at least one byte".to_owned()));
    }
    if key.len() > max {
        return Err(Refusal::BadKey(format!("the key has {} bytes, the limit is {max}", key.len())));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
