//! Counting: one record for all reports of a callback in a turn.

use flow::{CallbackOutcome, CallbackReport, Event, EventKind};

/// The reports of the current turn, in the order of their first one.
#[derive(Debug, Default)]
pub(super) struct Counted {
    turn: u32,
    records: Vec<Event>,
}

impl Counted {
    /// Pushes the records of the turn before, where another has begun.
    pub(super) fn turn_began(&mut self, turn: u32, out: &mut Vec<Event>) {
        if self.turn != turn {
            self.release(out);
            self.turn = turn;
        }
    }

    /// Counts a report of a callback.
    pub(super) fn take(&mut self, event: Event) {
        let EventKind::ExtensionCallback(report) = &event.kind else {
            self.records.push(event);
            return;
        };
        let record = self.records.iter_mut().find_map(|record| match &mut record.kind {
            EventKind::ExtensionCallback(known)
                if known.plugin == report.plugin && known.callback == report.callback =>
            {
                Some((&mut record.seq, &mut record.at_ms, &mut record.place, known))
            }
            _ => None,
        });
        match record {
            Some((seq, at_ms, place, known)) => {
                (*seq, *at_ms, *place) = (event.seq, event.at_ms, event.place);
                add(known, report);
            }
            None => self.records.push(event),
        }
    }

    /// Pushes the records of the turn. None of their memory is kept: most sessions are idle.
    pub(super) fn release(&mut self, out: &mut Vec<Event>) {
        let start = out.len();
        out.extend(std::mem::take(&mut self.records));
        out[start..].sort_by_key(|event| event.seq);
    }
}

/// Adds a report to those of the same callback. The outcome is the one that did most: a change, else a pass, else a skipped call.
fn add(known: &mut CallbackReport, report: &CallbackReport) {
    known.calls = known.calls.saturating_add(report.calls);
    known.nanos = known.nanos.saturating_add(report.nanos);
    known.state_reads = known.state_reads.saturating_add(report.state_reads);
    if weight(&report.outcome) > weight(&known.outcome) {
        known.outcome = report.outcome.clone();
    }
}

fn weight(outcome: &CallbackOutcome) -> u8 {
    match outcome {
        CallbackOutcome::Skipped(_) => 0,
        CallbackOutcome::Passed => 1,
        CallbackOutcome::Changed => 2,
        // These are not counted.
        CallbackOutcome::NotPermitted(_) | CallbackOutcome::Failed(_) | CallbackOutcome::Ignored(_) => 3,
    }
}
