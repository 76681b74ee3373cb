//! A circuit breaker: skips a plugin that fails repeatedly, with back-off, and reports it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many failures …
const FAILURES: usize = 3;
/// … within so many milliseconds open the breaker.
const WINDOW_MS: u64 = 60_000;
/// The first back-off; each failed trial doubles it.
const BACK_OFF_MS: u64 = 1_000;
/// The longest back-off.
const BACK_OFF_MAX_MS: u64 = 60_000;

/// The breaker of one plugin in one session. Times are milliseconds of the host's clock.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// Whether `state.open` is set, for the way that almost every call takes.
    open: AtomicBool,
    state: Mutex<State>,
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
#[derive(Debug)]
pub(crate) struct Admitted<'a> {
    breaker: &'a Breaker,
    trial: bool,
}

impl Breaker {
    /// Lets a call through, or returns the reason why it is skipped; the clock is only read when needed. After the
    /// back-off one call is let through, and no other until that one has ended.
    pub(crate) fn admit(&self, now: impl Fn() -> u64) -> Result<Admitted<'_>, String> {
        if !self.open.load(Ordering::Acquire) {
            return Ok(Admitted { breaker: self, trial: false });
        }
        let mut state = self.state();
        let failures = format!("failed {} times within {} s", state.failures.len(), WINDOW_MS / 1000);
        let Some(open) = &mut state.open else { return Ok(Admitted { breaker: self, trial: false }) };
        let left = open.until.saturating_sub(now());
        if left > 0 {
            return Err(format!("{failures}; tried again in {}.{} s", left / 1000, left % 1000 / 100));
        }
        if open.trial {
            return Err(format!("{failures}; a trial call is under way"));
        }
        open.trial = true;
        Ok(Admitted { breaker: self, trial: true })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Admitted<'_> {
    /// The call failed at `now`.
    pub(crate) fn failed(mut self, now: u64) {
        let mut state = self.breaker.state();
        while state.failures.len() >= FAILURES || state.failures.front().is_some_and(|at| at + WINDOW_MS <= now) {
            state.failures.pop_front();
        }
        state.failures.push_back(now);
        let opened = |back_off| Some(Open { until: now + back_off, back_off, trial: false });
        if let Some(open) = state.open {
            // A call that was let through before the breaker opened does not change its state.
            if self.trial {
                state.open = opened((open.back_off * 2).min(BACK_OFF_MAX_MS));
            }
        } else if state.failures.len() >= FAILURES {
            state.open = opened(BACK_OFF_MS);
        }
        self.breaker.open.store(state.open.is_some(), Ordering::Release);
        self.trial = false;
    }

    /// The call succeeded. Where it was the trial, the breaker closes and earlier failures count no more.
    pub(crate) fn succeeded(mut self) {
        if std::mem::take(&mut self.trial) {
            let mut state = self.breaker.state();
            state.open = None;
            state.failures.clear();
            self.breaker.open.store(false, Ordering::Release);
        }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if self.trial
            && let Some(open) = &mut self.breaker.state().open
        {
            open.trial = false;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use super::Breaker;

    fn fail(breaker: &Breaker, at: u64) {
        breaker.admit(|| at).unwrap().failed(at);
    }

    fn is_open(breaker: &Breaker, at: u64) -> bool {
        breaker.admit(|| at).is_err()
    }

    #[test]
    fn opens_on_the_third_failure_tries_once_and_closes_on_success() {
        let breaker = Breaker::default();
        fail(&breaker, 0);
        fail(&breaker, 10);
        assert!(!is_open(&breaker, 10));
        fail(&breaker, 20);
        assert_eq!(breaker.admit(|| 20).unwrap_err(), "failed 3 times within 60 s; tried again in 1.0 s");
        fail(&breaker, 1020);
        assert!(is_open(&breaker, 3019), "a failed trial doubles the back-off");
        breaker.admit(|| 3020).unwrap().succeeded();
        fail(&breaker, 3021);
        assert!(!is_open(&breaker, 3021), "closed: one failure opens nothing");
    }

    #[test]
    fn one_call_is_the_trial_however_many_wait() {
        let breaker = Breaker::default();
        (0..3).for_each(|at| fail(&breaker, at));
        let trial = breaker.admit(|| 2000).unwrap();
        for _ in 0..10 {
            let skipped = breaker.admit(|| 2000).unwrap_err();
            assert_eq!(skipped, "failed 3 times within 60 s; a trial call is under way");
        }
        drop(trial);
        let trial = breaker.admit(|| 2000).expect("a trial that was stopped gives way to another");
        assert!(is_open(&breaker, 2000));
        trial.failed(2000);
        assert!(is_open(&breaker, 3999) && !is_open(&breaker, 4000));
    }

    #[test]
    fn calls_let_through_before_it_opened_do_not_count_as_trials() {
        let breaker = Breaker::default();
        let early: Vec<_> = (0..5).map(|_| breaker.admit(|| 0).unwrap()).collect();
        let mut early = early.into_iter();
        early.by_ref().take(4).for_each(|call| call.failed(0));
        assert!(is_open(&breaker, 999) && !is_open(&breaker, 1000), "the fourth failure did not double the back-off");
        early.for_each(super::Admitted::succeeded);
        assert!(is_open(&breaker, 999), "nor does a late success close it");
    }

    #[test]
    fn failures_far_apart_do_not_add_up() {
        let breaker = Breaker::default();
        for at in 0..10 {
            fail(&breaker, at * 30_000 + at);
            assert!(!is_open(&breaker, at * 30_000 + at));
        }
    }
}
