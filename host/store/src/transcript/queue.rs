//! The events between a session and the thread that writes them: adding one never waits for the disk.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flow::Event;

/// How many droppable events are queued at most, in addition to one after each critical event.
pub(super) const DROPPABLE: usize = 1_024;
/// How long droppable events wait for company, and so how far a reader of the file is behind.
const LINGER: Duration = Duration::from_millis(50);

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

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    work: Condvar,
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
    writer: Waiting,
}

/// What the writer waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waiting {
    /// It is working, or was woken.
    #[default]
    Nothing,
    Anything,
    /// It lets droppable events gather.
    Urgent,
}

impl State {
    /// Whether the batch is to be written without delay.
    fn is_urgent(&self) -> bool {
        self.has_critical || self.droppable >= DROPPABLE / 2 || self.batch.announce || self.batch.closing
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
    /// Adds an event. A queue that is closed ignores it.
    pub(super) fn push(&self, event: Event, is_critical: bool) {
        let mut state = self.lock();
        if !state.closed {
            state.push(event, is_critical);
            self.wake(state);
        }
    }

    /// The number of critical events that were added.
    pub(super) fn critical(&self) -> u64 {
        self.lock().critical
    }

    /// Has the writer announce how far it is.
    pub(super) fn announce(&self) {
        let mut state = self.lock();
        state.batch.announce = true;
        self.wake(state);
    }

    /// Has the writer end after what is queued.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.batch.closing = true;
        self.wake(state);
    }

    /// Forgets what is queued, and ignores what is added from now on.
    pub(super) fn fail(&self) {
        let mut state = self.lock();
        state.closed = true;
        (state.droppable, state.has_critical) = (0, false);
        state.batch.events = Vec::new();
    }

    /// Wakes the writer if it waits for this. Waking is a system call, so it is not done for nothing.
    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let wakes = match state.writer {
            Waiting::Nothing => false,
            Waiting::Anything => true,
            Waiting::Urgent => state.is_urgent(),
        };
        if wakes {
            state.writer = Waiting::Nothing;
            drop(state);
            self.work.notify_one();
        }
    }

    /// Waits for work and takes all there is.
    pub(super) fn take(&self) -> Batch {
        let mut state = self.lock();
        let mut linger_until = None;
        while !state.is_urgent() {
            if state.batch.events.is_empty() {
                state.writer = Waiting::Anything;
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let until = *linger_until.get_or_insert_with(|| Instant::now() + LINGER);
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state.writer = Waiting::Urgent;
            (state, _) = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
        state.writer = Waiting::Nothing;
        (state.droppable, state.has_critical) = (0, false);
        std::mem::take(&mut state.batch)
    }

    /// The state is valid after every statement, whatever panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
