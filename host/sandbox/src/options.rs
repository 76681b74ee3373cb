//! What an engine is made with, and what it reports: also known to a build that has none.

use std::path::PathBuf;
use std::time::Duration;

/// How to make a [`Sandbox`](crate::Sandbox).
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Where compiled components are kept. `None`: every start compiles. The folder is made where it does not exist; it
    /// must belong to the user and be closed to everybody else, or it is not used and [`EngineReport::cache`] has the reason.
    pub cache_dir: Option<PathBuf>,
    /// How many instances there may be at once, at least 1. A plugin has one in each session that used it within the last minute, and
    /// another one for each `ttsr_triggered` that runs. Where all are taken, a call gets that of an idle session; where a call runs in
    /// each, it waits for [`EngineOptions::instance_wait`]. Address space is set aside for them, about 4 GiB each; where the system
    /// refuses it, memory is taken as it is needed, which is slower, and [`EngineReport::pooling`] reports this. Each also has a stack that is
    /// set up at start, 4 µs each: ask for no more than will be used where a process must start fast.
    pub max_instances: u32,
    /// How long a call waits for an instance. What it was to check is not shown then, and its turn ends: that all instances are in use
    /// is no failure of the plugin.
    pub instance_wait: Duration,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self { cache_dir: None, max_instances: 4096, instance_wait: Duration::from_secs(10) }
    }
}

/// What of the options could not be had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineReport {
    /// Why instances are not pooled.
    pub pooling: Option<String>,
    /// Why compiled components are not kept.
    pub cache: Option<String>,
}

/// How often something was compiled, and how often it was found compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCounts {
    /// Components that were compiled, not loaded from the cache.
    pub compiled: u64,
    /// Components taken from the cache.
    pub loaded: u64,
    /// Components that another host of the same engine had compiled or taken from the cache.
    pub shared: u64,
}

/// The engine could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// wasmtime refuses its settings on this machine.
    #[cfg(feature = "wasm")]
    #[error("the WebAssembly engine cannot run on this machine: {0:#}")]
    Settings(wasmtime::Error),
    /// The thread that enforces time limits could not be started.
    #[error("the thread that enforces time limits could not be started: {0}")]
    Ticker(std::io::Error),
}

/// How many instances an engine has, and how often that was too few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InstanceCounts {
    /// Instances that exist now, idle ones included.
    pub in_use: u64,
    /// The most that may exist at once.
    pub limit: u64,
    /// Calls that are waiting for one now.
    pub waiting: u64,
    /// Calls so far that had to wait, because a call was running in each instance.
    pub waits: u64,
    /// Idle instances so far that were dropped for a call of another session or plugin.
    pub reclaimed: u64,
}
