//! Conversations: sessions of a host whose turns run elsewhere, such as behind a gateway. A conversation has the plugins, the rules, the
//! state and the transcript of a session; it has no model, offers no tools and runs no turns.

pub(crate) mod gaps;
pub(crate) mod inherited;
mod keeper;
mod kept;
mod opening;
mod options;
mod prompt;
mod sharing;
mod thread;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow::ports::{Clock, EventSink as _, Journal, SessionState};
use flow::{EventKind, SessionId, ToolSpec};
use guard::Caller;
use rules::{RuleMemory, RuleSession, RuleSet};
use serde_json::Value;
use turn::{History, Hub, View};

pub use self::keeper::{ConversationCounts, ConversationLimits, Conversations, Visit, is_conversation};
use self::kept::Kept;
pub use self::options::ConversationOptions;
use self::sharing::{StoreTask, Storing};
use self::thread::Thread;
use crate::HostError;
use crate::host::loaded::Loaded;

/// The time limit for a store that does not answer at the end of an exchange.
const PATIENCE: Duration = Duration::from_secs(5);

/// The maximum size of what a conversation remembers, in bytes as stored.
const MOST_BYTES: usize = 16 << 20;

/// The maximum number of points of a conversation that are remembered.
const KEPT_POINTS: usize = 32;

/// A conversation of a [`Host`](crate::Host). Clones are handles to the same conversation. Any number of exchanges can run concurrently in
/// it.
///
/// An exchange is one request and its answer: [`Conversation::refresh`] at its start, [`Conversation::begin`] for its rules,
/// [`Conversation::end`] and [`Conversation::settle`] at its end.
#[derive(Clone)]
pub struct Conversation(Arc<Shared>);

struct Shared {
    id: SessionId,
    options: ConversationOptions,
    loaded: Arc<Loaded>,
    clock: Arc<dyn Clock>,
    hub: Arc<Hub>,
    history: History,
    view: Arc<View>,
    state: Mutex<State>,
    /// Locked while data of the conversation is written to the store, or read again.
    storing: tokio::sync::Mutex<Storing>,
    journal: Option<Arc<dyn Journal>>,
    thread: Mutex<Thread>,
    /// The size of the note that was stored last, in bytes.
    bytes: AtomicUsize,
    /// The time of the last attempt to reach the store while it is away, in milliseconds since 1970.
    asked_ms: AtomicU64,
}

struct State {
    /// The state of the session, while it is open in the store.
    store: Arc<dyn SessionState>,
    /// Whether the store is away, so that the data is in this process only.
    is_local: bool,
    /// Whether the store was away at the last [`Conversation::settle`].
    is_unsettled: bool,
    /// The task that stores its data, while one does that nobody waits for.
    task: Option<StoreTask>,
    /// Names by which the conversation can be found, each with its line, that are not recorded in the store yet.
    unnamed: Vec<(String, String)>,
    caller: Arc<Caller>,
    rules: RuleSession,
    /// Whether a turn has begun.
    has_begun: bool,
    /// Whether the extensions were notified of the turn.
    in_turn: bool,
    memory: Value,
    /// The points behind its last answers, each with the turns that had ended there; the last one is where its next request continues.
    points: Vec<(String, u64)>,
}

impl State {
    fn kept(&self) -> Kept {
        Kept { rules: self.rules.memory(), memory: self.memory.clone(), points: self.points.clone() }
    }

    /// Replaces its data by the merged data of two owners.
    fn take(&mut self, kept: Kept) {
        self.rules.remember(kept.rules);
        (self.memory, self.points) = (kept.memory, kept.points);
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation").field("id", &self.0.id).finish_non_exhaustive()
    }
}

impl Conversation {
    /// Returns its id, which is that of its session.
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// Returns the caller of its plugins. Take it at the start of an exchange, and use it until the end.
    pub fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.state().caller)
    }

    /// Returns the history that its plugins see. The embedder updates it as the client sends the conversation.
    pub fn history(&self) -> &History {
        &self.0.history
    }

    /// Sets the model that plugins see.
    pub fn set_model(&self, provider: &str, model: &str) {
        self.0.view.set_model(provider, model);
    }

    /// Sets the tools that plugins see.
    pub fn set_tools(&self, tools: Vec<ToolSpec>) {
        self.0.view.set_tools(move || tools.clone());
    }

    /// Begins an exchange: returns the rules with what the conversation remembers of them. `continues_turn`: the request gives the results of
    /// calls; else its turn begins, with full budgets. The rules go to [`Conversation::end`], with their memory as it is now.
    pub fn begin(&self, continues_turn: bool) -> RuleSession {
        let mut state = self.state();
        if !continues_turn && state.has_begun {
            state.rules.end_turn();
            state.rules.begin_turn();
        }
        if state.in_turn && !continues_turn {
            state.caller.extensions().end_turn();
            state.in_turn = false;
        }
        if !std::mem::replace(&mut state.in_turn, true) {
            state.caller.begin_turn();
            state.caller.extensions().begin_turn();
        }
        state.has_begun = true;
        state.rules.clone()
    }

    /// Ends an exchange, however it went: the effects of its rules count in later exchanges. `began`: the memory of the rules at its start.
    /// Concurrent exchanges all count.
    pub fn end(&self, began: &RuleMemory, ended: &RuleSession) {
        let mut state = self.state();
        let now = state.rules.memory();
        if now == *began {
            state.rules = ended.clone();
        } else {
            let merged = ended.memory().merged(began, &now);
            state.rules.remember(merged);
        }
    }

    /// Returns the memory of the embedder; `null` until [`Conversation::set_memory`].
    pub fn memory(&self) -> Value {
        self.state().memory.clone()
    }

    /// Replaces the memory of the embedder. Where hosts that share the conversation do so concurrently, entries of objects and elements
    /// appended to lists are merged. [`Conversation::settle`] stores it; no plugin can read it.
    pub fn set_memory(&self, memory: Value) {
        self.state().memory = memory;
    }

    /// Changes the memory of the embedder as [`Conversation::set_memory`] does, atomically.
    pub fn change_memory(&self, change: impl FnOnce(Value) -> Value) {
        let mut state = self.state();
        state.memory = change(std::mem::take(&mut state.memory));
    }

    /// Emits an event of the conversation.
    pub fn emit(&self, kind: EventKind) {
        self.0.hub.emit(kind);
    }

    /// Returns the hub of its events.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.0.hub
    }

    /// Returns its rules.
    pub fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(self.state().rules.rules())
    }

    /// Returns the point behind its last answer; `None`: it has none.
    pub(crate) fn tip(&self) -> Option<String> {
        self.state().points.last().map(|(point, _)| point.clone())
    }

    /// Notes that the client has received an answer, whose point this is.
    pub(crate) fn reached(&self, point: &str) {
        let mut state = self.state();
        let completed = state.rules.completed_turns();
        state.points.retain(|(known, _)| known != point);
        state.points.push((point.to_owned(), completed));
        let over = state.points.len().saturating_sub(KEPT_POINTS);
        state.points.drain(..over);
    }

    /// Returns the number of turns that have ended.
    pub(crate) fn completed_turns(&self) -> u64 {
        self.state().rules.completed_turns()
    }

    /// Returns the bytes of what it remembers, as they were stored last.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether its store is away, so that its data is in this process only.
    pub fn is_local(&self) -> bool {
        self.state().is_local
    }

    /// Waits until its events are recorded, if they are recorded at all.
    ///
    /// # Errors
    /// They cannot be written.
    pub async fn durable(&self) -> Result<(), HostError> {
        match &self.0.journal {
            Some(journal) => Ok(journal.durable().await.map_err(store::TranscriptError::from)?),
            None => Ok(()),
        }
    }

    /// Stores what was not stored, and closes it: it can be opened again, here or by another host.
    ///
    /// # Errors
    /// Data could not be stored, and is lost.
    pub async fn close(&self) -> Result<(), HostError> {
        self.caller().extensions().end_turn();
        // At the end there is no later time.
        let settled = if self.is_unstored() { self.store_late().await } else { self.settle().await };
        let closed = self.caller().extensions().close(Duration::ZERO).await;
        self.end_thread();
        if let Some(journal) = &self.0.journal
            && let Err(error) = journal.close().await
        {
            tracing::warn!(conversation = self.0.id.as_str(), "{error}");
        }
        self.0.hub.close();
        settled.and(closed.map_err(HostError::from))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state()
    }
}

impl Shared {
    /// Locks the state. The data is valid after every statement, so a panic elsewhere does not matter.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
