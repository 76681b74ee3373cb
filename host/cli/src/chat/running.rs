//! The tools that run now: for how long, and their last lines.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tidegate::tool::CallId;
use tidegate::{Event, EventKind};

use crate::print::shorten;
use crate::screen::clean::flat;
use crate::style::{self, err};

/// Calls that are shown.
const CALLS: usize = 3;
/// Lines of a call that are shown.
const LINES: usize = 3;
/// How long a call runs until it is shown, unless it reports something earlier.
const QUICK: Duration = Duration::from_secs(1);

/// The calls that run, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Running(Vec<Call>);

#[derive(Debug)]
struct Call {
    id: CallId,
    tool: String,
    since: Instant,
    lines: VecDeque<String>,
    percent: Option<f64>,
}

impl Running {
    /// Takes an event that happens now.
    pub(super) fn take(&mut self, event: &Event, now: Instant) {
        match &event.kind {
            EventKind::ToolCallStart { call, tool, .. } => {
                let (id, tool) = (call.clone(), flat(tool));
                self.0.push(Call { id, tool, since: now, lines: VecDeque::new(), percent: None });
            }
            EventKind::ToolCallProgress { call, message, percent } => {
                if let Some(one) = self.0.iter_mut().find(|one| one.id == *call) {
                    one.percent = *percent;
                    one.lines.extend(message.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned));
                    one.lines.drain(..one.lines.len().saturating_sub(LINES));
                }
            }
            EventKind::ToolCallResult { call, .. } => self.0.retain(|one| one.id != *call),
            EventKind::TurnFinish { .. } => self.0.clear(),
            _ => {}
        }
    }

    /// The rows at a time, in so many columns.
    pub(super) fn rows(&self, columns: usize, now: Instant) -> Vec<String> {
        let seen: Vec<_> = self.0.iter().filter(|one| one.is_seen(now)).collect();
        let mut rows = Vec::new();
        for one in seen.iter().take(CALLS) {
            let percent = one.percent.map(|percent| format!(" · {percent:.0} %")).unwrap_or_default();
            rows.push(err(style::DIM, &format!("  {} · {}{percent}", one.tool, time(now - one.since))));
            let line = |line: &String| err(style::DIM, &format!("  │ {}", shorten(line, columns.saturating_sub(6))));
            rows.extend(one.lines.iter().map(line));
        }
        if seen.len() > CALLS {
            rows.push(err(style::DIM, &format!("  and {} more", seen.len() - CALLS)));
        }
        rows
    }

    /// When the rows change by themselves.
    pub(super) fn wakes(&self, now: Instant) -> Option<Instant> {
        let next = |one: &Call| one.since + Duration::from_secs((now - one.since).as_secs() + 1);
        self.0.iter().map(next).min()
    }
}

impl Call {
    fn is_seen(&self, now: Instant) -> bool {
        !self.lines.is_empty() || now - self.since >= QUICK
    }
}

/// A time in whole seconds.
fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use tidegate::event::RunPosition;

    use super::*;
    use crate::args::ColorWhen;

    #[test]
    fn the_last_lines_are_shown_until_the_result() {
        style::choose(ColorWhen::Never);
        let plain = |rows: Vec<String>| -> Vec<String> {
            let text = |row: &String| {
                let texts = style::parts(row).into_iter().filter_map(|part| match part {
                    style::Part::Text(text) => Some(text.to_owned()),
                    _ => None,
                });
                texts.collect()
            };
            rows.iter().map(text).collect()
        };
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut running = Running::default();
        let take = |running: &mut Running, kind| {
            running.take(&Event::new(0, 0, RunPosition::default(), kind), start);
        };
        let call = CallId::new("c1");
        let begun = EventKind::ToolCallStart { call: call.clone(), tool: "shell".into(), arguments: "{}".into() };
        take(&mut running, begun);
        assert!(running.rows(40, start).is_empty(), "a quick call is not shown");
        assert_eq!(running.wakes(start), Some(after(1)));
        assert_eq!(plain(running.rows(40, after(1))), ["  shell · 1 s"]);
        let progress = |message: &str, percent| EventKind::ToolCallProgress {
            call: call.clone(),
            message: message.into(),
            percent,
        };
        for message in ["one", "two\n\nthree", "a line\u{1b} that is longer than the terminal is"] {
            take(&mut running, progress(message, None));
        }
        take(&mut running, progress("", Some(40.2)));
        let rows = plain(running.rows(30, after(75)));
        let lines = ["  shell · 1 min 15 s · 40 %", "  │ two", "  │ three", "  │ a line\\u{1b} that is lon…"];
        assert_eq!(rows, lines);
        assert_eq!(running.wakes(after(75)), Some(after(76)));
        take(&mut running, EventKind::TurnFinish { status: tidegate::TurnStatus::Cancelled });
        assert_eq!((running.rows(30, after(75)).len(), running.wakes(after(75))), (0, None));
    }
}
