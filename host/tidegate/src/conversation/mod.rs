//! Conversations: sessions of a host whose turns run elsewhere, as behind a gateway. A conversation has the plugins, the rules, the state and
//! the transcript of a session; it has no model, offers no tools and runs no turns.

mod kept;
mod opening;
mod options;
mod sharing;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use flow::ports::{Clock, EventSink as _, Journal, SessionState};
use flow::{EventKind, SessionId, ToolSpec};
use guard::Caller;
use rules::{RuleMemory, RuleSession, RuleSet};
use serde_json::Value;
use turn::{History, Hub, View};

use self::kept::Stored;
pub use self::options::ConversationOptions;
use crate::HostError;
use crate::host::loaded::Loaded;

/// How long the end of an exchange waits for a store that does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A conversation of a [`Host`](crate::Host). A clone is a handle of the same conversation. Any number of exchanges can be under way in it.
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
    /// Held while something of it is written to the store, or read anew.
    storing: tokio::sync::Mutex<Stored>,
    journal: Option<Arc<dyn Journal>>,
}

struct State {
    /// Where it is stored, while it is open there.
    store: Arc<dyn SessionState>,
    /// Its store is away, and what it remembers is in this process alone.
    is_local: bool,
    caller: Arc<Caller>,
    rules: RuleSession,
    /// A turn has begun.
    has_begun: bool,
    /// The extensions know of it.
    in_turn: bool,
    memory: Value,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation").field("id", &self.0.id).finish_non_exhaustive()
    }
}

impl Conversation {
    /// Returns its id, that of its session.
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// What calls its plugins. To be taken at the start of an exchange, and to be used to its end.
    pub fn caller(&self) -> Arc<Caller> {
        Arc::clone(&self.state().caller)
    }

    /// What its plugins see as the conversation so far. An embedder keeps it as the client sends it.
    pub fn history(&self) -> &History {
        &self.0.history
    }

    /// The model that is asked, as plugins see it.
    pub fn set_model(&self, provider: &str, model: &str) {
        self.0.view.set_model(provider, model);
    }

    /// The tools that the model is offered, as plugins see them.
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

    /// Ends an exchange, however it went: what its rules have done counts in those that follow. `began`: what they remembered at its start. Of
    /// exchanges at one time, each counts.
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

    /// What the embedder remembers of the conversation; `null` until [`Conversation::set_memory`].
    pub fn memory(&self) -> Value {
        self.state().memory.clone()
    }

    /// Replaces what the embedder remembers. Where hosts that share the conversation do so at the same time, entries of objects and what is
    /// appended to lists are merged. It is stored by [`Conversation::settle`], where no plugin can read it.
    pub fn set_memory(&self, memory: Value) {
        self.state().memory = memory;
    }

    /// Emits an event of the conversation.
    pub fn emit(&self, kind: EventKind) {
        self.0.hub.emit(kind);
    }

    /// Where its events are emitted.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.0.hub
    }

    /// The rules that it goes by.
    pub fn rules(&self) -> Arc<RuleSet> {
        Arc::clone(self.state().rules.rules())
    }

    /// Whether its store is away, so that what it remembers is in this process alone.
    pub fn is_local(&self) -> bool {
        self.state().is_local
    }

    /// Waits until its events are recorded, where they are.
    ///
    /// # Errors
    /// They cannot be written.
    pub async fn durable(&self) -> Result<(), HostError> {
        match &self.0.journal {
            Some(journal) => Ok(journal.durable().await.map_err(store::TranscriptError::from)?),
            None => Ok(()),
        }
    }

    /// Drops the instances of its plugins, which cost memory while it is idle. The next call makes new ones.
    pub fn release_instances(&self) {
        self.caller().extensions().release_instances();
    }

    /// Stores what was not stored, and closes it: it can be opened again, here or by another host.
    ///
    /// # Errors
    /// What was not stored before is lost.
    pub async fn close(&self) -> Result<(), HostError> {
        let caller = self.caller();
        caller.extensions().end_turn();
        let settled = self.settle().await;
        let closed = caller.extensions().close(Duration::ZERO).await;
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
    /// The data are valid after every statement, so a panic elsewhere does not matter.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
