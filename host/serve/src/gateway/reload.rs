//! Reloading: checks the source of the configuration on request, and from time to time.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Site;

/// Requests within this time after a check use its result.
const PAUSE: Duration = Duration::from_millis(250);

/// The source of the configuration of a gateway.
pub trait Source: Send + Sync + 'static {
    /// Returns the new configuration; `None` if it has not changed. `is_asked`: reload even if nothing has changed. The call can take a
    /// while: only requests that begin meanwhile wait for it.
    ///
    /// # Errors
    /// The configuration has changed and is invalid: the reason in one line.
    fn look(&self, is_asked: bool) -> Option<Result<Site, String>>;
}

/// The state of reloads.
#[derive(Default)]
pub(super) struct Reload {
    source: Mutex<Option<Arc<dyn Source>>>,
    state: Mutex<State>,
    /// The holder checks the source; others wait for the result.
    pub(super) turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    looked: Option<Instant>,
    /// How often somebody has asked for a reload, and how many of these are done.
    asked: u64,
    done: u64,
    failure: Option<String>,
}

impl Reload {
    pub(super) fn follow(&self, source: Arc<dyn Source>) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
        self.with(|state| state.looked = Some(Instant::now()));
    }

    /// Makes the next check reload everything.
    pub(super) fn ask(&self) {
        self.with(|state| state.asked += 1);
    }

    /// Returns whether the next check is due.
    pub(super) fn is_due(&self) -> bool {
        self.with(|state| state.asked != state.done || state.looked.is_some_and(|looked| looked.elapsed() >= PAUSE))
    }

    /// Returns how often somebody has asked for a reload.
    pub(super) fn asked(&self) -> u64 {
        self.with(|state| state.asked)
    }

    /// The result of a check is in force, which began when somebody had asked for a reload so often.
    pub(super) fn has_looked(&self, asked: u64) {
        self.with(|state| {
            state.looked = state.looked.map(|_| Instant::now());
            state.done = asked;
        });
    }

    /// Checks the source; returns `None` if there is nothing new. The caller holds `turn`.
    pub(super) async fn look(&self) -> Option<Result<Site, String>> {
        let is_asked = self.with(|state| state.asked != state.done);
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let found = tokio::task::spawn_blocking(move || source.look(is_asked)).await;
        found.unwrap_or_else(|error| Some(Err(format!("reading the settings was aborted: {error}"))))
    }

    /// Records the result of a reload.
    pub(super) fn ended(&self, failure: Option<String>) {
        self.with(|state| state.failure = failure);
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.with(|state| state.failure.clone())
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reload").field("state", &self.state).finish_non_exhaustive()
    }
}
