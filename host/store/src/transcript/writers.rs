//! The threads that write the transcripts of all open sessions of the process: a few, however many sessions are open.
//!
//! A journal with something to write is in the list once. One thread writes it at a time, all that is queued in one go, and takes the next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::journal::Shared;

/// Threads at most: disks sync several files at once, and beyond this no faster.
const THREADS: usize = 8;
/// A thread ends when it had nothing to do for this long, except for the last one.
const IDLE: Duration = Duration::from_secs(10);

/// The threads of the process.
static WRITERS: LazyLock<Arc<Writers>> = LazyLock::new(Arc::default);

#[derive(Default)]
struct Writers {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Arc<Shared>>,
    later: BinaryHeap<Reverse<Later>>,
    /// Tells apart what is due at the same time.
    number: u64,
    threads: usize,
    /// Threads that wait.
    idle: usize,
}

/// A journal that is written at a time.
struct Later {
    at: (Instant, u64),
    journal: Arc<Shared>,
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Later {}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Later {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// Makes sure that there is a thread that writes.
///
/// # Errors
/// There is none, and none can be started.
pub(super) fn start() -> io::Result<()> {
    let mut state = WRITERS.lock();
    if state.threads == 0 { WRITERS.spawn(&mut state) } else { Ok(()) }
}

/// Has the journal written now.
pub(super) fn now(journal: Arc<Shared>) {
    let mut state = WRITERS.lock();
    state.ready.push_back(journal);
    WRITERS.wake(&mut state);
}

/// Has the journal written after this time.
pub(super) fn later(journal: Arc<Shared>, after: Duration) {
    let mut state = WRITERS.lock();
    state.number += 1;
    let at = (Instant::now() + after, state.number);
    // A thread that waits for something earlier looks again by itself.
    let is_first = state.later.peek().is_none_or(|Reverse(first)| at < first.at);
    state.later.push(Reverse(Later { at, journal }));
    if is_first {
        WRITERS.wake(&mut state);
    }
}

impl Writers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(self: &Arc<Self>, state: &mut State) {
        // One that was woken and did not run yet still counts as idle.
        if state.idle >= state.ready.len().max(1) {
            self.work.notify_one();
        } else if state.threads < THREADS
            && let Err(error) = self.spawn(state)
        {
            // Those that are there write it, a little later.
            tracing::debug!(%error, threads = state.threads, "no other thread can be started that writes transcripts");
        }
    }

    fn spawn(self: &Arc<Self>, state: &mut State) -> io::Result<()> {
        let writers = Arc::clone(self);
        std::thread::Builder::new().name("transcripts".to_owned()).spawn(move || writers.run())?;
        state.threads += 1;
        Ok(())
    }

    fn run(&self) {
        while let Some(journal) = self.next() {
            // It catches what panics in it, except for what panics when the last one who has it drops it: its watcher. The thread has other
            // journals to write.
            if catch_unwind(AssertUnwindSafe(move || journal.write())).is_err() {
                tracing::error!("the watcher of a transcript has panicked when it was dropped");
            }
        }
    }

    /// Waits for a journal; `None`: there was none for long, and other threads are there.
    fn next(&self) -> Option<Arc<Shared>> {
        let mut state = self.lock();
        let gives_up = Instant::now() + IDLE;
        loop {
            let now = Instant::now();
            if state.later.peek().is_some_and(|Reverse(first)| first.at.0 <= now)
                && let Some(Reverse(due)) = state.later.pop()
            {
                state.ready.push_back(due.journal);
                continue;
            }
            if let Some(journal) = state.ready.pop_front() {
                return Some(journal);
            }
            if now >= gives_up && state.threads > 1 && state.later.is_empty() {
                state.threads -= 1;
                return None;
            }
            let rest = if now < gives_up { gives_up } else { now + IDLE };
            let until = state.later.peek().map_or(rest, |Reverse(first)| first.at.0);
            state.idle += 1;
            (state, _) = self
                .work
                .wait_timeout(state, until.saturating_duration_since(now))
                .unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }
}
