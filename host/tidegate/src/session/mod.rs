//! The handle of a session: cancelling, limits and history, none of which waits for a running turn. Opening it, and what is sent to it, are
//! modules of their own.
//!
//! The session itself has one owner at a time: the handle while it is idle, with a task while turns run. That task
//! takes one prompt after the other until none is left. All that the handle needs meanwhile is shared: events,
//! history, the inputs that wait.

pub(crate) mod approvals;
mod cancel_file;
pub(crate) mod confirm;
pub(crate) mod custom_events;
mod inbox;
mod input;
pub(crate) mod interrupted;
pub(crate) mod kept_model;
mod model;
mod opening;
pub(crate) mod options;
pub(crate) mod questions;
mod runner;
mod sending;
pub(crate) mod shown;
pub(crate) mod toolbox;
pub(crate) mod transcripts;
pub(crate) mod turn_handle;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow::ports::{Clock, EmitError, EventSink as _, EventTypes as _, Model};
use flow::{EventKind, LimitDecision, LimitRequest, Message, PluginId, RuleRecord, SessionId};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use turn::{Budget, CancellationToken, FlushMode, Handles, Questions, RuleMetrics, Subscription, TriggerSubscription};

pub use self::inbox::Inbox;
pub use self::input::{Input, NewInput, Sent, WhenBusy};
use self::runner::{Job, Runner};
use crate::HostError;
use crate::agents::ChildSessions;
use crate::front_end::recent::{NoBacklog, Recent, Reconnection};
use crate::host::loaded::Loaded;
use crate::plugins::of_session::SessionPlugins;
use crate::session::approvals::{Desk, LimitDecisionError};
use crate::session::custom_events::CustomEvents;
use crate::session::interrupted::Interrupted;

/// How often a running turn looks whether another process asks for its cancel.
const CANCEL_POLL: Duration = Duration::from_millis(200);

/// How long a session keeps the instances of its plugins after its last turn.
const IDLE: Duration = Duration::from_secs(60);

/// A session of a [`Host`](crate::Host): turns that share a history. A clone is a handle of the same session.
///
/// None of its methods waits for a running turn. The session ends when it is closed, or when its last handle and the last
/// [`Turn`](crate::Turn) are gone.
#[derive(Clone)]
pub struct Session(Arc<Shared>);

/// What handles and the running task share.
struct Shared {
    id: SessionId,
    /// The name of its agent.
    agent: String,
    /// The model that answers from the next turn on.
    model: Mutex<Arc<dyn Model>>,
    plugins: Arc<SessionPlugins>,
    /// What it shares with the session of `turn`, which owns it, whoever has that session now.
    handles: Handles,
    /// What front ends that reconnect have missed; `None`: nothing is kept.
    recent: Option<Arc<Recent>>,
    /// How many inputs of the queue start a turn.
    flush_mode: FlushMode,
    runtime: Handle,
    clock: Arc<dyn Clock>,
    /// Where decisions about limits arrive.
    desk: Arc<Desk>,
    custom_events: Arc<CustomEvents>,
    /// Another process can continue it, and ask the questions that are open.
    is_resumable: bool,
    /// Where another process can ask for a cancel; `None`: nowhere, because the session is not recorded.
    cancel_file: Option<PathBuf>,
    /// Cancelled when the session is closed.
    released: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The session, while no turn runs.
    idle: Option<Box<turn::Session>>,
    /// What stops the running turn.
    running: Option<CancellationToken>,
    /// Prompts that wait for it, oldest first. Their messages are among the inputs.
    waiting: VecDeque<Job>,
    /// Nothing begins any more.
    closed: bool,
    /// What rules did, as of the end of the last turn.
    metrics: BTreeMap<String, RuleMetrics>,
    /// Waits to release what an idle session does not need.
    release: Option<AbortHandle>,
    /// What the end of another process has left, until a turn begins.
    interrupted: Option<Interrupted>,
}

/// Neither the conversation nor the model can be replaced while a turn uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a turn is running, or the session is closed; cancel the turn or wait for its report, and try again")]
pub struct TurnRunning;

impl Session {
    /// The agent's name: `main`, unless [`SessionOptions::agent`](crate::SessionOptions::agent) or the agent file that the session was started from says otherwise.
    pub fn agent(&self) -> &str {
        &self.0.agent
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// Its plugins, and the rules of its workspace, as of its last turn. They change when a turn starts.
    pub fn loaded(&self) -> Arc<Loaded> {
        self.0.plugins.loaded()
    }

    /// Uses a plugin of the host again that was disabled with [`Session::disable_plugin`], from the next turn on.
    ///
    /// # Errors
    /// The host has no such plugin.
    pub fn enable_plugin(&self, plugin: &PluginId) -> Result<(), HostError> {
        self.0.plugins.set_enabled(plugin, true)
    }

    /// Does without a plugin of the host, from the next turn on. What it keeps in the session stays. For all sessions at once:
    /// [`Host::plugins`](crate::Host::plugins).
    ///
    /// # Errors
    /// The host has no such plugin, or the operator requires it.
    pub fn disable_plugin(&self, plugin: &PluginId) -> Result<(), HostError> {
        self.0.plugins.set_enabled(plugin, false)
    }

    /// Cancels the running turn. What was accepted stays in the history. The prompts that wait for it are given back: their reports say that
    /// they were cancelled. Every other input that is not delivered yet still waits, in its place, and none is sent.
    pub fn cancel(&self) {
        self.cancel_by("the caller");
    }

    /// Cancels as [`Session::cancel`] does; `who` is reported when the session ends so, as in `thread_cancelled`.
    pub fn cancel_by(&self, who: &str) {
        self.0.cancel(who, None);
    }

    /// Cancels as [`Session::cancel_by`] does; `reason` is reported with `who`.
    pub fn cancel_because(&self, who: &str, reason: &str) {
        self.0.cancel(who, Some(reason));
    }

    /// The request for a higher limit that the running turn waits for a decision about.
    pub fn pending_limit(&self) -> Option<LimitRequest> {
        self.0.desk.pending()
    }

    /// Decides about a request for a higher limit. `by`: who decides, for the record. The first decision counts; another process can
    /// decide as well, with `tidegate session approve` or a file.
    ///
    /// # Errors
    /// The request is not open, or the new limit is not above the present one. While a message that interrupts is delivered it is not open:
    /// it can be decided when it is requested again.
    pub fn decide_limit(&self, request: &str, decision: LimitDecision, by: &str) -> Result<(), LimitDecisionError> {
        self.0.desk.answer(request, decision, by)
    }

    /// Its limits, and what is spent of them.
    pub fn budget(&self) -> &Budget {
        &self.0.handles.budget
    }

    /// Whether a turn runs.
    pub fn is_running(&self) -> bool {
        lock(&self.0.state).running.is_some()
    }

    /// Whether its transcript has failed, so that nothing is recorded any more: the disk is full, or another host has taken over the session.
    /// Close it, and open it again.
    pub fn is_unrecorded(&self) -> bool {
        self.0.handles.hub.is_unrecorded()
    }

    /// What the end of another process, or closing the session there, has left of the last turn, until a turn begins; `None`: nothing.
    pub fn interrupted(&self) -> Option<Interrupted> {
        lock(&self.0.state).interrupted
    }

    /// The conversation so far, hidden messages included.
    pub fn history(&self) -> Vec<Arc<Message>> {
        self.0.handles.history.messages()
    }

    /// Replaces the conversation by another one, such as one that was compacted. Rules whose reminders were in the old
    /// one and are not in the new can fire again; their names are returned.
    ///
    /// # Errors
    /// A turn runs.
    pub fn replace_history(
        &self,
        messages: impl IntoIterator<Item = impl Into<Arc<Message>>>,
    ) -> Result<Vec<String>, TurnRunning> {
        let messages = messages.into_iter().map(Into::into).collect();
        let mut state = lock(&self.0.state);
        Ok(state.idle.as_mut().ok_or(TurnRunning)?.replace_history(messages))
    }

    /// Emits an event of a type that `[events]` of the user's or of the workspace's settings declares, with the schema of its payload. It is recorded as
    /// the declaration says, and subscribers get it as [`EventKind::CustomEvent`](crate::EventKind::CustomEvent). The files are read when the session
    /// is recorded, or with the first event.
    ///
    /// # Errors
    /// No file declares the type, or the payload is not what the type says.
    pub fn emit(&self, event_type: &str, payload: Value) -> Result<(), EmitError> {
        let event_type = self.0.custom_events.admit(None, event_type, &payload)?;
        self.0.handles.hub.emit(EventKind::CustomEvent { event_type, plugin: None, payload: Arc::new(payload) });
        Ok(())
    }

    /// Subscribes to everything that happens from now on, in all turns. Any number of subscribers; none can slow a turn down.
    pub fn subscribe(&self) -> Subscription {
        self.0.handles.hub.subscribe()
    }

    /// Subscribes from the event `seq` on, the first that a front end does not have, such as [`ChatSession::next_seq`]: the events that it
    /// missed, or a snapshot where they are not kept any more, and then everything that happens. Nothing is left out and nothing
    /// comes twice, also while a turn runs. Numbers count within one process: what was shown and is not in the transcript when a process
    /// ends is gone, and its numbers are given again. A front end of an earlier process subscribes from 0.
    ///
    /// # Errors
    /// The session was opened without [`SessionOptions::backlog`](crate::SessionOptions::backlog).
    ///
    /// [`ChatSession::next_seq`]: chat::ChatSession::next_seq
    pub fn subscribe_from(&self, seq: u64) -> Result<Reconnection, NoBacklog> {
        let recent = self.0.recent.as_ref().ok_or(NoBacklog)?;
        Ok(recent.subscribe(&self.0.handles.hub, seq))
    }

    /// The number of the first event that is kept for front ends that reconnect: [`Session::subscribe_from`] it gives all that are kept, unless
    /// the session has left it out in the meantime.
    ///
    /// # Errors
    /// As [`Session::subscribe_from`].
    pub fn kept_from(&self) -> Result<u64, NoBacklog> {
        Ok(self.0.recent.as_ref().ok_or(NoBacklog)?.first())
    }

    /// # Errors
    /// The session was opened without [`SessionOptions::backlog`].
    pub(crate) fn keeps_events(&self) -> Result<(), NoBacklog> {
        self.0.recent.as_ref().map(drop).ok_or(NoBacklog)
    }

    /// The rules whose reminders are in the conversation, each with its last record: when it was injected, for which match. A rule leaves the list
    /// when its reminder leaves the conversation, and can fire again then. Also while a turn runs.
    pub fn injected_rules(&self) -> Vec<RuleRecord> {
        self.0.handles.injected.list()
    }

    /// Subscribes to the rules that fire from now on, as extensions get them with `ttsr_triggered`: once for each stream, rule and turn, those
    /// that match at one byte together. The model was stopped before, where it was, and nothing waits for a subscriber. Tools of an embedder
    /// are notified with [`Tools::ttsr_triggered`](crate::tool::Tools::ttsr_triggered).
    pub fn subscribe_rules(&self) -> TriggerSubscription {
        self.0.handles.triggers.subscribe()
    }

    /// What each rule did in this session by the end of its last turn, by name. Rules that never did anything are not there.
    pub fn rule_metrics(&self) -> BTreeMap<String, RuleMetrics> {
        lock(&self.0.state).metrics.clone()
    }

    /// Ends the session: a running turn is cancelled, nothing begins any more, prompts that wait are given back, what plugins keep is saved,
    /// subscribers get the last event and then the end. [`Session::closed`] waits for that. Where the session is recorded and a person is
    /// asked about a tool call or a limit, its turn ends as [`TurnStatus::Suspended`](crate::TurnStatus::Suspended) instead, for the reason
    /// `approval`: [`Session::resume`] of the next process asks again.
    pub fn close(&self) {
        let mut state = lock(&self.0.state);
        state.closed = true;
        state.waiting.drain(..).for_each(|job| self.0.handles.inputs.give_back(job.ticket));
        self.0.handles.inputs.close();
        match state.idle.take() {
            Some(session) => self.0.end(*session),
            // The running task closes the session at the end of its turn.
            None => {
                let running = state.running.as_ref().filter(|running| !running.is_cancelled());
                if self.0.is_resumable && running.is_some() {
                    self.0.handles.questions.keep_open();
                }
                if running.is_some() {
                    self.0.handles.canceller.set_unless_known("the caller", "the session was closed");
                }
                running.into_iter().for_each(CancellationToken::cancel);
            }
        }
    }

    /// Waits until the session is closed and its state is saved and released: another one with its id can be opened then.
    pub async fn closed(&self) {
        self.0.released.cancelled().await;
    }

    /// The sessions of the agents that its model has started, as long as they work. Each is reported by
    /// [`EventKind::ChildThreadStarted`](crate::EventKind::ChildThreadStarted) with its id. Its questions reach the handler of this
    /// session, and its end is the result of the tool call.
    pub fn children(&self) -> Vec<Session> {
        self.0.plugins.children().open()
    }

    /// The sessions of agents, those that are open and those that will be, each once, and of the agents that they start. Each is there
    /// before its first turn.
    pub fn child_sessions(&self) -> ChildSessions {
        self.0.plugins.children().watch()
    }

    pub(crate) fn add_child_watcher(&self, watcher: mpsc::UnboundedSender<Self>) {
        self.0.plugins.children().add_watcher(watcher);
    }

    /// Whether it is closed, and its state released.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.released.is_cancelled()
    }

    /// Its own questions about tool calls.
    pub(crate) fn questions(&self) -> &Questions {
        &self.0.handles.questions
    }

    /// Gives the idle session to a task that runs the job, and those that follow it.
    fn begin(&self, mut state: MutexGuard<'_, State>, job: Job) {
        let Some(session) = state.idle.take() else { return };
        state.running = Some(job.cancel.clone());
        state.interrupted = None;
        state.release.take().iter().for_each(AbortHandle::abort);
        // A runtime that was shut down drops the task at once, and the task takes the lock then.
        drop(state);
        let runner = Runner::new(Arc::clone(&self.0), session);
        self.0.runtime.spawn(runner.run(job));
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.0.id).field("running", &self.is_running()).finish_non_exhaustive()
    }
}

impl Shared {
    fn current_model(&self) -> Arc<dyn Model> {
        Arc::clone(&lock(&self.model))
    }

    /// Drops the instances of plugins when the session has been idle for a while.
    fn release_later(self: &Arc<Self>) -> AbortHandle {
        let (session, idle) = (Arc::downgrade(self), self.clock.sleep(IDLE));
        let waiting = async move {
            idle.await;
            let Some(session) = session.upgrade() else { return };
            lock(&session.state).idle.iter().for_each(|session| session.release_instances());
        };
        self.runtime.spawn(waiting).abort_handle()
    }

    fn cancel(&self, who: &str, reason: Option<&str>) {
        self.handles.canceller.set(who, reason);
        let mut state = lock(&self.state);
        state.running.iter().for_each(CancellationToken::cancel);
        for job in std::mem::take(&mut state.waiting) {
            self.handles.inputs.give_back(job.ticket);
            job.cancelled();
        }
    }

    /// A request to cancel is about the turn that runs when it is made.
    fn forget_cancel_file(&self) {
        self.cancel_file.iter().for_each(|file| drop(cancel_file::take(file)));
    }

    /// Cancels the turn when somebody creates the file, which is removed. Runs until it is dropped.
    async fn watch_cancel_file(&self) -> Infallible {
        let Some(file) = &self.cancel_file else { return std::future::pending().await };
        loop {
            tokio::time::sleep(CANCEL_POLL).await;
            if let Some(asked) = cancel_file::take(file) {
                self.cancel(asked.by.as_deref().unwrap_or(cancel_file::BY), asked.reason.as_deref());
            }
        }
    }

    /// Closes the session, which may wait for the store of its state, and for the agents that it has started.
    fn end(&self, session: turn::Session) {
        let (released, children) = (self.released.clone(), Arc::clone(self.plugins.children()));
        self.runtime.spawn(async move {
            children.closed().await;
            session.close().await;
            released.cancel();
        });
    }
}

/// The data are valid after every statement, so a panic elsewhere does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
