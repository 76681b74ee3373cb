//! The spans of a turn: the ids that every log line inside of it carries, and what an exporter makes a trace of.
//!
//! A turn contains steps, a step its attempts and tools; a callback (whose span `guard` makes) is in whatever called it, and a notification of a rule in the
//! turn. A span ends when its `outcome` is recorded, which is the last of its fields. Nothing that a user, a model or a guest wrote
//! is in a field but names.
//!
//! | span | level | fields at its start | fields at its end |
//! |---|---|---|---|
//! | `turn` | error | `session`, `turn`, `provider`, `model` | `input_tokens`, `output_tokens`, `cache_read_tokens`, `cache_write_tokens`, `stop`, `error`, `outcome` |
//! | `step` | error | `step` | `error`, `outcome` |
//! | `attempt` | error | `attempt` | `first_chunk_s` (seconds until the first chunk), the tokens, `response_model`, `stop`, `rules`, `error`, `outcome` |
//! | `tool` | error | `tool`, `call` | `extension`, `error`, `outcome` |
//! | `callback` | info | `extension`, `callback` | `error`, `outcome` |
//!
//! A level says when a span is made, not what it reports: whoever logs errors must learn from each line which session and turn it
//! is about. Callbacks, which take microseconds, have spans only where more than warnings is logged, or spans are exported.
//! A span that nobody wants costs one comparison.

use std::time::Duration;

use flow::{SPANS, StopReason, ToolCall, Usage};
use tracing::field::Empty;
use tracing::{Span, error_span};

use crate::session::SessionParts;

/// The outcome, and the error, of what was stopped with its turn.
const CANCELLED: &str = "cancelled";

/// The span of a turn.
pub(crate) fn turn(parts: &SessionParts, turn: u32) -> Span {
    error_span!(
        target: SPANS, "turn", session = parts.id.as_str(), turn, provider = parts.model.provider(),
        model = parts.model.name(), input_tokens = Empty, output_tokens = Empty, cache_read_tokens = Empty,
        cache_write_tokens = Empty, stop = Empty, error = Empty, outcome = Empty,
    )
}

/// The span of a step.
pub(crate) fn step(step: u32) -> Stage {
    Stage::of(error_span!(target: SPANS, "step", step, error = Empty, outcome = Empty))
}

/// The span of an attempt: one request, from sending it to the end of its answer.
pub(crate) fn attempt(attempt: u32) -> Stage {
    Stage::of(error_span!(
        target: SPANS, "attempt", attempt, first_chunk_s = Empty, input_tokens = Empty, output_tokens = Empty,
        cache_read_tokens = Empty, cache_write_tokens = Empty, response_model = Empty, stop = Empty, rules = Empty,
        error = Empty, outcome = Empty,
    ))
}

/// The span of a tool call. `extension` is recorded by whoever knows that one provides the tool.
pub(crate) fn tool(call: &ToolCall) -> Stage {
    Stage::of(error_span!(
        target: SPANS, "tool", tool = call.name.as_str(), call = call.id.as_str(), extension = Empty, error = Empty,
        outcome = Empty,
    ))
}

/// A span that gets an outcome, once. If it is dropped without one, what it is about was cancelled.
#[derive(Debug)]
pub(crate) struct Stage {
    span: Span,
    ended: bool,
}

impl Stage {
    fn of(span: Span) -> Self {
        Self { span, ended: false }
    }

    /// The span, to run a future in.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Ends it. `error`: a word for the kind of error, if it is one.
    pub(crate) fn end(&mut self, outcome: &str, error: Option<&str>) {
        self.ended = true;
        end(&self.span, outcome, error);
    }

    /// What is known of an answer: its tokens, and why it ended.
    pub(crate) fn answered(&self, usage: Usage, stop: Option<&StopReason>) {
        answered(&self.span, usage, stop);
    }

    /// How long the first chunk of an answer took.
    pub(crate) fn first_chunk(&self, took: Duration) {
        self.span.record("first_chunk_s", took.as_secs_f64());
    }

    /// Records one more field that the span has.
    pub(crate) fn record(&self, field: &str, value: &str) {
        self.span.record(field, value);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !self.ended {
            self.end(CANCELLED, Some(CANCELLED));
        }
    }
}

/// Ends a span, as [`Stage::end`].
pub(crate) fn end(span: &Span, outcome: &str, error: Option<&str>) {
    if span.is_disabled() {
        return;
    }
    if let Some(error) = error {
        span.record("error", error);
    }
    span.record("outcome", outcome);
}

/// Records what is known of an answer, as [`Stage::answered`].
pub(crate) fn answered(span: &Span, usage: Usage, stop: Option<&StopReason>) {
    if span.is_disabled() {
        return;
    }
    let tokens = [
        ("input_tokens", usage.input),
        ("output_tokens", usage.output),
        ("cache_read_tokens", usage.cache_read),
        ("cache_write_tokens", usage.cache_write),
    ];
    for (field, tokens) in tokens {
        if let Some(tokens) = tokens {
            span.record(field, tokens);
        }
    }
    if let Some(stop) = stop {
        span.record("stop", stop.as_str());
    }
}
