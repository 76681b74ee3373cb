//! The `state` power: the cache of what plugins keep, and the transaction that one callback is.
//!
//! An [`Area`] belongs to one plugin in one session. It is loaded from the session's store when the plugin's first instance
//! starts, outlives instances, and answers guests without waiting. What callbacks change is handed to the store in batches:
//! at once, or, while an answer streams, when its attempt is accepted.

mod area;
mod total;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::ports::{StateBatch, StateChange, StateLifetime};

pub(crate) use area::Area;
use area::{Entry, weight};
pub(crate) use total::SessionTotal;

use crate::limits::GuestLimits;

/// An area, shared by the instances of its plugin in its session.
#[derive(Clone, Debug)]
pub(crate) struct SharedArea(Arc<Counted>);

/// An area, and how often callbacks have read from it.
#[derive(Debug)]
struct Counted {
    area: Mutex<Area>,
    /// Reads that are not reported yet.
    reads: AtomicU64,
}

impl SharedArea {
    /// An empty area, whose size counts towards that of its session.
    pub(crate) fn new(total: Arc<SessionTotal>) -> Self {
        Self(Arc::new(Counted { area: Mutex::new(Area::new(total)), reads: AtomicU64::new(0) }))
    }

    /// A lock whose holder panicked still guards whole values: every change of an area is made in one step.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Area> {
        self.0.area.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of reads since this was called last.
    pub(crate) fn take_reads(&self) -> u64 {
        // Most callbacks read nothing: looking is cheaper than swapping.
        if self.0.reads.load(Ordering::Relaxed) == 0 { 0 } else { self.0.reads.swap(0, Ordering::Relaxed) }
    }

    /// Changes with every committed change.
    pub(crate) fn version(&self) -> u64 {
        self.lock().version()
    }
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

/// What a transaction belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Commit {
    /// A callback of the attempt under way, if there is one.
    Call,
    /// A callback that reports what happened: its writes are not undone with the attempt. They are applied only if nothing has
    /// changed the area since it had this version.
    Notice {
        /// The version of the area when the callback began.
        version: u64,
    },
    /// A migration, which belongs to no attempt: what the extension keeps has this format from now on.
    Migration {
        /// The `state_version` of the extension.
        format: u32,
    },
}

/// The writes of one callback on top of an area. Commits to one area are serial: nothing changes underneath a callback that
/// commits, with the exception that `SessionExtensions::notify` handles.
#[derive(Debug)]
pub(crate) struct Transaction {
    area: SharedArea,
    cleared: bool,
    writes: BTreeMap<String, Option<Entry>>,
    /// Keys that are removed to stay within the limit, not because the callback asked for it.
    evicted: BTreeSet<String>,
    /// Bytes of the session that this transaction has reserved beyond those of the committed area.
    reserved: u64,
}

impl Transaction {
    pub(crate) fn new(area: SharedArea) -> Self {
        Self { area, cleared: false, writes: BTreeMap::new(), evicted: BTreeSet::new(), reserved: 0 }
    }

    /// The value under `key`; reading restarts its lifetime.
    pub(crate) fn get(&mut self, key: &str, now: u64, limits: &GuestLimits) -> Result<Option<Vec<u8>>, Refusal> {
        check_key(key, limits)?;
        self.area.0.reads.fetch_add(1, Ordering::Relaxed);
        let mut area = self.area.lock();
        if let Some(written) = self.writes.get_mut(key) {
            let Some(entry) = written.as_mut().filter(|entry| area.is_alive(entry, now)) else { return Ok(None) };
            area.stamp(entry, now);
            return Ok(Some(entry.value.to_vec()));
        }
        if self.cleared {
            return Ok(None);
        }
        Ok(area.read(key, now).map(|value| value.to_vec()))
    }

    /// Puts `value` under `key`. Where the extension would keep more than its limit, the keys that were not used for the
    /// longest time are evicted.
    pub(crate) fn set(
        &mut self,
        key: String,
        value: Vec<u8>,
        lifetime: StateLifetime,
        now: u64,
        limits: &GuestLimits,
    ) -> Result<(), Refusal> {
        check_key(&key, limits)?;
        check_value(&key, &value, limits)?;
        let shared = self.area.clone();
        let mut area = shared.lock();
        area.remove_expired(now);
        let mut entry = Entry::new(value.into(), lifetime);
        area.stamp(&mut entry, now);
        let other = self.size(&area, now, Some(&key));
        let room = limits.state_total_bytes.saturating_sub(weight(&key, &entry));
        let mut gone = Vec::new();
        let left = if other > room { self.least_recent(&area, now, &key, other, room, &mut gone) } else { other };
        self.reserve(&area, left.saturating_add(weight(&key, &entry)))?;
        for evicted in gone {
            self.writes.insert(evicted.clone(), None);
            self.evicted.insert(evicted);
        }
        self.evicted.remove(&key);
        self.writes.insert(key, Some(entry));
        Ok(())
    }

    /// Removes `key`; returns whether it existed.
    pub(crate) fn delete(&mut self, key: &str, now: u64, limits: &GuestLimits) -> Result<bool, Refusal> {
        let existed = self.get(key, now, limits)?.is_some();
        if existed {
            self.writes.insert(key.to_owned(), None);
        }
        Ok(existed)
    }

    /// Removes everything; returns the number of keys.
    pub(crate) fn clear(&mut self, now: u64) -> u32 {
        let count = self.keys("", now).len();
        self.cleared = true;
        self.writes.clear();
        self.evicted.clear();
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// All keys that begin with `prefix`, sorted.
    pub(crate) fn keys(&self, prefix: &str, now: u64) -> Vec<String> {
        let area = self.area.lock();
        let mut keys: Vec<String> = self.visible(&area, now).map(|(key, _)| key.to_owned()).collect();
        keys.retain(|key| key.starts_with(prefix));
        keys.sort_unstable();
        keys
    }

    /// Whether there is something to commit.
    pub(crate) fn has_written(&self) -> bool {
        self.cleared || !self.writes.is_empty()
    }

    /// Applies the writes; the transaction is empty afterwards. Returns `None`, and applies nothing, where a notice finds another
    /// version of the area. `send` hands a batch to the store, under the lock of the area: the store gets batches in the order
    /// in which the area changes. A callback that has only read sends nothing: [`Area::flush`] does at the next barrier.
    pub(crate) fn commit(&mut self, of: Commit, send: impl FnOnce(StateBatch)) -> Option<Vec<Change>> {
        if !self.has_written() && !matches!(of, Commit::Migration { .. }) {
            return Some(Vec::new());
        }
        let area = self.area.clone();
        let mut area = area.lock();
        let suspended = match of {
            Commit::Migration { format } => {
                area.set_format(format);
                Some(area.suspend_attempt())
            }
            Commit::Call => None,
            Commit::Notice { version } if version != area.version() => return None,
            Commit::Notice { .. } => Some(area.suspend_attempt()),
        };
        // During an attempt, what was read and what is written goes to the store when the attempt is accepted.
        let kept_back = area.in_attempt();
        let mut batch = if kept_back { StateBatch::default() } else { area.touched() };
        let mut done: Vec<(&'static str, String)> = Vec::new();
        if std::mem::take(&mut self.cleared) {
            area.clear();
            batch.changes.push(StateChange::Clear);
            done.push(("clear", String::new()));
        }
        let evicted = std::mem::take(&mut self.evicted);
        for (key, entry) in std::mem::take(&mut self.writes) {
            match entry {
                Some(entry) => {
                    batch.changes.push(StateChange::Set(entry.stored(&key)));
                    area.insert(&key, entry);
                    done.push(("set", key));
                }
                None if area.remove(&key) => {
                    batch.changes.push(StateChange::Delete(key.clone()));
                    done.push((if evicted.contains(&key) { "evict" } else { "delete" }, key));
                }
                None => {}
            }
        }
        let size = area.committed();
        area.total().release(std::mem::take(&mut self.reserved));
        if let Some(suspended) = suspended {
            area.resume_attempt(suspended, &batch.changes);
        }
        if !kept_back {
            send(area.with_format(batch));
        }
        Some(done.into_iter().map(|(operation, key)| Change { operation, key, size }).collect())
    }

    /// What the callback sees: committed entries and its own writes, without what has expired.
    fn visible<'a>(&'a self, area: &'a Area, now: u64) -> impl Iterator<Item = (&'a str, &'a Entry)> {
        let committed = area.entries().filter(|(key, _)| !self.cleared && !self.writes.contains_key(*key));
        let written = self.writes.iter().filter_map(|(key, entry)| entry.as_ref().map(|entry| (key.as_str(), entry)));
        committed.chain(written).filter(move |(_, entry)| area.is_alive(entry, now))
    }

    /// Bytes that the callback sees, without those of `except`. The cheap sum of an area that the callback has not changed
    /// counts expired entries, too: it is used where it is within the limit anyway.
    fn size(&self, area: &Area, now: u64, except: Option<&str>) -> u64 {
        if !self.has_written() && area.all_alive(now) {
            return area.size().saturating_sub(except.map_or(0, |key| area.weight_of(key)));
        }
        self.visible(area, now).filter(|(key, _)| Some(*key) != except).map(|(key, entry)| weight(key, entry)).sum()
    }

    /// Collects the least recently used keys, `except` left out, until no more than `room` of `size` bytes are left. Returns
    /// what is left.
    fn least_recent(&self, area: &Area, now: u64, except: &str, size: u64, room: u64, gone: &mut Vec<String>) -> u64 {
        let mut all: Vec<(u64, &str, u64)> = self
            .visible(area, now)
            .filter(|(key, _)| *key != except)
            .map(|(key, entry)| (entry.used(), key, weight(key, entry)))
            .collect();
        all.sort_unstable();
        let mut left = size;
        for (_, key, bytes) in all {
            if left <= room {
                break;
            }
            left = left.saturating_sub(bytes);
            gone.push(key.to_owned());
        }
        left
    }

    /// Reserves what the area would have more than now, against the limit of the session.
    fn reserve(&mut self, area: &Area, size: u64) -> Result<(), Refusal> {
        let wanted = size.saturating_sub(area.size());
        if wanted > self.reserved {
            area.total().reserve(wanted - self.reserved).map_err(|(total, max)| {
                Refusal::Limit(format!(
                    "the state of all extensions of the session would have {total} bytes, the limit is {max}"
                ))
            })?;
            self.reserved = wanted;
        }
        Ok(())
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.area.lock().total().release(self.reserved);
        }
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

/// A value that could never be kept is refused, instead of evicting everything else.
fn check_value(key: &str, value: &[u8], limits: &GuestLimits) -> Result<(), Refusal> {
    let (size, max) = (value.len(), limits.state_value_bytes);
    if size > max {
        return Err(Refusal::Limit(format!("the value has {size} bytes, the limit is {max}")));
    }
    let (size, max) = ((key.len() + size) as u64, limits.state_total_bytes);
    if size > max {
        return Err(Refusal::Limit(format!(
            "the key and its value have {size} bytes, the limit for all keys of an extension is {max}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
