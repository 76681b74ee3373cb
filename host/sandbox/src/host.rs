//! The loaded plugins as the turn sees them.

use std::sync::Arc;

use flow::ports::{BoxFuture, Clock, EventSink, ExtensionHost, Extensions, SessionView, StateError, StateStore};
use flow::{PluginId, Registration, SessionId};
use system::SystemClock;

use crate::Plugin;
use crate::error::DuplicatePlugin;
#[cfg(feature = "wasm")]
use crate::sessions;
#[cfg(not(feature = "wasm"))]
use crate::without as sessions;

/// The default maximum of bytes that the plugins of one session keep with the `state` power.
pub const SESSION_STATE_BYTES: u64 = 64 << 20;

/// The loaded plugins, in order of registration.
pub struct SandboxHost {
    plugins: Vec<Plugin>,
    /// Those of the plugins.
    registrations: Arc<[Registration]>,
    store: Arc<dyn StateStore>,
    session_bytes: u64,
    clock: Arc<dyn Clock>,
}

/// The registrations of plugins, in their order.
fn registrations(plugins: &[Plugin]) -> Arc<[Registration]> {
    plugins.iter().map(|plugin| plugin.registration().clone()).collect()
}

impl SandboxHost {
    /// Puts plugins together; their order is the order of registration. `store` keeps their state.
    ///
    /// # Errors
    /// Two of them have one id.
    pub fn new(plugins: Vec<Plugin>, store: Arc<dyn StateStore>) -> Result<Self, DuplicatePlugin> {
        Self::with_clock(plugins, store, Arc::new(SystemClock))
    }

    /// As [`SandboxHost::new`], with the clock of the host for the breaker and for the life of stored values. Time limits of
    /// calls are always real time.
    ///
    /// # Errors
    /// Two plugins have one id.
    pub fn with_clock(
        plugins: Vec<Plugin>,
        store: Arc<dyn StateStore>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, DuplicatePlugin> {
        for (at, plugin) in plugins.iter().enumerate() {
            if plugins.iter().take(at).any(|other| other.id() == plugin.id()) {
                return Err(DuplicatePlugin(plugin.id().clone()));
            }
        }
        let registrations = registrations(&plugins);
        Ok(Self { plugins, registrations, store, session_bytes: SESSION_STATE_BYTES, clock })
    }

    /// The same host with some of its plugins, in the same order, on the same store: a session is open once in all of them.
    #[must_use]
    pub fn select(&self, wanted: impl Fn(&PluginId) -> bool) -> Self {
        let plugins: Vec<Plugin> = self.plugins.iter().filter(|plugin| wanted(plugin.id())).cloned().collect();
        Self { registrations: registrations(&plugins), plugins, ..self.with_store(Arc::clone(&self.store)) }
    }

    /// The same host on another store.
    #[must_use]
    pub fn with_store(&self, store: Arc<dyn StateStore>) -> Self {
        let (registrations, clock) = (Arc::clone(&self.registrations), Arc::clone(&self.clock));
        Self { plugins: self.plugins.clone(), registrations, store, session_bytes: self.session_bytes, clock }
    }

    /// The maximum number of bytes that the plugins of one session keep. Default: [`SESSION_STATE_BYTES`].
    #[must_use]
    pub fn with_session_bytes(mut self, bytes: u64) -> Self {
        self.session_bytes = bytes;
        self
    }

    /// Returns the loaded plugins in the order in which they were given.
    pub fn plugins(&self) -> &[Plugin] {
        &self.plugins
    }
}

impl ExtensionHost for SandboxHost {
    fn registrations(&self) -> Arc<[Registration]> {
        Arc::clone(&self.registrations)
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionId,
        view: Arc<dyn SessionView>,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'a, Result<Arc<dyn Extensions>, StateError>> {
        Box::pin(async move {
            let state = self.store.open(session).await?;
            let limits = (self.session_bytes, Arc::clone(&self.clock));
            Ok(sessions::open(&self.plugins, session, (view, events), state, limits))
        })
    }

    fn adopt(&self, before: &Arc<dyn Extensions>, unregistered: &[PluginId]) -> Result<Arc<dyn Extensions>, String> {
        sessions::adopt(&self.plugins, before, unregistered)
    }
}

impl std::fmt::Debug for SandboxHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxHost").field("plugins", &self.plugins).finish_non_exhaustive()
    }
}
