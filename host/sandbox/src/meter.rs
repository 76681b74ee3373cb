//! The time that a guest itself uses: from each resume to the next yield, never the wait for a busy executor.
//!
//! A call is polled, in one or several stretches. Within a stretch the thread may also lose the processor, which is not
//! the guest's doing either, so a stretch is measured by the processor time of its thread. Reading that clock is a system
//! call, as expensive as a short callback. It is therefore read only after the epoch has moved under the guest; what ran
//! before that is at most one tick, and is charged by the wall clock up to that limit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::ticker::TICK;

/// The own time of the calls of one instance, one call after the other. Shared by the task that polls a call and by the
/// epoch's callback, which both run on the thread that polls; the atomics only let the value move between threads.
#[derive(Debug)]
pub(crate) struct Meter {
    anchor: Instant,
    /// Nanoseconds of the stretches of this call that are over.
    spent: AtomicU64,
    /// When the current stretch began, in nanoseconds after `anchor`.
    resumed: AtomicU64,
    /// What the current stretch is charged for the time before `baseline` was read.
    lead: AtomicU64,
    /// One more than the thread's processor time in nanoseconds; 0 = not read in this stretch.
    baseline: AtomicU64,
    /// The call has been polled before, so that it is long enough to read the processor time at each resume.
    polled: AtomicBool,
}

/// The own time of a call while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Since the call began.
    pub(crate) call: Duration,
    /// Since it was resumed last.
    pub(crate) stretch: Duration,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let zero = || AtomicU64::new(0);
        let (spent, resumed, lead, baseline) = (zero(), zero(), zero(), zero());
        Self { anchor: Instant::now(), spent, resumed, lead, baseline, polled: AtomicBool::new(false) }
    }

    /// A call begins: it has used nothing yet.
    pub(crate) fn begin(&self) {
        self.spent.store(0, Ordering::Relaxed);
        self.polled.store(false, Ordering::Relaxed);
    }

    /// Runs one stretch of the call.
    pub(crate) fn stretch<T>(&self, poll: impl FnOnce() -> T) -> T {
        let again = self.polled.swap(true, Ordering::Relaxed);
        self.baseline.store(if again { processor_time() + 1 } else { 0 }, Ordering::Relaxed);
        self.lead.store(0, Ordering::Relaxed);
        self.resumed.store(self.now(), Ordering::Relaxed);
        let polled = poll();
        let used = match self.baseline.load(Ordering::Relaxed) {
            0 => self.before_first_tick(),
            baseline => self.since(baseline),
        };
        self.spent.fetch_add(used, Ordering::Relaxed);
        polled
    }

    /// The epoch has moved while the guest ran.
    pub(crate) fn tick(&self) -> Reading {
        let stretch = match self.baseline.load(Ordering::Relaxed) {
            0 => {
                let lead = self.before_first_tick();
                self.lead.store(lead, Ordering::Relaxed);
                self.baseline.store(processor_time() + 1, Ordering::Relaxed);
                lead
            }
            baseline => self.since(baseline),
        };
        let call = Duration::from_nanos(self.spent.load(Ordering::Relaxed) + stretch);
        Reading { call, stretch: Duration::from_nanos(stretch) }
    }

    /// The own time of the call, all of whose stretches are over.
    pub(crate) fn spent(&self) -> Duration {
        Duration::from_nanos(self.spent.load(Ordering::Relaxed))
    }

    /// A guest that has seen no tick ran for less than one, whatever the wall clock shows.
    fn before_first_tick(&self) -> u64 {
        self.now().saturating_sub(self.resumed.load(Ordering::Relaxed)).min(nanos(TICK))
    }

    fn since(&self, baseline: u64) -> u64 {
        self.lead.load(Ordering::Relaxed) + (processor_time() + 1).saturating_sub(baseline)
    }

    fn now(&self) -> u64 {
        nanos(self.anchor.elapsed())
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds for which the current thread has had a processor.
#[cfg(unix)]
fn processor_time() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or_default())
}

/// Where a thread's processor time cannot be asked for, the wall clock is the closest bound.
#[cfg(not(unix))]
fn processor_time() -> u64 {
    static ANCHOR: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    nanos(ANCHOR.elapsed())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Meter;
    use crate::ticker::TICK;

    fn work(time: Duration) {
        let start = Instant::now();
        while start.elapsed() < time {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn a_thread_that_does_not_run_is_not_charged() {
        let meter = Meter::new();
        meter.begin();
        meter.stretch(|| std::thread::sleep(Duration::from_millis(30)));
        assert!(meter.spent() <= TICK, "{:?} before any tick", meter.spent());
        meter.begin();
        let reading = meter.stretch(|| {
            meter.tick();
            std::thread::sleep(Duration::from_millis(30));
            meter.tick()
        });
        assert!(reading.call < Duration::from_millis(10), "{reading:?} after a tick");
    }

    #[test]
    fn the_time_between_two_stretches_is_not_charged() {
        let meter = Meter::new();
        meter.begin();
        for _ in 0..5 {
            meter.stretch(|| ());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(meter.spent() < Duration::from_millis(5), "{:?}", meter.spent());
    }

    #[test]
    fn work_is_charged_in_every_stretch() {
        let meter = Meter::new();
        meter.begin();
        meter.stretch(|| work(TICK));
        let reading = meter.stretch(|| {
            work(Duration::from_millis(20));
            meter.tick()
        });
        // The machine may take the processor away from `work`, so less than the wall time is charged, but not nothing.
        assert!(reading.stretch > Duration::from_millis(1), "{reading:?}");
        assert!(reading.call > reading.stretch, "the first stretch counts as well: {reading:?}");
        assert!(meter.spent() >= reading.call);
        meter.begin();
        assert_eq!(meter.spent(), Duration::ZERO, "a new call has used nothing");
    }
}
