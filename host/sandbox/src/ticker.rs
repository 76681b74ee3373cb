//! The clock hand of the engine: one thread that moves the epoch while guests run, and sleeps while none does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// Time between two moves of the epoch: a time-out is found at most this much late.
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Ticks without a call after which the thread parks. Waking it costs more than a short call does, so a stream of calls
/// must find it awake.
const IDLE_TICKS: u32 = 100;

/// Keeps the thread; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct Shared {
    in_flight: AtomicUsize,
    parked: AtomicBool,
    stop: AtomicBool,
}

/// While this lives the epoch moves.
#[derive(Debug)]
pub(crate) struct Ticking<'a>(&'a Shared);

impl Ticker {
    /// Starts the thread; `tick` advances the epoch and returns whether the engine still exists.
    pub(crate) fn start(tick: impl Fn() -> bool + Send + 'static) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let handle = std::thread::Builder::new().name("tidegate-epoch".to_owned()).spawn(move || theirs.run(tick))?;
        Ok(Self { shared, thread: handle.thread().clone() })
    }

    /// A guest runs from now on until the value is dropped.
    pub(crate) fn enter(&self) -> Ticking<'_> {
        self.shared.in_flight.fetch_add(1, Ordering::SeqCst);
        if self.shared.parked.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Ticking(&self.shared)
    }

    #[cfg(test)]
    pub(crate) fn is_parked(&self) -> bool {
        self.shared.parked.load(Ordering::SeqCst)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn run(&self, tick: impl Fn() -> bool) {
        let mut idle = 0;
        while !self.stop.load(Ordering::SeqCst) {
            if self.in_flight.load(Ordering::SeqCst) > 0 {
                idle = 0;
            } else {
                idle += 1;
            }
            if idle >= IDLE_TICKS {
                self.park();
                idle = 0;
            }
            std::thread::sleep(TICK);
            if !tick() {
                return;
            }
        }
    }

    /// Sleeps until a call enters. `parked` is set before the count is read and read after the count is raised, so one
    /// of the two sides always sees the other.
    fn park(&self) {
        self.parked.store(true, Ordering::SeqCst);
        while self.in_flight.load(Ordering::SeqCst) == 0 && !self.stop.load(Ordering::SeqCst) {
            std::thread::park();
        }
        self.parked.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use super::Ticker;

    fn until(what: &str, done: impl Fn() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(20), "waited 20 s until {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn dropping_it_ends_its_thread() {
        for parked in [false, true] {
            let alive = Arc::new(());
            let theirs = Arc::clone(&alive);
            let ticker = Ticker::start(move || Arc::strong_count(&theirs) > 0).unwrap();
            if parked {
                until("it parks", || ticker.is_parked());
            }
            drop(ticker);
            until("the thread has ended", || Arc::strong_count(&alive) == 1);
        }
    }

    #[test]
    fn moves_while_a_call_runs_and_parks_when_none_does() {
        let ticks = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&ticks);
        let ticker = Ticker::start(move || {
            theirs.fetch_add(1, Ordering::SeqCst);
            true
        })
        .unwrap();
        for _ in 0..3 {
            until("it parks", || ticker.is_parked());
            let before = ticks.load(Ordering::SeqCst);
            let ticking = ticker.enter();
            until("it has moved on", || ticks.load(Ordering::SeqCst) > before + 3);
            drop(ticking);
        }
    }
}
