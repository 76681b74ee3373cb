//! The plugins of one session, and the course of a call: breaker, lane, instance, guest, commit or failure.

use std::sync::Arc;

use flow::{
    CallbackKind, InputAnswer, Message, ModelOutput, NoAnswer, OutputAnswer, Tag, TagAnswer, TagPlace, TextAnswer,
    TextPlace,
};
use turn::ports::{BoxFuture, Extensions, TtsrEvent};

use crate::breaker::Admitted;
use crate::failure::{Described, Fault, caught, describe, describe_start};
use crate::guest::{Guest, Scene, Session};
use crate::load::Loaded;
use crate::slot::{Live, Slot, lock};
use crate::state::{Lease, Transaction};
use crate::v0_1::{Call, InputMessages, LlmOutput, PlainText, TagSection, TtsrTriggered};

/// How often a notice is run again because another callback changed the state that it may have read, before it keeps the
/// others out while it runs.
const NOTICE_TRIES: u32 = 3;

/// The extensions of one session.
pub(crate) struct SessionExtensions {
    session: Arc<Session>,
    /// The state of this session, which is open as long as this exists.
    lease: Lease,
    slots: Vec<Slot>,
}

impl SessionExtensions {
    pub(crate) fn new(session: Arc<Session>, lease: Lease, plugins: impl Iterator<Item = Arc<Loaded>>) -> Self {
        Self { session, lease, slots: plugins.map(Slot::new).collect() }
    }

    async fn call<C: Call>(&self, plugin: usize, call: C) -> Result<C::Answer, NoAnswer> {
        let slot = &self.slots[plugin];
        let mut lane = lock(&slot.main).await;
        let admitted = self.admit(slot)?;
        let (mut live, answer, admitted) = self.run(slot, lane.take(), admitted, call).await?;
        live.store.data_mut().commit();
        *lane = Some(live);
        admitted.succeeded();
        Ok(answer)
    }

    /// Calls `ttsr_triggered` in an instance of its own, while other callbacks may run. Its writes to the state are applied
    /// as if it had run between two of them: where one of them changed the state in the meantime, the call is repeated.
    async fn notify(&self, plugin: usize, event: &TtsrEvent) -> Result<(), NoAnswer> {
        let slot = &self.slots[plugin];
        let mut lane = lock(&slot.notices).await;
        let area = self.lease.area(&slot.plugin.identity.id);
        for attempt in 0.. {
            // The last attempt has the state to itself.
            let alone = if attempt < NOTICE_TRIES { None } else { Some(lock(&slot.main).await) };
            let admitted = self.admit(slot)?;
            let version = area.version();
            let (mut live, (), admitted) = self.run(slot, lane.take(), admitted, TtsrTriggered(event)).await?;
            admitted.succeeded();
            if !live.store.data().has_written() {
                *lane = Some(live);
                break;
            }
            let _main = match alone {
                Some(main) => main,
                None => lock(&slot.main).await,
            };
            if area.version() == version {
                live.store.data_mut().commit();
                *lane = Some(live);
                break;
            }
            // The instance may remember what it read and wrote: it goes with its writes.
        }
        Ok(())
    }

    fn admit<'s>(&self, slot: &'s Slot) -> Result<Admitted<'s>, NoAnswer> {
        slot.breaker.admit(|| self.session.clock.now_ms()).map_err(NoAnswer::Skipped)
    }

    /// Runs a call in `live`, or in a new instance. Its writes are not yet applied.
    async fn run<'s, C: Call>(
        &self,
        slot: &'s Slot,
        live: Option<Box<Live>>,
        admitted: Admitted<'s>,
        call: C,
    ) -> Result<(Box<Live>, C::Answer, Admitted<'s>), NoAnswer> {
        let budget = slot.budget(&*self.session.view, C::KIND)?;
        let _ticking = slot.plugin.machine.ticking();
        let mut live = match live {
            Some(live) => live,
            None => match self.start(&slot.plugin).await {
                Ok(live) => live,
                Err(described) => return Err(self.failed(slot, admitted, C::KIND, described)),
            },
        };
        Guest::begin(&mut live.store, budget, slot.may_run_inline(budget));
        let Live { store, calls, meter } = &mut *live;
        let answer = caught(meter, call.run(calls, store)).await;
        slot.note_used(meter.spent());
        store.data_mut().end_log();
        match answer {
            Ok(answer) => Ok((live, answer, admitted)),
            Err(fault) => {
                let described = describe(fault, store, budget.as_millis());
                Err(self.failed(slot, admitted, C::KIND, described))
            }
        }
    }

    /// Makes an instance, on a stack of its own: a start function may run for long. Its time has a limit of its own and
    /// belongs to no callback.
    async fn start(&self, plugin: &Loaded) -> Result<Box<Live>, Described> {
        let area = self.lease.area(&plugin.identity.id);
        let scene = Scene::Session(Arc::clone(&self.session), Transaction::new(area));
        let mut store = Guest::store(&plugin.machine, Arc::clone(&plugin.identity), scene);
        let time = plugin.identity.limits.time;
        let meter = Arc::clone(&store.data().meter);
        Guest::begin(&mut store, time, false);
        let start = async {
            let instance = plugin.ready.instantiate_async(&mut store).await.map_err(Fault::Engine)?;
            plugin.exports.load(&mut store, &instance).map_err(Fault::Engine)
        };
        match caught(&meter, start).await {
            Ok(calls) => Ok(Box::new(Live { store, calls, meter })),
            Err(Fault::Engine(error)) => Err(describe_start(&error, &mut store, time.as_millis())),
            Err(fault) => Err(describe(fault, &mut store, time.as_millis())),
        }
    }

    fn failed(&self, slot: &Slot, admitted: Admitted<'_>, callback: CallbackKind, described: Described) -> NoAnswer {
        admitted.failed(self.session.clock.now_ms());
        slot.failure(callback, described)
    }
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
}
