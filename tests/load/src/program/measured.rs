//! What a run has measured, and what of it must not be.

use std::fmt;
use std::time::Duration;

use super::IDLE;
use super::capacity::LAG;
use super::editor::Seen;
use super::process::{Sample, quantile};

pub(crate) struct Measured {
    pub(super) opened: Opened,
    pub(super) steps: Vec<Step>,
    /// The steps are those of a search for the capacity.
    pub(super) capacity: bool,
    pub(super) seen: Seen,
    /// Of each number the highest one.
    pub(super) most: Sample,
    pub(super) idle: Option<Sample>,
    /// Turns whose end was in the transcripts after the program was killed.
    pub(super) durable: u64,
}

/// The sessions before their first turns.
pub(super) struct Opened {
    pub(super) sessions: usize,
    pub(super) refused: Vec<String>,
    pub(super) took: Duration,
    /// With one session, and with all of them.
    pub(super) empty: Sample,
    pub(super) at_rest: Sample,
}

/// Turns, some at a time.
pub(super) struct Step {
    pub(super) active: u32,
    pub(super) turns: u64,
    pub(super) took: Duration,
    /// Of each delta the microseconds from the provider to the editor, sorted.
    pub(super) lags: Vec<u32>,
    /// After a quarter of the time, and at the end.
    pub(super) warm: Sample,
    pub(super) end: Sample,
    pub(super) processor: Duration,
}

impl Step {
    pub(super) fn is_in_time(&self) -> bool {
        u128::from(quantile(&self.lags, 0.99)) <= LAG.as_micros()
    }

    fn rate(&self) -> f64 {
        self.lags.len() as f64 / self.took.as_secs_f64()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { active, turns, took, lags, processor, .. } = self;
        let ms = |part| f64::from(quantile(lags, part)) / 1000.0;
        let cores = processor.as_secs_f64() / took.as_secs_f64();
        let each = processor.as_micros() as f64 / lags.len().max(1) as f64;
        write!(
            f,
            "{active} at a time: turns {turns} in {:.1} s, deltas a second {:.0}, lag p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms, processors \
             {cores:.2}, {each:.0} µs a delta, memory {:.1} to {:.1} MiB",
            took.as_secs_f64(),
            self.rate(),
            ms(0.5),
            ms(0.99),
            ms(1.0),
            self.warm.mib(),
            self.end.mib()
        )
    }
}

impl Measured {
    /// What must not be: nothing is wrong with the answers, so that each of them is shown.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let refused = &self.opened.refused;
        if !refused.is_empty() {
            problems.push(format!("{} sessions were refused, such as: {}", refused.len(), refused[0]));
        }
        for (what, count) in [("answers were withheld", self.seen.withheld), ("turns failed", self.seen.failed)] {
            if count > 0 {
                problems.push(format!("{count} {what}"));
            }
        }
        let ended = self.turns() + self.seen.failed;
        if self.durable < ended {
            problems.push(format!("{ended} turns ended, and the transcripts have the ends of {}", self.durable));
        }
        problems.extend(self.seen.notices.iter().map(|(notice, count)| format!("{notice} ({count} times)")));
        problems
    }

    fn turns(&self) -> u64 {
        self.steps.iter().map(|step| step.turns).sum()
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { opened: Opened { sessions, refused, took, empty, at_rest }, seen, .. } = self;
        writeln!(f, "sessions opened {sessions} in {} ms, refused {}", took.as_millis(), refused.len())?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))?;
        if self.capacity {
            let best = self.steps.iter().filter(|step| step.is_in_time()).max_by_key(|step| step.active);
            let (active, rate) = best.map_or((0, 0.0), |step| (step.active, step.rate()));
            writeln!(f, "capacity: {active} at a time, {rate:.0} deltas a second, with a p99 of at most {LAG:?}")?;
        }
        let timeouts: u64 = seen.notices.iter().filter(|(text, _)| text.contains("took longer")).map(|(_, n)| n).sum();
        let (turns, durable) = (self.turns(), self.durable);
        writeln!(
            f,
            "turns {turns}, in transcripts {durable}, failed {}, withheld {}, time-outs {timeouts}",
            seen.failed, seen.withheld
        )?;
        writeln!(f, "one session: {empty}")?;
        let others = u64::try_from(sessions.saturating_sub(1)).unwrap_or(1).max(1);
        let each = |sample: &Sample| sample.resident.saturating_sub(empty.resident) / others / 1024;
        writeln!(f, "all open: {at_rest}, {} KiB a session more", each(at_rest))?;
        write!(f, "at most meanwhile: {}", self.most)?;
        match &self.idle {
            Some(idle) => write!(f, "\nidle after {IDLE:?}: {idle}, {} KiB a session more", each(idle)),
            None => Ok(()),
        }
    }
}
