//! Milestones: of the progress of a call, what reaches a value that was declared.

use std::collections::BTreeMap;

use flow::{CallId, Event};

/// The calls of a thread that have reported a progress.
#[derive(Debug, Default)]
pub(super) struct Milestones {
    calls: BTreeMap<CallId, Call>,
}

#[derive(Debug, Default)]
struct Call {
    /// How many milestones were reached.
    reached: usize,
    /// The last event since then.
    held: Option<Event>,
}

impl Milestones {
    /// Takes an event with the progress of a call. It is recorded where it reaches a milestone that none before it has reached; one that
    /// reaches several is recorded once. `milestones` are ascending.
    pub(super) fn take(&mut self, event: Event, call: CallId, progress: f64, milestones: &[f64], out: &mut Vec<Event>) {
        let call = self.calls.entry(call).or_default();
        let reached = milestones.iter().take_while(|milestone| progress >= **milestone).count();
        if reached > call.reached {
            *call = Call { reached, held: None };
            out.push(event);
        } else {
            call.held = Some(event);
        }
    }

    /// Pushes the last progress of a call that is over.
    pub(super) fn finish(&mut self, call: &CallId, out: &mut Vec<Event>) {
        out.extend(self.calls.remove(call).and_then(|call| call.held));
    }

    /// Pushes the last progress of all calls: none of them goes on.
    pub(super) fn release(&mut self, out: &mut Vec<Event>) {
        let start = out.len();
        out.extend(std::mem::take(&mut self.calls).into_values().filter_map(|call| call.held));
        out[start..].sort_by_key(|event| event.seq);
    }
}
