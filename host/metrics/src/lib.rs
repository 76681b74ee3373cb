//! What extensions, rules, model requests and tools do, in numbers for operators: from events to Prometheus text.
//!
//! [`Metrics`] is shared by as many sessions as wanted, also of several hosts. Each session is observed through a
//! [`SessionMetrics`], which gets the session's events in order. There is no global registry: numbers of two [`Metrics`] never
//! mix. The names, labels and buckets are in one table, [`METRICS`].
//!
//! ```
//! use flow::{Event, EventKind, RunPosition, TurnStatus};
//! let metrics = tidegate_metrics::Metrics::new();
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
mod labels;
mod registry;
#[cfg(feature = "serve")]
mod serve;
mod session;
mod snapshot;
mod text;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use catalogue::{METRICS, MetricInfo, MetricKind};
#[cfg(feature = "serve")]
pub use serve::{MetricsServer, ServeError};
pub use session::SessionMetrics;
pub use snapshot::{MetricPoint, MetricValue};

use registry::Registry;
use text::Format;

/// The numbers of the sessions that are observed. A clone is the same numbers.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Registry>>);

impl Metrics {
    /// Metrics of which nothing was counted yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to observe a session, which counts as open until the returned value is dropped.
    pub fn session(&self) -> SessionMetrics {
        SessionMetrics::new(self.clone())
    }

    /// Returns the numbers in the text format of Prometheus, version 0.0.4. A series is there from its first event on.
    pub fn prometheus(&self) -> String {
        text::render(&self.lock(), Format::Prometheus)
    }

    /// Returns the numbers in the OpenMetrics text format, version 1.0.0. The series are those of [`Metrics::prometheus`].
    pub fn openmetrics(&self) -> String {
        text::render(&self.lock(), Format::OpenMetrics)
    }

    /// Numbers are valid after every statement, so a panic elsewhere does not matter.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
