//! The account of what was to be exported. What is lost is the difference between its two ends, whatever became of it in between.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::otel::LostTelemetry;
use crate::otel::export::QUEUE;

/// What was to be exported, and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    state: Mutex<State>,
    finishing: watch::Sender<bool>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) ended: u64,
    pub(crate) accepted: u64,
    /// Why the last span was not accepted.
    pub(crate) cause: Option<String>,
    /// Why the last metrics were not accepted.
    pub(crate) metrics_cause: Option<String>,
    /// The reasons why the last exports of spans and of metrics failed, as they were logged.
    logged: [Option<String>; 2],
}

/// The data of an export.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Spans,
    Metrics,
}

impl Ledger {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// No span follows: everything is sent now.
    pub(crate) fn finish(&self) {
        let _state = self.state();
        self.finishing.send_replace(true);
    }

    pub(crate) fn is_finishing(&self) -> bool {
        *self.finishing.borrow()
    }

    pub(crate) fn finishing(&self) -> watch::Receiver<bool> {
        self.finishing.subscribe()
    }

    /// Logs the failure of an export, or notes its success. A program can run for days before its end reports what was lost. A repeated
    /// failure with the same reason is not logged again, and a failure at the end is in the final report.
    pub(crate) fn ended(&self, signal: Signal, failure: Option<&str>) {
        let is_news = self.state().is_news(signal, failure);
        if let Some(cause) = failure.filter(|_| is_news && !self.is_finishing()) {
            let what = match signal {
                Signal::Spans => "spans",
                Signal::Metrics => "metrics",
            };
            tracing::error!("{what} were not exported: {cause}");
        }
    }

    /// What was not exported so far. `late`: why something is still under way, and whether that is the metrics.
    pub(crate) fn lost(&self, late: Option<(String, bool)>) -> Option<LostTelemetry> {
        let state = self.state();
        let (late, late_metrics) = late.unzip();
        let spans = state.ended - state.accepted;
        let metrics = state.metrics_cause.is_some() || late_metrics == Some(true);
        let cause = state.cause.clone().filter(|_| spans > 0).or_else(|| state.metrics_cause.clone()).or(late);
        let cause = cause.unwrap_or_else(|| format!("more than {QUEUE} spans waited"));
        (spans > 0 || metrics).then_some(LostTelemetry { spans, ended: state.ended, metrics, cause })
    }
}

impl State {
    fn is_news(&mut self, signal: Signal, failure: Option<&str>) -> bool {
        let logged = &mut self.logged[signal as usize];
        let is_news = failure.is_some() && logged.as_deref() != failure;
        *logged = failure.map(str::to_owned);
        is_news
    }
}

/// The state is valid after every statement, so a panic elsewhere does not matter.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_news_until_it_has_another_cause_or_has_passed() {
        let mut state = State::default();
        let (spans, metrics) = (Signal::Spans, Signal::Metrics);
        for (signal, failure, is_news) in [
            (spans, None, false),
            (spans, Some("refused"), true),
            (metrics, Some("refused"), true),
            (spans, Some("refused"), false),
            (spans, Some("too late"), true),
            (metrics, Some("refused"), false),
            (spans, None, false),
            (spans, Some("too late"), true),
        ] {
            assert_eq!(state.is_news(signal, failure), is_news, "{signal:?} {failure:?}");
        }
    }
}
