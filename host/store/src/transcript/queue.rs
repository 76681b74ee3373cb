//! The events between a session and the threads that write them: adding one never waits for the disk.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow::Event;

/// How many droppable events are queued at most, in addition to one after each critical event.
pub(super) const DROPPABLE: usize = 1_024;
/// How long droppable events wait for company, and so how far a reader of the file is behind.
pub(super) const LINGER: Duration = Duration::from_millis(50);

/// An event that is to be written.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) event: Event,
    pub(super) is_critical: bool,
    /// How many droppable events between the previous queued event and this one the full queue has lost.
    pub(super) dropped: u64,
}

/// What the writer has to do.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) events: Vec<Queued>,
    /// A watcher is new, and has to learn how far the journal is.
    pub(super) announce: bool,
    /// No event follows this batch.
    pub(super) closing: bool,
}

/// When a journal has to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// There is nothing to write, or it is asked for already.
    #[default]
    Asked,
    /// After [`LINGER`], so that droppable events gather.
    Later,
    Now,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    batch: Batch,
    /// How many events of the batch are droppable, and whether there is a critical one.
    droppable: usize,
    has_critical: bool,
    /// The number of critical events so far.
    critical: u64,
    /// No event is taken any more.
    closed: bool,
    /// What was asked for and has not begun.
    asked: Due,
    /// A writer works on the batch before this one, and looks for the next one when it is done.
    is_written: bool,
}

impl State {
    /// Whether the batch is to be written without delay.
    fn is_urgent(&self) -> bool {
        self.has_critical || self.droppable >= DROPPABLE / 2 || self.batch.announce || self.batch.closing
    }

    /// What is to be asked for now.
    fn ask(&mut self) -> Due {
        let due = if self.is_urgent() {
            Due::Now
        } else if self.batch.events.is_empty() {
            Due::Asked
        } else {
            Due::Later
        };
        if self.is_written || due <= self.asked {
            return Due::Asked;
        }
        self.asked = due;
        due
    }

    fn push(&mut self, event: Event, is_critical: bool) {
        let events = &mut self.batch.events;
        if is_critical {
            self.critical += 1;
            self.has_critical = true;
        } else if self.droppable < DROPPABLE {
            self.droppable += 1;
        } else if let Some(last) = events.last_mut().filter(|last| !last.is_critical) {
            // Full: the last event is lost for the newer one, so that its record can carry the count, whatever follows.
            (last.event, last.dropped) = (event, last.dropped + 1);
            return;
        }
        events.push(Queued { event, is_critical, dropped: 0 });
    }
}

impl Queue {
    /// Adds an event, and returns when the journal has to be written for it. A queue that is closed ignores it.
    pub(super) fn push(&self, event: Event, is_critical: bool) -> Due {
        let mut state = self.lock();
        if state.closed {
            return Due::Asked;
        }
        state.push(event, is_critical);
        state.ask()
    }

    /// The number of critical events that were added.
    pub(super) fn critical(&self) -> u64 {
        self.lock().critical
    }

    /// Has the writer announce how far it is.
    pub(super) fn announce(&self) -> Due {
        let mut state = self.lock();
        state.batch.announce = true;
        state.ask()
    }

    /// Has the writer end after what is queued.
    pub(super) fn close(&self) -> Due {
        let mut state = self.lock();
        state.closed = true;
        state.batch.closing = true;
        state.ask()
    }

    /// Forgets what is queued, and ignores what is added from now on.
    pub(super) fn fail(&self) {
        let mut state = self.lock();
        state.closed = true;
        (state.droppable, state.has_critical) = (0, false);
        state.batch.events = Vec::new();
    }

    /// Takes all there is, to be ended by [`Queue::written`]. `None`: it was taken for an earlier request.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        if state.is_written || state.asked == Due::Asked {
            return None;
        }
        (state.is_written, state.asked) = (true, Due::Asked);
        (state.droppable, state.has_critical) = (0, false);
        Some(std::mem::take(&mut state.batch))
    }

    /// What was taken is written. Returns when what was added meanwhile has to be.
    pub(super) fn written(&self) -> Due {
        let mut state = self.lock();
        state.is_written = false;
        state.ask()
    }

    /// The state is valid after every statement, whatever panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
