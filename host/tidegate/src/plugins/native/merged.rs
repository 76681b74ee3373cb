//! Plugins and native extensions as one host: the plugins first, by their indexes, then the native ones.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{
    AbsentState, AttemptEnd, BoxFuture, Clock, EventSink, ExtensionHost, Extensions, KnownPlugins, Progress,
    SessionView, StateError, TtsrEvent,
};
use flow::{
    AskedCall, CallAnswer, CallbackKind, GivenResult, InputAnswer, Message, ModelOutput, NoAnswer, OutputAnswer,
    PluginId, Registration, ResultAnswer, SessionId, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, ToolCall,
    ToolOutput,
};

use super::Native;
use super::call::{Limits, Slot};
use super::input::Input;

/// A host of plugins, with native extensions.
pub(crate) struct NativeHost {
    plugins: Arc<dyn ExtensionHost>,
    native: Vec<Native>,
    registrations: Arc<[Registration]>,
    limits: Limits,
}

impl NativeHost {
    /// `output_bytes`: the most that a call of a native extension gives back.
    pub(crate) fn merge(
        plugins: Arc<dyn ExtensionHost>,
        native: &[Native],
        (clock, output_bytes): (Arc<dyn Clock>, u64),
    ) -> Arc<dyn ExtensionHost> {
        if native.is_empty() {
            return plugins;
        }
        let own = native.iter().map(|one| one.registration().clone());
        let registrations = plugins.registrations().iter().cloned().chain(own).collect();
        Arc::new(Self { plugins, native: native.to_vec(), registrations, limits: Limits { clock, output_bytes } })
    }
}

impl ExtensionHost for NativeHost {
    fn registrations(&self) -> Arc<[Registration]> {
        Arc::clone(&self.registrations)
    }

    fn open<'a>(
        &'a self,
        session: &'a SessionId,
        view: Arc<dyn SessionView>,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'a, Result<Arc<dyn Extensions>, StateError>> {
        Box::pin(async move {
            let slot = |native| Arc::new(Slot::new(native, session, &view, &events, &self.limits));
            let slots = self.native.iter().map(slot).collect();
            let plugins = self.plugins.open(session, Arc::clone(&view), Arc::clone(&events)).await?;
            let first = self.plugins.registrations().len();
            Ok(Arc::new(Merged { plugins, first, slots }) as Arc<dyn Extensions>)
        })
    }

    fn adopt(&self, before: &Arc<dyn Extensions>, unregistered: &[PluginId]) -> Result<Arc<dyn Extensions>, String> {
        let before: Arc<dyn Any + Send + Sync> = Arc::<dyn Extensions>::clone(before);
        let before = before.downcast::<Merged>();
        let before = before.map_err(|_| "the session was opened without native extensions".to_owned())?;
        let plugins = self.plugins.adopt(&before.plugins, unregistered)?;
        // A session has the native extensions that it was opened with.
        let (first, slots) = (self.plugins.registrations().len(), before.slots.clone());
        Ok(Arc::new(Merged { plugins, first, slots }))
    }
}

/// The extensions of one session.
struct Merged {
    plugins: Arc<dyn Extensions>,
    /// The index of the first native one.
    first: usize,
    slots: Vec<Arc<Slot>>,
}

impl Merged {
    /// The native extension of an index; `None`: it is a plugin's.
    fn native(&self, index: usize) -> Option<&Slot> {
        self.slots.get(index.checked_sub(self.first)?).map(|slot| &**slot)
    }
}

impl Extensions for Merged {
    fn input_messages<'a>(
        &'a self,
        plugin: usize,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<InputAnswer, NoAnswer>> {
        let Some(native) = self.native(plugin) else { return self.plugins.input_messages(plugin, messages) };
        let (messages, id) = (messages.to_vec(), native.native.id().clone());
        let ask = native.call(CallbackKind::InputMessages, move |to, call| {
            to.on_input_messages(call, &messages).map(|answer| Input::of(answer, &messages, &id))
        });
        Box::pin(async move { Ok(ask.await?.answer) })
    }

    fn plain_text<'a>(
        &'a self,
        plugin: usize,
        text: &'a str,
        place: &'a TextPlace,
    ) -> BoxFuture<'a, Result<TextAnswer, NoAnswer>> {
        let Some(native) = self.native(plugin) else { return self.plugins.plain_text(plugin, text, place) };
        let (text, place) = (text.to_owned(), place.clone());
        Box::pin(native.call(CallbackKind::PlainText, move |to, call| to.on_plain_text(call, &text, &place)))
    }

    fn tag<'a>(
        &'a self,
        plugin: usize,
        tag: &'a Tag,
        place: &'a TagPlace,
    ) -> BoxFuture<'a, Result<TagAnswer, NoAnswer>> {
        let Some(native) = self.native(plugin) else { return self.plugins.tag(plugin, tag, place) };
        let (tag, place) = (tag.clone(), place.clone());
        Box::pin(native.call(CallbackKind::Tag, move |to, call| to.on_tag(call, &tag, &place)))
    }

    fn llm_output<'a>(
        &'a self,
        plugin: usize,
        output: &'a ModelOutput,
    ) -> BoxFuture<'a, Result<OutputAnswer, NoAnswer>> {
        let Some(native) = self.native(plugin) else { return self.plugins.llm_output(plugin, output) };
        let output = output.clone();
        Box::pin(native.call(CallbackKind::LlmOutput, move |to, call| to.on_llm_output(call, &output)))
    }

    fn ttsr_triggered<'a>(&'a self, plugin: usize, event: &'a TtsrEvent) -> BoxFuture<'a, Result<(), NoAnswer>> {
        let Some(native) = self.native(plugin) else { return self.plugins.ttsr_triggered(plugin, event) };
        let event = event.clone();
        Box::pin(native.call(CallbackKind::TtsrTriggered, move |to, call| to.ttsr_triggered(call, &event)))
    }

    fn tool_call<'a>(&'a self, plugin: usize, call: &'a AskedCall) -> BoxFuture<'a, Result<CallAnswer, NoAnswer>> {
        let Some(native) = self.native(plugin) else { return self.plugins.tool_call(plugin, call) };
        let asked = call.clone();
        Box::pin(native.call(CallbackKind::ToolCall, move |to, call| to.on_tool_call(call, &asked)))
    }

    fn tool_result<'a>(
        &'a self,
        plugin: usize,
        result: &'a GivenResult,
    ) -> BoxFuture<'a, Result<ResultAnswer, NoAnswer>> {
        let Some(native) = self.native(plugin) else { return self.plugins.tool_result(plugin, result) };
        let result = result.clone();
        Box::pin(native.call(CallbackKind::ToolResult, move |to, call| to.on_tool_result(call, &result)))
    }

    // Native extensions provide no tools, and what they keep is their own.

    fn call_tool<'a>(
        &'a self,
        plugin: usize,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, NoAnswer>> {
        self.plugins.call_tool(plugin, call, progress)
    }

    fn state_value(&self, plugin: usize, key: &str) -> Result<Option<Vec<u8>>, String> {
        match self.native(plugin) {
            Some(_) => Err("a native extension has no state that the host keeps".to_owned()),
            None => self.plugins.state_value(plugin, key),
        }
    }

    fn take_state_reads(&self, plugin: usize) -> u64 {
        if self.native(plugin).is_some() { 0 } else { self.plugins.take_state_reads(plugin) }
    }

    fn begin_turn(&self) {
        self.plugins.begin_turn();
    }

    fn end_turn(&self) {
        self.plugins.end_turn();
    }

    fn begin_attempt(&self) {
        self.plugins.begin_attempt();
    }

    fn end_attempt(&self, end: AttemptEnd) {
        self.plugins.end_attempt(end);
    }

    fn release_instances(&self) {
        self.plugins.release_instances();
    }

    fn forget_absent<'a>(&'a self, known: &'a KnownPlugins) -> BoxFuture<'a, Result<Vec<AbsentState>, StateError>> {
        self.plugins.forget_absent(known)
    }

    fn settle(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        self.plugins.settle(patience)
    }

    fn close(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        self.plugins.close(patience)
    }
}
