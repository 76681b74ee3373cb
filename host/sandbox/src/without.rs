//! A build without the feature `wasm`: the same types, and no plugin with a component can be loaded.

use std::any::Any;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{
    AbsentState, BoxFuture, Clock, EventSink, Extensions, KnownPlugins, SessionState, SessionView, StateChange,
    StateError, TtsrEvent,
};
use flow::{
    BreakerState, EventKind, InputAnswer, Message, ModelOutput, NoAnswer, OutputAnswer, PluginId, Registration,
    SessionId, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace,
};

use crate::absent::Absent;
use crate::error::{LoadError, LoadProblem};
use crate::interface::Interface;
use crate::limits::GuestLimits;
use crate::options::{EngineCounts, EngineError, EngineOptions, EngineReport, InstanceCounts};
use crate::schema::Tool;
use crate::source::PluginSource;

/// The place of the engine. It loads nothing.
#[derive(Clone, Debug)]
pub struct Sandbox(EngineReport);

impl Sandbox {
    /// An engine that loads nothing.
    ///
    /// # Errors
    /// None: the signature is that of a build with the feature.
    pub fn new(_: &EngineOptions) -> Result<Self, EngineError> {
        Ok(Self(EngineReport::default()))
    }

    /// What of the options could not be had: nothing was tried.
    pub fn report(&self) -> &EngineReport {
        &self.0
    }

    /// Nothing was compiled.
    pub fn counts(&self) -> EngineCounts {
        EngineCounts::default()
    }

    /// There are no instances.
    pub fn instances(&self) -> InstanceCounts {
        InstanceCounts::default()
    }

    /// Always 0: no engine is counted.
    pub fn id(&self) -> u64 {
        0
    }

    /// Returns what gives no numbers.
    pub fn watch_instances(&self) -> impl Fn() -> Option<InstanceCounts> + Send + Sync + 'static {
        || None
    }

    /// # Errors
    /// Always.
    pub fn load(&self, source: PluginSource) -> Result<Plugin, LoadError> {
        Err(LoadError { plugin: source.id, problem: LoadProblem::NoEngine })
    }
}

/// A loaded plugin: there is none.
#[derive(Clone, Debug)]
pub struct Plugin(Infallible);

impl Plugin {
    /// Returns the plugin's id.
    pub fn id(&self) -> &PluginId {
        match self.0 {}
    }

    /// Its version, human-readable.
    pub fn version(&self) -> &str {
        match self.0 {}
    }

    /// SHA-256 of its component, in hexadecimal.
    pub fn digest(&self) -> &str {
        match self.0 {}
    }

    /// What it registered.
    pub fn registration(&self) -> &Registration {
        match self.0 {}
    }

    /// The tools that it provides.
    pub fn tools(&self) -> &[Tool] {
        match self.0 {}
    }

    /// Whether its component exports `migration`.
    pub fn migrates(&self) -> bool {
        match self.0 {}
    }

    /// The interfaces that its component imports.
    pub fn imports(&self) -> &BTreeSet<Interface> {
        match self.0 {}
    }

    /// Returns what gives the state of its circuit breaker.
    pub fn breaker_state(&self) -> impl Fn() -> Option<BreakerState> + Send + Sync + 'static {
        || None
    }

    /// What it may use up.
    pub fn limits(&self) -> &GuestLimits {
        match self.0 {}
    }
}

/// A session without plugins. It has its state nevertheless: a session is open once, and the state in it is kept like that of any absent
/// plugin.
struct Empty {
    state: Arc<dyn SessionState>,
    clock: Arc<dyn Clock>,
    events: Arc<dyn EventSink>,
}

pub(crate) fn open(
    _: &[Plugin],
    _: &SessionId,
    (_, events): (Arc<dyn SessionView>, Arc<dyn EventSink>),
    state: Arc<dyn SessionState>,
    (_, clock): (u64, Arc<dyn Clock>),
) -> Arc<dyn Extensions> {
    Arc::new(Empty { state, clock, events })
}

pub(crate) fn adopt(
    _: &[Plugin],
    before: &Arc<dyn Extensions>,
    unregistered: &[PluginId],
) -> Result<Arc<dyn Extensions>, String> {
    let kept: Arc<dyn Any + Send + Sync> = Arc::<dyn Extensions>::clone(before);
    let kept = kept.downcast::<Empty>();
    let kept = kept.map_err(|_| "the session's extensions do not belong to this sandbox".to_owned())?;
    for plugin in unregistered {
        kept.state.apply(plugin, vec![StateChange::Clear].into());
    }
    Ok(kept)
}

fn none<'a, T: Send + 'a>() -> BoxFuture<'a, Result<T, NoAnswer>> {
    Box::pin(std::future::ready(Err(NoAnswer::NotPermitted("this program has no plugins".to_owned()))))
}

impl Extensions for Empty {
    fn input_messages<'a>(&'a self, _: usize, _: &'a [Message]) -> BoxFuture<'a, Result<InputAnswer, NoAnswer>> {
        none()
    }

    fn plain_text<'a>(&'a self, _: usize, _: &'a str, _: &'a TextPlace) -> BoxFuture<'a, Result<TextAnswer, NoAnswer>> {
        none()
    }

    fn tag<'a>(&'a self, _: usize, _: &'a Tag, _: &'a TagPlace) -> BoxFuture<'a, Result<TagAnswer, NoAnswer>> {
        none()
    }

    fn llm_output<'a>(&'a self, _: usize, _: &'a ModelOutput) -> BoxFuture<'a, Result<OutputAnswer, NoAnswer>> {
        none()
    }

    fn ttsr_triggered<'a>(&'a self, _: usize, _: &'a TtsrEvent) -> BoxFuture<'a, Result<(), NoAnswer>> {
        none()
    }

    fn begin_turn(&self) {
        self.state.turn_started();
    }

    fn end_turn(&self) {
        self.state.turn_ended();
    }

    fn forget_absent<'a>(&'a self, known: &'a KnownPlugins) -> BoxFuture<'a, Result<Vec<AbsentState>, StateError>> {
        Box::pin(async move {
            let removed = |plugin: &PluginId| {
                tracing::info!(%plugin, "state of the extension was removed");
                let (plugin, operation) = (plugin.clone(), "clear".to_owned());
                self.events.emit(EventKind::ExtensionState { plugin, operation, key: String::new(), size_bytes: 0 });
            };
            Absent { state: &*self.state, now_ms: self.clock.now_ms(), removed: &removed }.forget(known).await
        })
    }

    fn settle(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        self.state.settle(patience)
    }

    fn close(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        self.state.close(patience)
    }
}
