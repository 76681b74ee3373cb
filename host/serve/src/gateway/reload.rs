//! Reloading: what is served is looked at again where somebody asked for it, and from time to time.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Site;

/// Requests within this time after a look get what it found.
const PAUSE: Duration = Duration::from_millis(250);

/// Where what a gateway serves comes from.
pub trait Source: Send + Sync + 'static {
    /// What is to be served from now on; `None`: what is served already. `is_asked`: somebody wants it to be read again, whether it has changed
    /// or not. It can take its time: no other request waits for it than those that begin meanwhile.
    ///
    /// # Errors
    /// It has changed and cannot be used: the reason in one line.
    fn look(&self, is_asked: bool) -> Option<Result<Site, String>>;
}

/// The state of reloads.
#[derive(Default)]
pub(super) struct Reload {
    source: Mutex<Option<Arc<dyn Source>>>,
    state: Mutex<State>,
    /// Who has it looks; others wait for what is found.
    pub(super) turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    looked: Option<Instant>,
    is_asked: bool,
    failure: Option<String>,
}

impl Reload {
    pub(super) fn follow(&self, source: Arc<dyn Source>) {
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(source);
        self.with(|state| state.looked = Some(Instant::now()));
    }

    /// The next request looks, and reads everything again.
    pub(super) fn ask(&self) {
        self.with(|state| state.is_asked = true);
    }

    /// Returns whether it is time to look.
    pub(super) fn is_due(&self) -> bool {
        self.with(|state| state.is_asked || state.looked.is_some_and(|looked| looked.elapsed() >= PAUSE))
    }

    /// What a look finds; `None`: nothing new. The caller has the turn.
    pub(super) async fn look(&self) -> Option<Result<Site, String>> {
        let is_asked = self.with(|state| std::mem::take(&mut state.is_asked));
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let found = tokio::task::spawn_blocking(move || source.look(is_asked)).await;
        self.with(|state| state.looked = Some(Instant::now()));
        found.unwrap_or_else(|error| Some(Err(format!("reading the settings was aborted: {error}"))))
    }

    /// Notes how a reload went.
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
