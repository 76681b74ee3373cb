//! A session: turns that share a history, extensions with their state, and the records of stream rules.

mod context;
mod extensions;
mod handles;
mod limits;
mod model;
mod rules;
mod thread;

use std::sync::Arc;
use std::time::Duration;

use flow::{
    EventKind, Message, Origin, Part, Price, PromptAddition, RegistrationAction, RetryTable, Role, RunPosition,
    SessionId, StopReason, SystemBlock, ThreadMode, TurnStatus, Usage,
};
use serde_json::{Map, Value};

use ::rules::RuleSet;

pub use self::handles::Handles;
use self::rules::Asked;
pub use self::rules::InjectedRules;
pub use self::thread::Canceller;
use self::thread::Thread;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::budget::Budget;
use crate::events::{Hub, Subscription};
use crate::history::History;
use crate::inputs::{Claim, Inputs};
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::prompt::Frame;
use crate::questions::{QuestionSettings, Questions};
use crate::rebuild::{OpenCalls, Resumed};
use crate::records::MemoryRecords;
use crate::run::{Turn, saving};
use crate::sources::{ExtensionSource, RuleSource};
use crate::spans;
use crate::view::View;
use flow::ports::{
    Approvals, Clock, Confirm, EventSink, EventTypes, ExtensionHost, Journal, Model, RuleRecords, SessionInfo,
    StateError, Tools,
};
use guard::Caller;

/// What a session is made of.
pub struct SessionParts {
    /// The session's id, under which extensions keep their state.
    pub id: SessionId,
    /// The model that is asked.
    pub model: Arc<dyn Model>,
    /// The loaded extensions.
    pub extensions: Arc<dyn ExtensionHost>,
    /// The tools offered to the model.
    pub tools: Arc<dyn Tools>,
    /// The user to ask where a tool's permission is `ask`.
    pub confirm: Arc<dyn Confirm>,
    /// Where the rules come from; asked at the start of each turn.
    pub rules: Arc<dyn RuleSource>,
    /// The clock of events, delays and limits on holding.
    pub clock: Arc<dyn Clock>,
    /// The operator's settings of the session.
    pub settings: SessionSettings,
}

impl SessionParts {
    fn info(&self) -> SessionInfo {
        SessionInfo {
            id: self.id.clone(),
            place: RunPosition::default(),
            provider: self.model.provider().to_owned(),
            model: self.model.name().to_owned(),
            workspace: self.settings.workspace.clone(),
            agent: self.settings.agent.clone(),
        }
    }
}

impl std::fmt::Debug for SessionParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionParts").field("id", &self.id).field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// How turns run.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// Blocks of the system prompt, those of the rules left out: they follow these.
    pub system: Vec<SystemBlock>,
    /// What plugins add to the prompt.
    pub additions: Vec<PromptAddition>,
    /// The maximum number of tokens of one answer; `None` = the provider's default.
    pub max_tokens: Option<u32>,
    /// The maximum number of steps of one turn; then it ends as [`TurnStatus::StepLimit`].
    pub max_steps: u32,
    /// How often in a row the same call can have the same result; then the model reads that, and if it goes on, the turn ends as
    /// [`TurnStatus::NoProgress`]. 0: any number of times.
    pub max_repeats: u32,
    /// What failed requests mean, and how often and when one is sent again before anything of its answer was shown.
    pub retries: Arc<RetryTable>,
    /// The longest time of a request, from its first attempt to the end of its answer; `None`: there is no limit.
    pub request_timeout: Option<Duration>,
    /// When the conversation is summarised; `None`: never.
    pub compaction: Option<Compaction>,
    /// The prices of the model; `None`: they are not known, and neither is what turns cost.
    pub price: Option<Price>,
    /// The workspace's folder, absolute; empty where there is none.
    pub workspace: String,
    /// The agent's name, which rules and prompt additions can be limited to: `main`, or the name of a child agent.
    pub agent: String,
    /// Whether an answer is shown while it streams. An attempt that breaks off after something was seen is not
    /// repeated, because what was shown cannot be retracted.
    pub live: bool,
    /// How long questions about tool calls wait.
    pub questions: QuestionSettings,
    /// What its thread is for.
    pub mode: ThreadMode,
    /// What its thread is started with, by name; empty: its first input.
    pub inputs: Map<String, Value>,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            system: Vec::new(),
            additions: Vec::new(),
            max_tokens: None,
            max_steps: 50,
            max_repeats: 8,
            retries: Arc::default(),
            request_timeout: None,
            compaction: None,
            price: None,
            workspace: String::new(),
            agent: "main".to_owned(),
            live: true,
            questions: QuestionSettings::default(),
            mode: ThreadMode::default(),
            inputs: Map::new(),
        }
    }
}

/// When the older part of a conversation is summarised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compaction {
    /// Tokens that the model takes: the prompt and its answer; `None` where that is not known.
    pub context_tokens: Option<u64>,
    /// The share of them, from 0 to 1, at which the conversation is summarised.
    pub at: f64,
    /// The last turns, the current one included, that are not summarised; at least 1. Where the current turn alone fills the context,
    /// its older part is.
    pub keep_turns: u32,
}

/// The result of a turn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TurnReport {
    /// How it ended.
    pub status: TurnStatus,
    /// The text of its accepted answers as it was shown, joined.
    pub text: String,
    /// Why the last accepted answer ended.
    pub stop: Option<StopReason>,
    /// Tokens of all its attempts.
    pub usage: Usage,
    /// The position of the run at its end.
    pub place: RunPosition,
    /// How often a rule stopped the model.
    pub interrupts: u32,
}

impl TurnReport {
    /// The report of a turn that begins at `place`.
    pub(crate) fn new(place: RunPosition) -> Self {
        let (status, usage) = (TurnStatus::Completed, Usage::default());
        Self { status, text: String::new(), stop: None, usage, place, interrupts: 0 }
    }

    /// The report of a turn that was cancelled before it began.
    pub fn cancelled() -> Self {
        Self { status: TurnStatus::Cancelled, ..Self::new(RunPosition::default()) }
    }

    /// The report of a turn that could not begin, with the reason.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { status: TurnStatus::failed(message), ..Self::new(RunPosition::default()) }
    }
}

/// What a turn begins with.
pub(crate) enum Given {
    /// The conversation continues as it is.
    Nothing,
    /// Messages that are nobody's inputs.
    Messages(Vec<Message>),
    /// Inputs of the session.
    Claimed(Claim),
}

/// How long the end of a session waits for extensions and tools that are notified of a rule.
const NOTIFYING: Duration = Duration::from_millis(500);

/// Turns that share a history. One turn at a time.
pub struct Session {
    pub(crate) parts: SessionParts,
    /// What others use of it, too.
    pub(crate) handles: Handles,
    pub(crate) caller: Arc<Caller>,
    /// What its extensions see of it.
    view: Arc<View>,
    /// Where its extensions change; `None`: nowhere.
    source: Option<Arc<dyn ExtensionSource>>,
    pub(crate) frame: Frame,
    pub(crate) rules: ::rules::RuleSession,
    /// Where it is kept which rules the model was reminded of.
    records: Arc<dyn RuleRecords>,
    /// What is said about rules that fired.
    pub(crate) notices: Notices,
    pub(crate) metrics: Metrics,
    /// Where its events are recorded; `None`: nowhere.
    pub(crate) journal: Option<Arc<dyn Journal>>,
    pub(crate) thread: Thread,
    /// Who decides whether it may exceed a limit; `None`: nobody.
    pub(crate) approvals: Option<Arc<dyn Approvals>>,
    /// What its first turn reports.
    first_notices: Vec<String>,
    asked: Asked,
    /// The calls of an answer whose process ended, until the next turn.
    pub(crate) open_calls: Option<OpenCalls>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.parts.id).field("turns", &self.thread.turns).finish_non_exhaustive()
    }
}

impl Session {
    /// Opens a session with an empty history. Nothing is started before the first turn. It is open until it is closed or
    /// dropped.
    ///
    /// # Errors
    /// The state of its extensions cannot be opened; [`StateError::Leased`]: a session with this id is open.
    pub async fn open(parts: SessionParts) -> Result<Self, StateError> {
        let hub = Arc::new(Hub::new(Arc::clone(&parts.clock)));
        let history = History::default();
        let view = Arc::new(View::new(parts.info(), history.clone(), Arc::clone(&hub)));
        let tools = Arc::clone(&parts.tools);
        view.set_tools(move || tools.specs());
        let registrations = parts.extensions.registrations();
        let sink: Arc<dyn EventSink> = Arc::<Hub>::clone(&hub);
        let extensions = parts.extensions.open(&parts.id, Arc::<View>::clone(&view), sink).await?;
        let caller = Arc::new(Caller::new(registrations, extensions, Arc::<Hub>::clone(&hub)));
        let frame = Frame::new(&parts.settings.system, &parts.settings.additions, parts.settings.max_tokens);
        // None before the first turn asks for them.
        let (none, _) = RuleSet::build(Vec::new(), ::rules::RuleSettings::default(), &parts.settings.workspace);
        let rules = ::rules::RuleSession::of_agent(none, &parts.settings.agent);
        let (notices, thread) = (Notices::default(), Thread::default());
        let handles = Handles {
            inputs: Inputs::new(Arc::clone(&hub)),
            questions: Questions::new(Arc::clone(&hub)),
            budget: Budget::default(),
            canceller: thread.canceller.clone(),
            injected: InjectedRules::default(),
            triggers: notices.triggers(),
            hub,
            history,
        };
        Ok(Self {
            handles,
            metrics: Metrics::default(),
            records: Arc::new(MemoryRecords::default()),
            notices,
            parts,
            caller,
            view,
            source: None,
            frame,
            rules,
            journal: None,
            thread,
            approvals: None,
            first_notices: Vec::new(),
            asked: Asked::default(),
            open_calls: None,
        })
    }

    /// Keeps in `records` of which rules the model was reminded, and takes up at the first turn what is there. Without
    /// this they live as long as the session.
    #[must_use]
    pub fn with_records(mut self, records: Arc<dyn RuleRecords>) -> Self {
        self.records = records;
        self
    }

    /// Asks `source` at the start of each turn for changes of the extensions. Without this they stay those that the session was
    /// opened with.
    #[must_use]
    pub fn with_extension_source(mut self, source: Arc<dyn ExtensionSource>) -> Self {
        self.source = Some(source);
        self
    }

    /// Extensions can emit events of the types that `types` knows. Without this they can emit none.
    #[must_use]
    pub fn with_event_types(self, types: Arc<dyn EventTypes>) -> Self {
        self.view.set_event_types(types);
        self
    }

    /// Records the session in `journal`, from its next event on, and continues from what `resumed` has, where its thread was recorded
    /// before. Before the first turn only.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn Journal>, resumed: Option<Resumed>) -> Self {
        if let Some(mut resumed) = resumed {
            self.handles.questions.restore(resumed.questions, std::mem::take(&mut resumed.always));
            self.open_calls = resumed.open_calls.take();
            self.handles.hub.continue_at(resumed.next_event);
            self.handles.hub.set_place(RunPosition { turn: resumed.turns, step: 0, attempt: 0 });
            self.handles.history.restore(&resumed.history, &resumed.history_turns, resumed.ends_partial);
            self.handles.budget.restore(resumed.spent, &resumed.raised);
            self.handles.inputs.restore(&resumed);
            resumed.rules.records.iter().for_each(|record| self.handles.injected.keep(record));
            let counted = resumed.context_tokens;
            self.thread = Thread::resumed(resumed, self.handles.canceller.clone());
            self.resume_gauge(counted);
        }
        self.handles.hub.record(Arc::clone(&journal));
        self.journal = Some(journal);
        self
    }

    /// What waits from another process is held: no turn takes it on its own, until [`Inputs::release`]. The first turn reports it. After
    /// [`Session::with_journal`] and [`Session::with_notices`].
    #[must_use]
    pub fn holding_waiting(mut self) -> Self {
        self.handles.inputs.hold();
        self.first_notices.extend(self.handles.inputs.held_notice());
        self
    }

    /// Nobody sees an answer before it is accepted, as where it goes to a file: an attempt that breaks off is repeated
    /// although some of it was emitted as events. A subscriber that keeps text drops it at [`flow::EventKind::RetryScheduled`],
    /// down to the kept bytes that the following partial answer states.
    #[must_use]
    pub fn accepted_only(mut self) -> Self {
        self.parts.settings.live = false;
        self
    }

    /// Subscribes to everything that happens from now on. Any number of subscribers; none can slow a turn down.
    pub fn subscribe(&self) -> Subscription {
        self.handles.hub.subscribe()
    }

    /// The conversation so far, hidden messages included.
    pub fn history(&self) -> Vec<Arc<Message>> {
        self.handles.history.messages()
    }

    /// Waits until extensions and tools were notified of all rules that have fired. A turn does not wait for that.
    pub async fn notified(&mut self) {
        self.notices.ended().await;
    }

    /// Runs one turn: from this input to idle, tool calls included.
    ///
    /// Never fails as a function: what went wrong is the report's status, and an event. After a turn that was cancelled
    /// or failed the session continues: what was accepted remains in the history, and so does the text of an
    /// incomplete answer. Dropping the future cancels the turn.
    pub async fn run(&mut self, input: Vec<Message>, cancel: &CancellationToken) -> TurnReport {
        self.start(Given::Messages(input), "input", cancel).await
    }

    /// Runs one turn with inputs of [`Handles::inputs`]. They are delivered when extensions have processed them. If the turn ends before
    /// that, they wait again, but for those of a prompt, which are given back.
    pub async fn run_claimed(&mut self, input: Claim, cancel: &CancellationToken) -> TurnReport {
        self.start(Given::Claimed(input), "input", cancel).await
    }

    async fn start(&mut self, input: Given, by: &str, cancel: &CancellationToken) -> TurnReport {
        self.thread.turns += 1;
        let span = spans::turn(&self.parts, self.thread.turns);
        self.run_in(span.clone(), input, by, cancel).instrument(span).await
    }

    /// Runs one turn inside of its span.
    async fn run_in(&mut self, span: Span, input: Given, by: &str, cancel: &CancellationToken) -> TurnReport {
        self.begin_thread(by, &input);
        let place = RunPosition { turn: self.thread.turns, step: 0, attempt: 0 };
        self.set_place(place);
        self.handles.hub.emit(EventKind::TurnStart);
        let renewed = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(()),
            renewed = self.renew_extensions() => renewed,
        };
        self.handles.history.begin_turn(place.turn);
        self.rules.begin_turn();
        self.frame.begin_turn();
        self.metrics.begin_turn();
        self.caller.begin_turn();
        self.caller.extensions().begin_turn();
        let mut turn = Turn::new(self, cancel, place, span);
        let status = if let Err(message) = renewed {
            TurnStatus::failed(message)
        } else if matches!(&input, Given::Messages(messages) if messages.is_empty()) {
            TurnStatus::failed("the input has no messages: the model was not asked. Pass at least one message.")
        } else {
            tokio::select! {
                biased;
                () = cancel.cancelled() => turn.cancelled(),
                status = async {
                    // Not before: a turn that cannot begin leaves the open calls of an earlier one, and their questions, to the next.
                    turn.take_open_calls(!matches!(input, Given::Nothing));
                    turn.run(input).await
                } => status,
            }
        };
        turn.finish(status).await
    }

    /// Ends the session: the state of extensions is saved and the session released, subscribers get its last event and then the
    /// end. Dropping it instead saves nothing that is not saved yet.
    pub async fn close(mut self) {
        let is_brief = self.thread.is_unsaved || self.thread.is_cancelled();
        // Who cancels does not wait for anything more.
        self.notices.close(if is_brief { Duration::ZERO } else { NOTIFYING }).await;
        if let Err(error) = saving::close(&**self.caller.extensions(), is_brief).await {
            let message = format!("the state of the extensions is lost as far as it was not saved before: {error}");
            tracing::warn!(session = self.parts.id.as_str(), "{message}");
            self.handles.hub.emit(EventKind::StateLost { message });
        }
        if let Some(end) = self.thread.end(self.parts.clock.now_ms()) {
            self.handles.hub.emit(end);
        }
        if let Some(journal) = &self.journal
            && let Err(error) = journal.close().await
        {
            tracing::warn!(session = self.parts.id.as_str(), "{error}");
        }
        self.handles.hub.close();
    }

    /// Drops the instances of its extensions, which cost memory while the session is idle. The next call makes new ones.
    pub fn release_instances(&self) {
        self.caller.extensions().release_instances();
    }

    pub(crate) fn set_place(&self, place: RunPosition) {
        self.handles.hub.set_place(place);
    }

    /// Adds a message to the conversation.
    pub(crate) fn remember(&self, message: impl Into<Arc<Message>>) {
        self.handles.history.push(message.into());
    }

    /// Reports these sentences when its first turn begins: before, nobody can be subscribed.
    #[must_use]
    pub fn with_notices(mut self, notices: Vec<String>) -> Self {
        self.first_notices = notices;
        self
    }

    /// Adds a message to the conversation that the model reads from the next request on.
    pub(crate) fn add_message(&self, message: impl Into<Arc<Message>>) {
        let message = message.into();
        self.handles.hub.emit(EventKind::CognitionIn { message: Arc::clone(&message) });
        self.handles.history.push(message);
    }

    /// Adds a message of the host's own, which the user does not see.
    pub(crate) fn inform(&self, custom_type: &str, text: String) {
        let custom_type = custom_type.to_owned();
        self.handles.hub.emit(EventKind::CustomMessage { custom_type, text: text.clone(), hidden: true });
        self.remember(Message { hidden: true, ..Message::text(Role::User, Origin::Host, text) });
    }

    /// Reports the system prompt of the next request, where it is another one than that of the last.
    pub(crate) fn emit_system(&mut self) {
        if self.frame.system_texts().eq(self.thread.system.iter().map(String::as_str)) {
            return;
        }
        self.thread.system = self.frame.system_texts().map(str::to_owned).collect();
        let parts = self.thread.system.iter().cloned().map(Part::Text).collect();
        let message = Message { role: Role::System, origin: Origin::Host, parts, hidden: true };
        self.handles.hub.emit(EventKind::CognitionIn { message: Arc::new(message) });
    }

    /// What the thread is started with, where its first turn has this input.
    fn started_with(&self, input: &Given) -> Map<String, Value> {
        let given = &self.parts.settings.inputs;
        match input {
            _ if !given.is_empty() => given.clone(),
            Given::Nothing => Map::new(),
            Given::Messages(messages) => thread::first_input(messages),
            Given::Claimed(claim) => thread::first_input(&claim.messages()),
        }
    }

    fn begin_thread(&mut self, by: &str, input: &Given) {
        let (provider, model) = (self.parts.model.provider().to_owned(), self.parts.model.name().to_owned());
        let (suspended, by) = (self.thread.suspended.take(), by.to_owned());
        let has_new_model = std::mem::take(&mut self.thread.has_new_model);
        self.handles.inputs.report_again();
        match self.thread.begin(self.parts.clock.now_ms()) {
            thread::Begin::Running => {
                if suspended.is_some() || has_new_model {
                    let by = if suspended.is_some() { by } else { "model".to_owned() };
                    self.handles.hub.emit(EventKind::ThreadResumed { by, suspended, provider, model });
                }
                return;
            }
            thread::Begin::Resumed => {
                self.handles.hub.emit(EventKind::ThreadResumed { by, suspended, provider, model });
            }
            thread::Begin::Started => {
                self.handles.hub.emit(EventKind::ThreadStarted {
                    session: self.parts.id.clone(),
                    agent: self.rules.agent().to_owned(),
                    provider,
                    model,
                    workspace: self.parts.settings.workspace.clone(),
                    mode: self.parts.settings.mode,
                    inputs: self.started_with(input),
                });
                let messages = self.handles.history.messages();
                if !messages.is_empty() {
                    self.handles.hub.emit(EventKind::HistoryReplaced { messages });
                }
            }
        }
        for message in std::mem::take(&mut self.first_notices) {
            self.handles.hub.emit(EventKind::Notice { message });
        }
        for one in self.caller.registrations().iter() {
            let (plugin, version, callbacks) = (one.plugin.clone(), one.version.clone(), one.callbacks.clone());
            let action = RegistrationAction::Register;
            tracing::info!(%plugin, version, action = action.as_str(), "the session has the extension");
            self.handles.hub.emit(EventKind::ExtensionRegistered { plugin, version, action, callbacks });
        }
    }
}
