//! The export of a program that is built without the feature `otel`: a notice.

use tidegate::metrics::Metrics;
use tracing_subscriber::layer::Identity;

use super::has_turns;
use crate::args::Command;
use crate::say;

/// The variables that name a receiver.
const ENDPOINTS: [&str; 3] =
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"];

/// The export that this program does not have.
pub(crate) struct Export;

impl Export {
    /// Says so where the environment asks for one.
    pub(crate) fn start(command: &Command) -> Self {
        let is_set = |name: &&str| tidegate::environment::variable(name).is_some_and(|value| !value.is_empty());
        if has_turns(command)
            && let Some(name) = ENDPOINTS.iter().find(|name| is_set(name))
        {
            say::note(format_args!(
                "warning: {name} is set, but this program was built without OpenTelemetry, so nothing is exported; \
                 build it with `--features otel`"
            ));
        }
        Self
    }

    pub(crate) fn layer(&self) -> Option<Identity> {
        None
    }

    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        None
    }

    pub(crate) async fn finish(self) {}
}
