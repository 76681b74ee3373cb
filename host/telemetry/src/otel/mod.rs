//! Exports the turns of sessions to OpenTelemetry: traces and metrics, over OTLP/HTTP.
//!
//! [`Telemetry::layer`] is a layer of `tracing`: the spans that `turn` makes become spans of traces, under the names of the
//! conventions for generative AI (`genai`). When a span ends, it is counted (`instruments`) and queued in the batch processor of the SDK of
//! OpenTelemetry; its thread has the exporter here (`export`) send what is queued, as the protocol's generated messages, with the client of
//! `net` (`http`). A task sends the metrics (`numbers`). Nothing of a turn waits for either.

mod export;
mod fields;
mod genai;
mod http;
mod instruments;
mod layer;
mod ledger;
mod numbers;
mod settings;

use std::sync::Arc;
use std::time::Duration;

use system::environment;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use crate::Metrics;
use export::Shared;
use layer::SpanLayer;
use settings::Settings;

/// How long the end of a program waits for its receiver.
const FINISH: Duration = Duration::from_secs(5);

/// Exports the turns of a program to an OpenTelemetry receiver until it is finished. What was not exported when it is dropped is lost.
#[derive(Debug)]
pub struct Telemetry {
    shared: Arc<Shared>,
    /// `None`: no metrics are exported.
    metrics: Option<JoinHandle<()>>,
}

/// A variable cannot be used, so nothing is exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {cause}")]
#[non_exhaustive]
pub struct OtelError {
    /// The name of the variable, or what is missing.
    pub variable: String,
    /// What is wrong with it, and what to do.
    pub cause: String,
}

/// Some of the telemetry did not reach its receiver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
#[non_exhaustive]
pub struct LostTelemetry {
    /// The number of spans that were not exported.
    pub spans: u64,
    /// The number of spans that have ended.
    pub ended: u64,
    /// Whether the last state of the metrics was not exported.
    pub metrics: bool,
    /// Why the last of it was not exported.
    pub cause: String,
}

impl OtelError {
    fn new(variable: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { variable: variable.into(), cause: cause.into() }
    }
}

impl LostTelemetry {
    fn sentence(&self) -> String {
        let what = match (self.spans, self.metrics) {
            (0, _) => "the metrics".to_owned(),
            (spans, false) => format!("{spans} of {} spans", self.ended),
            (spans, true) => format!("{spans} of {} spans and the metrics", self.ended),
        };
        format!("{what} were not exported: {}", self.cause)
    }
}

impl Telemetry {
    /// Begins to export where the standard variables of OpenTelemetry name an endpoint; `None`: they name none. The requests are
    /// made by a task of the Tokio runtime that this is called in.
    ///
    /// # Errors
    /// A variable cannot be used, or there is no runtime.
    pub fn from_env() -> Result<Option<Self>, OtelError> {
        Self::from_env_to(&|_| Ok(()))
    }

    /// As [`Telemetry::from_env`], where `permits` decides about each endpoint, or says why nothing is sent there.
    ///
    /// # Errors
    /// As [`Telemetry::from_env`], or an endpoint is not permitted.
    pub fn from_env_to(permits: &dyn Fn(&str) -> Result<(), String>) -> Result<Option<Self>, OtelError> {
        // A value that is not UTF-8 would count as none, and nothing would be exported without a word.
        let not_utf8 = |name: &&&str| environment::variable(name).is_some_and(|value| value.to_str().is_none());
        if let Some(name) = settings::NAMES.iter().find(not_utf8) {
            return Err(OtelError::new(*name, "this is not UTF-8: set it again"));
        }
        let variable = |name: &str| environment::variable(name).and_then(|value| value.into_string().ok());
        let Some(settings) = Settings::read(&variable)? else { return Ok(None) };
        for target in settings.traces.iter().chain(&settings.metrics) {
            permits(target.url.as_str()).map_err(|why| OtelError::new("OTEL_EXPORTER_OTLP_ENDPOINT", why))?;
        }
        Self::start(settings).map(Some)
    }

    /// As [`Telemetry::from_env`], with variables from elsewhere.
    ///
    /// # Errors
    /// As [`Telemetry::from_env`].
    pub fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, OtelError> {
        Settings::read(variable)?.map(Self::start).transpose()
    }

    fn start(settings: Settings) -> Result<Self, OtelError> {
        let runtime = Handle::try_current().map_err(|_| {
            OtelError::new("the Tokio runtime", "there is none to export from: call this inside of a runtime")
        })?;
        let shared = Shared::new(settings, Metrics::new(), &runtime);
        let metrics = shared.metrics_target();
        let metrics = metrics.map(|target| runtime.spawn(export::send_metrics(Arc::clone(&shared), target)));
        Ok(Self { shared, metrics })
    }

    /// The layer that exports spans, for the subscriber of the program. It wants the spans of turns and nothing else, so other
    /// layers have no more to do than without it.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        SpanLayer(Arc::clone(&self.shared)).filtered()
    }

    /// The metrics that are exported, for `HostBuilder::metrics` of the crate `tidegate`. They can be served to Prometheus at the
    /// same time.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Exports what has not been exported yet. Waits for the receiver, but not longer than 5 seconds. Spans that end later are lost.
    ///
    /// # Errors
    /// Something could not be exported since the beginning.
    pub async fn finish(mut self) -> Result<(), LostTelemetry> {
        self.shared.ledger.finish();
        // At the same time: a receiver that does not answer must not use up the other's time.
        let (shared, (sent, spans)) = (Arc::clone(&self.shared), oneshot::channel::<()>());
        let flush = move || {
            shared.flush(FINISH);
            drop(sent);
        };
        // Not by a task that blocks: the end of a runtime would wait for it. Without a thread the spans are lost, and reported.
        drop(std::thread::Builder::new().name("telemetry".to_owned()).spawn(flush));
        let metrics = async {
            if let Some(task) = &mut self.metrics {
                let _ = task.await;
            }
        };
        let in_time = timeout(FINISH, async { tokio::join!(spans, metrics) }).await.is_ok();
        let is_late = self.metrics.as_ref().is_some_and(|task| !task.is_finished());
        let late = (!in_time).then(|| (format!("the receiver took more than {} s", FINISH.as_secs()), is_late));
        self.shared.ledger.lost(late).map_or(Ok(()), Err)
    }
}

impl Drop for Telemetry {
    /// What was not exported is lost. [`Telemetry::finish`] has reported it already.
    fn drop(&mut self) {
        if let Some(task) = &self.metrics {
            task.abort();
        }
        let ledger = &self.shared.ledger;
        if !ledger.is_finishing() {
            ledger.finish();
            if let Some(LostTelemetry { spans: spans @ 1.., ended, .. }) = ledger.lost(None) {
                tracing::warn!(
                    "{spans} of {ended} spans were not exported: the telemetry was dropped and not finished"
                );
            }
        }
    }
}
