//! What extensions, rules, model requests and tools do, for operators: numbers, from events to Prometheus text, and with the feature
//! `otel` the export of them and of traces to OpenTelemetry (`otel`).
//!
//! [`Metrics`] is shared by as many sessions as wanted, also of several hosts. Each session is observed through a
//! [`SessionMetrics`], which gets the session's events in order. There is no global registry: numbers of two [`Metrics`] never
//! mix. The names, labels and buckets are in one table, [`METRICS`].
//!
//! ```
//! use flow::{Event, EventKind, RunPosition, TurnStatus};
//! let metrics = tidegate_telemetry::Metrics::new();
//! let mut session = metrics.session();
//! let kind = EventKind::TurnFinish { status: TurnStatus::Completed };
//! session.observe(&Event::new(0, 0, RunPosition::default(), kind));
//! assert!(metrics.prometheus().contains("turn_total{status=\"completed\"} 1\n"));
//! ```
//!
//! The formats are written here and not by a library: `metrics-exporter-prometheus` writes one of the two and `prometheus-client`
//! the other. What is left then (bounded label values, the breakers of many sessions, an order that does not change) is ours in any
//! case.
#![forbid(unsafe_code)]

mod catalogue;
mod file;
mod gateway;
mod labels;
mod names;
#[cfg(feature = "otel")]
mod otel;
mod registry;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod snapshot;
mod text;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::{BreakerState, PluginId};

pub use catalogue::{METRICS, MetricInfo, MetricKind};
#[cfg(feature = "otel")]
pub use otel::{LostTelemetry, OtelError, Telemetry};
#[cfg(feature = "serve")]
pub use serve::{MetricsServer, ServeError};
pub use session::SessionMetrics;
pub use snapshot::{MetricPoint, MetricValue};

use registry::Registry;
use text::Format;

/// The numbers of the sessions that are observed. A clone is the same numbers.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Shared>);

#[derive(Default)]
struct Shared {
    registry: Mutex<Registry>,
    /// The circuit breakers that extensions have for all sessions. Never locked while `registry` is.
    breakers: Mutex<Vec<Breaker>>,
    /// By engine: what gives the numbers of its instances. Never locked while `registry` is.
    instances: Mutex<BTreeMap<u64, ReadInstances>>,
}

/// How many instances of extensions an engine has, and how often that was too few.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstanceNumbers {
    /// Instances that exist now, idle ones included.
    pub in_use: u64,
    /// The most that may exist at once.
    pub limit: u64,
    /// Calls that had to wait for one.
    pub waits: u64,
    /// Idle instances that were dropped for another call.
    pub reclaimed: u64,
}

/// `None`: the engine is gone.
type ReadInstances = Box<dyn Fn() -> Option<InstanceNumbers> + Send + Sync>;

/// A circuit breaker that an extension has for all sessions.
struct Breaker {
    extension: PluginId,
    state: Box<dyn Fn() -> Option<BreakerState> + Send + Sync>,
}

impl Metrics {
    /// Metrics of which nothing was counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to observe a session, which counts as open until the returned value is dropped.
    pub fn session(&self) -> SessionMetrics {
        SessionMetrics::new(self.clone())
    }

    /// Includes a circuit breaker that an extension has for all sessions in the gauge of its state.
    ///
    /// No session knows that breaker's state: another session can have changed it, and a reloaded extension has another one. So `state`
    /// is called whenever the numbers are read, until it returns `None`. It must take no lock under which a session's events are emitted.
    pub fn watch_breaker(
        &self,
        extension: &PluginId,
        state: impl Fn() -> Option<BreakerState> + Send + Sync + 'static,
    ) {
        let mut breakers = self.0.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.retain(|breaker| (breaker.state)().is_some());
        breakers.push(Breaker { extension: extension.clone(), state: Box::new(state) });
    }

    /// Includes the instances of an engine in their gauges and counters, once for each `engine`. `numbers` is called whenever the numbers
    /// are read, until it returns `None`. It must take no lock under which a session's events are emitted.
    pub fn watch_instances(&self, engine: u64, numbers: impl Fn() -> Option<InstanceNumbers> + Send + Sync + 'static) {
        let mut engines = self.0.instances.lock().unwrap_or_else(PoisonError::into_inner);
        engines.entry(engine).or_insert_with(|| Box::new(numbers));
    }

    /// The instances of all engines that exist; `None`: none was ever watched.
    fn instances(&self) -> Option<InstanceNumbers> {
        let mut sum = None;
        for numbers in self.0.instances.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let numbers = numbers().unwrap_or_default();
            let all: &mut InstanceNumbers = sum.get_or_insert_default();
            all.in_use += numbers.in_use;
            all.limit = all.limit.saturating_add(numbers.limit);
            all.waits += numbers.waits;
            all.reclaimed += numbers.reclaimed;
        }
        sum
    }

    /// Returns the numbers in the text format of Prometheus, version 0.0.4. A series is there from its first event on.
    pub fn prometheus(&self) -> String {
        text::render(&self.read(), Format::Prometheus)
    }

    /// Returns the numbers in the OpenMetrics text format, version 1.0.0. The series are those of [`Metrics::prometheus`].
    pub fn openmetrics(&self) -> String {
        text::render(&self.read(), Format::OpenMetrics)
    }

    /// The numbers with the present states of the breakers that are watched.
    pub(crate) fn read(&self) -> MutexGuard<'_, Registry> {
        let mut worst: BTreeMap<PluginId, BreakerState> = BTreeMap::new();
        let mut breakers = self.0.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.retain(|Breaker { extension, state }| {
            let state = state();
            if let Some(state) = state {
                let of_extension = worst.entry(extension.clone()).or_insert(state);
                *of_extension = state.max(*of_extension);
            }
            state.is_some()
        });
        drop(breakers);
        let instances = self.instances();
        let mut registry = self.lock();
        registry.host_breakers(&worst);
        registry.instances(instances);
        registry
    }

    /// Numbers are valid after every statement, so a panic elsewhere does not matter.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("registry", &self.registry)
            .field("breakers", &self.breakers)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breaker").field("extension", &self.extension).field("state", &(self.state)()).finish()
    }
}
