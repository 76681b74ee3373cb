//! The plugins of one session, and the course of a call: breaker, lane, instance, guest, commit or failure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use flow::ports::{
    AbsentState, AttemptEnd, BoxFuture, Extensions, KnownPlugins, Progress, StateChange, StateError, TtsrEvent,
};
use flow::{
    AskedCall, CallAnswer, Called, EventKind, FailureCause, GivenResult, InputAnswer, Message, ModelOutput, NoAnswer,
    OutputAnswer, PluginId, Reasons as _, ResultAnswer, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, ToolCall,
    ToolOutput,
};

use wasmtime::PoolConcurrencyLimitError;

use crate::absent::Absent;
use crate::breakers::{Admission, SessionBreakers};
use crate::discreet::LEFT_OUT;
use crate::failure::{Described, Fault, caught, describe, describe_start};
use crate::guest::{Guest, Scene, Session};
use crate::instances::NoInstance;
use crate::interface::Interface;
use crate::load::Loaded;
use crate::slot::{Live, Slot, lock};
use crate::state::{Commit, SharedArea, Transaction};
use crate::v0_1::{Call, CallAsked, InputMessages, LlmOutput, PlainText, ResultGiven, TagSection, TtsrTriggered};

/// How often a notice is run again because another callback changed the state that it may have read, before it keeps the
/// others out while it runs.
const NOTICE_TRIES: u32 = 3;

/// The extensions of one session.
pub(crate) struct SessionExtensions {
    pub(crate) session: Arc<Session>,
    pub(crate) slots: Vec<Arc<Slot>>,
    /// Plugins that the session does not use now, and whose state it keeps. They have no instances.
    parked: Vec<Arc<Slot>>,
    /// A turn has begun, and states are not loaded for it yet.
    preload: AtomicBool,
    /// The store has lost what it had, and it was not written again yet.
    lost: AtomicBool,
}

/// Why there is no instance for a call.
pub(crate) enum NotStarted {
    /// All are in use.
    NoInstance(NoInstance),
    /// It cannot be made, or the state that it needs cannot be used.
    Failed(Described),
}

impl From<NoInstance> for NotStarted {
    fn from(shortage: NoInstance) -> Self {
        Self::NoInstance(shortage)
    }
}

impl From<Described> for NotStarted {
    fn from(described: Described) -> Self {
        Self::Failed(described)
    }
}

/// A call that may be made: by the budget of the turn, and by the breakers.
pub(crate) struct Permit<'a> {
    called: &'a Called,
    admission: Admission<'a>,
    /// The own time that it has.
    budget: Duration,
}

impl SessionExtensions {
    pub(crate) fn new(session: Arc<Session>, plugins: impl Iterator<Item = Arc<Loaded>>) -> Self {
        let slot = |plugin| Arc::new(new_slot(&session, plugin));
        let slots = plugins.map(slot).collect();
        let (preload, lost) = (AtomicBool::new(true), AtomicBool::new(false));
        Self { session, slots, parked: Vec::new(), preload, lost }
    }

    /// The same session with these plugins. One that is the same as before keeps its instances, one of the same id the state of
    /// the session, and one that is not among them any more is parked. What the `unregistered` kept is deleted, also where a
    /// plugin of the same id is among the new ones.
    pub(crate) fn successor(&self, plugins: impl Iterator<Item = Arc<Loaded>>, unregistered: &[PluginId]) -> Self {
        let is_gone = |slot: &&Arc<Slot>| unregistered.contains(slot.id());
        let (gone, before): (Vec<&Arc<Slot>>, Vec<&Arc<Slot>>) = self.all().partition(is_gone);
        gone.into_iter().for_each(|slot| self.forget(slot));
        let slot = |plugin: Arc<Loaded>| match before.iter().find(|slot| *slot.id() == plugin.identity.id) {
            Some(slot) if Arc::ptr_eq(&slot.plugin, &plugin) => Arc::clone(slot),
            Some(slot) => {
                let breakers = new_breakers(&self.session, &plugin);
                Arc::new(slot.with_plugin(plugin, breakers))
            }
            None => Arc::new(new_slot(&self.session, plugin)),
        };
        let slots: Vec<Arc<Slot>> = plugins.map(slot).collect();
        let is_used = |slot: &&Arc<Slot>| slots.iter().any(|used| used.id() == slot.id());
        // Without their instances, and without the failures that counted.
        let parked = before.into_iter().filter(|slot| !is_used(slot));
        let park = |slot: &Arc<Slot>| {
            let breakers = new_breakers(&self.session, &slot.plugin);
            Arc::new(slot.with_plugin(Arc::clone(&slot.plugin), breakers))
        };
        let parked: Vec<Arc<Slot>> = parked.map(park).collect();
        let lost = AtomicBool::new(self.lost.load(Ordering::Relaxed));
        Self { session: Arc::clone(&self.session), slots, parked, preload: AtomicBool::new(true), lost }
    }

    /// Deletes what a plugin that was unregistered kept.
    fn forget(&self, slot: &Slot) {
        // An earlier version can have kept something, whether this one can or not.
        let had_state = slot.area.lock().size() > 0 || slot.plugin.imports.contains(&Interface::State);
        slot.area.lock().forget();
        self.session.state.apply(slot.id(), vec![StateChange::Clear].into());
        if had_state {
            self.session.report_cleared(&slot.plugin.identity.id);
        }
    }

    /// The plugins of the session, with those that it does not use now.
    fn all(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.slots.iter().chain(&self.parked)
    }

    async fn call<C: Call>(&self, plugin: usize, call: C) -> Result<C::Answer, NoAnswer> {
        let slot = &self.slots[plugin];
        let mut lane = lock(&slot.main).await;
        let called = call.called();
        let permit = self.admit(slot, &called)?;
        let live = slot.take(&mut lane);
        let (mut live, answer) = self.run(slot, live, permit, call).await?;
        live.store.data_mut().commit(Commit::Call);
        slot.plugin.machine.instances.keep(slot, &mut lane, live);
        Ok(answer)
    }

    /// Calls `ttsr_triggered` in an instance of its own, while other callbacks may run. Its writes to the state are applied
    /// as if it had run between two of them: where one of them changed the state in the meantime, the call is repeated.
    async fn notify(&self, plugin: usize, event: &TtsrEvent) -> Result<(), NoAnswer> {
        let slot = &self.slots[plugin];
        let _notices = lock(&slot.notices).await;
        let area = &slot.area;
        let called = TtsrTriggered(event).called();
        for attempt in 0.. {
            // The last attempt has the state to itself.
            let mut alone = if attempt < NOTICE_TRIES { None } else { Some(lock(&slot.main).await) };
            // The instance of the other callbacks cannot give way to that of the notice while its lane is locked.
            if let Some(lane) = &mut alone {
                **lane = None;
            }
            let permit = self.admit(slot, &called)?;
            let version = area.version();
            let (mut live, ()) = self.run(slot, None, permit, TtsrTriggered(event)).await?;
            if !live.store.data().has_written() {
                break;
            }
            let _main = match alone {
                Some(main) => main,
                None => lock(&slot.main).await,
            };
            if live.store.data_mut().commit(Commit::Notice { version }) {
                break;
            }
        }
        Ok(())
    }

    /// Asks the budget of the turn first: a call that has no time left must not become the trial of the breaker.
    pub(crate) fn admit<'s>(&self, slot: &'s Slot, called: &'s Called) -> Result<Permit<'s>, NoAnswer> {
        let budget = slot.budget(&*self.session.view, called)?;
        let now = || self.session.clock.now_ms();
        let admission = slot.breakers.admit(called, now).map_err(NoAnswer::NotPermitted)?;
        Ok(Permit { called, admission, budget })
    }

    /// Runs a call in `live`, or in a new instance. Its writes are not yet applied.
    pub(crate) async fn run<C: Call>(
        &self,
        slot: &Slot,
        live: Option<Box<Live>>,
        permit: Permit<'_>,
        call: C,
    ) -> Result<(Box<Live>, C::Answer), NoAnswer> {
        let Permit { called, admission, budget } = permit;
        let _ticking = slot.plugin.machine.ticking();
        let mut live = match live {
            Some(live) => live,
            // Rare, and a large future: in a box it leaves that of most calls small.
            None => match Box::pin(self.start(slot)).await {
                Ok(live) => live,
                // Nothing is wrong with the plugin: neither does it count as a failure, nor as a success.
                Err(NotStarted::NoInstance(NoInstance(why))) => return Err(NoAnswer::NoInstance(why)),
                Err(NotStarted::Failed(described)) => {
                    // Its state, or the host: other sessions may have no such problem.
                    admission.failed_here(self.session.clock.now_ms());
                    return Err(slot.failure(called.clone(), described));
                }
            },
        };
        Guest::begin(&mut live.store, budget, slot.may_run_inline(budget));
        let call_turn = call.turn();
        let Live { store, calls, meter, .. } = &mut *live;
        let answer = caught(meter, call.run(calls, store)).await;
        slot.note_used(called, meter.spent(), || {
            call_turn.is_none_or(|turn| turn == self.session.view.info().place.turn)
        });
        store.data_mut().end_log();
        match answer {
            Ok(mut answer) => {
                admission.succeeded();
                if slot.plugin.identity.discreet {
                    answer.leave_out(LEFT_OUT);
                }
                Ok((live, answer))
            }
            Err(fault) => {
                let described = describe(fault, store, budget.as_millis());
                if described.cause == FailureCause::NoInstance {
                    return Err(NoAnswer::NoInstance(described.message));
                }
                // The call was not too slow by itself: the next one may be in time.
                if described.cause == FailureCause::Timeout && slot.is_cut_by_turn(called, budget) {
                    return Err(slot.turn_time_spent());
                }
                admission.failed(self.session.clock.now_ms());
                Err(slot.failure(called.clone(), described))
            }
        }
    }

    /// Makes an instance, on a stack of its own: a start function may run for long. Its time has a limit of its own and
    /// belongs to no callback.
    async fn start(&self, slot: &Slot) -> Result<Box<Live>, NotStarted> {
        self.load(slot).await?;
        self.instantiate(slot).await
    }

    pub(crate) async fn instantiate(&self, slot: &Slot) -> Result<Box<Live>, NotStarted> {
        match self.try_to_instantiate(slot).await {
            // Where the system has no memory, that of idle instances is needed more here.
            Err(NotStarted::NoInstance(_)) if slot.plugin.machine.instances.reclaim_all() => {
                self.try_to_instantiate(slot).await
            }
            tried => tried,
        }
    }

    async fn try_to_instantiate(&self, slot: &Slot) -> Result<Box<Live>, NotStarted> {
        let seat = slot.plugin.machine.instances.seat(&*self.session.clock).await?;
        let generation = slot.generation();
        let plugin = &*slot.plugin;
        let scene = Scene::Session(Arc::clone(&self.session), Transaction::new(slot.area.clone()));
        let mut store = Guest::store(&plugin.machine, Arc::clone(&plugin.identity), scene);
        let time = plugin.identity.limits.time;
        let meter = Arc::clone(&store.data().meter);
        Guest::begin(&mut store, time, false);
        let start = async {
            let instance = plugin.ready.instantiate_async(&mut store).await.map_err(Fault::Engine)?;
            plugin.exports.load(&mut store, &instance).map_err(Fault::Engine)
        };
        match caught(&meter, start).await {
            Ok(calls) => Ok(Box::new(Live { store, calls, meter, generation, _seat: seat })),
            Err(Fault::Engine(error)) if error.is::<PoolConcurrencyLimitError>() => {
                Err(NoInstance(plugin.machine.instances.exhausted(&error)).into())
            }
            Err(Fault::Engine(error)) => {
                let described = describe_start(&error, &mut store, time.as_millis());
                Err(match described.cause {
                    FailureCause::NoInstance => NoInstance(described.message).into(),
                    _ => described.into(),
                })
            }
            Err(fault) => Err(describe(fault, &mut store, time.as_millis()).into()),
        }
    }

    /// Takes over what the store has for the plugin, before its first instance starts: run as if it had nothing, it would
    /// overwrite what it has.
    async fn load(&self, slot: &Slot) -> Result<(), NotStarted> {
        let load = async || {
            // A component that does not import the power has no state.
            if slot.plugin.imports.contains(&Interface::State) {
                let stored = self.session.state.load(&slot.plugin.identity.id).await.inspect_err(|error| {
                    self.lost.fetch_or(matches!(error, StateError::Lost { .. }), Ordering::Relaxed);
                })?;
                slot.area.lock().load(stored);
            }
            Ok::<(), StateError>(())
        };
        slot.loaded.get_or_try_init(load).await.map_err(|error| {
            Described::new(FailureCause::Host, format!("the state of the extension cannot be loaded: {error}"))
        })?;
        Ok(slot.migrated.get_or_try_init(|| self.migrate(slot)).await?.clone()?)
    }

    /// Loads what is not loaded yet, for conditions of prompt additions, which cannot wait. Ends at the first failure, which the
    /// first callback that needs a state reports.
    async fn load_all(&self) {
        for slot in self.slots.iter().filter(|slot| !slot.migrated.initialized()) {
            // Where one is loaded and cannot be migrated, the others may still be usable.
            if self.load(slot).await.is_err() && !slot.loaded.initialized() {
                return;
            }
        }
    }

    /// Hands the new times of what was read to the store, unless an attempt keeps them back.
    fn flush(&self) {
        for slot in self.all() {
            let mut area = slot.area.lock();
            let batch = area.flush();
            self.session.apply(&slot.plugin.identity.id, batch);
        }
    }

    /// The store has lost what it had: it gets everything again.
    fn restore(&self) {
        for slot in self.all().filter(|slot| slot.loaded.initialized()) {
            let area = slot.area.lock();
            self.session.apply(&slot.plugin.identity.id, area.snapshot());
        }
    }

    async fn settle_all(&self, patience: Duration) -> Result<(), StateError> {
        if self.preload.swap(false, Ordering::Relaxed) {
            self.load_all().await;
        }
        self.flush();
        let settled = self.session.state.settle(patience).await;
        let lost_now = matches!(settled, Err(StateError::Lost { .. }));
        if !self.lost.swap(false, Ordering::Relaxed) && !lost_now {
            return settled;
        }
        tracing::warn!("the state store has lost the state of the session");
        let message =
            "the state store has lost the state of this session; what was loaded was written again".to_owned();
        self.session.events.emit(EventKind::Notice { message });
        self.restore();
        self.session.state.settle(patience).await
    }
}

/// A plugin that keeps nothing in the session yet.
fn new_slot(session: &Arc<Session>, plugin: Arc<Loaded>) -> Slot {
    let breakers = new_breakers(session, &plugin);
    Slot::new(plugin, SharedArea::new(Arc::clone(&session.total)), breakers)
}

/// Closed breakers of the session, whose changes are its events.
fn new_breakers(session: &Arc<Session>, plugin: &Loaded) -> SessionBreakers {
    let report = session.breaker_report(&plugin.identity);
    SessionBreakers::new(Arc::clone(&plugin.breakers), session.id.clone(), report)
}

impl Extensions for SessionExtensions {
    fn input_messages<'a>(
        &'a self,
        plugin: usize,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<InputAnswer, NoAnswer>> {
        Box::pin(self.call(plugin, InputMessages(messages)))
    }

    fn plain_text<'a>(
        &'a self,
        plugin: usize,
        text: &'a str,
        place: &'a TextPlace,
    ) -> BoxFuture<'a, Result<TextAnswer, NoAnswer>> {
        Box::pin(self.call(plugin, PlainText(text, place)))
    }

    fn tag<'a>(
        &'a self,
        plugin: usize,
        tag: &'a Tag,
        place: &'a TagPlace,
    ) -> BoxFuture<'a, Result<TagAnswer, NoAnswer>> {
        Box::pin(self.call(plugin, TagSection(tag, place)))
    }

    fn llm_output<'a>(
        &'a self,
        plugin: usize,
        output: &'a ModelOutput,
    ) -> BoxFuture<'a, Result<OutputAnswer, NoAnswer>> {
        let mode = self.slots[plugin].output_mode();
        Box::pin(self.call(plugin, LlmOutput(output, mode)))
    }

    fn ttsr_triggered<'a>(&'a self, plugin: usize, event: &'a TtsrEvent) -> BoxFuture<'a, Result<(), NoAnswer>> {
        Box::pin(self.notify(plugin, event))
    }

    fn tool_call<'a>(&'a self, plugin: usize, call: &'a AskedCall) -> BoxFuture<'a, Result<CallAnswer, NoAnswer>> {
        Box::pin(self.call(plugin, CallAsked(call)))
    }

    fn tool_result<'a>(
        &'a self,
        plugin: usize,
        result: &'a GivenResult,
    ) -> BoxFuture<'a, Result<ResultAnswer, NoAnswer>> {
        Box::pin(self.call(plugin, ResultGiven(result)))
    }

    fn call_tool<'a>(
        &'a self,
        plugin: usize,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, NoAnswer>> {
        Box::pin(self.tool(plugin, call, progress))
    }

    fn state_value(&self, plugin: usize, key: &str) -> Result<Option<Vec<u8>>, String> {
        let slot = &self.slots[plugin];
        match slot.migrated.get() {
            None => return Err("the state of the extension is not loaded".to_owned()),
            Some(Err(described)) => return Err(described.message.clone()),
            Some(Ok(())) => {}
        }
        let value = slot.area.lock().peek(key, self.session.clock.now_ms());
        Ok(value.map(|value| value.to_vec()))
    }

    fn take_state_reads(&self, plugin: usize) -> u64 {
        self.slots[plugin].area.take_reads()
    }

    fn begin_turn(&self) {
        let now = self.session.clock.now_ms();
        self.preload.store(true, Ordering::Relaxed);
        self.session.state.turn_started();
        self.all().for_each(|slot| slot.area.lock().begin_turn(now));
    }

    fn end_turn(&self) {
        let now = self.session.clock.now_ms();
        self.all().for_each(|slot| slot.area.lock().end_turn(now));
        self.flush();
        self.session.state.turn_ended();
    }

    fn begin_attempt(&self) {
        self.slots.iter().for_each(|slot| slot.area.lock().begin_attempt());
    }

    fn end_attempt(&self, end: AttemptEnd) {
        for slot in &self.slots {
            let identity = &*slot.plugin.identity;
            let mut area = slot.area.lock();
            match end {
                AttemptEnd::Accepted => {
                    let batch = area.accept_attempt();
                    self.session.apply(&identity.id, batch);
                }
                AttemptEnd::Discarded => {
                    let (restored, size) = (area.discard_attempt(), area.size());
                    drop(area);
                    if !restored.is_empty() {
                        slot.generation.fetch_add(1, Ordering::Relaxed);
                    }
                    restored.into_iter().for_each(|key| self.session.report_state(identity, "roll_back", key, size));
                }
            }
        }
    }

    fn release_instances(&self) {
        self.slots.iter().for_each(|slot| slot.drop_instance());
    }

    fn forget_absent<'a>(&'a self, known: &'a KnownPlugins) -> BoxFuture<'a, Result<Vec<AbsentState>, StateError>> {
        Box::pin(async move {
            let (state, now_ms) = (&*self.session.state, self.session.clock.now_ms());
            let removed = |plugin: &PluginId| self.session.report_cleared(plugin);
            Absent { state, now_ms, removed: &removed }.forget(known).await
        })
    }

    fn settle(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        Box::pin(self.settle_all(patience))
    }

    fn close(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        self.flush();
        self.session.state.close(patience)
    }
}
