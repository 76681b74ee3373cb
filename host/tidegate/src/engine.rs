//! The WebAssembly engine, as a handle for embedders.

use sandbox::{Counts, EngineError, EngineOptions, Report, Sandbox};

/// The engine that plugins run on. A process needs one, however many hosts it has; a clone is the same engine.
#[derive(Clone, Debug)]
pub struct Engine(pub(crate) Sandbox);

impl Engine {
    /// Starts an engine: sets address space aside for its instances, and starts the thread that enforces time limits.
    ///
    /// # Errors
    /// The engine cannot run on this machine. Options that could not be met are in [`Engine::report`].
    pub fn new(options: &EngineOptions) -> Result<Self, EngineError> {
        Sandbox::new(options).map(Self)
    }

    /// The options that could not be met, with the reasons.
    pub fn report(&self) -> &Report {
        self.0.report()
    }

    /// How many components were compiled, taken from the cache on the disk, and shared between hosts.
    pub fn counts(&self) -> Counts {
        self.0.counts()
    }
}
