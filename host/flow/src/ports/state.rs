//! The port of extension state: what plugins keep in a session, durable behind a cache.
//!
//! The cache is the caller's: callbacks read and write it without waiting. A committed callback becomes a [`StateBatch`], which
//! [`SessionState::apply`] takes without waiting, and [`SessionState::settle`] makes durable at the barriers of a turn.

mod admin;
mod error;

use std::sync::Arc;
use std::time::Duration;

use crate::{PluginId, SessionId};

use super::BoxFuture;
pub use admin::{PluginSummary, SessionList, SessionSummary, ShownSession, StateAdmin, SweptState};
pub use error::StateError;

/// Where the state of sessions is kept.
pub trait StateStore: Send + Sync {
    /// Opens a session: acquires its lease, with a fencing token that no earlier or later owner has. The lease is renewed while the
    /// returned value exists, and released when it is closed or dropped.
    ///
    /// # Errors
    /// [`StateError::Leased`] names the owner of a session that is open; all others mean that the state cannot be read.
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>>;

    /// Opens a session that any number of hosts have open concurrently: none of them has its lease, and of two writes of one key the later
    /// one wins. By default, and in stores that are not shared between hosts, this is the same as [`StateStore::open`].
    ///
    /// # Errors
    /// As [`StateStore::open`]; [`StateError::Leased`] where an owner has it alone.
    fn share<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        self.open(session)
    }

    /// Returns the lines that are recorded under these names, as [`StateStore::name`] has recorded them. By default there are none: names
    /// that outlive the process need another store.
    ///
    /// # Errors
    /// The store cannot be read.
    fn named<'a>(&'a self, names: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<String>>, StateError>> {
        Box::pin(std::future::ready(Ok(vec![None; names.len()])))
    }

    /// Records a short line under a name of hexadecimal digits, for as long as sessions are kept, so that a session can be found by
    /// something other than its id. An existing line remains, and is returned.
    ///
    /// # Errors
    /// The store cannot be written.
    fn name<'a>(&'a self, name: &'a str, line: &'a str) -> BoxFuture<'a, Result<Option<String>, StateError>> {
        let _unknown = (name, line);
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// The state of one open session.
///
/// Expired entries are never returned. An entry with the default time to live does not expire while a turn runs; its time restarts
/// when the turn ends. The time to live of the session, counted from the end of its last turn, bounds every other.
pub trait SessionState: Send + Sync {
    /// Reads what a plugin keeps, in order of the keys: what is durable, changed by the batches that are not durable yet.
    ///
    /// # Errors
    /// The state cannot be read, or was lost. The plugin must not be run as if it had none.
    fn load<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>>;

    /// Returns the plugins that have state or a version in the session, sorted by id, including writes that are not durable yet. The host's
    /// own notes are among them under [`PluginId::host`]. By default there are none.
    ///
    /// # Errors
    /// As for [`SessionState::load`].
    fn plugins(&self) -> BoxFuture<'_, Result<Vec<PluginId>, StateError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Queues the changes of one callback, to be made durable in the order of these calls; a batch becomes durable as a whole or
    /// not at all. Never waits. A queued change replaces an earlier one of the same key, so that the queue takes no more memory than
    /// the state itself.
    fn apply(&self, plugin: &PluginId, batch: StateBatch);

    /// Reports that a turn starts. What expired while the session was idle stays expired; all other entries with the default time
    /// to live are kept until the turn ends. Never waits.
    fn turn_started(&self);

    /// Reports that the turn has ended: the default time to live is counted from now. Never waits.
    fn turn_ended(&self);

    /// Makes all applied batches durable. A backend that does not answer is asked again, less and less often, until `patience` has
    /// passed; with none it is asked once. Dropping the future loses nothing: the next call continues.
    ///
    /// # Errors
    /// [`StateError::Unavailable`]: the batches remain queued, and the next call can succeed. [`StateError::Fenced`]: nothing was
    /// written, and nothing will be. [`StateError::Lost`]: see there.
    fn settle(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>>;

    /// Replaces a note of the host ([`PluginId::host`]) by `note`, durably, if its value still is `seen` (compare and swap). Batches that
    /// were applied before are durable, too, when it returns. By default there are no other writers.
    ///
    /// # Errors
    /// As [`SessionState::settle`].
    fn replace_note<'a>(
        &'a self,
        _seen: Option<&'a [u8]>,
        note: StateEntry,
        patience: Duration,
    ) -> BoxFuture<'a, Result<Replaced, StateError>> {
        self.apply(&PluginId::host(), vec![StateChange::Set(note)].into());
        Box::pin(async move { self.settle(patience).await.map(|()| Replaced::Done) })
    }

    /// Returns whether another host has written since this one opened the shared session, so that loaded values can be outdated.
    ///
    /// # Errors
    /// As for [`SessionState::load`].
    fn is_outdated(&self) -> BoxFuture<'_, Result<bool, StateError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Deletes everything that a plugin keeps, its version included, durably.
    ///
    /// # Errors
    /// As [`SessionState::settle`] without patience. The deletion remains queued.
    fn clear<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<(), StateError>>;

    /// Settles and releases the lease. Later batches are refused by `settle`. Dropping the value releases the lease too, but settles
    /// nothing.
    ///
    /// # Errors
    /// As [`SessionState::settle`]; the lease is released all the same.
    fn close(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>>;
}

/// The result of [`SessionState::replace_note`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The note is durable.
    Done,
    /// Nothing was written: another host has written this value; `None` if the note does not exist any more.
    Other(Option<Arc<[u8]>>),
}

/// What a plugin keeps in a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredState {
    /// The entries that have not expired, in order of their keys.
    pub entries: Vec<StateEntry>,
    /// The `state_version` of the extension that wrote them; `None` where none was ever set.
    pub version: Option<u32>,
}

impl StoredState {
    /// Of the host's notes ([`PluginId::host`]): since when a plugin is absent, in milliseconds since 1970.
    pub fn absent_since_ms(&self, plugin: &PluginId) -> Option<u64> {
        let note = self.entries.iter().find(|note| note.key == plugin.as_str())?;
        std::str::from_utf8(&note.value).ok()?.parse().ok()
    }
}

/// A key with its value and times. Times are milliseconds since 1970-01-01 UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateEntry {
    /// The key, unique in its plugin and session.
    pub key: String,
    /// The value as the plugin wrote it.
    pub value: Arc<[u8]>,
    /// How long the entry is kept.
    pub lifetime: StateLifetime,
    /// When the entry expires, unless it is read or its session is active before; `None` where only the session's end bounds it.
    pub expires_ms: Option<u64>,
    /// When the entry was last read or written: the least recently used entries are evicted first.
    pub used_ms: u64,
}

impl StateEntry {
    /// An entry that is written at `now_ms`.
    pub fn written(key: impl Into<String>, value: impl Into<Arc<[u8]>>, lifetime: StateLifetime, now_ms: u64) -> Self {
        let expires_ms = lifetime.expires_after(now_ms);
        Self { key: key.into(), value: value.into(), lifetime, expires_ms, used_ms: now_ms }
    }
}

/// How long an entry is kept. Each use of the entry restarts its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateLifetime {
    /// The default time to live of the plugin, which a turn of the session restarts too.
    Default {
        /// The time to live in milliseconds.
        ttl_ms: u64,
    },
    /// A time that the extension has set, which runs whether the session is active or not.
    Own {
        /// The time to live in milliseconds.
        ttl_ms: u64,
    },
    /// As long as the session.
    Session,
}

impl StateLifetime {
    /// When an entry that is used at `used_ms` expires.
    pub fn expires_after(self, used_ms: u64) -> Option<u64> {
        match self {
            Self::Default { ttl_ms } | Self::Own { ttl_ms } => Some(used_ms.saturating_add(ttl_ms)),
            Self::Session => None,
        }
    }
}

/// The changes of one callback, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateBatch {
    /// What changed, in this order.
    pub changes: Vec<StateChange>,
    /// Sets the `state_version` of what the plugin keeps, together with the changes: a migration is one batch.
    pub version: Option<u32>,
}

impl From<Vec<StateChange>> for StateBatch {
    fn from(changes: Vec<StateChange>) -> Self {
        Self { changes, version: None }
    }
}

/// A change of what a plugin keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// Writes an entry, over the one with the same key.
    Set(StateEntry),
    /// Restarts the time of an entry that was read; nothing happens where there is none.
    Touch {
        /// The key that was read.
        key: String,
        /// The time at which it expires now.
        expires_ms: Option<u64>,
        /// The time of the read.
        used_ms: u64,
    },
    /// Removes the entry with this key, if there is one.
    Delete(String),
    /// Removes all entries; the version remains.
    Clear,
}
