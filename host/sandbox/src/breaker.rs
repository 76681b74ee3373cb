//! A circuit breaker: skips calls of a plugin that fail repeatedly, with back-off, and reports when its state changes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flow::{BreakerScope, BreakerState, Called};

/// So many failures …
const FAILURES: usize = 3;
/// … within so many milliseconds open the breaker.
pub(crate) const WINDOW_MS: u64 = 60_000;
/// The first back-off; each failed trial doubles it.
const BACK_OFF_MS: u64 = 1_000;
/// The longest back-off.
const BACK_OFF_MAX_MS: u64 = 60_000;

/// A breaker of one plugin, for its callbacks or for its tools. Times are milliseconds of the host's clock.
#[derive(Debug)]
pub(crate) struct Breaker {
    scope: BreakerScope,
    /// The last reported [`BreakerState`] as a number. It is read without the lock: by almost every call, and by metrics, which can be
    /// read where a change is reported.
    reported: AtomicU8,
    state: Mutex<State>,
}

/// What is called with each change of a breaker's state, under the lock of the breaker, so that changes are reported in their
/// order. It must not use the breaker.
pub type Report = Box<dyn Fn(Change) + Send + Sync>;

/// A change of a breaker's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The breaker of one session, or of all.
    pub scope: BreakerScope,
    /// The state from now on.
    pub state: BreakerState,
    /// The callback or tool whose call changed it.
    pub called: Called,
    /// What changed it.
    pub reason: String,
    /// Until a call is tried again; 0 unless the breaker is open.
    pub retry_after_ms: u64,
}

#[derive(Debug, Default)]
struct State {
    failures: VecDeque<u64>,
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    until: u64,
    back_off: u64,
    /// The call that is to show whether the plugin works again has been let through and has not ended.
    trial: bool,
}

/// A call that the breaker lets through. Dropped without a result, it leaves the breaker as it was, so that the next call is
/// the trial.
pub(crate) struct Admitted<'a> {
    breaker: &'a Breaker,
    report: &'a Report,
    called: &'a Called,
    trial: bool,
}

impl Breaker {
    /// A closed breaker.
    pub(crate) fn new(scope: BreakerScope) -> Self {
        Self { scope, reported: AtomicU8::new(BreakerState::Closed as u8), state: Mutex::default() }
    }

    /// The state that was reported last, without a lock.
    pub(crate) fn reported(&self) -> BreakerState {
        let number = usize::from(self.reported.load(Ordering::Acquire));
        BreakerState::ALL.get(number).copied().unwrap_or(BreakerState::Closed)
    }

    /// As [`Breaker::admit`], but nothing changes: what would be decided now.
    pub(crate) fn check(&self, now: impl Fn() -> u64) -> Result<(), String> {
        if self.reported() == BreakerState::Closed { Ok(()) } else { self.skips(&self.state(), now()) }
    }

    /// Lets a call through, or returns the reason why it is skipped; the clock is only read when needed. After the
    /// back-off one call is let through, and no other until that one has ended.
    pub(crate) fn admit<'a>(
        &'a self,
        called: &'a Called,
        now: impl Fn() -> u64,
        report: &'a Report,
    ) -> Result<Admitted<'a>, String> {
        let mut admitted = Admitted { breaker: self, report, called, trial: false };
        if self.reported() == BreakerState::Closed {
            return Ok(admitted);
        }
        let mut state = self.state();
        self.skips(&state, now())?;
        if let Some(open) = &mut state.open {
            open.trial = true;
            admitted.trial = true;
            admitted.changed(BreakerState::HalfOpen, "the back-off is over: one call is tried", 0);
        }
        Ok(admitted)
    }

    /// The reason why a call is skipped in this state.
    fn skips(&self, state: &State, now: u64) -> Result<(), String> {
        let Some(open) = &state.open else { return Ok(()) };
        let failures = self.failed_often(state.failures.len());
        let left = open.until.saturating_sub(now);
        if left > 0 {
            return Err(format!("{failures}; tried again in {}.{} s", left / 1000, left % 1000 / 100));
        }
        if open.trial { Err(format!("{failures}; a trial call is under way")) } else { Ok(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed_often(&self, failures: usize) -> String {
        let seconds = WINDOW_MS / 1000;
        match self.scope {
            BreakerScope::Session => format!("failed {failures} times within {seconds} s"),
            BreakerScope::Host => format!("failed repeatedly in {failures} sessions within {seconds} s"),
        }
    }
}

impl Admitted<'_> {
    pub(crate) fn is_trial(&self) -> bool {
        self.trial
    }

    fn changed(&self, state: BreakerState, reason: impl Into<String>, retry_after_ms: u64) {
        self.breaker.reported.store(state as u8, Ordering::Release);
        let (scope, called) = (self.breaker.scope, self.called.clone());
        (self.report)(Change { scope, state, called, reason: reason.into(), retry_after_ms });
    }

    /// The call failed at `now`. Whether it opened the breaker, which was closed.
    pub(crate) fn failed(mut self, now: u64) -> bool {
        let trial = std::mem::take(&mut self.trial);
        let mut state = self.breaker.state();
        while state.failures.len() >= FAILURES || state.failures.front().is_some_and(|at| at + WINDOW_MS <= now) {
            state.failures.pop_front();
        }
        state.failures.push_back(now);
        let (back_off, reason) = match state.open {
            Some(open) if trial => {
                ((open.back_off * 2).min(BACK_OFF_MAX_MS), "the call that was tried failed".to_owned())
            }
            // A call that was let through before the breaker opened does not change its state.
            Some(_) => return false,
            None if state.failures.len() >= FAILURES => (BACK_OFF_MS, self.breaker.failed_often(FAILURES)),
            None => return false,
        };
        state.open = Some(Open { until: now + back_off, back_off, trial: false });
        self.changed(BreakerState::Open, reason, back_off);
        !trial
    }

    /// The call succeeded. Where it was the trial, the breaker closes and earlier failures count no more.
    pub(crate) fn succeeded(mut self) {
        if std::mem::take(&mut self.trial) {
            let mut state = self.breaker.state();
            state.open = None;
            state.failures.clear();
            self.changed(BreakerState::Closed, "the call that was tried succeeded", 0);
        }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.trial
            && let Some(open) = &mut self.breaker.state().open
        {
            open.trial = false;
            self.changed(BreakerState::Open, "the call that was tried was stopped", 0);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use std::sync::{Arc, Mutex};

    use flow::{BreakerScope, CallbackKind, Called};

    use super::{Admitted, Breaker, Report};

    /// A breaker, and where it reports.
    struct Reporting(Breaker, Report);

    /// A breaker, and what it reported.
    fn breaker() -> (Reporting, Arc<Mutex<Vec<String>>>) {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&reports);
        let report = move |change: super::Change| {
            let (state, callback) = (change.state.as_str(), change.called);
            kept.lock().unwrap().push(format!("{state} {} {callback}: {}", change.retry_after_ms, change.reason));
        };
        (Reporting(Breaker::new(BreakerScope::Session), Box::new(report)), reports)
    }

    fn admit(Reporting(breaker, report): &Reporting, at: u64) -> Result<Admitted<'_>, String> {
        let checked = breaker.check(|| at);
        let admitted = breaker.admit(&Called::Callback(CallbackKind::Tag), || at, report);
        assert_eq!(checked.as_ref().err(), admitted.as_ref().err(), "a check predicts the decision");
        admitted
    }

    fn fail(breaker: &Reporting, at: u64) {
        admit(breaker, at).unwrap().failed(at);
    }

    fn is_open(breaker: &Reporting, at: u64) -> bool {
        admit(breaker, at).is_err()
    }

    #[test]
    fn opens_on_the_third_failure_tries_once_and_closes_on_success() {
        let (breaker, reports) = breaker();
        fail(&breaker, 0);
        fail(&breaker, 10);
        assert!(!is_open(&breaker, 10));
        fail(&breaker, 20);
        assert_eq!(admit(&breaker, 20).err().unwrap(), "failed 3 times within 60 s; tried again in 1.0 s");
        fail(&breaker, 1020);
        assert!(is_open(&breaker, 3019), "a failed trial doubles the back-off");
        admit(&breaker, 3020).unwrap().succeeded();
        fail(&breaker, 3021);
        assert!(!is_open(&breaker, 3021), "closed: one failure opens nothing");
        let expected = [
            "open 1000 on_tag: failed 3 times within 60 s",
            "half_open 0 on_tag: the back-off is over: one call is tried",
            "open 2000 on_tag: the call that was tried failed",
            "half_open 0 on_tag: the back-off is over: one call is tried",
            "closed 0 on_tag: the call that was tried succeeded",
        ];
        assert_eq!(*reports.lock().unwrap(), expected, "each change once, and nothing for calls that are skipped");
    }

    #[test]
    fn one_call_is_the_trial_however_many_wait() {
        let (breaker, reports) = breaker();
        (0..3).for_each(|at| fail(&breaker, at));
        let trial = admit(&breaker, 2000).unwrap();
        for _ in 0..10 {
            let skipped = admit(&breaker, 2000).err().unwrap();
            assert_eq!(skipped, "failed 3 times within 60 s; a trial call is under way");
        }
        drop(trial);
        let trial = admit(&breaker, 2000).unwrap_or_else(|_| panic!("a trial that was stopped gives way to another"));
        assert!(is_open(&breaker, 2000));
        trial.failed(2000);
        assert!(is_open(&breaker, 3999));
        let states: Vec<String> =
            reports.lock().unwrap().iter().map(|line| line.split(" on_tag").next().unwrap().to_owned()).collect();
        assert_eq!(states, ["open 1000", "half_open 0", "open 0", "half_open 0", "open 2000"]);
        assert!(!is_open(&breaker, 4000));
    }

    #[test]
    fn calls_let_through_before_it_opened_do_not_count_as_trials() {
        let (breaker, reports) = breaker();
        let early: Vec<_> = (0..5).map(|_| admit(&breaker, 0).unwrap()).collect();
        let mut early = early.into_iter();
        let opened: Vec<bool> = early.by_ref().take(4).map(|call| call.failed(0)).collect();
        assert_eq!(opened, [false, false, true, false]);
        assert_eq!(reports.lock().unwrap().len(), 1, "the fourth failure changes nothing");
        assert!(is_open(&breaker, 999) && !is_open(&breaker, 1000), "the fourth failure did not double the back-off");
        early.for_each(Admitted::succeeded);
        assert!(is_open(&breaker, 999), "nor does a late success close it");
    }

    #[test]
    fn failures_far_apart_do_not_add_up() {
        let (breaker, reports) = breaker();
        for at in 0..10 {
            fail(&breaker, at * 30_000 + at);
            assert!(!is_open(&breaker, at * 30_000 + at));
        }
        assert!(reports.lock().unwrap().is_empty());
    }
}
