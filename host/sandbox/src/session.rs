//! The plugins of one session, and the way of a call: lock, instance, guest, commit or failure.

use std::sync::Arc;

use flow::{
    CallFailure, CallbackKind, InputAnswer, Message, ModelOutput, OutputAnswer, Tag, TagAnswer, TagPlace, TextAnswer,
    TextPlace,
};
use turn::ports::{BoxFuture, Extensions, TtsrEvent};

use crate::failure::{Described, Fault, caught, describe, describe_start};
use crate::guest::{Guest, Scene, Session};
use crate::load::Loaded;
use crate::slot::{Live, Slot};
use crate::state::{States, Transaction};
use crate::v0_1::{Call, InputMessages, LlmOutput, PlainText, TagSection, TtsrTriggered};

/// The extensions of one session.
pub(crate) struct SessionExtensions {
    session: Arc<Session>,
    states: Arc<States>,
    slots: Vec<Slot>,
}

impl SessionExtensions {
    pub(crate) fn new(session: Arc<Session>, states: Arc<States>, plugins: impl Iterator<Item = Arc<Loaded>>) -> Self {
        Self { session, states, slots: plugins.map(Slot::new).collect() }
    }

    async fn call<C: Call>(&self, plugin: usize, call: C) -> Result<C::Answer, CallFailure> {
        let slot = &self.slots[plugin];
        let mut inner = slot.lock().await;
        let budget = slot.budget(&mut inner, &*self.session.view, C::KIND)?;
        let _ticking = slot.plugin.machine.ticking();
        let mut live = match inner.live.take() {
            Some(live) => live,
            None => match self.start(&slot.plugin).await {
                Ok(live) => live,
                Err(described) => return Err(self.failed(slot, C::KIND, described)),
            },
        };
        Guest::begin(&mut live.store, budget, slot.may_run_inline(budget));
        let Live { store, calls, meter } = &mut *live;
        let answer = caught(meter, call.run(calls, store)).await;
        let took = meter.spent();
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

    /// Makes an instance, on a stack of its own: a start function may run for long. Its time has a limit of its own and
    /// belongs to no callback.
    async fn start(&self, plugin: &Loaded) -> Result<Box<Live>, Described> {
        let area = self.states.area(&self.session.id, &plugin.identity.id);
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

    fn failed(&self, slot: &Slot, callback: CallbackKind, described: Described) -> CallFailure {
        slot.breaker.failed(self.session.clock.now_ms());
        slot.failure(callback, described)
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
        let slot = &self.slots[plugin];
        let used_up = slot.used_up(&*self.session.view);
        used_up.or_else(|| slot.breaker.skip_reason(|| self.session.clock.now_ms()))
    }
}
