//! What a session is opened with.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use config::agents::MAIN;
use flow::ports::{AnsweredElsewhere, Confirm, Files, Model, RuleRecords, Terminals, Tools};
use flow::{Limits, Message, PluginId, SessionId, ThreadMode};
use rules::RuleSpec;
use serde_json::{Map, Value};
use turn::FlushMode;

use crate::agents::Role;
use crate::front_end::recent::Backlog;
use crate::plugins::native::Native;

/// What one session has of its own. Whatever is not set comes from the host.
///
/// ```
/// # use tidegate::{PluginId, SessionOptions};
/// # fn options(notes: PluginId) -> SessionOptions {
/// SessionOptions::new("/projects/shop").plugins([notes]).without_builtin_tools()
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct SessionOptions {
    pub(crate) workspace: PathBuf,
    pub(crate) id: Option<SessionId>,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) keeps_model: bool,
    pub(crate) plugins: Option<Vec<PluginId>>,
    pub(crate) tools: Option<Arc<dyn Tools>>,
    pub(crate) builtin_tools: bool,
    pub(crate) files: Option<Arc<dyn Files>>,
    pub(crate) terminals: Option<Arc<dyn Terminals>>,
    pub(crate) confirm: Option<Arc<dyn Confirm>>,
    pub(crate) history: Vec<Arc<Message>>,
    pub(crate) records: Option<Arc<dyn RuleRecords>>,
    pub(crate) rules: Vec<RuleSpec>,
    pub(crate) native: Vec<Native>,
    pub(crate) accepted_only: bool,
    pub(crate) limits: Option<Limits>,
    pub(crate) backlog: Option<Backlog>,
    pub(crate) flush_mode: FlushMode,
    pub(crate) holds_waiting: bool,
    pub(crate) agent: String,
    pub(crate) mode: ThreadMode,
    pub(crate) inputs: Map<String, Value>,
    /// Plugins that it does without from the start.
    pub(crate) without: BTreeSet<PluginId>,
    /// It is the session of a child agent.
    pub(crate) role: Option<Arc<Role>>,
}

impl std::fmt::Debug for SessionOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionOptions")
            .field("workspace", &self.workspace)
            .field("id", &self.id)
            .field("plugins", &self.plugins)
            .finish_non_exhaustive()
    }
}

impl SessionOptions {
    /// A session that works in this folder. The folder's own rule files (`.tidegate/rules`) count for it.
    pub fn new(workspace: impl AsRef<Path>) -> Self {
        Self {
            workspace: workspace.as_ref().to_owned(),
            id: None,
            model: None,
            keeps_model: false,
            plugins: None,
            tools: None,
            builtin_tools: true,
            files: None,
            terminals: None,
            confirm: None,
            history: Vec::new(),
            records: None,
            rules: Vec::new(),
            native: Vec::new(),
            accepted_only: false,
            limits: None,
            backlog: None,
            flush_mode: FlushMode::default(),
            holds_waiting: false,
            agent: MAIN.to_owned(),
            mode: ThreadMode::default(),
            inputs: Map::new(),
            without: BTreeSet::new(),
            role: None,
        }
    }

    /// The agent's name, for the rules and the prompt additions of plugins that name agents, and for extensions. Default: `main`. It selects no
    /// agent file: those declare what the model can start.
    #[must_use]
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.agent = name.into();
        self
    }

    /// What its thread is for, as `thread_started` reports it. Default: a conversation. Nothing else depends on it.
    #[must_use]
    pub fn thread_mode(mut self, mode: ThreadMode) -> Self {
        self.mode = mode;
        self
    }

    /// What its thread is started with, by name, as `thread_started` reports it: such as the ticket that a bot works on. It is recorded as
    /// it is, and the model does not get it. Default: the start of the first input.
    #[must_use]
    pub fn inputs(mut self, inputs: impl IntoIterator<Item = (String, Value)>) -> Self {
        self.inputs = inputs.into_iter().collect();
        self
    }

    /// Its id, which no other open session of the host has. Default: a new one. What plugins keep is found again under the id.
    #[must_use]
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// The model that answers, instead of the host's.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// A recorded session continues with the model that it has used last, as long as the operator's file offers it, and so does a fork of one. Where
    /// that is not so, the first turn reports it. A model that is given counts first. Default: the host's model.
    #[must_use]
    pub fn keep_model(mut self) -> Self {
        self.keeps_model = true;
        self
    }

    /// The plugins that work in it, out of those of the host. Default: all of them. Their order stays the host's. A plugin that
    /// the operator made `required` works in every session, whether it is named or not.
    #[must_use]
    pub fn plugins(mut self, plugins: impl IntoIterator<Item = PluginId>) -> Self {
        self.plugins = Some(plugins.into_iter().collect());
        self
    }

    /// Tools of the embedder, offered before the built-in ones. One with the name of a built-in tool replaces it. The operator's
    /// permissions apply to them by name; they take no patterns.
    #[must_use]
    pub fn tools(mut self, tools: Arc<dyn Tools>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Leaves out the built-in tools.
    #[must_use]
    pub fn without_builtin_tools(mut self) -> Self {
        self.builtin_tools = false;
        self
    }

    /// The files that the built-in file tools read and write, such as the unsaved buffers of an editor. Default: those on the disk.
    /// Which file a path means is still decided on the disk, and commands of `shell` see the disk.
    #[must_use]
    pub fn files(mut self, files: Arc<dyn Files>) -> Self {
        self.files = Some(files);
        self
    }

    /// The terminals in which the commands of `shell` run, such as those of an editor. Default: processes of the host, whose environment
    /// contains nothing that looks like a secret; what a terminal has is up to the embedder.
    #[must_use]
    pub fn terminals(mut self, terminals: Arc<dyn Terminals>) -> Self {
        self.terminals = Some(terminals);
        self
    }

    /// The handler of questions where a tool's permission is `ask`, instead of the host's handler.
    #[must_use]
    pub fn confirm(mut self, confirm: Arc<dyn Confirm>) -> Self {
        self.confirm = Some(confirm);
        self
    }

    /// Questions have no handler: they wait for [`Session::answer`](crate::Session::answer), until the operator's time-out.
    #[must_use]
    pub fn questions_wait(self) -> Self {
        self.confirm(Arc::new(AnsweredElsewhere))
    }

    /// What the session may take, instead of what `[limits.session]` says. Before a request that would exceed a limit the session asks
    /// for a higher one; see [`Session::decide_limit`](crate::Session::decide_limit).
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Keeps the last events, and a chat of all events, in memory, so that front ends can reconnect with
    /// [`Session::subscribe_from`](crate::Session::subscribe_from). Default: nothing is kept. Sessions of child agents keep as much.
    #[must_use]
    pub fn backlog(mut self, backlog: Backlog) -> Self {
        self.backlog = Some(backlog);
        self
    }

    /// How many of the queued inputs start a turn when the turn before has completed. Default: one.
    #[must_use]
    pub fn flush_mode(mut self, mode: FlushMode) -> Self {
        self.flush_mode = mode;
        self
    }

    /// Messages that wait from an earlier process are held: no turn takes one on its own, which a notice of the first turn reports. They can be
    /// edited and withdrawn; [`Inbox::flush`](crate::input::Inbox::flush) sends them, and so does a [`Session::resume`](crate::Session::resume)
    /// that has nothing else to continue. For front ends that send what they are told and show no queue.
    #[must_use]
    pub fn hold_waiting(mut self) -> Self {
        self.holds_waiting = true;
        self
    }

    /// The conversation so far, of an earlier run or of another session that this one continues. A provider must accept it: each tool call is followed by its result.
    #[must_use]
    pub fn history(mut self, messages: impl IntoIterator<Item = impl Into<Arc<Message>>>) -> Self {
        self.history = messages.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a stream rule of the session's own, without a file. It is in force before those of files, and of the host, that have its name, and it
    /// is listed and reported as they are, under the layer [`RuleLayer::Code`](crate::rule::RuleLayer::Code). Agents that the model starts go by
    /// it, too. A rule with an error refuses the session.
    ///
    /// ```
    /// # use tidegate::SessionOptions;
    /// use tidegate::rule::RuleSpec;
    /// let no_todo = RuleSpec::new("no-todo", "Finish the work.").condition(r"\bTODO\b").scope("tool(*.rs)");
    /// let options = SessionOptions::new("/projects/shop").rule(no_todo);
    /// ```
    #[must_use]
    pub fn rule(mut self, rule: RuleSpec) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds a [native extension](crate::native) of the session's own, after those of the host. Agents that the model starts have it, too.
    #[must_use]
    pub fn extension(mut self, extension: Native) -> Self {
        self.native.push(extension);
        self
    }

    /// Where the records of injected reminders are kept, so that a resumed session does not repeat them. Default: in memory, as
    /// long as the session.
    #[must_use]
    pub fn records(mut self, records: Arc<dyn RuleRecords>) -> Self {
        self.records = Some(records);
        self
    }

    /// Nobody sees an answer before it is accepted, as where it goes to a file: an attempt that breaks off is repeated although
    /// some of it was emitted as events. A subscriber that keeps text drops it at [`EventKind::RetryScheduled`], down to what
    /// the following partial answer states as kept.
    ///
    /// [`EventKind::RetryScheduled`]: crate::EventKind::RetryScheduled
    #[must_use]
    pub fn accepted_only(mut self) -> Self {
        self.accepted_only = true;
        self
    }
}

/// Returns an id that no other session of this machine has: the time, the process and a count. Sessions without an id get such a one.
pub fn new_session_id() -> SessionId {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    SessionId::new(format!("{:x}-{process:x}-{count:x}", since.as_millis()))
}
