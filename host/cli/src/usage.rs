//! What plugins have used of their limits in a run, for `--summary`.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate::event::{BreakerScope, BreakerState, CallbackOutcome, CallbackReport};
use tidegate::plugin::{CallbackKind, PluginInfo, PluginLimits};
use tidegate::tool::Called;
use tidegate::{Event, EventKind};

use crate::say::count;

/// Counted while turns run. The fastest call is what the plugin costs once it runs; others also make an instance, or find nothing of it
/// in the processor's caches, since a model's tokens are far apart. Times are those of the host: they include waiting, and are never
/// less than the time that counts towards a limit.
#[derive(Debug, Default)]
pub(crate) struct PluginUsage {
    callbacks: BTreeMap<(String, CallbackKind), Calls>,
    plugins: BTreeMap<String, Totals>,
}

/// The calls of one callback.
#[derive(Debug, Default)]
struct Calls {
    failures: u32,
    nanos: Vec<u64>,
}

/// One plugin over all turns.
#[derive(Debug, Default)]
struct Totals {
    turn: u32,
    /// In the current turn.
    nanos: u64,
    /// In the turn with the most.
    busiest: u64,
    /// Bytes after the last write.
    state: Option<u64>,
    opened: u32,
    /// Calls that were not made.
    not_permitted: u32,
}

impl PluginUsage {
    pub(crate) fn take(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ExtensionCallback(report) => match report.outcome {
                CallbackOutcome::Skipped(_) => {}
                CallbackOutcome::NotPermitted(_) => self.plugin(report.plugin.as_str()).not_permitted += 1,
                _ => self.called(event.place.turn, report),
            },
            EventKind::ExtensionState { plugin, size_bytes, .. } => {
                self.plugin(plugin.as_str()).state = Some(*size_bytes);
            }
            // A trial that was stopped with its turn leaves it open, with no further wait.
            EventKind::ExtensionBreaker {
                plugin,
                called: Called::Callback(_),
                scope: BreakerScope::Session,
                state: BreakerState::Open,
                retry_after_ms: 1..,
                ..
            } => self.plugin(plugin.as_str()).opened += 1,
            _ => {}
        }
    }

    fn called(&mut self, turn: u32, report: &CallbackReport) {
        let calls = self.callbacks.entry((report.plugin.to_string(), report.callback)).or_default();
        calls.failures += u32::from(matches!(report.outcome, CallbackOutcome::Failed(_)));
        calls.nanos.push(report.nanos);
        let totals = self.plugin(report.plugin.as_str());
        if totals.turn != turn {
            (totals.turn, totals.nanos) = (turn, 0);
        }
        totals.nanos = totals.nanos.saturating_add(report.nanos);
        totals.busiest = totals.busiest.max(totals.nanos);
    }

    fn plugin(&mut self, id: &str) -> &mut Totals {
        self.plugins.entry(id.to_owned()).or_default()
    }

    /// A line for each callback, and one for each plugin.
    pub(crate) fn lines(&self, plugins: &[PluginInfo]) -> Vec<String> {
        let limits = |id: &str| plugins.iter().find(|plugin| plugin.id.as_str() == id).map(|plugin| plugin.limits);
        let callbacks = self.callbacks.iter().map(|((id, kind), calls)| {
            let limit = limits(id).map(|limits| of_callback(limits, *kind));
            let mut nanos = calls.nanos.clone();
            nanos.sort_unstable();
            let calls_made = nanos.len();
            let unit = if calls_made == 1 { "call," } else { "calls," };
            let at = |index: usize| nanos.get(index).copied().unwrap_or_default();
            let (fastest, median, longest) = (micros(at(0)), micros(at(calls_made / 2)), at(calls_made.saturating_sub(1)));
            let failed = if calls.failures == 0 { String::new() } else { format!(", {} failed", calls.failures) };
            format!(
                "callback    {:<34} {calls_made:>3} {unit:<6} fastest {fastest:>6.1} µs, median {median:>6.1} µs, longest {}{failed}",
                format!("{id} {}", kind.as_str()),
                share(longest, limit)
            )
        });
        let plugins = self.plugins.iter().map(|(id, totals)| {
            let busiest = share(totals.busiest, limits(id).map(|limits| limits.turn));
            let state =
                totals.state.map_or_else(String::new, |bytes| format!(", {} of state", count(bytes, "byte", "bytes")));
            let opened = match totals.opened {
                0 => String::new(),
                times => format!(", circuit breaker opened {}", count(times, "time", "times")),
            };
            let not_permitted = match totals.not_permitted {
                0 => String::new(),
                calls => format!(", {} not made", count(calls, "call", "calls")),
            };
            format!("plugin      {id:<34} busiest turn {busiest}{state}{opened}{not_permitted}")
        });
        callbacks.chain(plugins).collect()
    }
}

/// The limit of one call.
fn of_callback(limits: PluginLimits, kind: CallbackKind) -> Duration {
    match kind {
        CallbackKind::PlainText | CallbackKind::Tag => limits.text,
        CallbackKind::InputMessages
        | CallbackKind::LlmOutput
        | CallbackKind::TtsrTriggered
        | CallbackKind::ToolCall
        | CallbackKind::ToolResult => limits.callback,
    }
}

/// A time, and how much of a limit it is.
fn share(nanos: u64, limit: Option<Duration>) -> String {
    let time = micros(nanos);
    match limit {
        Some(limit) if !limit.is_zero() => {
            let percent = nanos as f64 * 100.0 / limit.as_nanos() as f64;
            format!("{time:.1} µs ({percent:.2} % of {} ms)", limit.as_millis())
        }
        _ => format!("{time:.1} µs"),
    }
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate::event::{CallbackOutcome, CallbackReport, RunPosition};
    use tidegate::plugin::CallbackKind;
    use tidegate::{Event, EventKind};

    use super::{PluginUsage, share};

    fn event(turn: u32, kind: EventKind) -> Event {
        Event::new(0, 0, RunPosition { turn, step: 1, attempt: 1 }, kind)
    }

    fn called(turn: u32, nanos: u64) -> Event {
        let id = "notes".parse().unwrap_or_else(|error| panic!("{error}"));
        let report = CallbackReport::new(id, CallbackKind::Tag, CallbackOutcome::Passed, nanos);
        event(turn, EventKind::ExtensionCallback(report))
    }

    #[test]
    fn the_busiest_turn_counts_and_not_all_turns_together() {
        let mut usage = PluginUsage::default();
        for (turn, nanos) in [(1, 1_000), (1, 3_000), (2, 2_000), (3, 1_500), (3, 1_500)] {
            usage.take(&called(turn, nanos));
        }
        let id = "notes".parse().unwrap_or_else(|error| panic!("{error}"));
        usage.take(&event(
            3,
            EventKind::ExtensionState { plugin: id, operation: "set".into(), key: "k".into(), size_bytes: 12 },
        ));
        let lines: Vec<String> =
            usage.lines(&[]).iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let expected = [
            "callback notes on_tag 5 calls, fastest 1.0 µs, median 1.5 µs, longest 3.0 µs",
            "plugin notes busiest turn 4.0 µs, 12 bytes of state",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_time_is_shown_with_its_limit() {
        assert_eq!(share(500_000, Some(Duration::from_millis(50))), "500.0 µs (1.00 % of 50 ms)");
        assert_eq!(share(500_000, None), "500.0 µs");
    }
}
