//! A subscriber that keeps the spans of turns, with what must be true of them however a turn ends.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// A span as it was recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) name: &'static str,
    /// The place of its parent in the list.
    pub(crate) parent: Option<usize>,
    pub(crate) fields: BTreeMap<&'static str, String>,
    /// The number of spans that had begun or ended before it ended.
    ended: Option<usize>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Arc<Mutex<(Vec<Span>, usize)>>);

/// What a span of the registry is in the list.
struct Index(usize);

impl Visit for Span {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // How long it took is no matter of this test.
        let value = if field.name() == "first_chunk_s" { "…".to_owned() } else { format!("{value:?}") };
        assert!(self.fields.insert(field.name(), value).is_none(), "{} is recorded twice", field.name());
    }
}

impl<S> Layer<S> for Spans
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent().and_then(|parent| parent.extensions().get::<Index>().map(|index| index.0));
        let mut new = Span { name: attributes.metadata().name(), parent, ..Span::default() };
        attributes.record(&mut new);
        let (spans, clock) = &mut *self.0.lock().unwrap();
        span.extensions_mut().insert(Index(spans.len()));
        spans.push(new);
        *clock += 1;
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let index = context.span(id).unwrap().extensions().get::<Index>().unwrap().0;
        let (spans, clock) = &mut *self.0.lock().unwrap();
        assert_eq!(spans[index].ended, None, "the outcome is the last field: {:?}", spans[index]);
        values.record(&mut spans[index]);
        if spans[index].fields.contains_key("outcome") {
            *clock += 1;
            spans[index].ended = Some(*clock);
        }
    }
}

/// One test runs at a time, and what it sets is over when this is dropped: a thread that comes to a span first, while another one sets its
/// subscriber, can keep that one from getting it.
pub(crate) struct Alone {
    // Dropped in this order.
    _subscriber: Option<DefaultGuard>,
    _lock: MutexGuard<'static, ()>,
}

/// Waits until no other test runs.
pub(crate) fn alone() -> Alone {
    static ONE: Mutex<()> = Mutex::new(());
    Alone { _subscriber: None, _lock: ONE.lock().unwrap_or_else(PoisonError::into_inner) }
}

fn alone_with(subscriber: impl Into<tracing::Dispatch>) -> Alone {
    let alone = alone();
    Alone { _subscriber: Some(tracing::dispatcher::set_default(&subscriber.into())), ..alone }
}

impl Spans {
    /// Keeps the spans of this thread until the guard is dropped.
    pub(crate) fn keep() -> (Self, Alone) {
        let spans = Self::default();
        let guard = alone_with(Registry::default().with(spans.clone()));
        (spans, guard)
    }

    /// All spans since the last time: each has ended, and none before a span inside of it.
    pub(crate) fn take(&self, context: &str) -> Vec<Span> {
        let spans = std::mem::take(&mut self.0.lock().unwrap().0);
        for span in &spans {
            let Some(ended) = span.ended else { panic!("{context}: {span:?} has not ended") };
            match span.parent {
                None => assert_eq!(span.name, "turn", "{context}"),
                Some(parent) => {
                    // Nothing waits for a notice.
                    let is_notice =
                        span.fields.get("callback").is_some_and(|callback| callback.contains("ttsr_triggered"));
                    assert!(
                        is_notice || spans[parent].ended > Some(ended),
                        "{context}: {span:?} outlives {:?}",
                        spans[parent]
                    );
                }
            }
        }
        spans
    }
}

/// The tree of spans, a line each with its fields.
pub(crate) fn tree(spans: &[Span]) -> String {
    fn write(spans: &[Span], parent: Option<usize>, depth: usize, text: &mut String) {
        for (index, span) in spans.iter().enumerate().filter(|(_, span)| span.parent == parent) {
            let fields: String = span.fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
            text.push_str(&format!("{}{}{fields}\n", "  ".repeat(depth), span.name));
            write(spans, Some(index), depth + 1, text);
        }
    }
    let mut text = String::new();
    write(spans, None, 0, &mut text);
    text
}

/// What is logged on this thread under a filter such as `warn`, until the guard is dropped.
pub(crate) fn logged(filter: &str) -> (Arc<Mutex<Vec<u8>>>, Alone) {
    #[derive(Clone)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let lines = Arc::new(Mutex::new(Vec::new()));
    let writer = Lines(Arc::clone(&lines));
    let log = fmt().with_env_filter(EnvFilter::new(filter)).with_ansi(false).with_writer(move || writer.clone());
    (lines, alone_with(log.finish()))
}
