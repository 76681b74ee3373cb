//! Clocks that a test controls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flow::ports::{BoxFuture, Clock};

/// Tokio's time, which tests may pause.
pub struct TokioClock(tokio::time::Instant);

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        self.0.elapsed().as_millis() as u64
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

impl TokioClock {
    /// Creates a clock whose zero is now.
    pub fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A clock that stays where it is put. Waiting takes no time.
#[derive(Debug, Default)]
pub struct Still(pub AtomicU64);

impl Clock for Still {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// A clock that stays where it is put. Waits take their time.
#[derive(Debug, Default)]
pub struct Frozen(pub AtomicU64);

impl Clock for Frozen {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// A clock that moves forward by two minutes whenever it is read. Waiting takes no time.
#[derive(Debug, Default)]
pub struct Leaping(AtomicU64);

impl Clock for Leaping {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(120_000, Ordering::SeqCst)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}
