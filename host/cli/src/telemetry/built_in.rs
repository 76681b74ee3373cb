//! The export of a program that is built with the feature `otel`.

use tidegate::metrics::{Metrics, Telemetry};
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use super::has_turns;
use crate::args::Command;
use crate::say;

/// Whether the policy of the machine permits an endpoint.
fn permits(url: &str) -> Result<(), String> {
    let policy = tidegate::config::machine_policy().map_err(|found| found.in_one_line())?;
    policy.map_or(Ok(()), |policy| policy.check_address("telemetry", url)).map_err(|found| found.in_one_line())
}

/// The export, where one is asked for.
pub(crate) struct Export(Option<Telemetry>);

impl Export {
    /// Begins to export if the command runs turns. Called inside of the runtime.
    pub(crate) fn start(command: &Command) -> Self {
        let telemetry = if has_turns(command) { Telemetry::from_env_to(&permits) } else { Ok(None) };
        Self(telemetry.unwrap_or_else(|error| {
            say::note(format_args!("warning: nothing is exported to OpenTelemetry: {error}"));
            None
        }))
    }

    /// What the subscriber of the program needs.
    pub(crate) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: tracing::Subscriber + for<'span> LookupSpan<'span>,
    {
        self.0.as_ref().map(Telemetry::layer)
    }

    /// The metrics that are exported.
    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.0.as_ref().map(Telemetry::metrics)
    }

    /// Exports the rest, and says once what could not be exported. The exit code is that of the turns.
    pub(crate) async fn finish(self) {
        let Some(telemetry) = self.0 else { return };
        if let Err(lost) = telemetry.finish().await {
            say::note(format_args!("warning: OpenTelemetry: {lost}"));
        }
    }
}
