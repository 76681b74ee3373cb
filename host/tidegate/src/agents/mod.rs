//! Child agents: the tool `spawn_agent`, which opens a session for an agent and runs one turn in it.
//!
//! A child is a session of the same host: it has its own id, conversation, transcript and state of plugins, and its parent's workspace, tools
//! and handler of questions. Nothing that happens in it changes its parent but the result of the tool call.

mod answer;
mod running;
mod terminals;
mod tool;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use config::agents::Agent;
use flow::ports::{Approvals as _, Confirm, EventSink as _, Journal, JournalError, LimitAnswer, Model};
use flow::{CallId, EventKind, Limit, LimitDecision, LimitRequest, PluginId, SessionId};
use store::SpawnedBy;
use tokio::sync::mpsc;
use turn::{Budget, Hub};

use self::terminals::ChildTerminals;
pub(crate) use self::tool::{AgentTool, SPAWN_AGENT, permission, spec};
use crate::session::approvals::Desk;
use crate::{Host, Session, SessionOptions, new_session_id};

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
    /// What it can use, inside of what its parent can.
    pub(crate) budget: Budget,
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
    model: Mutex<Arc<dyn Model>>,
    /// Whether the session's model is one of the host's provider, so that others of the provider can be used.
    is_of_provider: bool,
    confirm: Arc<dyn Confirm>,
    /// The session, once it is open.
    parent: OnceLock<Parent>,
    open: Mutex<Open>,
    /// Plugins that the session does without.
    without: Mutex<BTreeSet<PluginId>>,
}

/// The sessions of agents that work, and who gets new ones.
#[derive(Default)]
struct Open {
    sessions: Vec<Session>,
    watchers: Vec<mpsc::UnboundedSender<Session>>,
}

/// The sessions of the agents that a session starts, and of those that they start, each once, as they open: see
/// [`Session::child_sessions`].
#[derive(Debug)]
pub struct ChildSessions(mpsc::UnboundedReceiver<Session>);

impl ChildSessions {
    /// Waits for the next one. `None`: the session that would start it is gone. It loses nothing when it is dropped before its end.
    pub async fn next(&mut self) -> Option<Session> {
        self.0.recv().await
    }
}

/// The session that starts agents. It owns all of this: its tools must not keep it alive.
struct Parent {
    id: SessionId,
    hub: Weak<Hub>,
    journal: Option<Weak<dyn Journal>>,
    budget: Budget,
    /// Who decides about more agents; `None`: nobody.
    desk: Option<Arc<Desk>>,
}

impl Children {
    /// Creates the agents of a session that is opened with `options`, and whether its model is one of the host's provider.
    pub(crate) fn new(
        host: Host,
        options: &SessionOptions,
        (model, is_of_provider, confirm): (Arc<dyn Model>, bool, Arc<dyn Confirm>),
    ) -> Self {
        let role = options.role.as_deref();
        Self {
            is_of_provider: role.map_or(is_of_provider, |role| role.is_of_provider),
            // A conversation, an id and limits belong to one session.
            options: SessionOptions { history: Vec::new(), id: None, limits: None, ..options.clone() },
            host,
            model: Mutex::new(model),
            confirm,
            parent: OnceLock::new(),
            open: Mutex::default(),
            without: Mutex::default(),
        }
    }

    /// The session is open: calls of the tool can start agents from now on.
    pub(crate) fn bind(
        &self,
        id: &SessionId,
        hub: &Arc<Hub>,
        journal: Option<&Arc<dyn Journal>>,
        (budget, desk): (Budget, Option<Arc<Desk>>),
    ) {
        let (hub, journal) = (Arc::downgrade(hub), journal.map(Arc::downgrade));
        // It is opened once.
        let _ = self.parent.set(Parent { id: id.clone(), hub, journal, budget, desk });
    }

    /// The session does without these plugins: so do agents that it starts from now on.
    pub(crate) fn set_without(&self, plugins: &BTreeSet<PluginId>) {
        plugins.clone_into(&mut self.without.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// The sessions that are open.
    pub(crate) fn open(&self) -> Vec<Session> {
        let open = &mut self.lock().sessions;
        open.retain(|session| !session.is_closed());
        open.clone()
    }

    /// Those that are open, and those that will be.
    pub(crate) fn watch(&self) -> ChildSessions {
        let (send, sessions) = mpsc::unbounded_channel();
        self.add_watcher(send);
        ChildSessions(sessions)
    }

    /// Reports all that are open, theirs included, and all that will be.
    pub(crate) fn add_watcher(&self, watcher: mpsc::UnboundedSender<Session>) {
        // Under the lock, so that none is reported twice or never. The lock of a parent is taken before those of its children.
        let mut open = self.lock();
        open.sessions.retain(|session| !session.is_closed());
        open.watchers.retain(|watcher| !watcher.is_closed());
        open.sessions.iter().for_each(|session| report(&watcher, session));
        open.watchers.push(watcher);
    }

    /// The session of an agent is open, and no turn of it has begun.
    fn opened(&self, session: &Session) {
        let mut open = self.lock();
        open.watchers.retain(|watcher| !watcher.is_closed());
        open.watchers.iter().for_each(|watcher| report(watcher, session));
        open.sessions.push(session.clone());
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

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The options of the session of an agent.
    ///
    /// # Errors
    /// Its model cannot be asked; the sentence is for the model that starts the agent, and for people.
    fn options(&self, agent: &Arc<Agent>, id: &SessionId, spawned_by: SpawnedBy) -> Result<SessionOptions, String> {
        let model = match &agent.model {
            Some(name) if *name != self.current_model().name() => self.model(name)?,
            _ => self.current_model(),
        };
        let role = self.options.role.as_deref();
        let above = role.map(|role| role.above.iter().chain([&role.agent]).cloned().collect()).unwrap_or_default();
        let budget = self.parent.get().map(|parent| parent.budget.for_child(&agent.limits)).unwrap_or_default();
        let role = Role { agent: Arc::clone(agent), spawned_by, above, budget, is_of_provider: self.is_of_provider };
        Ok(SessionOptions {
            id: Some(id.clone()),
            model: Some(model),
            confirm: Some(Arc::clone(&self.confirm)),
            agent: agent.name.clone(),
            without: self.without.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            role: Some(Arc::new(role)),
            terminals: self.options.terminals.as_ref().map(|own| ChildTerminals::of(own, id)),
            ..self.options.clone()
        })
    }

    /// This model answers in the session from now on.
    pub(crate) fn set_model(&self, model: Arc<dyn Model>) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = model;
    }

    fn current_model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.model.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let model = self.host.other_model(name).filter(|_| self.is_of_provider);
        let model = model.ok_or_else(|| {
            format!(
                "it needs the model `{name}`, and the program that embeds the host has given `{}` alone",
                self.current_model().name()
            )
        })?;
        model.map_err(|error| format!("its model `{name}` cannot be used: {}", error.with_hint()))
    }

    /// Counts an agent that is to be started. Where there may be no more, somebody is asked.
    ///
    /// # Errors
    /// Why there may be no more, for the model.
    async fn count(&self) -> Result<(), String> {
        let parent = self.parent.get().ok_or("no agent was started: the session is closed")?;
        while let Err((limit, most)) = parent.budget.spawn() {
            let refused = || running::refused(limit, most);
            let own = parent.budget.limits().spawns == Some(most) && limit == Limit::Spawns;
            let desk = parent.desk.as_ref().filter(|_| own).ok_or_else(refused)?;
            let (current, max) = (parent.budget.spent().spawns as f64, most as f64);
            let mut request = LimitRequest::new(0, limit, current, max, max * 2.0 + 1.0);
            // Ids of calls can repeat in a thread.
            request.id = format!("limit-{}", new_session_id().as_str());
            let mut asked = MoreAgents::new(self, desk, &parent.budget, &request);
            let decided = desk.decide(&request);
            self.emit(EventKind::LimitEscalationRequested(request.clone()));
            if let Some(journal) = parent.journal.as_ref().and_then(Weak::upgrade) {
                journal.durable().await.map_err(|error| error.to_string())?;
            }
            asked.answer = decided.await;
            let decision = asked.answer.decision.clone();
            if let LimitDecision::Approved { max } = decision {
                parent.budget.set(limit, max);
            }
            drop(asked);
            match decision {
                LimitDecision::Approved { .. } => {}
                LimitDecision::Denied { reason } if !reason.trim().is_empty() => {
                    return Err(format!("{} A person denied more: {reason}", refused()));
                }
                LimitDecision::Denied { .. } | LimitDecision::TimedOut => return Err(refused()),
            }
        }
        Ok(())
    }

    /// Whether the session can have no agents, because it is nested too deep.
    fn is_too_deep(&self) -> bool {
        self.parent.get().is_some_and(|parent| parent.budget.limits().depth == Some(0))
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

/// A request for more agents, which somebody decides about. When it is dropped its end is reported, also where the call that needs it is stopped
/// before: nobody can decide about it any more then.
struct MoreAgents<'a> {
    agents: &'a Children,
    desk: &'a Desk,
    budget: &'a Budget,
    request: &'a LimitRequest,
    asked_ms: u64,
    answer: LimitAnswer,
}

impl<'a> MoreAgents<'a> {
    fn new(agents: &'a Children, desk: &'a Desk, budget: &'a Budget, request: &'a LimitRequest) -> Self {
        let reason = "the call that needs it was stopped".to_owned();
        let answer = LimitAnswer { decision: LimitDecision::Denied { reason }, by: String::new() };
        Self { agents, desk, budget, request, asked_ms: desk.now_ms(), answer }
    }
}

impl Drop for MoreAgents<'_> {
    fn drop(&mut self) {
        self.budget.add_wait(Duration::from_millis(self.desk.now_ms().saturating_sub(self.asked_ms)));
        self.agents.emit(EventKind::LimitEscalationResolved {
            request: self.request.id.clone(),
            limit: self.request.limit,
            decision: self.answer.decision.clone(),
            by: self.answer.by.clone(),
        });
    }
}

/// Reports a session, and those that its agents open.
fn report(watcher: &mpsc::UnboundedSender<Session>, session: &Session) {
    // Nobody listens any more: the watcher is removed with the next session.
    let _ = watcher.send(session.clone());
    session.add_child_watcher(watcher.clone());
}
