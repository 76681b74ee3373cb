//! The text formats: that of Prometheus, version 0.0.4, and OpenMetrics, version 1.0.0.
//!
//! The series and their labels are the same in both, so that it does not matter which one a server asks for. They differ in the
//! name that describes a counter, and in the mark at the end.

use std::fmt::Write as _;

use crate::catalogue::{MetricInfo, MetricKind};
use crate::registry::{Labelled, Observations, Registry, Series};

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Prometheus,
    OpenMetrics,
}

impl Format {
    /// The media type in the header `Content-Type`.
    #[cfg(feature = "serve")]
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Writes all series.
pub(crate) fn render(registry: &Registry, format: Format) -> String {
    let mut text = String::new();
    for (metric, series) in registry.all() {
        describe(metric, format, &mut text);
        let name = metric.series();
        for (labels, Labelled { series, .. }) in series {
            // Writing to a string cannot fail.
            let _ = match (series, metric.kind) {
                (Series::Value(value), _) if labels.is_empty() => writeln!(text, "{name} {value}"),
                (Series::Value(value), _) => writeln!(text, "{name}{{{labels}}} {value}"),
                (Series::Histogram(observations), MetricKind::Histogram(bounds)) => {
                    histogram(&name, labels, bounds, observations, &mut text)
                }
                (Series::Histogram(_), MetricKind::Counter | MetricKind::Gauge) => Ok(()),
            };
        }
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn describe(metric: &MetricInfo, format: Format, text: &mut String) {
    let name = match format {
        Format::Prometheus => metric.series(),
        Format::OpenMetrics => metric.family(),
    };
    let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {}", metric.help, metric.kind.as_str());
}

/// The buckets are cumulative: each counts what is at most its bound.
fn histogram(
    name: &str,
    labels: &str,
    bounds: &[f64],
    observations: &Observations,
    text: &mut String,
) -> std::fmt::Result {
    let mut count = 0;
    let bounds = bounds.iter().map(|bound| canonical(*bound)).chain(["+Inf".to_owned()]);
    for (bound, observed) in bounds.zip(&observations.buckets) {
        count += observed;
        writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}")?;
    }
    writeln!(text, "{name}_sum{{{labels}}} {:?}\n{name}_count{{{labels}}} {count}", observations.sum())
}

/// A bound in the form that OpenMetrics calls canonical: `0.5`, `10.0`, `1.048576e+06`. The string is a part of the series, so
/// another form would be another series.
fn canonical(bound: f64) -> String {
    let plain = format!("{bound:?}");
    match plain.split_once('.') {
        Some((whole, _)) if whole.len() > 6 => {
            let exponent = whole.len() - 1;
            let mantissa = format!("{:?}", bound / 10f64.powi(i32::try_from(exponent).unwrap_or(0)));
            format!("{}e+{exponent:02}", mantissa.trim_end_matches(".0"))
        }
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn bounds_are_canonical() {
        let written = [
            (0.005, "0.005"),
            (1.0, "1.0"),
            (600_000.0, "600000.0"),
            (1_000_000.0, "1e+06"),
            (1_048_576.0, "1.048576e+06"),
            (10_485_760.0, "1.048576e+07"),
            (67_108_864.0, "6.7108864e+07"),
        ];
        for (bound, text) in written {
            assert_eq!(canonical(bound), text);
            assert_eq!(text.parse(), Ok(bound));
        }
    }
}
