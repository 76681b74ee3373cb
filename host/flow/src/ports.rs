//! What a turn needs from outside, as traits, which other crates implement.

mod approvals;
mod confirm;
mod event_types;
mod files;
mod journal;
mod known;
mod state;
mod terminals;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::{
    Action, AskedCall, CallAnswer, Delta, EventKind, GivenResult, Image, InputAnswer, Message, ModelError, ModelOutput,
    NoAnswer, OutputAnswer, Permission, PlanEntry, PluginId, Preview, Prompt, Registration, ResultAnswer, RuleMatch,
    RuleRecord, RunPosition, SessionId, Tag, TagAnswer, TagPlace, TextAnswer, TextPlace, ToolCall, ToolOutput,
    ToolSpec, Usage,
};
use serde_json::Value;

pub use approvals::{Approvals, LimitAnswer};
pub use confirm::{AnsweredElsewhere, Confirm, Question};
pub use event_types::{EmitError, EventTypes};
pub use files::{FileKind, FileStatus, Files};
pub use journal::{Durability, Journal, JournalError, JournalProgress};
pub use known::{AbsentState, KnownPlugins};
pub use state::{
    PluginSummary, Replaced, SessionList, SessionState, SessionSummary, ShownSession, StateAdmin, StateBatch,
    StateChange, StateEntry, StateError, StateLifetime, StateStore, StoredState, SweptState,
};
pub use terminals::{TerminalCommand, TerminalEnd, TerminalExit, Terminals};

/// A future that a port returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What an image takes where nothing else is known: the most that a widespread format counts for one.
pub const IMAGE_TOKENS: u64 = 1_600;

/// A model behind some provider.
pub trait Model: Send + Sync {
    /// The provider's name: `anthropic`, `openai-chat`, `openai-responses`, `recording`.
    fn provider(&self) -> &str;

    /// The model's name as it is asked for.
    fn name(&self) -> &str;

    /// Whether the model continues from the start of its answer (prefill): a last message of the assistant in the
    /// prompt, which does not end in white space. Most models do not; their prompt states the kept text instead.
    fn prefill(&self) -> bool {
        false
    }

    /// Whether the provider signs reasoning, or has it stay with itself: then a part of it, of an answer that broke off, cannot go back. Where it
    /// is plain text, the model reads again what it had thought.
    fn signs_reasoning(&self) -> bool {
        true
    }

    /// The tokens of the context that a request and its answer have filled, by what the provider counted; `None` where it did not.
    fn context_tokens(&self, usage: Usage) -> Option<u64> {
        Some(usage.input?.saturating_add(usage.output.unwrap_or(0)))
    }

    /// The tokens of a prompt that were neither read from the provider's cache nor written to it; `None` where they were not counted.
    fn uncached_tokens(&self, usage: Usage) -> Option<u64> {
        Some(usage.input?.saturating_sub(usage.cache_read.unwrap_or(0)))
    }

    /// The tokens that an image of a prompt takes, estimated.
    fn image_tokens(&self, image: &Image) -> u64 {
        let _ = image;
        IMAGE_TOKENS
    }

    /// The most tokens of the answer to a request, its reasoning included, that the provider adds to those of the prompt: what the request
    /// asks for, or the default of its wire format. `None`: it says nothing about it.
    fn answer_tokens(&self, asked: Option<u32>) -> Option<u64> {
        asked.map(u64::from)
    }

    /// Sends one request and gives its answer as it arrives.
    ///
    /// # Errors
    /// The request could not be sent, or was refused before the stream began. Retries belong to the turn.
    fn start<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>>;
}

/// An answer in flight. Dropping it is the abort: the connection is closed at once.
pub trait ModelStream: Send {
    /// The next delta; `None` after the last. After an error nothing more comes.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Delta, ModelError>>>;

    /// What the user should know about the request, such as a part of the conversation that the provider refused and the answer is
    /// without.
    fn note(&self) -> Option<&str> {
        None
    }

    /// The log of what the host does with this answer, where the session is recorded. It outlives the stream, because
    /// an abort comes before everything else.
    fn log(&self) -> Option<Arc<dyn AnswerLog>> {
        None
    }
}

/// Records what stream rules did with one answer. Its calls must not wait; the log is complete when it is dropped.
pub trait AnswerLog: Send + Sync {
    /// Stream rules watch the answer. `prefix` is the text of an earlier attempt that it continues; empty where it
    /// continues none.
    fn watched(&self, prefix: &str);

    /// A rule fired, and this was done about it.
    fn fired(&self, found: &RuleMatch, action: Action);
}

/// Where the records of injected rules are kept, so that a session can be resumed. What is kept while a turn runs must
/// be kept also when the turn is cancelled: these calls are not waited for, and must not wait.
pub trait RuleRecords: Send + Sync {
    /// A rule's reminder went to the model.
    ///
    /// # Errors
    /// It could not be stored: the reason and the remedy. The turn continues and reports it.
    fn keep(&self, session: &SessionId, record: &RuleRecord) -> Result<(), String>;

    /// The reminder of this rule left the conversation: its record is void.
    ///
    /// # Errors
    /// As [`RuleRecords::keep`].
    fn rearmed(&self, session: &SessionId, rule: &str) -> Result<(), String>;

    /// The number of completed turns of the session, however they ended; repeat gaps are counted in turns.
    ///
    /// # Errors
    /// As [`RuleRecords::keep`].
    fn completed(&self, session: &SessionId, turns: u64) -> Result<(), String>;

    /// The stored records of a session; empty for an unknown one. Called once, at the start of the first turn.
    ///
    /// # Errors
    /// They could not be read: the reason and the remedy. The session then starts without records and reports it.
    fn load<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<KeptRules, String>>;
}

/// The stored rule records of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptRules {
    /// In the order in which they were kept.
    pub records: Vec<RuleRecord>,
    /// Turns that were completed.
    pub completed_turns: u64,
}

/// Opens the extensions of a session.
pub trait ExtensionHost: Send + Sync {
    /// The registrations of all loaded extensions, in order of registration. The same for every session, which share them.
    fn registrations(&self) -> Arc<[Registration]>;

    /// Returns the extensions of one session; the session is open until they are dropped. Instances are made when first
    /// needed.
    ///
    /// # Errors
    /// The state of its extensions cannot be opened; [`StateError::Leased`]: a session with this id is open.
    fn open<'a>(
        &'a self,
        session: &'a SessionId,
        view: Arc<dyn SessionView>,
        events: Arc<dyn EventSink>,
    ) -> BoxFuture<'a, Result<Arc<dyn Extensions>, StateError>>;

    /// Returns the extensions of a session that is open already, as this host has them: each continues with the state that it has
    /// there, and one that is the same with its instances too. What the `unregistered` kept is deleted. Between two turns
    /// only; `before` is not used afterwards. Must not wait.
    ///
    /// # Errors
    /// `before` is not of this kind of host. That is so for every host that does not provide the method.
    fn adopt(&self, before: &Arc<dyn Extensions>, unregistered: &[PluginId]) -> Result<Arc<dyn Extensions>, String> {
        let _ = (before, unregistered);
        Err("the extensions of this host do not change while a session is open".to_owned())
    }
}

/// The extensions of one session. `plugin` is the index into [`ExtensionHost::registrations`].
///
/// Calls of one session into one plugin run one after the other, `ttsr_triggered` excepted, which delays none of them; a
/// failure leaves the extension usable (its instance is replaced at the next call) and its state as it was before the
/// call. A call whose future is dropped is stopped. A call can also be skipped, with the reason.
pub trait Extensions: Any + Send + Sync {
    /// Calls `on_input_messages` with the messages of one input.
    fn input_messages<'a>(
        &'a self,
        plugin: usize,
        messages: &'a [Message],
    ) -> BoxFuture<'a, Result<InputAnswer, NoAnswer>>;

    /// Calls `on_plain_text` with one unit of text.
    fn plain_text<'a>(
        &'a self,
        plugin: usize,
        text: &'a str,
        place: &'a TextPlace,
    ) -> BoxFuture<'a, Result<TextAnswer, NoAnswer>>;

    /// Calls `on_tag` with one section.
    fn tag<'a>(
        &'a self,
        plugin: usize,
        tag: &'a Tag,
        place: &'a TagPlace,
    ) -> BoxFuture<'a, Result<TagAnswer, NoAnswer>>;

    /// Calls `on_llm_output` with the accepted answer.
    fn llm_output<'a>(
        &'a self,
        plugin: usize,
        output: &'a ModelOutput,
    ) -> BoxFuture<'a, Result<OutputAnswer, NoAnswer>>;

    /// Calls `ttsr_triggered` with the matches of one stream.
    fn ttsr_triggered<'a>(&'a self, plugin: usize, event: &'a TtsrEvent) -> BoxFuture<'a, Result<(), NoAnswer>>;

    /// Calls `on_tool_call` with a call that the model made. By default, it is not called.
    fn tool_call<'a>(&'a self, plugin: usize, call: &'a AskedCall) -> BoxFuture<'a, Result<CallAnswer, NoAnswer>> {
        let _ = (plugin, call);
        not_called("on_tool_call")
    }

    /// Calls `on_tool_result` with the result of a call, or with the change that one would make. By default, it is not called.
    fn tool_result<'a>(
        &'a self,
        plugin: usize,
        result: &'a GivenResult,
    ) -> BoxFuture<'a, Result<ResultAnswer, NoAnswer>> {
        let _ = (plugin, result);
        not_called("on_tool_result")
    }

    /// Calls a tool that the extension provides, with arguments that were checked against its schema. Reports the call as
    /// [`EventKind::ExtensionTool`], however it ends; one whose future is dropped has no effect. By default, it is not called.
    fn call_tool<'a>(
        &'a self,
        plugin: usize,
        call: &'a ToolCall,
        progress: Progress<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput, NoAnswer>> {
        let _ = (plugin, call, progress);
        let why = "this host does not call tools of extensions".to_owned();
        Box::pin(std::future::ready(Err(NoAnswer::NotPermitted(why))))
    }

    /// Returns the bytes that the extension keeps in this session under `key`, for the conditions of its prompt additions;
    /// `None` where it keeps none, or they have expired. Must not wait. Does not count as a read of the extension: the time to
    /// live is not restarted.
    ///
    /// # Errors
    /// The state cannot be read: the reason. By default, that there is no access to it.
    fn state_value(&self, plugin: usize, key: &str) -> Result<Option<Vec<u8>>, String> {
        let _ = (plugin, key);
        Err("this host has no access to the state of extensions".to_owned())
    }

    /// Returns how many values of its state the extension has read since this was called last. By default none: reads are not
    /// counted.
    fn take_state_reads(&self, plugin: usize) -> u64 {
        let _ = plugin;
        0
    }

    /// A turn begins.
    fn begin_turn(&self) {}

    /// The turn has ended, however it did. Called also where nothing can be waited for.
    fn end_turn(&self) {}

    /// An attempt begins, unless one is under way: what callbacks write to their state belongs to it until
    /// [`Extensions::end_attempt`].
    /// `ttsr_triggered` is excepted: it reports what happened, whatever becomes of the answer.
    fn begin_attempt(&self) {}

    /// The attempt is over. Of a discarded one, what callbacks wrote is undone. Without an attempt nothing happens.
    fn end_attempt(&self, end: AttemptEnd) {
        let _ = end;
    }

    /// The session is idle for long: instances are dropped, and made again by the next call. State stays. Must not wait.
    fn release_instances(&self) {}

    /// Looks for what extensions keep in the session that are not known any more: notes it, and deletes what was kept long enough. Returns
    /// what is new.
    ///
    /// # Errors
    /// The state cannot be read or written.
    fn forget_absent<'a>(&'a self, known: &'a KnownPlugins) -> BoxFuture<'a, Result<Vec<AbsentState>, StateError>> {
        let _ = known;
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Waits until the state is durable that accepted callbacks have written. A store that does not answer is asked again
    /// until `patience` has passed.
    ///
    /// # Errors
    /// As [`SessionState::settle`].
    fn settle(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        let _ = patience;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Makes the state durable and releases the session. No callback is called afterwards.
    ///
    /// # Errors
    /// As [`SessionState::settle`]; the session is released all the same.
    fn close(&self, patience: Duration) -> BoxFuture<'_, Result<(), StateError>> {
        let _ = patience;
        Box::pin(std::future::ready(Ok(())))
    }
}

fn not_called<'a, T: Send + 'a>(callback: &str) -> BoxFuture<'a, Result<T, NoAnswer>> {
    let why = format!("this host does not call {callback}");
    Box::pin(std::future::ready(Err(NoAnswer::NotPermitted(why))))
}

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Its answer, or what was shown of it, remains in the conversation.
    Accepted,
    /// Nothing of the answer remains, or callbacks process again what does.
    Discarded,
}

/// The arguments of `ttsr_triggered`.
#[derive(Clone, Debug, PartialEq)]
pub struct TtsrEvent {
    /// The matches at one byte.
    pub matches: Vec<RuleMatch>,
    /// The action that is taken.
    pub action: Action,
    /// The position in the run.
    pub place: RunPosition,
}

/// What extensions may see of their session, pulled when they ask.
pub trait SessionView: Send + Sync {
    /// Session, model, workspace, and the position of the run.
    fn info(&self) -> SessionInfo;

    /// The number of messages of the conversation, hidden ones left out.
    fn history_len(&self) -> usize;

    /// Up to `count` messages of the conversation from position `from` (0 = oldest), hidden ones left out, each with a number
    /// that stays the same while the message is part of the session.
    fn history(&self, from: usize, count: usize) -> Vec<(u64, Arc<Message>)>;

    /// The tools offered to the model.
    fn tools(&self) -> Vec<ToolSpec>;

    /// Whether an extension can emit an event of a declared type, as [`EventTypes::admit`]. By default, no type is declared.
    ///
    /// # Errors
    /// The type is not declared for this emitter, or the payload does not conform to its schema or is too large.
    fn admit_event(&self, plugin: &PluginId, event_type: &str, payload: &Value) -> Result<String, EmitError> {
        let _ = (plugin, payload);
        Err(EmitError::Unknown { event_type: event_type.to_owned(), known: Vec::new() })
    }
}

/// The facts about a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionInfo {
    /// The session's id.
    pub id: SessionId,
    /// The position of the run.
    pub place: RunPosition,
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The workspace's folder, absolute; empty where there is none.
    pub workspace: String,
    /// The agent's name: `main`, or the name of a child agent.
    pub agent: String,
}

/// The tools of a session.
pub trait Tools: Send + Sync {
    /// All of them, in the order to offer them.
    fn specs(&self) -> Vec<ToolSpec>;

    /// The order in which to run the calls of one message: a permutation of their indexes. Results are given to the model in the
    /// order of the calls, whatever order they run in. By default, the calls' own order.
    fn order(&self, calls: &[ToolCall]) -> Vec<usize> {
        (0..calls.len()).collect()
    }

    /// Notifies the tools that stream rules fired, once per stream and rule and turn, as extensions are: after the answer was stopped, if it was,
    /// and on a task of its own that nothing waits for. It should return soon. By default, nothing is done.
    fn ttsr_triggered(&self, event: &TtsrEvent) {
        let _ = event;
    }

    /// Decodes a call, once. Permission, question and execution all use the returned value, so what was approved is what
    /// runs. Never fails: a call that cannot be decoded returns an error when it runs, and does nothing else.
    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a>;
}

/// Takes the progress of a tool.
pub type Progress<'a> = &'a (dyn Fn(ProgressLine<'_>) + Send + Sync);

/// What a running tool is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProgressLine<'a> {
    /// A human-readable line. It can be empty where there is a number.
    pub message: &'a str,
    /// How much is done, from 0 to 100; `None` where the tool does not know.
    pub percent: Option<f64>,
}

impl<'a> ProgressLine<'a> {
    /// A line with a number, which is left out where it is not from 0 to 100.
    pub fn new(message: &'a str, percent: Option<f64>) -> Self {
        Self { message, percent: percent.filter(|percent| (0.0..=100.0).contains(percent)) }
    }
}

impl<'a> From<&'a str> for ProgressLine<'a> {
    fn from(message: &'a str) -> Self {
        Self { message, percent: None }
    }
}

/// A call as its tool has decoded it.
///
/// A turn asks for the permission, for a preview only where that is [`Permission::Ask`], and then runs the call at most
/// once. If the world changes between the preview and the run so that the preview is no longer true, the run must fail
/// and do nothing. Where another call of the same message has run in between, the turn prepares the call again: if its permission
/// or its preview is another one, the person is asked again.
pub trait PreparedCall: Send {
    /// Whether the call is allowed to run.
    fn permission(&self) -> Permission;

    /// What a question about the call shows. Two previews are equal only if the same happens.
    fn preview(&mut self) -> BoxFuture<'_, Preview>;

    /// What a person can allow for the rest of the session when they are asked about this call: `TOOL`, or `TOOL(GLOB)`, as they
    /// would write it into the operator's file. It covers each later call with the same value, where its permission is
    /// [`Permission::Ask`]. By default `None`: a person is asked about each call.
    fn always(&self) -> Option<String> {
        None
    }

    /// Whether the call, as its last preview shows it, changes nothing. Then it runs without a question. By default `false`.
    fn changes_nothing(&self) -> bool {
        false
    }

    /// The plan that the call shows to the user where it does not fail; `None`, the default: it shows none.
    fn plan(&self) -> Option<Vec<PlanEntry>> {
        None
    }

    /// Runs the call. Never fails as a future: a failing tool reports the failure in its output. Dropping the future
    /// stops the tool and everything it started.
    fn run<'a>(&'a mut self, progress: Progress<'a>) -> BoxFuture<'a, ToolOutput>;
}

/// Takes what happens. Never blocks.
pub trait EventSink: Send + Sync {
    /// Takes one event; the sink sets its position and time.
    fn emit(&self, kind: EventKind);
}

/// Time, so that tests can own it.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> u64;

    /// Completes after this time has passed on this clock.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}
