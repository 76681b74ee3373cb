//! Metrics as messages of the protocol. The SDK cannot make them: it exports what it has counted itself, and these numbers are counted
//! already.

use std::time::{SystemTime, UNIX_EPOCH};

use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue as Attribute;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::transform::common::tonic::Attributes;

use crate::otel::export::SCOPE;
use crate::otel::instruments::{Instrument, Instruments, Observed, Series};
use crate::otel::settings::Settings;
use crate::{MetricKind, MetricPoint, MetricValue};

/// Numbers since the start of the series, not since the last export.
const CUMULATIVE: i32 = AggregationTemporality::Cumulative as i32;

/// The times of all points.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    pub(crate) start: SystemTime,
    pub(crate) now: SystemTime,
}

/// What the telemetry is about.
pub(crate) fn resource(settings: &Settings) -> Attributes {
    let pairs = settings.resource.iter();
    Attributes::from(pairs.map(|(name, value)| KeyValue::new(name.clone(), value.clone())))
}

/// The request with these metrics.
pub(crate) fn request(
    settings: &Settings,
    period: Period,
    own: &[MetricPoint],
    conventional: &Instruments,
) -> ExportMetricsServiceRequest {
    let own = own.chunk_by(|one, next| std::ptr::eq(one.metric, next.metric));
    let metrics = own.filter_map(|points| period.own_metric(points));
    let metrics = metrics.chain(conventional.all().map(|(about, series)| period.conventional_metric(about, series)));
    let scope_metrics =
        ScopeMetrics { scope: Some((&*SCOPE, None).into()), metrics: metrics.collect(), ..ScopeMetrics::default() };
    let resource = Resource { attributes: resource(settings).0, ..Resource::default() };
    let resource_metrics =
        ResourceMetrics { resource: Some(resource), scope_metrics: vec![scope_metrics], ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource_metrics] }
}

impl Period {
    /// A metric of the catalogue with all its series.
    fn own_metric(self, points: &[MetricPoint]) -> Option<Metric> {
        let about = points.first()?.metric;
        let unit = match about.name {
            name if name.ends_with("_ms") => "ms",
            name if name.ends_with("_bytes") => "By",
            _ => "1",
        };
        let numbers = || points.iter().filter_map(|point| self.number(point)).collect();
        let data = match about.kind {
            MetricKind::Counter => {
                Data::Sum(Sum { data_points: numbers(), aggregation_temporality: CUMULATIVE, is_monotonic: true })
            }
            MetricKind::Gauge => Data::Gauge(Gauge { data_points: numbers() }),
            MetricKind::Histogram(bounds) => histogram(points.iter().filter_map(|point| self.own_point(bounds, point))),
        };
        Some(metric(about.name, about.help, unit, data))
    }

    fn conventional_metric(self, about: &Instrument, series: &Series) -> Metric {
        let points = series.iter().map(|(labels, Observed { buckets, sum, min, max })| HistogramDataPoint {
            min: Some(*min),
            max: Some(*max),
            ..self.distribution(labels.iter().cloned(), about.bounds, buckets, *sum)
        });
        metric(about.name, about.description, about.unit, histogram(points))
    }

    fn number(self, point: &MetricPoint) -> Option<NumberDataPoint> {
        let MetricValue::Number(value) = point.value else { return None };
        Some(NumberDataPoint {
            attributes: attributes(labels(point)),
            start_time_unix_nano: nanoseconds(self.start),
            time_unix_nano: nanoseconds(self.now),
            value: Some(Value::AsInt(i64::try_from(value).unwrap_or(i64::MAX))),
            ..NumberDataPoint::default()
        })
    }

    fn own_point(self, bounds: &[f64], point: &MetricPoint) -> Option<HistogramDataPoint> {
        let MetricValue::Histogram { buckets, sum } = &point.value else { return None };
        Some(self.distribution(labels(point), bounds, buckets, *sum))
    }

    fn distribution(
        self,
        labels: impl Iterator<Item = (&'static str, String)>,
        bounds: &[f64],
        buckets: &[u64],
        sum: f64,
    ) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: nanoseconds(self.start),
            time_unix_nano: nanoseconds(self.now),
            count: buckets.iter().sum(),
            sum: Some(sum),
            bucket_counts: buckets.to_vec(),
            explicit_bounds: bounds.to_vec(),
            ..HistogramDataPoint::default()
        }
    }
}

fn metric(name: &str, description: &str, unit: &str, data: Data) -> Metric {
    let (name, description, unit) = (name.to_owned(), description.to_owned(), unit.to_owned());
    Metric { name, description, unit, data: Some(data), ..Metric::default() }
}

fn histogram(points: impl Iterator<Item = HistogramDataPoint>) -> Data {
    Data::Histogram(Histogram { data_points: points.collect(), aggregation_temporality: CUMULATIVE })
}

fn labels(point: &MetricPoint) -> impl Iterator<Item = (&'static str, String)> {
    point.metric.labels.iter().copied().zip(point.labels.iter().cloned())
}

fn attributes(labels: impl Iterator<Item = (&'static str, String)>) -> Vec<Attribute> {
    Attributes::from(labels.map(|(name, value)| KeyValue::new(name, value))).0
}

/// Nanoseconds since 1970-01-01 UTC.
fn nanoseconds(time: SystemTime) -> u64 {
    let since_1970 = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}
