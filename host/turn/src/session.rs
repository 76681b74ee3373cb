//! A session: turns that share a history, extensions with their state, and the records of stream rules.

mod extensions;
mod rules;

use std::sync::Arc;
use std::time::Duration;

use flow::{
    ErrorClass, EventKind, Message, Origin, PromptAddition, RegistrationAction, RunPosition, SessionId, StopReason,
    SystemBlock, TurnStatus, Usage,
};

use ::rules::RuleSet;

use self::rules::Asked;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::attempt::Answer;
use crate::chain::Caller;
use crate::events::{Hub, Subscription};
use crate::history::History;
use crate::metrics::Metrics;
use crate::ports::{
    Clock, Confirm, EventSink, ExtensionHost, ExtensionSource, Inbox, Model, NoInbox, RuleRecords, RuleSource,
    StateError, Tools,
};
use crate::prompt::Frame;
use crate::records::MemoryRecords;
use crate::run::Turn;
use crate::spans;
use crate::view::View;

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
    /// How often a request that failed before anything was shown is sent again.
    pub max_retries: u32,
    /// The workspace's folder, absolute; empty where there is none.
    pub workspace: String,
    /// Whether an answer is shown while it streams. An attempt that breaks off after something was seen is not
    /// repeated, because what was shown cannot be retracted.
    pub live: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            system: Vec::new(),
            additions: Vec::new(),
            max_tokens: None,
            max_steps: 50,
            max_retries: 3,
            workspace: String::new(),
            live: true,
        }
    }
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

    /// The report of a turn that could not begin, with the reason.
    pub fn failed(message: impl Into<String>) -> Self {
        let status = TurnStatus::Failed { class: ErrorClass::Permanent, message: message.into() };
        Self { status, ..Self::new(RunPosition::default()) }
    }
}

/// How long the end of a session waits for a store that does not answer.
const CLOSING: Duration = Duration::from_secs(5);

/// Turns that share a history. One turn at a time.
pub struct Session {
    pub(crate) parts: SessionParts,
    pub(crate) hub: Arc<Hub>,
    pub(crate) history: History,
    pub(crate) caller: Arc<Caller>,
    /// What its extensions see of it.
    view: Arc<View>,
    /// Where its extensions change; `None`: nowhere.
    source: Option<Arc<dyn ExtensionSource>>,
    pub(crate) frame: Frame,
    pub(crate) rules: ::rules::RuleSession,
    /// Where it is kept which rules the model was reminded of.
    records: Arc<dyn RuleRecords>,
    inbox: Arc<dyn Inbox>,
    /// Steering messages that were taken from the inbox and are not delivered yet.
    pub(crate) steering: Vec<Message>,
    pub(crate) metrics: Metrics,
    pub(crate) usage: Usage,
    started_ms: Option<u64>,
    turns: u32,
    asked: Asked,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.parts.id).field("turns", &self.turns).finish_non_exhaustive()
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
        let view = Arc::new(View::new(&parts, history.clone(), Arc::clone(&hub)));
        let registrations = parts.extensions.registrations();
        let sink: Arc<dyn EventSink> = Arc::<Hub>::clone(&hub);
        let extensions = parts.extensions.open(&parts.id, Arc::<View>::clone(&view), sink).await?;
        let caller = Arc::new(Caller::new(registrations, extensions, Arc::clone(&hub)));
        let frame = Frame::new(&parts.settings.system, &parts.settings.additions, parts.settings.max_tokens);
        // None before the first turn asks for them.
        let (none, _) = RuleSet::build(Vec::new(), ::rules::RuleSettings::default(), &parts.settings.workspace);
        let rules = ::rules::RuleSession::new(none);
        let metrics = Metrics::default();
        let records = Arc::new(MemoryRecords::default());
        Ok(Self {
            metrics,
            records,
            inbox: Arc::new(NoInbox),
            steering: Vec::new(),
            parts,
            hub,
            history,
            caller,
            view,
            source: None,
            frame,
            rules,
            usage: Usage::default(),
            started_ms: None,
            turns: 0,
            asked: Asked::default(),
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

    /// Takes steering messages from `inbox`. Without this there are none.
    #[must_use]
    pub fn with_inbox(mut self, inbox: Arc<dyn Inbox>) -> Self {
        self.inbox = inbox;
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
        self.hub.subscribe()
    }

    /// The conversation so far, hidden messages included.
    pub fn history(&self) -> Vec<Arc<Message>> {
        self.history.messages()
    }

    /// The conversation itself, for readers while a turn runs.
    pub fn shared_history(&self) -> History {
        self.history.clone()
    }

    /// Where its events are emitted. Subscribers can join while a turn runs.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// Runs one turn: from this input to idle, tool calls included.
    ///
    /// Never fails as a function: what went wrong is the report's status, and an event. After a turn that was cancelled
    /// or failed the session continues: what was accepted remains in the history, and so does the text of an
    /// incomplete answer. Dropping the future cancels the turn.
    pub async fn run(&mut self, input: Vec<Message>, cancel: &CancellationToken) -> TurnReport {
        self.turns += 1;
        let span = spans::turn(&self.parts, self.turns);
        self.run_in(span.clone(), input, cancel).instrument(span).await
    }

    /// Runs one turn inside of its span.
    async fn run_in(&mut self, span: Span, input: Vec<Message>, cancel: &CancellationToken) -> TurnReport {
        self.begin_thread();
        let place = RunPosition { turn: self.turns, step: 0, attempt: 0 };
        self.set_place(place);
        self.hub.emit(EventKind::TurnStart);
        let renewed = tokio::select! {
            biased;
            () = cancel.cancelled() => Ok(()),
            renewed = self.renew_extensions() => renewed,
        };
        self.rules.begin_turn();
        self.frame.begin_turn();
        self.metrics.begin_turn();
        self.caller.begin_turn();
        self.caller.extensions.begin_turn();
        let mut turn = Turn::new(self, cancel, place, span);
        let status = if let Err(message) = renewed {
            TurnStatus::Failed { class: ErrorClass::Permanent, message }
        } else if input.is_empty() {
            let message = "the input has no messages: the model was not asked. Pass at least one message.".to_owned();
            TurnStatus::Failed { class: ErrorClass::Permanent, message }
        } else {
            tokio::select! {
                biased;
                () = cancel.cancelled() => TurnStatus::Cancelled,
                status = turn.run(input) => status,
            }
        };
        turn.finish(status).await
    }

    /// Ends the session: the state of extensions is saved and the session released, subscribers get its last event and then the
    /// end. Dropping it instead saves nothing that is not saved yet.
    pub async fn close(self) {
        if let Err(error) = self.caller.extensions.close(CLOSING).await {
            let message = format!("the state of the extensions is lost as far as it was not saved before: {error}");
            tracing::warn!(session = self.parts.id.as_str(), "{message}");
            self.hub.emit(EventKind::StateLost { message });
        }
        if let Some(started) = self.started_ms {
            let duration_ms = self.parts.clock.now_ms().saturating_sub(started);
            self.hub.emit(EventKind::ThreadCompleted { turns: self.turns, usage: self.usage, duration_ms });
        }
        self.hub.close();
    }

    /// Drops the instances of its extensions, which cost memory while the session is idle. The next call makes new ones.
    pub fn release_instances(&self) {
        self.caller.extensions.release_instances();
    }

    pub(crate) fn set_place(&self, place: RunPosition) {
        self.hub.set_place(place);
    }

    /// Adds a message to the conversation.
    pub(crate) fn remember(&self, message: impl Into<Arc<Message>>) {
        self.history.push(message.into());
    }

    /// Takes what the inbox has; it stays in `steering` until it is delivered, whatever becomes of the turn.
    pub(crate) fn take_steering(&mut self) -> &[Message] {
        self.steering.extend(self.inbox.take());
        &self.steering
    }

    /// Of an answer that did not come to its end, its text stays.
    pub(crate) fn view_partial(&self, text: String) {
        if let Some(message) = Answer::partial_message(text) {
            self.history.push(message);
        }
    }

    fn begin_thread(&mut self) {
        if self.started_ms.is_some() {
            return;
        }
        self.started_ms = Some(self.parts.clock.now_ms());
        self.hub.emit(EventKind::ThreadStarted {
            session: self.parts.id.clone(),
            provider: self.parts.model.provider().to_owned(),
            model: self.parts.model.name().to_owned(),
        });
        for one in &self.caller.registrations {
            let (plugin, version, callbacks) = (one.plugin.clone(), one.version.clone(), one.callbacks.clone());
            let action = RegistrationAction::Register;
            tracing::info!(%plugin, version, action = action.as_str(), "the session has the extension");
            self.hub.emit(EventKind::ExtensionRegistered { plugin, version, action, callbacks });
        }
    }
}

/// A message of the host's own that the user does not see.
pub(crate) fn hidden(role: flow::Role, text: String) -> Message {
    Message { hidden: true, ..Message::text(role, Origin::Host, text) }
}
