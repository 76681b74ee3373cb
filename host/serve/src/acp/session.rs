//! An open session: its handle, and what its client has set.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate::diagnostic::Diagnostics;
use tidegate::event::Backlog;
use tidegate::input::InputId;
use tidegate::model::Model;
use tidegate::tool::CallId;
use tidegate::{Host, HostError, Session, SessionId, SessionOptions};
use tokio::sync::{mpsc, oneshot, watch};

use super::ask::Asker;
use super::calls::{Calls, Left};
use super::client::Client;
use super::files::ClientFiles;
use super::options::{self, Settings};
use super::sdk::v1;
use super::sender::Sender;
use super::terminals::{ClientTerminals, Shown};
use super::updates::Updates;
use super::{commands, history};

/// A session of the client.
pub(super) struct Open {
    pub(super) session: Session,
    pub(super) host: Host,
    pub(super) client: Client,
    pub(super) settings: Settings,
    /// The model that the client has chosen.
    pub(super) model: Option<Arc<dyn Model>>,
    pub(super) workspace: PathBuf,
    /// The last turn of which all updates were sent.
    sent: watch::Receiver<u32>,
    /// Asks for the history.
    replays: mpsc::UnboundedSender<oneshot::Sender<()>>,
    prompts: Prompts,
}

/// The prompts that have no response yet: how their turns end is in the responses.
#[derive(Clone, Debug, Default)]
pub(super) struct Prompts(Arc<Mutex<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    inputs: BTreeSet<InputId>,
    /// Turns that ended before their input was received, so that how they ended was sent as a message.
    reported: BTreeSet<u32>,
}

impl Prompts {
    pub(super) fn begin(&self, id: InputId) {
        self.lock().inputs.insert(id);
    }

    /// The response to a prompt is sent. Returns whether a message has reported how its turn ended.
    pub(super) fn end(&self, ids: &[InputId], turn: u32) -> bool {
        let mut waiting = self.lock();
        let is_reported = waiting.reported.remove(&turn);
        waiting.inputs.retain(|id| !ids.contains(id));
        if waiting.inputs.is_empty() {
            waiting.reported.clear();
        }
        is_reported
    }

    pub(super) fn contains(&self, id: &InputId) -> bool {
        self.lock().inputs.contains(id)
    }

    /// A message has reported how a turn ended.
    pub(super) fn report(&self, turn: u32) {
        let mut waiting = self.lock();
        if !waiting.inputs.is_empty() {
            waiting.reported.insert(turn);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a session is opened with.
pub(super) struct Wanted {
    pub(super) id: SessionId,
    pub(super) workspace: PathBuf,
    pub(super) client: Client,
    /// What the client has set in the session before it was opened again.
    pub(super) settings: Settings,
    /// Another model than the host's.
    pub(super) model: Option<Arc<dyn Model>>,
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Open {
    /// Opens a session, which continues if it is recorded.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) async fn new(host: Host, wanted: Wanted) -> Result<Self, HostError> {
        let Wanted { id, workspace, client, settings, model } = wanted;
        let (announce, announced) = watch::channel(BTreeMap::new());
        let asker =
            Asker { client: client.clone(), settings: settings.clone(), workspace: workspace.clone(), announced };
        let (shown, terminals) = mpsc::unbounded_channel();
        let mut options = options(&workspace, &client, shown).id(id).confirm(Arc::new(asker));
        options = match &model {
            Some(model) => options.model(Arc::clone(model)),
            None => options.keep_model(),
        };
        let session = host.session(options).await?;
        for plugin in settings.disabled() {
            if session.disable_plugin(&plugin).is_err() {
                // The host has it no more, or requires it now.
                settings.set_enabled(plugin, true);
            }
        }
        let ((sending, sent), (replays, asked)) = (watch::channel(0), mpsc::unbounded_channel());
        let prompts = Prompts::default();
        let calls = Calls::new(workspace.clone(), left(&session));
        let sender = Sender {
            updates: Updates::new(calls, &client, session.context_tokens()),
            client: client.clone(),
            session: session.clone(),
            workspace: workspace.clone(),
            announce,
            sending,
            limits: BTreeMap::new(),
            prompts: prompts.clone(),
            is_prompted: false,
        };
        tokio::spawn(sender.run(session.subscribe(), terminals, asked));
        Ok(Self { session, host, client, settings, model, workspace, sent, replays, prompts })
    }

    /// Opens the session again after it was closed, for the same client and with what that has set.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) async fn again(&self, model: Option<Arc<dyn Model>>) -> Result<Self, HostError> {
        let (client, settings) = (self.client.clone(), self.settings.clone());
        let wanted =
            Wanted { id: self.session.id().clone(), workspace: self.workspace.clone(), client, settings, model };
        Self::new(self.host.clone(), wanted).await
    }

    /// Sends what the client can know about the session when it has its id. `mcp_servers`: how many it has asked for.
    pub(super) fn introduce(&self, mcp_servers: usize) {
        self.client.update(commands::available());
        if mcp_servers > 0 {
            let title =
                format!("The MCP servers of the editor are not used ({mcp_servers}): this host has no MCP client");
            self.client.notice(v1::NoticeSeverity::Warning, &title, None);
            tracing::warn!(session = %self.session.id(), "{title}");
        }
        let loaded = self.session.loaded();
        let mut findings = loaded.rule_problems();
        for warning in loaded.warnings() {
            if !findings.contains(&warning) {
                findings.push(warning);
            }
        }
        let problems: Vec<String> = tidegate::diagnostic::by_kind(findings)
            .into_iter()
            .map(|finding| Diagnostics(vec![finding]).in_one_line())
            .collect();
        problems.iter().for_each(|problem| self.client.notice(v1::NoticeSeverity::Warning, problem, None));
    }

    /// Takes back the messages that waited when the session was left, and gives them to the user: a client cannot show what waits, and must not
    /// find turns that nobody has asked it for.
    pub(super) fn return_waiting(&self) {
        for input in self.session.inbox().waiting() {
            let Ok(message) = self.session.inbox().take_back(&input.id) else { continue };
            let title =
                "A message was waiting when the session was left, and is not sent. Send it again if it still applies:";
            self.client.notice(v1::NoticeSeverity::Warning, title, Some(&message.plain_text()));
        }
    }

    /// Says that the session was begun in another folder than it works in now.
    pub(super) fn report_folder(&self, begun_in: Option<&str>) {
        let here = self.workspace.canonicalize().unwrap_or_else(|_| self.workspace.clone());
        if let Some(other) = begun_in.filter(|other| Path::new(other) != here) {
            let title = format!("The session was started in {other}; its tools work in {} from now on", here.display());
            self.client.notice(v1::NoticeSeverity::Warning, &title, None);
        }
    }

    /// Continues what the end of another process has left: what a person was asked is asked again. Everything else waits for the user, because a
    /// request to the model costs something.
    pub(super) fn take_up(&self) {
        let Some(left) = self.session.interrupted() else { return };
        if left.is_asking() {
            // The sender of events reports how it ends.
            return self.session.resume().detach();
        }
        let title = "The last turn has no end, because its process ended before: `/continue` continues it";
        self.client.notice(v1::NoticeSeverity::Warning, title, None);
    }

    /// Sends the history. Returns when it was sent; what happens meanwhile follows it.
    pub(super) async fn replay(&self) {
        let (done, sent) = oneshot::channel();
        // A session that has ended sends nothing any more.
        if self.replays.send(done).is_ok() {
            let _ended = sent.await.is_err();
        }
    }

    /// The inputs of prompts that have no response yet.
    pub(super) fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// Returns when all updates of a turn were sent, or none is sent any more.
    pub(super) async fn sent(&self, turn: u32) {
        let _closed = self.sent.clone().wait_for(|sent| *sent >= turn).await.is_err();
    }

    /// The options of the session, all of them.
    pub(super) fn options(&self) -> Vec<v1::SessionConfigOption> {
        options::all(&self.host, &self.session, &self.settings, self.client.can.boolean_options)
    }

    /// The modes, for clients that do not know options.
    pub(super) fn modes(&self) -> v1::SessionModeState {
        options::modes(self.settings.mode())
    }

    /// Cancels what runs, and closes the session. Returns when its state is saved and its transcript released.
    pub(super) async fn close(&self) {
        self.session.cancel_by(&self.client.can.name);
        self.leave().await;
    }

    /// Closes the session, because its client is gone: what a person is asked stays open, and the next process asks it. Everything else that
    /// runs is cancelled.
    pub(super) async fn leave(&self) {
        if self.session.pending_questions().is_empty() && self.session.pending_limit().is_none() {
            self.session.cancel_by(&self.client.can.name);
        }
        self.session.close();
        self.session.closed().await;
    }
}

/// The options that follow from what a client can do. `shown`: where its terminals are reported.
fn options(workspace: &Path, client: &Client, shown: mpsc::UnboundedSender<Shown>) -> SessionOptions {
    // A chat of all events, for `session/load`. A client cannot say what it has, so that no events are kept for it.
    let mut options = SessionOptions::new(workspace).backlog(Backlog::default().events(0));
    if client.can.read_file || client.can.write_file {
        options = options.files(Arc::new(ClientFiles::new(client.clone())));
    }
    if client.can.terminals {
        options = options.terminals(Arc::new(ClientTerminals { client: client.clone(), shown }));
    }
    options
}

/// The calls that an earlier process has left without a result.
fn left(session: &Session) -> BTreeMap<CallId, Left> {
    let records = session.interrupted().and_then(|_| session.subscribe_from(0).ok()?.snapshot);
    records.map(|records| history::left(records.chat)).unwrap_or_default()
}
