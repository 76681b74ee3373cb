//! The layer of `tracing` that turns the spans of turns into spans of traces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::otel::export::Shared;
use crate::otel::fields::{Fields, Value};
use crate::otel::genai::Kind;
use crate::otel::ids::{self, SpanId, TraceId};
use crate::otel::otlp;

/// What a turn has had so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u32,
    pub(crate) tools: u32,
}

/// What all spans of a turn share.
#[derive(Debug)]
struct Turn {
    trace: TraceId,
    /// The fields that it had at its start.
    fields: Fields,
    /// One clock for all its spans, so that they are nested in time as they are in the tree.
    began: Instant,
    /// The start in nanoseconds since 1970-01-01 UTC.
    began_ns: u64,
    requests: AtomicU32,
    tools: AtomicU32,
}

/// A span that has not ended.
#[derive(Debug)]
struct Open {
    turn: Arc<Turn>,
    kind: Kind,
    id: SpanId,
    parent: Option<SpanId>,
    /// Nanoseconds since 1970-01-01 UTC.
    start_ns: u64,
    fields: Fields,
}

impl Turn {
    fn new(fields: Fields) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            trace: ids::trace(),
            fields,
            began: Instant::now(),
            began_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
            requests: AtomicU32::new(0),
            tools: AtomicU32::new(0),
        }
    }

    fn now_ns(&self) -> u64 {
        self.began_ns.saturating_add(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn counts(&self) -> Counts {
        Counts { requests: self.requests.load(Ordering::Relaxed), tools: self.tools.load(Ordering::Relaxed) }
    }
}

impl Open {
    fn new(kind: Kind, fields: Fields, parent: Option<(Arc<Turn>, SpanId)>) -> Option<Self> {
        let (turn, parent) = match (kind, parent) {
            (Kind::Turn, _) => (Arc::new(Turn::new(fields.clone())), None),
            (_, Some((turn, parent))) => (turn, Some(parent)),
            // A part of a turn whose span was not wanted.
            (_, None) => return None,
        };
        match kind {
            Kind::Attempt => drop(turn.requests.fetch_add(1, Ordering::Relaxed)),
            Kind::Tool => drop(turn.tools.fetch_add(1, Ordering::Relaxed)),
            Kind::Turn | Kind::Step | Kind::Callback => {}
        }
        Some(Self { kind, id: ids::span(), parent, start_ns: turn.now_ns(), fields, turn })
    }

    /// The span has ended now.
    fn export(self, shared: &Shared) {
        let Self { turn, kind, id, parent, start_ns, fields } = self;
        let end_ns = turn.now_ns();
        let seconds = end_ns.saturating_sub(start_ns) as f64 / 1e9;
        shared.count(kind, &fields, &turn.fields, seconds, turn.counts());
        let span = otlp::Span {
            trace: turn.trace,
            id,
            parent,
            name: kind.name(&fields, turn.fields.text("model")),
            is_client: kind.is_client(),
            start_ns,
            end_ns,
            attributes: kind.attributes(&fields, &turn.fields),
            has_failed: fields.has("error"),
        };
        shared.push(span.encode());
    }
}

/// Exports the spans of turns; see [`Telemetry::layer`](crate::Telemetry::layer).
pub(crate) struct SpanLayer(pub(crate) Arc<Shared>);

impl SpanLayer {
    /// The layer, which makes no other span or log line be created.
    pub(crate) fn filtered<S>(self) -> impl Layer<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let is_ours = |about: &Metadata<'_>| about.is_span() && about.target() == flow::SPANS;
        self.with_filter(filter_fn(is_ours).with_max_level_hint(LevelFilter::INFO))
    }
}

impl<S> Layer<S> for SpanLayer
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (Some(kind), Some(span)) = (Kind::of(attributes.metadata().name()), context.span(id)) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let parent = span.scope().skip(1).find_map(|parent| {
            let parent = parent.extensions();
            parent.get::<Place>().map(|place| (Arc::clone(&place.0), place.1))
        });
        if let Some(open) = Open::new(kind, fields, parent) {
            let mut extensions = span.extensions_mut();
            extensions.insert(Place(Arc::clone(&open.turn), open.id));
            extensions.insert(open);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let Some(open) = extensions.get_mut::<Open>() else { return };
        values.record(&mut open.fields);
        // The last field: what a span's handles or its children live for after that is not its time.
        if open.fields.has("outcome")
            && let Some(open) = extensions.remove::<Open>()
        {
            drop(extensions);
            open.export(&self.0);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let open = context.span(&id).and_then(|span| span.extensions_mut().remove::<Open>());
        if let Some(mut open) = open {
            // Its future was dropped before anything could be recorded.
            for field in ["error", "outcome"] {
                open.fields.set(field, Value::Text("cancelled".to_owned()));
            }
            open.export(&self.0);
        }
    }
}

/// Where a span is, for its children, which can begin after it has ended.
struct Place(Arc<Turn>, SpanId);
