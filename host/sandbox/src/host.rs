//! The loaded plugins as the turn sees them: registrations, sessions, calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flow::{
    CallFailure, Callback, CallbackKind, FailureCause, InputAnswer, Message, ModelOutput, OutputAnswer, OutputMode,
    Registration, SessionId, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace,
};
use tokio::sync::{Mutex, MutexGuard};
use turn::ports::{BoxFuture, Clock, EventSink, ExtensionHost, Extensions, SessionView, TtsrEvent};
use wasmtime::Store;

use crate::breaker::Breaker;
use crate::error::DuplicatePlugin;
use crate::failure::{Described, describe, describe_start};
use crate::guest::{Guest, Scene, Session};
use crate::load::{Loaded, Plugin};
use crate::state::{States, Transaction};
use crate::v0_1::{Call, Calls, InputMessages, LlmOutput, PlainText, TagSection, TtsrTriggered};

/// Calls with at most this budget may run on the caller's stack, which costs half of what a stack of their own does.
/// That is how long a guest can keep a worker from other tasks, and only as long as its calls were short until now.
const INLINE_BUDGET: Duration = Duration::from_millis(20);
/// A call that took longer than this was not short.
const SHORT: Duration = Duration::from_millis(1);
/// After a call that was not short so many run on a stack of their own.
const PROBATION: u32 = 1000;

/// The loaded plugins, in order of registration.
pub struct SandboxHost {
    plugins: Vec<Plugin>,
    states: Arc<States>,
    clock: Arc<dyn Clock>,
}

impl SandboxHost {
    /// Puts plugins together; their order is the order of registration.
    ///
    /// # Errors
    /// Two of them have one id.
    pub fn new(plugins: Vec<Plugin>) -> Result<Self, DuplicatePlugin> {
        Self::with_clock(plugins, Arc::new(SystemClock))
    }

    /// As [`SandboxHost::new`], with a clock for the breaker and for the life of stored values. Time limits of calls
    /// are always real time.
    ///
    /// # Errors
    /// Two plugins have one id.
    pub fn with_clock(plugins: Vec<Plugin>, clock: Arc<dyn Clock>) -> Result<Self, DuplicatePlugin> {
        for (at, plugin) in plugins.iter().enumerate() {
            if plugins.iter().take(at).any(|other| other.id() == plugin.id()) {
                return Err(DuplicatePlugin(plugin.id().clone()));
            }
        }
        Ok(Self { plugins, states: Arc::default(), clock })
    }

    /// The plugins.
    pub fn plugins(&self) -> &[Plugin] {
        &self.plugins
    }

    /// Throws away what plugins keep of a session. Until then a session that is opened again finds its state.
    pub fn forget(&self, session: &SessionId) {
        self.states.forget(session);
    }
}

impl ExtensionHost for SandboxHost {
    fn registrations(&self) -> Vec<Registration> {
        self.plugins.iter().map(|plugin| plugin.registration().clone()).collect()
    }

    fn open(&self, session: SessionId, view: Arc<dyn SessionView>, events: Arc<dyn EventSink>) -> Arc<dyn Extensions> {
        let clock = Arc::clone(&self.clock);
        let session = Arc::new(Session { id: session, view, events, clock });
        let slots = self.plugins.iter().map(|plugin| Slot::new(Arc::clone(&plugin.loaded))).collect();
        Arc::new(SessionExtensions { session, states: Arc::clone(&self.states), slots })
    }
}

/// The extensions of one session.
struct SessionExtensions {
    session: Arc<Session>,
    states: Arc<States>,
    slots: Vec<Slot>,
}

/// One plugin in one session.
struct Slot {
    plugin: Arc<Loaded>,
    breaker: Breaker,
    /// Calls that have yet to run on a stack of their own; see [`PROBATION`].
    probation: AtomicU32,
    /// Held during a call: calls are serial.
    inner: Mutex<Inner>,
}

/// What a call has to itself.
struct Inner {
    /// The instance; taken out for a call, so that a call which is dropped takes it along.
    live: Option<Box<Live>>,
    spent: Spent,
}

/// An instance.
struct Live {
    store: Store<Guest>,
    calls: Calls,
}

impl SessionExtensions {
    async fn call<C: Call>(&self, plugin: usize, call: C) -> Result<C::Answer, CallFailure> {
        let slot = &self.slots[plugin];
        let mut inner = slot.lock().await;
        let budget = match inner.spent.left(&*self.session.view, slot.plugin.identity.limits.turn_time) {
            Some(left) => left.min(slot.plugin.identity.limits.time_of(C::KIND)),
            None => return Err(slot.failure(C::KIND, slot.turn_used_up())),
        };
        let _ticking = slot.plugin.machine.ticking();
        let started = Instant::now();
        let mut live = match inner.live.take() {
            Some(live) => live,
            None => match self.start(&slot.plugin).await {
                Ok(live) => live,
                Err(described) => return Err(self.failed(slot, C::KIND, described)),
            },
        };
        Guest::begin(&mut live.store, Instant::now() + budget, slot.may_run_inline(budget));
        let answer = call.run(&live.calls, &mut live.store).await;
        let took = started.elapsed();
        inner.spent.add(took);
        slot.note_duration(took);
        live.store.data_mut().end_log();
        match answer {
            Ok(answer) => {
                live.store.data_mut().commit();
                inner.live = Some(live);
                slot.breaker.succeeded();
                Ok(answer)
            }
            Err(fault) => {
                let described = describe(fault, &mut live.store, budget.as_millis());
                Err(self.failed(slot, C::KIND, described))
            }
        }
    }

    /// Makes an instance. On a stack of its own: a start function may take its time.
    async fn start(&self, plugin: &Loaded) -> Result<Box<Live>, Described> {
        let area = self.states.area(&self.session.id, &plugin.identity.id);
        let scene = Scene::Session(Arc::clone(&self.session), Transaction::new(area));
        let mut store = Guest::store(&plugin.machine, Arc::clone(&plugin.identity), scene);
        let time = plugin.identity.limits.time;
        Guest::begin(&mut store, Instant::now() + time, false);
        let started = match plugin.ready.instantiate_async(&mut store).await {
            Ok(instance) => plugin.exports.load(&mut store, &instance),
            Err(error) => Err(error),
        };
        match started {
            Ok(calls) => Ok(Box::new(Live { store, calls })),
            Err(error) => Err(describe_start(&error, &mut store, time.as_millis())),
        }
    }

    fn failed(&self, slot: &Slot, callback: CallbackKind, described: Described) -> CallFailure {
        slot.breaker.failed(self.session.clock.now_ms());
        slot.failure(callback, described)
    }
}

impl Slot {
    fn new(plugin: Arc<Loaded>) -> Self {
        let inner = Mutex::new(Inner { live: None, spent: Spent::default() });
        Self { plugin, breaker: Breaker::default(), probation: AtomicU32::new(0), inner }
    }

    async fn lock(&self) -> MutexGuard<'_, Inner> {
        match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(_) => self.inner.lock().await,
        }
    }

    fn may_run_inline(&self, budget: Duration) -> bool {
        budget <= INLINE_BUDGET && self.probation.load(Ordering::Relaxed) == 0
    }

    fn note_duration(&self, took: Duration) {
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

    fn failure(&self, callback: CallbackKind, described: Described) -> CallFailure {
        let Described { cause, message, frames } = described;
        CallFailure { plugin: self.plugin.identity.id.clone(), callback, cause, message, frames }
    }

    fn output_mode(&self) -> OutputMode {
        let mut callbacks = self.plugin.registration.callbacks.iter();
        let mode = callbacks.find_map(|(c, _)| if let Callback::LlmOutput(mode) = c { Some(*mode) } else { None });
        mode.unwrap_or(OutputMode::Observe)
    }
}

impl Extensions for SessionExtensions {
    fn input_messages<'a>(
        &'a self,
        plugin: usize,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<InputAnswer, CallFailure>> {
        Box::pin(self.call(plugin, InputMessages(messages)))
    }

    fn plain_text<'a>(
        &'a self,
        plugin: usize,
        text: &'a str,
        place: &'a TextPlace,
    ) -> BoxFuture<'a, Result<TextAnswer, CallFailure>> {
        Box::pin(self.call(plugin, PlainText(text, place)))
    }

    fn tag<'a>(
        &'a self,
        plugin: usize,
        tag: &'a Tag,
        place: &'a TagPlace,
    ) -> BoxFuture<'a, Result<TagAnswer, CallFailure>> {
        Box::pin(self.call(plugin, TagSection(tag, place)))
    }

    fn llm_output<'a>(
        &'a self,
        plugin: usize,
        output: &'a ModelOutput,
    ) -> BoxFuture<'a, Result<OutputAnswer, CallFailure>> {
        let mode = self.slots[plugin].output_mode();
        Box::pin(self.call(plugin, LlmOutput(output, mode)))
    }

    fn ttsr_triggered<'a>(&'a self, plugin: usize, event: &'a TtsrEvent) -> BoxFuture<'a, Result<(), CallFailure>> {
        Box::pin(self.call(plugin, TtsrTriggered(event)))
    }

    fn skip_reason(&self, plugin: usize, _callback: CallbackKind) -> Option<String> {
        self.slots[plugin].breaker.skip_reason(self.session.clock.now_ms())
    }
}

/// The time that the callbacks of a turn took. Asking which turn it is costs as much as a short call, so it is asked
/// only after each sixteenth of what a turn may take; what was counted since then belongs to the turn found.
#[derive(Debug, Default)]
struct Spent {
    turn: u32,
    time: Duration,
    unasked: Duration,
}

impl Spent {
    fn add(&mut self, took: Duration) {
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

/// The clock on the wall.
#[derive(Debug)]
struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

impl std::fmt::Debug for SandboxHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SandboxHost").field("plugins", &self.plugins).finish_non_exhaustive()
    }
}
