//! What a backend does for an open session. Everything else (queue, expiry, retries) is the same for all of them.

use std::sync::Arc;

use flow::PluginId;
use flow::ports::{BoxFuture, Replaced, StateEntry, StateError, StoredState};

use crate::activity::Recorded;
use crate::queue::Flight;

/// Keys that were removed because they had expired.
pub(crate) type Swept = Vec<(PluginId, String)>;

/// Why a flight was not written, as far as is known.
#[derive(Debug)]
pub(crate) struct WriteError {
    pub(crate) error: StateError,
    /// The flight was not written, and will not be. Otherwise it can have arrived, or still arrive.
    pub(crate) is_definite: bool,
}

impl From<StateError> for WriteError {
    /// An error that does not show what became of the flight.
    fn from(error: StateError) -> Self {
        Self { error, is_definite: false }
    }
}

/// One open session of a backend, which owns its lease.
pub(crate) trait Backend: Send + Sync {
    /// Reads what is durable of a plugin, expired entries included.
    fn load<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>>;

    /// The plugins of which something is durable, in order of their ids.
    fn plugins(&self) -> BoxFuture<'_, Result<Vec<PluginId>, StateError>>;

    /// Writes a flight, as a whole or not at all, and returns the keys that its sweeps removed. Does nothing if a flight with this
    /// number or a higher one was written before. Dropping the future does not stop the write.
    fn write(&self, flight: Arc<Flight>) -> BoxFuture<'_, Result<Swept, WriteError>>;

    /// Replaces a note of the host if its value still is `seen`; `None` if there are no other writers, so that the note is written like any
    /// other value.
    fn replace_note<'a>(
        &'a self,
        _seen: Option<&'a [u8]>,
        _note: &'a StateEntry,
    ) -> Option<BoxFuture<'a, Result<Replaced, StateError>>> {
        None
    }

    /// Returns whether another host has written since this one opened the session.
    fn is_outdated(&self) -> BoxFuture<'_, Result<bool, StateError>> {
        Box::pin(std::future::ready(Ok(false)))
    }

    /// Releases the lease. Flights that arrive later are not written. A lease that cannot be released ends by itself.
    fn release(&self) -> BoxFuture<'_, ()>;
}

/// A session that a backend has opened.
pub(crate) struct Opened<B> {
    pub(crate) backend: B,
    /// The activity that the backend has recorded; of a fresh session, the moment of the opening.
    pub(crate) recorded: Recorded,
}

#[cfg(test)]
mod tests;
