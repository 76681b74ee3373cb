//! The numbers as values, for exporters that write another format.

use crate::registry::{Labelled, Registry, Series};
use crate::{MetricInfo, MetricKind, Metrics};

/// One series at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MetricPoint {
    /// The metric that it belongs to.
    pub metric: &'static MetricInfo,
    /// The values of its labels, in the order of [`MetricInfo::labels`].
    pub labels: Vec<String>,
    /// What it has counted, or the value of a gauge.
    pub value: MetricValue,
}

/// What a series has counted since the [`Metrics`] were made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MetricValue {
    /// The value of a counter or a gauge.
    Number(u64),
    /// The observations of a histogram.
    Histogram {
        /// The number of observations in each bucket alone: one for each bound of the metric, and one for what is above the last.
        buckets: Vec<u64>,
        /// The sum of what was observed.
        sum: f64,
    },
}

impl Metrics {
    /// Returns all series, grouped by metric in the order of [`METRICS`](crate::METRICS).
    pub fn points(&self) -> Vec<MetricPoint> {
        points(&self.read())
    }
}

fn points(registry: &Registry) -> Vec<MetricPoint> {
    let all = registry.all().flat_map(|(metric, series)| series.values().map(move |one| (metric, one)));
    let point = |(metric, one): (&'static MetricInfo, &Labelled)| {
        let value = match (&one.series, metric.kind) {
            (Series::Value(value), _) => MetricValue::Number(*value),
            (Series::Histogram(observations), MetricKind::Histogram(bounds)) => {
                let mut buckets = observations.buckets.clone();
                buckets.resize(bounds.len() + 1, 0);
                MetricValue::Histogram { buckets, sum: observations.sum() }
            }
            (Series::Histogram(_), MetricKind::Counter | MetricKind::Gauge) => return None,
        };
        Some(MetricPoint { metric, labels: one.values.clone(), value })
    };
    all.filter_map(point).collect()
}
