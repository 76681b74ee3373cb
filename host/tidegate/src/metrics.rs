//! Numbers about all sessions of a host, for Prometheus and OpenMetrics; with the feature `metrics-server` an endpoint that serves them,
//! and with the feature `otel` the export to OpenTelemetry.

pub use flow::SPANS;
pub use telemetry::{
    InstanceNumbers, METRICS, MetricInfo, MetricKind, MetricPoint, MetricValue, Metrics, SessionMetrics,
};
#[cfg(feature = "otel")]
pub use telemetry::{LostTelemetry, OtelError, Telemetry};
#[cfg(feature = "metrics-server")]
pub use telemetry::{MetricsServer, ServeError};
