//! The WebAssembly engine, as a handle for embedders.

use sandbox::{EngineCounts, EngineError, EngineOptions, EngineReport, InstanceCounts, Sandbox};
use telemetry::{InstanceNumbers, Metrics};

use crate::HostError;

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
    pub fn report(&self) -> &EngineReport {
        self.0.report()
    }

    /// How many instances of plugins there are, and how often that was too few.
    pub fn instances(&self) -> InstanceCounts {
        self.0.instances()
    }

    /// # Errors
    /// Calls wait for an instance: a session more would take from those that are open.
    pub(crate) fn admit(&self) -> Result<(), HostError> {
        admit(self.instances())
    }

    /// Has the metrics ask for the numbers of instances. Hosts that share the engine have it asked once.
    pub(crate) fn counted_in(&self, metrics: &Metrics) {
        let counts = self.0.watch_instances();
        let instances = move || {
            let InstanceCounts { in_use, limit, waits, reclaimed, .. } = counts()?;
            Some(InstanceNumbers { in_use, limit, waits, reclaimed })
        };
        metrics.watch_instances(self.0.id(), instances);
    }

    /// How many components were compiled, taken from the cache on the disk, and shared between hosts.
    pub fn counts(&self) -> EngineCounts {
        self.0.counts()
    }
}

fn admit(counts: InstanceCounts) -> Result<(), HostError> {
    match counts {
        InstanceCounts { waiting: 0, .. } => Ok(()),
        InstanceCounts { waiting, limit, .. } => Err(HostError::NoInstance { limit, waiting }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use sandbox::InstanceCounts;

    use super::admit;

    #[test]
    fn no_session_is_opened_while_calls_wait_for_an_instance() {
        let mut counts = InstanceCounts::default();
        (counts.in_use, counts.limit, counts.waits) = (8, 8, 100);
        admit(counts).unwrap();
        counts.waiting = 2;
        let refused = admit(counts).unwrap_err();
        let expected = "no session can be opened now: all 8 instances of plugins are in use, and 2 calls wait for one";
        assert_eq!((refused.to_string().as_str(), refused.code().unwrap().as_str()), (expected, "host-instances"));
        assert!(refused.hint().unwrap().contains("raise `instances` under `[limits]`"));
    }
}
