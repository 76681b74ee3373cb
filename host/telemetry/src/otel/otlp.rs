//! Spans and metrics as the OpenTelemetry protocol (OTLP) writes them: `opentelemetry/proto/{trace,metrics}/v1`.

use crate::{MetricKind, MetricPoint, MetricValue};

use crate::otel::fields::Value;
use crate::otel::ids::{SpanId, TraceId};
use crate::otel::instruments::{Instrument, Instruments, Observed};
use crate::otel::proto::{Field, Message, fields};

/// The scope that everything is in.
const SCOPE: &str = "tidegate";
/// The value of the enum `AggregationTemporality` for numbers since the start of the series, not since the last export.
const CUMULATIVE: u64 = 2;
/// The values of the enum `SpanKind`.
const INTERNAL: u64 = 1;
const CLIENT: u64 = 3;
/// The value of the enum `StatusCode` for an error.
const FAILED: u64 = 2;

/// A span that has ended.
#[derive(Debug)]
pub(crate) struct Span {
    pub(crate) trace: TraceId,
    pub(crate) id: SpanId,
    pub(crate) parent: Option<SpanId>,
    pub(crate) name: String,
    pub(crate) is_client: bool,
    /// Nanoseconds since 1970-01-01 UTC, as its end.
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) attributes: Vec<(&'static str, Value)>,
    pub(crate) has_failed: bool,
}

impl Span {
    /// The message `Span`.
    pub(crate) fn encode(&self) -> Vec<u8> {
        Message::of(|span| {
            span.bytes(1, &self.trace);
            span.bytes(2, &self.id);
            if let Some(parent) = &self.parent {
                span.bytes(4, parent);
            }
            span.string(5, &self.name);
            span.number(6, if self.is_client { CLIENT } else { INTERNAL });
            span.fixed(7, self.start_ns);
            span.fixed(8, self.end_ns);
            self.attributes.iter().for_each(|(name, value)| attribute(span, 9, name, value));
            if self.has_failed {
                // Without its description, which can contain what somebody wrote.
                span.message(15, |status| status.number(3, FAILED));
            }
        })
        .into_bytes()
    }
}

/// The body of a request with these spans.
pub(crate) fn traces<'a>(resource: &[(String, String)], spans: impl Iterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    request(resource, |scope| spans.for_each(|span| scope.bytes(2, span)))
}

/// The times of metrics, in nanoseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) start_ns: u64,
    pub(crate) now_ns: u64,
}

/// The body of a request with these metrics.
pub(crate) fn metrics(
    resource: &[(String, String)],
    period: Period,
    own: &[MetricPoint],
    conventional: &Instruments,
) -> Vec<u8> {
    request(resource, |scope| {
        for points in own.chunk_by(|one, next| std::ptr::eq(one.metric, next.metric)) {
            scope.message(2, |metric| own_metric(metric, period, points));
        }
        for (instrument, series) in conventional.all() {
            scope.message(2, |metric| {
                describe(metric, instrument.name, instrument.description, instrument.unit);
                histogram(metric, series.iter(), |point, (attributes, observed)| {
                    let labels = attributes.iter().map(|(name, value)| (*name, value.as_str()));
                    conventional_point(point, period, instrument, labels, observed);
                });
            });
        }
    })
}

/// Both requests have the same frame: a resource, and in it a scope.
fn request(resource: &[(String, String)], content: impl FnOnce(&mut Message)) -> Vec<u8> {
    let frame = |frame: &mut Message| {
        frame.message(1, |message| {
            resource.iter().for_each(|(name, value)| text_attribute(message, 1, name, value));
        });
        frame.message(2, |scope| {
            scope.message(1, |about| {
                about.string(1, SCOPE);
                about.string(2, env!("CARGO_PKG_VERSION"));
            });
            content(scope);
        });
    };
    Message::of(|request| request.message(1, frame)).into_bytes()
}

fn describe(metric: &mut Message, name: &str, description: &str, unit: &str) {
    metric.string(1, name);
    metric.string(2, description);
    metric.string(3, unit);
}

/// A metric of our catalogue with all its series.
fn own_metric(metric: &mut Message, period: Period, points: &[MetricPoint]) {
    let Some(about) = points.first().map(|point| point.metric) else { return };
    let unit = match about.name {
        name if name.ends_with("_ms") => "ms",
        name if name.ends_with("_bytes") => "By",
        _ => "1",
    };
    describe(metric, about.name, about.help, unit);
    match about.kind {
        MetricKind::Counter => metric.message(7, |sum| {
            points.iter().for_each(|point| sum.message(1, |to| number(to, period, point)));
            sum.number(2, CUMULATIVE);
            sum.number(3, 1);
        }),
        MetricKind::Histogram(bounds) => {
            histogram(metric, points.iter(), |to, point| own_point(to, period, bounds, point));
        }
        // Also a kind that is added later: a number without a promise.
        _ => metric.message(5, |gauge| {
            points.iter().for_each(|point| gauge.message(1, |to| number(to, period, point)));
        }),
    }
}

fn labels(point: &MetricPoint) -> impl Iterator<Item = (&'static str, &str)> {
    point.metric.labels.iter().copied().zip(point.labels.iter().map(String::as_str))
}

/// The message `NumberDataPoint`.
fn number(to: &mut Message, period: Period, point: &MetricPoint) {
    let MetricValue::Number(value) = point.value else { return };
    times(to, period);
    to.fixed(6, value);
    labels(point).for_each(|(name, value)| text_attribute(to, 7, name, value));
}

fn histogram<T>(metric: &mut Message, points: impl Iterator<Item = T>, write: impl Fn(&mut Message, T)) {
    metric.message(9, |histogram| {
        points.for_each(|point| histogram.message(1, |to| write(to, point)));
        histogram.number(2, CUMULATIVE);
    });
}

fn own_point(to: &mut Message, period: Period, bounds: &[f64], point: &MetricPoint) {
    let MetricValue::Histogram { buckets, sum } = &point.value else { return };
    times(to, period);
    distribution(to, bounds, buckets, *sum);
    labels(point).for_each(|(name, value)| text_attribute(to, 9, name, value));
}

fn conventional_point<'a>(
    to: &mut Message,
    period: Period,
    instrument: &Instrument,
    labels: impl Iterator<Item = (&'static str, &'a str)>,
    observed: &Observed,
) {
    times(to, period);
    distribution(to, instrument.bounds, &observed.buckets, observed.sum);
    labels.for_each(|(name, value)| text_attribute(to, 9, name, value));
    to.double(11, observed.min);
    to.double(12, observed.max);
}

/// The fields of `HistogramDataPoint` that contain the distribution of the observations.
fn distribution(to: &mut Message, bounds: &[f64], buckets: &[u64], sum: f64) {
    to.fixed(4, buckets.iter().sum());
    to.double(5, sum);
    to.packed(6, buckets.iter().copied());
    to.packed(7, bounds.iter().map(|bound| bound.to_bits()));
}

fn times(to: &mut Message, period: Period) {
    to.fixed(2, period.start_ns);
    to.fixed(3, period.now_ns);
}

fn text_attribute(to: &mut Message, field: u32, name: &str, value: &str) {
    key_value(to, field, name, |any| any.string(1, value));
}

fn attribute(to: &mut Message, field: u32, name: &str, value: &Value) {
    key_value(to, field, name, |any| match value {
        Value::Text(text) => any.string(1, text),
        Value::Flag(flag) => any.number(2, u64::from(*flag)),
        Value::Number(number) => any.number(3, *number),
        Value::Decimal(number) => any.double(4, *number),
        Value::List(list) => {
            any.message(5, |array| list.iter().for_each(|text| array.message(1, |any| any.string(1, text))));
        }
    });
}

/// The message `KeyValue`.
fn key_value(to: &mut Message, field: u32, name: &str, value: impl FnOnce(&mut Message)) {
    to.message(field, |pair| {
        pair.string(1, name);
        pair.message(2, value);
    });
}

/// What a receiver did not accept of a request that it answered with success: how many spans or points, and why.
pub(crate) fn rejected(response: &[u8]) -> Option<(u64, String)> {
    let partial =
        fields(response).find_map(|field| if let (1, Field::Bytes(bytes)) = field { Some(bytes) } else { None })?;
    let (mut count, mut why) = (0, String::new());
    for field in fields(partial) {
        match field {
            (1, Field::Number(number)) => count = number,
            (2, Field::Bytes(text)) => why = String::from_utf8_lossy(text).into_owned(),
            _ => {}
        }
    }
    (count > 0).then_some((count, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_success_is_read() {
        let response = Message::of(|response| {
            response.message(1, |partial| {
                partial.number(1, 3);
                partial.string(2, "too old");
            });
        });
        assert_eq!(rejected(&response.into_bytes()), Some((3, "too old".to_owned())));
        let warning = Message::of(|response| response.message(1, |partial| partial.string(2, "slow down")));
        assert_eq!(rejected(&warning.into_bytes()), None, "nothing was rejected");
        assert_eq!((rejected(b""), rejected(b"<html>")), (None, None));
    }
}
