//! Keeps a plugin that fails again and again out of the way, with back-off, and says so.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

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
}

impl Breaker {
    /// Why a call would be skipped now; the time is asked for only where it matters. After the back-off it is `None` again: the next call is the trial.
    pub(crate) fn skip_reason(&self, now: impl Fn() -> u64) -> Option<String> {
        if !self.open.load(Ordering::Acquire) {
            return None;
        }
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        let open = state.open.filter(|open| now < open.until)?;
        let left = open.until - now;
        Some(format!(
            "failed {} times within {} s; tried again in {}.{} s",
            state.failures.len(),
            WINDOW_MS / 1000,
            left / 1000,
            left % 1000 / 100
        ))
    }

    /// A call failed at `now`. Tells whether the breaker is open now.
    pub(crate) fn failed(&self, now: u64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.failures.len() >= FAILURES || state.failures.front().is_some_and(|at| at + WINDOW_MS <= now) {
            state.failures.pop_front();
        }
        state.failures.push_back(now);
        if let Some(open) = state.open {
            let back_off = (open.back_off * 2).min(BACK_OFF_MAX_MS);
            state.open = Some(Open { until: now + back_off, back_off });
        } else if state.failures.len() >= FAILURES {
            state.open = Some(Open { until: now + BACK_OFF_MS, back_off: BACK_OFF_MS });
        }
        self.open.store(state.open.is_some(), Ordering::Release);
        state.open.is_some()
    }

    /// A call succeeded: where it was the trial, the breaker closes and what was before counts no more.
    pub(crate) fn succeeded(&self) {
        if !self.open.load(Ordering::Acquire) {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.open = None;
        state.failures.clear();
        self.open.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may")]

    use super::Breaker;

    #[test]
    fn opens_on_the_third_failure_tries_once_and_closes_on_success() {
        let breaker = Breaker::default();
        assert!(!breaker.failed(0));
        assert!(!breaker.failed(10));
        assert_eq!(breaker.skip_reason(|| 10), None);
        assert!(breaker.failed(20));
        assert_eq!(breaker.skip_reason(|| 20).unwrap(), "failed 3 times within 60 s; tried again in 1.0 s");
        assert_eq!(breaker.skip_reason(|| 1020), None, "the trial");
        assert!(breaker.failed(1020));
        assert!(breaker.skip_reason(|| 3019).is_some(), "a failed trial doubles the back-off");
        assert_eq!(breaker.skip_reason(|| 3020), None);
        breaker.succeeded();
        assert!(!breaker.failed(3021), "closed: one failure opens nothing");
    }

    #[test]
    fn failures_far_apart_do_not_add_up() {
        let breaker = Breaker::default();
        for at in 0..10 {
            assert!(!breaker.failed(at * 30_000 + at));
        }
    }
}
