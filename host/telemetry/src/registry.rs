//! The numbers: a series for each metric and combination of label values.

use std::collections::{BTreeMap, BTreeSet};

use flow::{BreakerState, PluginId};

use crate::InstanceNumbers;
use crate::catalogue::{Id, METRICS, MOST_LABELS, MetricInfo, MetricKind};
use crate::labels::{self, Values};
use crate::names::EXTENSION;

/// The numbers of all metrics.
#[derive(Debug)]
pub(crate) struct Registry {
    /// By the place of the metric in [`METRICS`]: its series by their labels, as the text formats write them.
    series: Vec<BTreeMap<String, Labelled>>,
    /// The admitted values of each label.
    values: BTreeMap<&'static str, Values>,
    /// By extension: how many open sessions have its breaker in each of [`BreakerState::ALL`].
    breakers: BTreeMap<String, [u64; BreakerState::ALL.len()]>,
    /// By extension: the state of its breaker for all sessions, where it is not closed.
    host_breakers: BTreeMap<String, BreakerState>,
    /// Where labels are put together, so that a series that exists is found without an allocation.
    key: String,
}

/// A series with the values of its labels, in the order of the metric's.
#[derive(Clone, Debug)]
pub(crate) struct Labelled {
    pub(crate) values: Vec<String>,
    pub(crate) series: Series,
}

/// What one series has counted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Series {
    /// The value of a counter or a gauge.
    Value(u64),
    /// The observations of a histogram.
    Histogram(Observations),
}

/// The observations of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Observations {
    /// The number of observations in each bucket alone, the last without an upper bound.
    pub(crate) buckets: Vec<u64>,
    /// The sum in billionths: a sum of whole numbers does not depend on the order of the observations.
    billionths: u128,
}

impl Observations {
    /// The sum of what was observed.
    pub(crate) fn sum(&self) -> f64 {
        self.billionths as f64 / 1e9
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            series: vec![BTreeMap::new(); METRICS.len()],
            values: BTreeMap::new(),
            breakers: BTreeMap::new(),
            host_breakers: BTreeMap::new(),
            key: String::new(),
        }
    }
}

impl Registry {
    /// The metrics that have series, each with its series in the order of their labels.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static MetricInfo, &BTreeMap<String, Labelled>)> {
        METRICS.iter().zip(&self.series).filter(|(_, series)| !series.is_empty())
    }

    /// Adds to a counter.
    pub(crate) fn add(&mut self, id: Id, labels: &[&str], count: u64) {
        self.change(id, labels, |series| {
            if let Series::Value(value) = series {
                *value = value.saturating_add(count);
            }
        });
    }

    /// Sets a gauge.
    pub(crate) fn set(&mut self, id: Id, labels: &[&str], value: u64) {
        self.change(id, labels, |series| *series = Series::Value(value));
    }

    /// Adds an observation to a histogram, in billionths of the metric's unit.
    pub(crate) fn observe(&mut self, id: Id, labels: &[&str], billionths: u128) {
        let MetricKind::Histogram(bounds) = METRICS[id as usize].kind else { return };
        self.change(id, labels, |series| {
            if let Series::Histogram(observations) = series {
                let value = billionths as f64 / 1e9;
                let bucket = bounds.partition_point(|bound| *bound < value);
                observations.buckets.resize(bounds.len() + 1, 0);
                observations.buckets[bucket] += 1;
                observations.billionths = observations.billionths.saturating_add(billionths);
            }
        });
    }

    /// The breaker of an extension is in another state in one session. `None`: before the extension is registered there, and
    /// after the session.
    pub(crate) fn breaker(&mut self, extension: &str, from: Option<BreakerState>, to: Option<BreakerState>) {
        let extension = self.admit(EXTENSION, extension, true).to_owned();
        let sessions = self.breakers.entry(extension.clone()).or_default();
        if let Some(from) = from {
            sessions[from as usize] = sessions[from as usize].saturating_sub(1);
        }
        if let Some(to) = to {
            sessions[to as usize] += 1;
        }
        self.show_breaker(&extension);
    }

    /// These are the states of the breakers for all sessions, of each extension the worst.
    pub(crate) fn host_breakers(&mut self, states: &BTreeMap<PluginId, BreakerState>) {
        let not_closed = states.iter().filter(|(_, state)| **state != BreakerState::Closed);
        let mut now: BTreeMap<String, BreakerState> = BTreeMap::new();
        for (extension, state) in not_closed {
            // Extensions beyond the limit of label values share one.
            let worst = now.entry(self.admit(EXTENSION, extension.as_str(), true).to_owned()).or_insert(*state);
            *worst = (*state).max(*worst);
        }
        let before = std::mem::replace(&mut self.host_breakers, now);
        let changed = before.keys().chain(self.host_breakers.keys()).cloned().collect::<BTreeSet<String>>();
        changed.iter().for_each(|extension| self.show_breaker(extension));
    }

    /// These are the instances of extensions. A counter does not fall where an engine is gone.
    pub(crate) fn instances(&mut self, numbers: Option<InstanceNumbers>) {
        let Some(InstanceNumbers { in_use, limit, waits, reclaimed }) = numbers else { return };
        let mut show = |id, now: u64, may_fall| {
            self.change(id, &[], |series| {
                if let Series::Value(value) = series {
                    *value = if may_fall { now } else { now.max(*value) };
                }
            });
        };
        show(Id::Instances, in_use, true);
        show(Id::InstanceLimit, limit, true);
        show(Id::InstanceWaits, waits, false);
        show(Id::InstancesReclaimed, reclaimed, false);
    }

    /// Sets the gauge of an extension to the worst state of its breakers.
    fn show_breaker(&mut self, extension: &str) {
        let sessions = self.breakers.get(extension).and_then(|counts| counts.iter().rposition(|count| *count > 0));
        let host = self.host_breakers.get(extension).map(|state| *state as usize);
        let worst = sessions.max(host).unwrap_or(BreakerState::Closed as usize);
        self.change(Id::BreakerState, &[extension], |series| *series = Series::Value(worst as u64));
    }

    /// The value of a label as it is counted; see [`Values::admit`].
    pub(crate) fn admit<'v>(&mut self, label: &'static str, value: &'v str, proven: bool) -> &'v str {
        self.values.entry(label).or_default().admit(label, value, proven)
    }

    /// Changes the series of a metric with these values of its labels, in their order.
    fn change(&mut self, id: Id, labels: &[&str], change: impl FnOnce(&mut Series)) {
        let metric = &METRICS[id as usize];
        debug_assert_eq!(metric.labels.len(), labels.len(), "{}", metric.name);
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let mut values = [""; MOST_LABELS];
        for (place, (name, value)) in values.iter_mut().zip(metric.labels.iter().zip(labels)) {
            *place = self.admit(name, value, true);
            key.push_str(if key.is_empty() { "" } else { "," });
            labels::write(name, place, &mut key);
        }
        let all = &mut self.series[id as usize];
        match all.get_mut(&key) {
            Some(known) => change(&mut known.series),
            None => {
                let mut series = match metric.kind {
                    MetricKind::Counter | MetricKind::Gauge => Series::Value(0),
                    MetricKind::Histogram(_) => Series::Histogram(Observations::default()),
                };
                change(&mut series);
                let values = values.into_iter().take(metric.labels.len()).map(str::to_owned).collect();
                all.insert(key.clone(), Labelled { values, series });
            }
        }
        self.key = key;
    }
}
