//! The machine's clock: what a host uses where an embedder sets no other.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flow::ports::{BoxFuture, Clock};

/// The time of this machine, and timers of the Tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        // A clock set before 1970 gives 0: a wrong time must not stop a session.
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}
