//! The loaded plugins as the turn sees them.

use std::sync::Arc;

use flow::{PluginId, Registration, SessionId, SessionInUse};
use turn::SystemClock;
use turn::ports::{Clock, EventSink, ExtensionHost, Extensions, SessionView};

use crate::error::DuplicatePlugin;
use crate::guest::Session;
use crate::load::Plugin;
use crate::session::SessionExtensions;
use crate::state::States;

/// The loaded plugins, in order of registration.
pub struct SandboxHost {
    plugins: Vec<Plugin>,
    states: Arc<States>,
    clock: Arc<dyn Clock>,
}

impl SandboxHost {
    /// Puts plugins together; their order is the order of registration.
    ///
    /// # Errors
    /// Two of them have one id.
    pub fn new(plugins: Vec<Plugin>) -> Result<Self, DuplicatePlugin> {
        Self::with_clock(plugins, Arc::new(SystemClock))
    }

    /// As [`SandboxHost::new`], with the clock of the host for the breaker and for the life of stored values. Time limits of
    /// calls are always real time.
    ///
    /// # Errors
    /// Two plugins have one id.
    pub fn with_clock(plugins: Vec<Plugin>, clock: Arc<dyn Clock>) -> Result<Self, DuplicatePlugin> {
        for (at, plugin) in plugins.iter().enumerate() {
            if plugins.iter().take(at).any(|other| other.id() == plugin.id()) {
                return Err(DuplicatePlugin(plugin.id().clone()));
            }
        }
        Ok(Self { plugins, states: Arc::default(), clock })
    }

    /// The same host with some of its plugins, in the same order. State and open sessions are shared: a session is open once
    /// in all of them.
    #[must_use]
    pub fn select(&self, wanted: impl Fn(&PluginId) -> bool) -> Self {
        let plugins = self.plugins.iter().filter(|plugin| wanted(plugin.id())).cloned().collect();
        Self { plugins, states: Arc::clone(&self.states), clock: Arc::clone(&self.clock) }
    }

    /// Returns the loaded plugins in the order in which they were given.
    pub fn plugins(&self) -> &[Plugin] {
        &self.plugins
    }

    /// Throws away what plugins keep of a session. Until then a session that is opened again finds its state.
    pub fn forget(&self, session: &SessionId) {
        self.states.forget(session);
    }
}

impl ExtensionHost for SandboxHost {
    fn registrations(&self) -> Vec<Registration> {
        self.plugins.iter().map(|plugin| plugin.registration().clone()).collect()
    }

    fn open(
        &self,
        session: SessionId,
        view: Arc<dyn SessionView>,
        events: Arc<dyn EventSink>,
    ) -> Result<Arc<dyn Extensions>, SessionInUse> {
        let lease = self.states.open(session)?;
        let session = Arc::new(Session { view, events, clock: Arc::clone(&self.clock) });
        let plugins = self.plugins.iter().map(|plugin| Arc::clone(&plugin.loaded));
        Ok(Arc::new(SessionExtensions::new(session, lease, plugins)))
    }
}

impl std::fmt::Debug for SandboxHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxHost").field("plugins", &self.plugins).finish_non_exhaustive()
    }
}
