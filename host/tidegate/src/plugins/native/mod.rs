//! Extensions that the program brings as code.

mod call;
mod input;
mod merged;
mod threads;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{SessionInfo, SessionView, TtsrEvent};
use flow::{
    AskedCall, CallAnswer, GivenResult, InputAnswer, Message, ModelOutput, OutputAnswer, PluginId, Registered,
    Registration, ResultAnswer, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, ToolSpec,
};
use sandbox::HostBreakers;

pub(crate) use self::merged::NativeHost;

/// The time of a call where its extension sets none.
const TIME: Duration = Duration::from_secs(1);

/// In the place of words of one that guards.
const LEFT_OUT: &str = "its words are left out, because it guards; `Native::full_diagnostics` shows them";

/// Why a call failed.
pub type CallError = Box<dyn std::error::Error + Send + Sync>;

/// An extension of the program: the callbacks of plugins as methods. Those that are registered with [`Native::on`] are called, on a thread
/// that may block. In one session one call follows the other, but for `ttsr_triggered`; sessions call at the same time. After a call that
/// took too long the next one can begin before it has ended, until 16 of them run.
#[allow(unused_variables, reason = "the names are for the documentation and for those who implement them")]
pub trait NativeExtension: Send + Sync + 'static {
    /// The messages of one input, before the model gets them.
    ///
    /// # Errors
    /// The call failed, as in all callbacks; the string of the error is reported.
    fn on_input_messages(&self, call: &NativeCall, messages: &[Message]) -> Result<InputAnswer, CallError> {
        Ok(InputAnswer::Pass)
    }

    /// One unit of text, before it is shown.
    ///
    /// # Errors
    /// The call failed.
    fn on_plain_text(&self, call: &NativeCall, text: &str, place: &TextPlace) -> Result<TextAnswer, CallError> {
        Ok(TextAnswer::Pass)
    }

    /// One section between tags, before it is shown.
    ///
    /// # Errors
    /// The call failed.
    fn on_tag(&self, call: &NativeCall, tag: &Tag, place: &TagPlace) -> Result<TagAnswer, CallError> {
        Ok(TagAnswer::Keep)
    }

    /// The whole accepted answer.
    ///
    /// # Errors
    /// The call failed.
    fn on_llm_output(&self, call: &NativeCall, output: &ModelOutput) -> Result<OutputAnswer, CallError> {
        Ok(OutputAnswer::default())
    }

    /// Stream rules fired. Nothing waits for it.
    ///
    /// # Errors
    /// The call failed.
    fn ttsr_triggered(&self, call: &NativeCall, event: &TtsrEvent) -> Result<(), CallError> {
        Ok(())
    }

    /// A call of a tool, before anything is decided about it.
    ///
    /// # Errors
    /// The call failed.
    fn on_tool_call(&self, call: &NativeCall, asked: &AskedCall) -> Result<CallAnswer, CallError> {
        Ok(CallAnswer::Pass)
    }

    /// The result of a call of a tool, before anybody gets it.
    ///
    /// # Errors
    /// The call failed.
    fn on_tool_result(&self, call: &NativeCall, result: &GivenResult) -> Result<ResultAnswer, CallError> {
        Ok(ResultAnswer::default())
    }
}

/// The session that calls a native extension.
#[derive(Clone)]
pub struct NativeCall(Arc<dyn SessionView>);

impl NativeCall {
    /// The session's id, model, workspace and agent, and where in its run it is.
    pub fn session(&self) -> SessionInfo {
        self.0.info()
    }

    /// The number of messages of the conversation, hidden ones left out.
    pub fn history_len(&self) -> usize {
        self.0.history_len()
    }

    /// Up to `count` messages of the conversation from position `from` (0 = oldest), hidden ones left out.
    pub fn history(&self, from: usize, count: usize) -> Vec<Arc<Message>> {
        self.0.history(from, count).into_iter().map(|(_, message)| message).collect()
    }

    /// The tools that are offered to the model.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.0.tools()
    }
}

impl std::fmt::Debug for NativeCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("NativeCall").field(&self.session()).finish()
    }
}

/// A native extension as it is registered. A clone is the same one.
#[derive(Clone)]
pub struct Native {
    registration: Registration,
    time: Duration,
    /// Its words are reported although it guards.
    full_diagnostics: bool,
    extension: Arc<dyn NativeExtension>,
    /// Those of all sessions.
    breakers: Arc<HostBreakers>,
}

impl Native {
    /// An extension under an id that no plugin has. It gets no callback until [`Native::on`] names it.
    pub fn new(id: PluginId, extension: impl NativeExtension) -> Self {
        let registration = Registration {
            plugin: id,
            version: "0.0.0".to_owned(),
            callbacks: Vec::new(),
            tools: Vec::new(),
            required: false,
        };
        Self {
            registration,
            time: TIME,
            full_diagnostics: false,
            extension: Arc::new(extension),
            breakers: Arc::default(),
        }
    }

    /// Has it called for a callback: `Callback::LlmOutput(OutputMode::Observe)`, a pair with the priority (0 to 100, higher first, 50 by default),
    /// or a [`Registered`] with its policy. The last registration of a callback counts.
    #[must_use]
    pub fn on(mut self, callback: impl Into<Registered>) -> Self {
        let callback = callback.into();
        self.registration.callbacks.retain(|one| one.kind() != callback.kind());
        self.registration.callbacks.push(callback);
        self
    }

    /// Its version, as events and records name it. Default: `0.0.0`.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.registration.version = version.into();
        self
    }

    /// Its failure ends the turn.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.registration.required = true;
        self
    }

    /// How long a call may take, on the clock of the machine, from when its code starts. Default: 1 s. It is not `callback_ms` of the operator's
    /// file, which limits a guest's own time.
    #[must_use]
    pub fn time_limit(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Reports the words of its errors and panics, and its reasons for what cannot be used, also where it guards: it is required, fails closed, or has what was shown kept. By default they
    /// are left out then, because they can quote what nobody is to see. The panic hook of the process gets them in any case.
    #[must_use]
    pub fn full_diagnostics(mut self) -> Self {
        self.full_diagnostics = true;
        self
    }

    /// Returns whether its own words are left out of reports.
    fn is_discreet(&self) -> bool {
        let guards = self.registration.required || self.registration.callbacks.iter().any(Registered::guards);
        guards && !self.full_diagnostics
    }

    /// Words of its own, as they are reported.
    fn words(&self, words: String) -> String {
        if self.is_discreet() { LEFT_OUT.to_owned() } else { words }
    }

    pub(crate) fn registration(&self) -> &Registration {
        &self.registration
    }

    pub(crate) fn id(&self) -> &PluginId {
        &self.registration.plugin
    }

    pub(crate) fn time(&self) -> Duration {
        self.time
    }

    pub(crate) fn breakers(&self) -> &Arc<HostBreakers> {
        &self.breakers
    }

    /// Why it cannot be used, where that is known.
    pub(crate) fn fault(&self) -> Option<String> {
        let callbacks = &self.registration.callbacks;
        if callbacks.is_empty() {
            return Some("it is registered for no callback: name those that it has with `Native::on`".to_owned());
        }
        callbacks.iter().find_map(Registered::fault)
    }
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Native").field("registration", &self.registration).finish_non_exhaustive()
    }
}

/// The same code under the same registration.
impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.breakers, &other.breakers)
            && (&self.registration, self.time, self.full_diagnostics)
                == (&other.registration, other.time, other.full_diagnostics)
    }
}

impl Eq for Native {}

impl Hash for Native {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.registration.plugin.hash(state);
        Arc::as_ptr(&self.breakers).hash(state);
    }
}
