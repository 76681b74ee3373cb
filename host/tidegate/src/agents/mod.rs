//! Child agents: the tool `spawn_agent`, which opens a session for an agent and runs one turn in it.
//!
//! A child is a session of the same host: it has its own id, conversation, transcript and state of plugins, and its parent's workspace, tools
//! and handler of questions. Nothing that happens in it changes its parent but the result of the tool call.

mod answer;
mod running;
mod spawns;
mod tool;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use config::agents::Agent;
use flow::{CallId, EventKind, PluginId, SessionId};
use store::SpawnedBy;
use turn::Hub;
use turn::ports::{Confirm, EventSink as _, Journal, JournalError, Model};

use self::spawns::Spawns;
pub(crate) use self::tool::{AgentTool, SPAWN_AGENT, permission};
use crate::{Host, Session, SessionOptions};

/// How many levels of agents there can be below a session that no agent has started.
const LEVELS: u32 = 2;

/// How long the end of a session waits for that of an agent that it has started.
const CLOSING: Duration = Duration::from_secs(5);

/// What makes a session that of a child agent.
pub(crate) struct Role {
    /// The agent, as its file was when its parent was opened.
    pub(crate) agent: Arc<Agent>,
    /// The session that started it.
    pub(crate) spawned_by: SpawnedBy,
    /// The agents above it: it has no tool that one of them does not have.
    above: Vec<Arc<Agent>>,
    /// Levels of agents that there can be below it.
    levels: u32,
    spawns: Arc<Spawns>,
    is_of_provider: bool,
}

impl Role {
    /// Whether the agent can use a tool of the host.
    pub(crate) fn may_use(&self, tool: &str) -> bool {
        self.agent.may_use(tool) && self.above.iter().all(|agent| agent.may_use(tool))
    }
}

/// What a session needs to start agents, and those that it has started.
pub(crate) struct Children {
    host: Host,
    /// What the session was opened with.
    options: SessionOptions,
    model: Arc<dyn Model>,
    /// The model is the host's, so that others of its provider can be asked.
    is_of_provider: bool,
    confirm: Arc<dyn Confirm>,
    levels: u32,
    spawns: Arc<Spawns>,
    /// The session, once it is open.
    parent: OnceLock<Parent>,
    open: Mutex<Vec<Session>>,
    /// Plugins that the session does without.
    without: Mutex<BTreeSet<PluginId>>,
}

/// The session that starts agents. It owns all of this: its tools must not keep it alive.
struct Parent {
    id: SessionId,
    hub: Weak<Hub>,
    journal: Option<Weak<dyn Journal>>,
}

impl Children {
    /// Those of a session that is opened with `options`, and answered by `model`.
    pub(crate) fn new(
        host: Host,
        options: &SessionOptions,
        (model, confirm): (Arc<dyn Model>, Arc<dyn Confirm>),
    ) -> Self {
        let role = options.role.as_deref();
        Self {
            is_of_provider: role.map_or_else(|| host.is_own_model(&model), |role| role.is_of_provider),
            levels: role.map_or(LEVELS, |role| role.levels),
            spawns: role.map_or_else(Arc::default, |role| Arc::clone(&role.spawns)),
            // A conversation and an id belong to one session.
            options: SessionOptions { history: Vec::new(), id: None, ..options.clone() },
            host,
            model,
            confirm,
            parent: OnceLock::new(),
            open: Mutex::default(),
            without: Mutex::default(),
        }
    }

    /// The session is open: calls of the tool can start agents from now on.
    pub(crate) fn bind(&self, id: &SessionId, hub: &Arc<Hub>, journal: Option<&Arc<dyn Journal>>) {
        let (hub, journal) = (Arc::downgrade(hub), journal.map(Arc::downgrade));
        // It is opened once.
        let _ = self.parent.set(Parent { id: id.clone(), hub, journal });
    }

    /// The session does without these plugins: so do agents that it starts from now on.
    pub(crate) fn set_without(&self, plugins: &BTreeSet<PluginId>) {
        plugins.clone_into(&mut self.without.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The sessions that are open.
    pub(crate) fn open(&self) -> Vec<Session> {
        let mut open = self.lock();
        open.retain(|session| !session.is_closed());
        open.clone()
    }

    /// Waits until they are closed, which their parent's cancel has asked for.
    pub(crate) async fn closed(&self) {
        for session in self.open() {
            session.close();
            if tokio::time::timeout(CLOSING, session.closed()).await.is_err() {
                let session = session.id().as_str();
                tracing::warn!(
                    session,
                    "the session of a child agent does not close; its parent's does not wait for it"
                );
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The options of the session of an agent.
    ///
    /// # Errors
    /// Its model cannot be asked; the sentence is for the model that starts the agent, and for people.
    fn options(&self, agent: &Arc<Agent>, id: &SessionId, spawned_by: SpawnedBy) -> Result<SessionOptions, String> {
        let model = match &agent.model {
            Some(name) if *name != self.model.name() => self.model(name)?,
            _ => Arc::clone(&self.model),
        };
        let role = self.options.role.as_deref();
        let above = role.map(|role| role.above.iter().chain([&role.agent]).cloned().collect()).unwrap_or_default();
        let most = |levels: u32| agent.limits.depth.map_or(levels, |depth| depth.min(levels));
        let role = Role {
            agent: Arc::clone(agent),
            spawned_by,
            above,
            levels: most(self.levels.saturating_sub(1)),
            spawns: Arc::new(Spawns::below(&self.spawns, agent.limits.spawns)),
            is_of_provider: self.is_of_provider,
        };
        Ok(SessionOptions {
            id: Some(id.clone()),
            model: Some(model),
            confirm: Some(Arc::clone(&self.confirm)),
            agent: agent.name.clone(),
            without: self.without.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            role: Some(Arc::new(role)),
            ..self.options.clone()
        })
    }

    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let model = self.host.other_model(name).filter(|_| self.is_of_provider);
        let model = model.ok_or_else(|| {
            format!(
                "it needs the model `{name}`, and the program that embeds the host has given `{}` alone",
                self.model.name()
            )
        })?;
        model.map_err(|error| format!("its model `{name}` cannot be used: {}", error.with_hint()))
    }

    fn emit(&self, kind: EventKind) {
        if let Some(hub) = self.parent.get().and_then(|parent| parent.hub.upgrade()) {
            hub.emit(kind);
        }
    }

    /// Reports that an agent starts, and waits until that is on disk.
    async fn started(&self, child: &SessionId, agent: &str, call: &CallId) -> Result<SpawnedBy, String> {
        let closed = || "the session is closed".to_owned();
        let parent = self.parent.get().ok_or_else(closed)?;
        let (child, agent) = (child.clone(), agent.to_owned());
        self.emit(EventKind::ChildThreadStarted {
            child,
            agent: agent.clone(),
            parent: parent.id.clone(),
            call: call.clone(),
        });
        if let Some(journal) = &parent.journal {
            let journal = journal.upgrade().ok_or_else(closed)?;
            journal.durable().await.map_err(|error: JournalError| error.to_string())?;
        }
        Ok(SpawnedBy::new(&parent.id, call, agent))
    }
}
