//! The operator's view of stored state: what `tidegate state` lists, shows and clears.

use crate::{PluginId, SessionId};

use super::{BoxFuture, StateEntry, StateError, StoredState};

/// The stored state as an operator sees it. Reading acquires no lease and sees what is durable.
pub trait StateAdmin: Send + Sync {
    /// Lists the sessions with their plugins, in order of the ids. What cannot be read is reported next to what can.
    ///
    /// # Errors
    /// The backend cannot be asked at all.
    fn sessions(&self) -> BoxFuture<'_, Result<SessionList, StateError>>;

    /// Checks that the backend permits everything that a store does with it. By default, nothing is checked.
    ///
    /// # Errors
    /// The backend cannot be reached, or refuses something.
    fn check(&self) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Reads the state of one session, expired entries left out; `None` where nothing is stored.
    ///
    /// # Errors
    /// As [`super::SessionState::load`].
    fn show<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<ShownSession>, StateError>>;

    /// Deletes what one plugin, or what all plugins keep in a session. Returns whether there was a session.
    ///
    /// # Errors
    /// [`StateError::Leased`]: an open session is not changed underneath its owner.
    fn clear<'a>(
        &'a self,
        session: &'a SessionId,
        plugin: Option<&'a PluginId>,
    ) -> BoxFuture<'a, Result<bool, StateError>>;

    /// Deletes sessions that have expired; open ones are left alone. They are invisible before too: this frees memory or files. A backend
    /// on the disk deletes a bounded number, and none where the clock can be wrong. One that forgets by itself deletes none.
    ///
    /// # Errors
    /// The backend cannot be asked at all. A session that cannot be read is left as it is.
    fn remove_expired(&self) -> BoxFuture<'_, Result<SweptState, StateError>>;
}

/// What became of sessions that have expired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptState {
    /// How many were deleted.
    pub removed: u64,
    /// How many can have expired and are left to a later call.
    pub left: u64,
    /// None was deleted because the clock can be wrong: the days since the last use before the last 24 hours.
    pub pause_days: Option<u64>,
}

/// The stored sessions.
#[derive(Clone, Debug, Default)]
pub struct SessionList {
    /// Those that can be read.
    pub sessions: Vec<SessionSummary>,
    /// Why others cannot be read.
    pub problems: Vec<StateError>,
}

/// A stored session, without its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The id of the session.
    pub session: SessionId,
    /// When its last turn ended or was last seen to run, in milliseconds since 1970.
    pub active_ms: u64,
    /// When all its state expires unless another turn runs before.
    pub expires_ms: u64,
    /// Who has it open, where somebody has.
    pub owner: Option<String>,
    /// Its plugins, in order of their ids.
    pub plugins: Vec<PluginSummary>,
}

impl SessionSummary {
    /// A session without plugins that nobody has open.
    pub fn of(session: SessionId, active_ms: u64, expires_ms: u64) -> Self {
        Self { session, active_ms, expires_ms, owner: None, plugins: Vec::new() }
    }
}

/// What one plugin keeps in a stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginSummary {
    /// The id of the plugin.
    pub plugin: PluginId,
    /// The number of entries that have not expired.
    pub keys: u64,
    /// The bytes of their keys and values.
    pub bytes: u64,
    /// When the next of them expires, if the session stays idle.
    pub next_expiry_ms: Option<u64>,
    /// The `state_version` of its state.
    pub version: Option<u32>,
    /// Since when it is not configured any more, in milliseconds since 1970; `None` where no turn has begun without it.
    pub absent_since_ms: Option<u64>,
}

impl PluginSummary {
    /// Sums up what a plugin keeps.
    pub fn of(plugin: PluginId, state: &StoredState) -> Self {
        let weight = |entry: &StateEntry| (entry.key.len() + entry.value.len()) as u64;
        Self {
            plugin,
            keys: state.entries.len() as u64,
            bytes: state.entries.iter().map(weight).sum(),
            next_expiry_ms: state.entries.iter().filter_map(|entry| entry.expires_ms).min(),
            version: state.version,
            absent_since_ms: None,
        }
    }
}

/// A stored session with its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownSession {
    /// The session and its plugins.
    pub summary: SessionSummary,
    /// The entries of each plugin, in the same order.
    pub states: Vec<(PluginId, StoredState)>,
}
