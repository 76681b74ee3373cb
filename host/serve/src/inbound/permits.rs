//! Permits for what is under way.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of requests under way, as permits. A clone has the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Permits {
    free: Arc<Semaphore>,
    pub(crate) limit: u32,
}

impl Permits {
    pub(crate) fn new(limit: u32) -> Self {
        Self { free: Arc::new(Semaphore::new(limit as usize)), limit }
    }

    /// Takes a permit, which is returned when it is dropped; `None` if all are taken.
    pub(crate) fn enter(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }
}
