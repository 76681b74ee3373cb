//! The options of all backends.

use std::time::Duration;

/// Settings of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// How long the state of a session is kept after the end of its last turn. Default: 30 days.
    pub session_ttl: Duration,
    /// How this process is named where another one is refused. Default: its number and the name of the machine.
    pub owner: String,
}

impl Default for StoreOptions {
    fn default() -> Self {
        let machine = rustix::system::uname();
        let owner = format!("process {} on {}", std::process::id(), machine.nodename().to_string_lossy());
        Self { session_ttl: Duration::from_secs(30 * 24 * 60 * 60), owner }
    }
}

impl StoreOptions {
    pub(crate) fn session_ttl_ms(&self) -> u64 {
        u64::try_from(self.session_ttl.as_millis()).unwrap_or(u64::MAX)
    }
}
