//! One plugin in one session: its instances, what it has used up, and how its next call is made.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use flow::ports::SessionView;
use flow::{CallFailure, Callback, CallbackKind, Called, NoAnswer, OutputMode, PluginId};
use tokio::sync::{Mutex, MutexGuard, OnceCell};
use wasmtime::Store;

use crate::breakers::SessionBreakers;
use crate::failure::Described;
use crate::guest::Guest;
use crate::instances::{Idle, Seat};
use crate::interface::Interface;
use crate::load::Loaded;
use crate::meter::Meter;
use crate::state::SharedArea;
use crate::v0_1::Calls;

/// Calls with at most this budget may run on the caller's stack. A stack of their own costs a fifth more for a short
/// text (the bench `callback`), which alone is most of what the host may add. The price: a guest can keep a worker
/// from other tasks this long, once, since only a plugin whose calls were short until now is trusted so.
const INLINE_BUDGET: Duration = Duration::from_millis(20);
/// A callback is not started with less: it would end in the middle.
const LEAST: Duration = Duration::from_millis(1);
/// A call that took longer than this was not short.
const SHORT: Duration = Duration::from_millis(1);
/// After a call that was not short so many run on a stack of their own.
const PROBATION: u32 = 1000;

/// One plugin in one session.
pub(crate) struct Slot {
    pub(crate) plugin: Arc<Loaded>,
    pub(crate) breakers: SessionBreakers,
    /// Calls that have yet to run on a stack of their own; see [`PROBATION`].
    probation: AtomicU32,
    spent: std::sync::Mutex<Spent>,
    /// What the plugin keeps in the session, once `loaded`.
    pub(crate) area: SharedArea,
    /// Set when the area has what the store has.
    pub(crate) loaded: OnceCell<()>,
    /// Whether what the area has is of the plugin's `state_version`, or why it cannot be used.
    pub(crate) migrated: OnceCell<Result<(), Described>>,
    /// Counts the discarded attempts whose writes instances may remember: calls get instances of this generation.
    pub(crate) generation: AtomicU64,
    /// Of all callbacks but `ttsr_triggered`. Locked during a call: calls are serial.
    pub(crate) main: Lane,
    /// Whether the instance in `main` can be dropped for another call.
    pub(crate) idle: Idle,
    /// Locked during a call of `ttsr_triggered`, which nothing waits for and which must make nothing wait: each has an instance of its
    /// own, which ends with it. Rules fire rarely, and kept instances would be half of the memory of an idle session.
    pub(crate) notices: Mutex<()>,
}

/// The instance of some callbacks, while there is one. It is taken out for a call, so that a call which is dropped takes it
/// along.
pub(crate) type Lane = Mutex<Option<Box<Live>>>;

/// A running instance: its store, its exports, and since when it is idle.
pub(crate) struct Live {
    pub(crate) store: Store<Guest>,
    pub(crate) calls: Calls,
    /// The meter of the store's guest.
    pub(crate) meter: Arc<Meter>,
    /// The generation of its slot when it was started.
    pub(crate) generation: u64,
    /// Given back after the store was dropped.
    pub(crate) _seat: Seat,
}

/// Waits for a lane, without the cost of waiting where it is free.
pub(crate) async fn lock<T>(lane: &Mutex<T>) -> MutexGuard<'_, T> {
    match lane.try_lock() {
        Ok(guard) => guard,
        Err(_) => lane.lock().await,
    }
}

impl Slot {
    pub(crate) fn new(plugin: Arc<Loaded>, area: SharedArea, breakers: SessionBreakers) -> Self {
        Self {
            plugin,
            area,
            loaded: OnceCell::new(),
            migrated: OnceCell::new(),
            generation: AtomicU64::new(0),
            breakers,
            probation: AtomicU32::new(0),
            spent: std::sync::Mutex::default(),
            main: Mutex::new(None),
            idle: Idle::default(),
            notices: Mutex::new(()),
        }
    }

    pub(crate) fn id(&self) -> &PluginId {
        &self.plugin.identity.id
    }

    /// Another version of the plugin, which continues with the state. It has no instances yet, and a failure of the version before
    /// it does not count.
    pub(crate) fn with_plugin(&self, plugin: Arc<Loaded>, breakers: SessionBreakers) -> Self {
        // A version without the power has read nothing.
        let has_read = self.plugin.imports.contains(&Interface::State);
        let loaded = OnceCell::new_with(self.loaded.get().copied().filter(|()| has_read));
        Self { loaded, ..Self::new(plugin, self.area.clone(), breakers) }
    }

    /// Drops the instance, unless a call runs in it: it takes its instance along.
    pub(crate) fn drop_instance(&self) {
        if let Ok(mut live) = self.main.try_lock() {
            *live = None;
        }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Takes the instance of a lane out, unless it is of an earlier generation.
    pub(crate) fn take(&self, lane: &mut Option<Box<Live>>) -> Option<Box<Live>> {
        lane.take().filter(|live| live.generation == self.generation())
    }

    pub(crate) fn may_run_inline(&self, budget: Duration) -> bool {
        budget <= INLINE_BUDGET && self.probation.load(Ordering::Relaxed) == 0
    }

    /// A call has used this much of its own time. That of tools is nobody else's: a slow tool must not cost the turn its guards. Nor
    /// does a notice that outlived its turn cost the next one anything.
    pub(crate) fn note_used(&self, called: &Called, used: Duration, is_of_turn: impl FnOnce() -> bool) {
        if let Called::Tool(_) = called {
            return;
        }
        if is_of_turn() && counts_for_turn(called) {
            self.spent().add(used);
        }
        if used > SHORT {
            self.probation.store(PROBATION, Ordering::Relaxed);
        } else {
            let left = self.probation.load(Ordering::Relaxed);
            if left > 0 {
                self.probation.store(left - 1, Ordering::Relaxed);
            }
        }
    }

    /// The words of a guest's error or panic can contain what it was given: a secret in them is masked.
    pub(crate) fn failure(&self, called: Called, described: Described) -> NoAnswer {
        let Described { cause, message, frames } = described;
        let message = secrets::without_secrets(&message).into_owned();
        CallFailure { plugin: self.plugin.identity.id.clone(), called, cause, message, frames }.into()
    }

    /// The time the next call has; a callback is skipped where the turn has none left.
    pub(crate) fn budget(&self, view: &dyn SessionView, called: &Called) -> Result<Duration, NoAnswer> {
        let limits = &self.plugin.identity.limits;
        let &Called::Callback(callback) = called else { return Ok(limits.tool_time) };
        if !counts_for_turn(called) {
            return Ok(limits.time_of(callback));
        }
        match self.spent().left(view, limits.turn_time) {
            Some(left) if left >= LEAST => Ok(left.min(limits.time_of(callback))),
            Some(_) | None => Err(self.turn_time_spent()),
        }
    }

    /// The answer of a callback for which the turn has no time left.
    pub(crate) fn turn_time_spent(&self) -> NoAnswer {
        let millis = self.plugin.identity.limits.turn_time.as_millis();
        NoAnswer::NotPermitted(format!("has used up the {millis} ms that all its callbacks of one turn have together"))
    }

    /// Whether a callback with this budget has less time than its own limit, because the turn has no more.
    pub(crate) fn is_cut_by_turn(&self, called: &Called, budget: Duration) -> bool {
        match called {
            Called::Callback(callback) => {
                counts_for_turn(called) && budget < self.plugin.identity.limits.time_of(*callback)
            }
            Called::Tool(_) => false,
        }
    }

    fn spent(&self) -> std::sync::MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn output_mode(&self) -> OutputMode {
        let mut callbacks = self.plugin.registration.callbacks.iter();
        let mode =
            callbacks.find_map(|one| if let Callback::LlmOutput(mode) = one.callback { Some(mode) } else { None });
        mode.unwrap_or(OutputMode::Observe)
    }
}

/// Whether the own time of a call is part of that of the turn. How many calls of tools there are is for the model to decide: it must
/// not be able to use up the time of what guards against it.
fn counts_for_turn(called: &Called) -> bool {
    !matches!(called, Called::Tool(_) | Called::Callback(CallbackKind::ToolCall | CallbackKind::ToolResult))
}

/// The own time that the callbacks of a turn used. Asking which turn it is costs as much as a short call, so it is asked
/// only after each sixteenth of what a turn may take; what was counted since then belongs to the turn found.
#[derive(Debug, Default)]
struct Spent {
    turn: u32,
    time: Duration,
    unasked: Duration,
}

impl Spent {
    fn add(&mut self, used: Duration) {
        self.unasked += used;
    }

    /// The rest of `max`, or `None` if it is used up.
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
