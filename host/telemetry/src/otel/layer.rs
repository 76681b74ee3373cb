//! The layer of `tracing` that turns the spans of turns into spans of traces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime};

use opentelemetry::trace::{SpanContext, SpanId, Status, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{IdGenerator as _, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::otel::export::{SCOPE, Shared};
use crate::otel::fields::Fields;
use crate::otel::genai::Kind;

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
    /// When that was, for the receiver.
    started: SystemTime,
    requests: AtomicU32,
    tools: AtomicU32,
}

/// A span that has not ended.
#[derive(Debug)]
struct Open {
    turn: Arc<Turn>,
    kind: Kind,
    id: SpanId,
    /// Invalid: that of a turn has none.
    parent: SpanId,
    start: SystemTime,
    fields: Fields,
}

impl Turn {
    fn new(fields: Fields) -> Self {
        Self {
            trace: RandomIdGenerator::default().new_trace_id(),
            fields,
            began: Instant::now(),
            started: SystemTime::now(),
            requests: AtomicU32::new(0),
            tools: AtomicU32::new(0),
        }
    }

    fn now(&self) -> SystemTime {
        self.started + self.began.elapsed()
    }

    fn counts(&self) -> Counts {
        Counts { requests: self.requests.load(Ordering::Relaxed), tools: self.tools.load(Ordering::Relaxed) }
    }
}

impl Open {
    fn new(kind: Kind, fields: Fields, parent: Option<(Arc<Turn>, SpanId)>) -> Option<Self> {
        let (turn, parent) = match (kind, parent) {
            (Kind::Turn, _) => (Arc::new(Turn::new(fields.clone())), SpanId::INVALID),
            (_, Some(above)) => above,
            // A part of a turn whose span was not wanted.
            (_, None) => return None,
        };
        match kind {
            Kind::Attempt => drop(turn.requests.fetch_add(1, Ordering::Relaxed)),
            Kind::Tool => drop(turn.tools.fetch_add(1, Ordering::Relaxed)),
            Kind::Turn | Kind::Step | Kind::Callback => {}
        }
        let id = RandomIdGenerator::default().new_span_id();
        Some(Self { kind, id, parent, start: turn.now(), fields, turn })
    }

    /// The span has ended now.
    fn export(self, shared: &Shared) {
        let Self { turn, kind, id, parent, start, fields } = self;
        let end = turn.now();
        let seconds = end.duration_since(start).unwrap_or_default().as_secs_f64();
        shared.count(kind, &fields, &turn.fields, seconds, turn.counts());
        shared.push(SpanData {
            span_context: SpanContext::new(turn.trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind: kind.span_kind(),
            name: kind.name(&fields, turn.fields.text("model")).into(),
            start_time: start,
            end_time: end,
            attributes: kind.attributes(&fields, &turn.fields),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            // Without its description, which can contain what somebody wrote.
            status: if fields.has("error") { Status::error("") } else { Status::Unset },
            instrumentation_scope: SCOPE.clone(),
        });
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
                open.fields.set(field, "cancelled".into());
            }
            open.export(&self.0);
        }
    }
}

/// Where a span is, for its children, which can begin after it has ended.
struct Place(Arc<Turn>, SpanId);
