//! Where the state of plugins is kept: the store that the operator, or the embedder, has chosen.

use std::path::PathBuf;
use std::sync::Arc;

use config::{StatePlace, StateSettings};
use flow::ports::{Clock, StateAdmin, StateStore};
use store::{DiskStore, MemoryStore, StoreOptions};

use crate::{Host, HostBuilder, HostError};

/// A store with both of its sides.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) sessions: Arc<dyn StateStore>,
    pub(crate) admin: Arc<dyn StateAdmin>,
    /// Whether the store is in the memory of this process.
    pub(crate) is_in_memory: bool,
}

impl Stored {
    pub(crate) fn of<S: StateStore + StateAdmin + 'static>(store: Arc<S>) -> Self {
        Self { sessions: Arc::<S>::clone(&store), admin: store, is_in_memory: false }
    }

    /// In memory, as long as this value and its clones exist.
    pub(crate) fn memory(clock: Arc<dyn Clock>) -> Self {
        Self::memory_with(StoreOptions::default(), clock)
    }

    fn memory_with(options: StoreOptions, clock: Arc<dyn Clock>) -> Self {
        Self { is_in_memory: true, ..Self::of(Arc::new(MemoryStore::new(options, clock))) }
    }

    /// The store that the operator's file names.
    ///
    /// # Errors
    /// The folder, or the URL of the server, cannot be used.
    pub(crate) fn open(settings: &StateSettings, clock: Arc<dyn Clock>) -> Result<Self, HostError> {
        let mut options = StoreOptions::default();
        options.session_ttl = settings.session_ttl;
        Ok(match &settings.place {
            StatePlace::Disk(folder) => {
                let folder = folder.clone().or_else(default_folder).ok_or(HostError::NoStateFolder)?;
                Self::of(Arc::new(DiskStore::new(folder, options, clock)?))
            }
            #[cfg(feature = "redis")]
            StatePlace::Redis(place) => {
                let redis = super::redis_place::options(place, options)?;
                Self::of(Arc::new(store::RedisStore::new(redis, clock)?))
            }
            #[cfg(not(feature = "redis"))]
            StatePlace::Redis(_) => return Err(HostError::NoRedis),
            StatePlace::Unset | StatePlace::Memory => Self::memory_with(options, clock),
        })
    }
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored").finish_non_exhaustive()
    }
}

/// `tidegate/state` in the user's state folder. `None` where the user has no home.
fn default_folder() -> Option<PathBuf> {
    crate::host::assemble::state_folder().map(|folder| folder.join("state"))
}

impl Host {
    /// Returns whether the data of sessions is lost with the process. A store of the embedder counts as persistent.
    pub(crate) fn keeps_state_in_memory(&self) -> bool {
        let shared = self.live.shared();
        shared.basis.stored.is_in_memory
    }

    /// The stored state of all sessions, for inspection. Reading needs no lease: an open session is read as far as it is durable.
    pub fn state_admin(&self) -> Arc<dyn StateAdmin> {
        Arc::clone(&self.live.shared().basis.stored.admin)
    }
}

impl HostBuilder {
    /// The stored state of all sessions, without opening the host.
    ///
    /// # Errors
    /// The store that the operator has chosen cannot be used.
    pub fn state_admin(&self) -> Result<Arc<dyn StateAdmin>, HostError> {
        Ok(self.stored()?.admin)
    }

    /// Shares the state of plugins in memory with the host that this one replaces, so that it is not lost. If the settings of the state
    /// differ, or it is not kept in memory, this has no effect.
    #[must_use]
    pub fn in_place_of(mut self, host: &Host) -> Self {
        let shared = host.live.shared();
        let stored = &shared.basis.stored;
        if self.stored.is_none() && stored.is_in_memory && shared.operator.state == self.operator.state {
            self.stored = Some(stored.clone());
        }
        self
    }

    /// The store of the embedder, or else of the operator.
    pub(crate) fn stored(&self) -> Result<Stored, HostError> {
        match &self.stored {
            Some(stored) => Ok(stored.clone()),
            None => {
                self.check_state()?;
                Stored::open(&self.operator.state, Arc::clone(&self.clock))
            }
        }
    }
}
