//! The backends as places: several stores can use one, as several processes do.

use std::sync::Arc;
use std::time::Duration;

use flow::ports::{Clock, StateAdmin, StateStore};
use tidegate_servers::{RedisCluster, RedisServer};
use tidegate_store::{DiskStore, MemoryStore, RedisOptions, RedisStore, StoreOptions};

use crate::support::Writer;

/// Both ports of a store.
pub(crate) trait Store: StateStore + StateAdmin {}
impl<S: StateStore + StateAdmin> Store for S {}

/// A place where state is kept.
pub(crate) trait Place: Sync {
    /// Returns a store as another process would make it.
    fn store_of(&self, owner: &str, clock: Arc<dyn Clock>) -> Arc<dyn Store>;

    fn store(&self, clock: &Arc<crate::support::TestClock>) -> Arc<dyn Store> {
        let clock: Arc<dyn Clock> = clock.clone();
        self.store_of("the test", clock)
    }

    /// Whether a lease ends by time, rather than with its process.
    fn leases_expire(&self) -> bool {
        false
    }

    /// Starts a process that writes to the session `killed`; `None` where no other process can.
    fn writer(&self) -> Option<Writer>;
}

fn options(owner: &str) -> StoreOptions {
    let mut options = StoreOptions::default();
    options.owner = owner.to_owned();
    options
}

pub(crate) struct Memory {
    /// Clones share what is kept.
    store: std::sync::Mutex<Option<MemoryStore>>,
}

impl Memory {
    pub(crate) fn start() -> Self {
        Self { store: std::sync::Mutex::default() }
    }
}

impl Place for Memory {
    fn store_of(&self, owner: &str, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let mut store = self.store.lock().unwrap();
        let store = store.get_or_insert_with(|| MemoryStore::new(StoreOptions::default(), Arc::clone(&clock)));
        Arc::new(store.with(options(owner), clock))
    }

    fn writer(&self) -> Option<Writer> {
        None
    }
}

pub(crate) struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    pub(crate) fn start() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }
}

impl Place for Disk {
    fn store_of(&self, owner: &str, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        Arc::new(DiskStore::new(self.folder.path(), options(owner), clock).unwrap())
    }

    fn writer(&self) -> Option<Writer> {
        Some(Writer::start(&["disk", self.folder.path().to_str().unwrap()]))
    }
}

pub(crate) struct Redis {
    server: RedisServer,
}

impl Redis {
    pub(crate) fn start() -> Self {
        Self { server: RedisServer::start().unwrap() }
    }
}

impl Place for Redis {
    fn store_of(&self, owner: &str, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let mut redis = RedisOptions::new(self.server.url());
        redis.timeout = Duration::from_secs(20);
        redis.store = options(owner);
        Arc::new(RedisStore::new(redis, clock).unwrap())
    }

    fn leases_expire(&self) -> bool {
        true
    }

    fn writer(&self) -> Option<Writer> {
        Some(Writer::start(&["redis", &self.server.url(), "1000"]))
    }
}

pub(crate) struct Cluster {
    cluster: RedisCluster,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self { cluster: RedisCluster::start(0).unwrap() }
    }

    /// Removes what the case before has left; `next` is shown if this fails.
    pub(crate) fn clear(&mut self, next: &str) {
        for node in self.cluster.nodes() {
            node.command(&["FLUSHALL"]).unwrap_or_else(|error| panic!("{next}: {error}"));
        }
    }
}

impl Place for Cluster {
    fn store_of(&self, owner: &str, clock: Arc<dyn Clock>) -> Arc<dyn Store> {
        let mut redis = RedisOptions::new(self.cluster.url());
        redis.timeout = Duration::from_secs(20);
        redis.store = options(owner);
        Arc::new(RedisStore::new(redis, clock).unwrap())
    }

    fn leases_expire(&self) -> bool {
        true
    }

    fn writer(&self) -> Option<Writer> {
        Some(Writer::start(&["redis", &self.cluster.url(), "1000"]))
    }
}
