//! Between the spans of turns and their receiver: the queue of the SDK, an exporter that counts, and the task that sends metrics.
//!
//! Nothing that a turn does waits for them: where the queue is full, the SDK drops a span. It reports that nowhere, so that both ends are
//! counted here: what goes in, and what the receiver has accepted.

use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use opentelemetry::InstrumentationScope;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanExporter, SpanProcessor as _};
use prost::Message as _;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::Metrics;
use crate::otel::fields::Fields;
use crate::otel::genai::Kind;
use crate::otel::http::Sender;
use crate::otel::instruments::Instruments;
use crate::otel::layer::Counts;
use crate::otel::ledger::{Ledger, Signal, lock};
use crate::otel::numbers::{self, Period};
use crate::otel::settings::{Settings, Target};

/// The most spans that wait for the receiver, each of about a kilobyte.
pub(crate) const QUEUE: usize = 8192;
/// The most spans of one request.
const BATCH: usize = 512;
/// Spans wait at most so long for others to be sent with, while the receiver answers.
const DELAY: Duration = Duration::from_secs(5);

/// The scope that everything is in.
pub(crate) static SCOPE: LazyLock<InstrumentationScope> =
    LazyLock::new(|| InstrumentationScope::builder("tidegate").with_version(env!("CARGO_PKG_VERSION")).build());

/// What the layer writes.
#[derive(Debug)]
pub(crate) struct Shared {
    settings: Settings,
    pub(crate) metrics: Metrics,
    started: SystemTime,
    instruments: Mutex<Instruments>,
    /// `None`: no traces are exported.
    queue: Option<BatchSpanProcessor>,
    pub(crate) ledger: Arc<Ledger>,
}

impl Shared {
    /// The requests are made by tasks of `runtime`.
    pub(crate) fn new(settings: Settings, metrics: Metrics, runtime: &Handle) -> Arc<Self> {
        let ledger = Arc::new(Ledger::default());
        let queue = settings.traces.clone().map(|target| {
            let resource = ResourceAttributesWithSchema { attributes: numbers::resource(&settings), schema_url: None };
            let (sender, ledger) = (Arc::new(Sender::new(target)), Arc::clone(&ledger));
            let config = BatchConfigBuilder::default();
            let config =
                config.with_max_queue_size(QUEUE).with_max_export_batch_size(BATCH).with_scheduled_delay(DELAY);
            BatchSpanProcessor::new(Exporter { sender, resource, ledger, runtime: runtime.clone() }, config.build())
        });
        Arc::new(Self { settings, metrics, started: SystemTime::now(), instruments: Mutex::default(), queue, ledger })
    }

    /// Queues a span. Never waits.
    pub(crate) fn push(&self, span: SpanData) {
        let Some(queue) = &self.queue else { return };
        let mut state = self.ledger.state();
        state.ended += 1;
        if self.ledger.is_finishing() {
            state.cause = Some("they ended after the export was finished".to_owned());
        } else {
            queue.on_end(span);
        }
    }

    /// Counts a span that has ended.
    pub(crate) fn count(&self, kind: Kind, fields: &Fields, turn: &Fields, seconds: f64, counts: Counts) {
        lock(&self.instruments).count(kind, fields, turn, seconds, counts);
    }

    /// Sends the spans that wait, and waits for the receiver at most so long.
    pub(crate) fn flush(&self, patience: Duration) {
        if let Some(queue) = &self.queue {
            // What it returns is in the ledger.
            let _ = queue.shutdown_with_timeout(patience);
        }
    }

    fn body_of_metrics(&self) -> Bytes {
        let period = Period { start: self.started, now: SystemTime::now() };
        numbers::request(&self.settings, period, &self.metrics.points(), &lock(&self.instruments))
            .encode_to_vec()
            .into()
    }

    pub(crate) fn metrics_target(&self) -> Option<Target> {
        self.settings.metrics.clone()
    }
}

/// Sends spans, and counts those that the receiver has accepted.
#[derive(Debug)]
struct Exporter {
    sender: Arc<Sender>,
    resource: ResourceAttributesWithSchema,
    ledger: Arc<Ledger>,
    /// The queue is emptied by a thread of its own, which is in no runtime.
    runtime: Handle,
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        let resource_spans = group_spans_by_resource_and_scope(batch, &self.resource);
        let body = Bytes::from(ExportTraceServiceRequest { resource_spans }.encode_to_vec());
        let (sender, finishing) = (Arc::clone(&self.sender), self.ledger.finishing());
        let delivery = self.runtime.spawn(async move { sender.deliver(|| body.clone(), finishing).await });
        let answer =
            delivery.await.unwrap_or_else(|_| Err("the runtime that they were sent from has ended".to_owned()));
        let partial = |response: &Bytes| ExportTraceServiceResponse::decode(response.clone()).ok()?.partial_success;
        let mut state = self.ledger.state();
        let rejected = match answer {
            Ok(response) => partial(&response).map(|it| (it.rejected_spans, self.sender.rejection(&it.error_message))),
            Err(cause) => Some((i64::MAX, cause)),
        };
        let Some((rejected, cause)) = rejected.filter(|(rejected, _)| *rejected > 0) else {
            state.accepted += count;
            drop(state);
            self.ledger.ended(Signal::Spans, None);
            return Ok(());
        };
        state.accepted += count.saturating_sub(rejected.unsigned_abs());
        state.cause = Some(cause.clone());
        drop(state);
        self.ledger.ended(Signal::Spans, Some(&cause));
        Err(OTelSdkError::InternalFailure(cause))
    }
}

/// Sends the metrics at each interval, and a last time when the export is finished.
pub(crate) async fn send_metrics(shared: Arc<Shared>, target: Target) {
    let (sender, mut finishing) = (Sender::new(target), shared.ledger.finishing());
    loop {
        let is_last = timeout(shared.settings.interval, finishing.wait_for(|is| *is)).await.is_ok();
        let answer = sender.deliver(|| shared.body_of_metrics(), finishing.clone()).await;
        let partial = |response: Bytes| ExportMetricsServiceResponse::decode(response).ok()?.partial_success;
        let cause = match answer {
            Ok(response) => {
                partial(response).filter(|it| it.rejected_data_points > 0).map(|it| sender.rejection(&it.error_message))
            }
            Err(cause) => Some(cause),
        };
        shared.ledger.ended(Signal::Metrics, cause.as_deref());
        shared.ledger.state().metrics_cause = cause;
        if is_last {
            return;
        }
    }
}
