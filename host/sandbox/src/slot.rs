//! One plugin in one session: its instance, what it has used up, and how its next call is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use flow::{CallFailure, Callback, CallbackKind, FailureCause, OutputMode};
use tokio::sync::{Mutex, MutexGuard};
use turn::ports::SessionView;
use wasmtime::Store;

use crate::breaker::Breaker;
use crate::failure::Described;
use crate::guest::Guest;
use crate::load::Loaded;
use crate::meter::Meter;
use crate::v0_1::Calls;

/// Calls with at most this budget may run on the caller's stack. A stack of their own costs a fifth more for a short
/// text (the bench `callback`), which alone is most of what the host may add. The price: a guest can keep a worker
/// from other tasks this long, once, since only a plugin whose calls were short until now is trusted so.
const INLINE_BUDGET: Duration = Duration::from_millis(20);
/// A call that took longer than this was not short.
const SHORT: Duration = Duration::from_millis(1);
/// After a call that was not short so many run on a stack of their own.
const PROBATION: u32 = 1000;

/// One plugin in one session.
pub(crate) struct Slot {
    pub(crate) plugin: Arc<Loaded>,
    pub(crate) breaker: Breaker,
    /// Calls that have yet to run on a stack of their own; see [`PROBATION`].
    probation: AtomicU32,
    /// One more than the turn whose time is used up; 0 = none is.
    used_up: AtomicU32,
    /// Held during a call: calls are serial.
    inner: Mutex<Inner>,
}

/// What a call has to itself.
pub(crate) struct Inner {
    /// The instance; taken out for a call, so that a call which is dropped takes it along.
    pub(crate) live: Option<Box<Live>>,
    pub(crate) spent: Spent,
}

/// An instance.
pub(crate) struct Live {
    pub(crate) store: Store<Guest>,
    pub(crate) calls: Calls,
    /// The meter of the store's guest.
    pub(crate) meter: Arc<Meter>,
}

impl Slot {
    pub(crate) fn new(plugin: Arc<Loaded>) -> Self {
        let inner = Mutex::new(Inner { live: None, spent: Spent::default() });
        let (probation, used_up) = (AtomicU32::new(0), AtomicU32::new(0));
        Self { plugin, breaker: Breaker::default(), probation, used_up, inner }
    }

    pub(crate) async fn lock(&self) -> MutexGuard<'_, Inner> {
        match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(_) => self.inner.lock().await,
        }
    }

    pub(crate) fn may_run_inline(&self, budget: Duration) -> bool {
        budget <= INLINE_BUDGET && self.probation.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn note_duration(&self, took: Duration) {
        if took > SHORT {
            self.probation.store(PROBATION, Ordering::Relaxed);
        } else {
            let left = self.probation.load(Ordering::Relaxed);
            if left > 0 {
                self.probation.store(left - 1, Ordering::Relaxed);
            }
        }
    }

    fn turn_used_up(&self) -> Described {
        let millis = self.plugin.identity.limits.turn_time.as_millis();
        let message = format!("has used up the {millis} ms that all its callbacks of one turn have together");
        Described { cause: FailureCause::Timeout, message, frames: Vec::new() }
    }

    pub(crate) fn failure(&self, callback: CallbackKind, described: Described) -> CallFailure {
        let Described { cause, message, frames } = described;
        CallFailure { plugin: self.plugin.identity.id.clone(), callback, cause, message, frames }
    }

    /// Whether its time in the current turn is used up, and the words for it.
    pub(crate) fn used_up(&self, view: &dyn SessionView) -> Option<String> {
        let used_up = self.used_up.load(Ordering::Relaxed);
        if used_up == 0 {
            return None;
        }
        if view.info().place.turn.saturating_add(1) == used_up {
            return Some(self.turn_used_up().message);
        }
        self.used_up.store(0, Ordering::Relaxed);
        None
    }

    /// The time the next call has, or the failure that it has none.
    pub(crate) fn budget(
        &self,
        inner: &mut Inner,
        view: &dyn SessionView,
        callback: CallbackKind,
    ) -> Result<Duration, CallFailure> {
        let limits = &self.plugin.identity.limits;
        match inner.spent.left(view, limits.turn_time) {
            Some(left) => Ok(left.min(limits.time_of(callback))),
            None => {
                self.used_up.store(inner.spent.turn.saturating_add(1), Ordering::Relaxed);
                Err(self.failure(callback, self.turn_used_up()))
            }
        }
    }

    pub(crate) fn output_mode(&self) -> OutputMode {
        let mut callbacks = self.plugin.registration.callbacks.iter();
        let mode = callbacks.find_map(|(c, _)| if let Callback::LlmOutput(mode) = c { Some(*mode) } else { None });
        mode.unwrap_or(OutputMode::Observe)
    }
}

/// The own time that the callbacks of a turn used. Asking which turn it is costs as much as a short call, so it is asked
/// only after each sixteenth of what a turn may take; what was counted since then belongs to the turn found.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    turn: u32,
    time: Duration,
    unasked: Duration,
}

impl Spent {
    pub(crate) fn add(&mut self, took: Duration) {
        self.unasked += took;
    }

    /// What is left of `max`, or `None` where nothing is.
    fn left(&mut self, view: &dyn SessionView, max: Duration) -> Option<Duration> {
        if self.unasked >= max / 16 {
            let turn = view.info().place.turn;
            if turn != self.turn {
                (self.turn, self.time) = (turn, Duration::ZERO);
            }
            self.time += std::mem::take(&mut self.unasked);
        }
        if self.time >= max {
            // The turn may have ended since.
            let turn = view.info().place.turn;
            if turn == self.turn {
                return None;
            }
            (self.turn, self.time) = (turn, Duration::ZERO);
        }
        Some(max - self.time)
    }
}
