//! The methods of the agent, except for prompts: sessions and their settings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate::model::Model;
use tidegate::rule::RuleRecord;
use tidegate::transcript::{TranscriptError, TranscriptStore, TranscriptSummary, UnreadableTranscript};
use tidegate::trust::WorkspaceSettings;
use tidegate::{Host, HostError, SessionId, new_session_id};

use super::client::{Abilities, Client, Folder};
use super::hosts::{Hosts, error, failed};
use super::names::steering;
use super::options::{self, EXTENSION, MODE, MODEL, Mode, Settings};
use super::outgoing::Outgoing;
use super::sdk::{Connection, Error, InjectedRule, ProtocolVersion, Responder, RulesRequest, RulesResponse, v1};
use super::session::{Open, Wanted};
use super::time;
use super::trust::{Place, Waiting};

/// The only method of authentication: the key is where the operator's file says.
const ENVIRONMENT: &str = "environment";

/// What one connection has.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) hosts: Arc<Hosts>,
    /// What the connection sends.
    pub(super) outgoing: Outgoing,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) can: Arc<Abilities>,
    pub(super) sessions: BTreeMap<String, Arc<Open>>,
    /// Those that have an id, and are opened when the user has decided about the file of their workspace.
    pub(super) waiting: BTreeMap<String, Waiting>,
}

/// What `session/load` and `session/resume` name.
struct Known {
    id: v1::SessionId,
    cwd: PathBuf,
    mcp_servers: usize,
}

/// A session that a client has named.
struct Found {
    open: Arc<Open>,
    /// How another process has left it; `None`: it was open.
    left: Option<TranscriptSummary>,
}

impl Found {
    /// Sends what the client can know now that it has the response, and continues what was left.
    fn take_up(&self, mcp_servers: usize) {
        self.open.introduce(mcp_servers);
        if let Some(left) = &self.left {
            self.open.report_folder(left.workspace.as_deref());
            self.open.return_waiting();
        }
        self.open.take_up();
    }
}

impl Agent {
    pub(super) fn new(hosts: Arc<Hosts>) -> Self {
        Self { hosts, outgoing: Outgoing::default(), state: Mutex::default() }
    }

    pub(super) fn initialize(&self, request: &v1::InitializeRequest) -> Result<v1::InitializeResponse, Error> {
        self.state().can = Arc::new(Abilities::of(request));
        let sessions = v1::SessionCapabilities::new()
            .list(v1::SessionListCapabilities::new())
            .fork(v1::SessionForkCapabilities::new())
            .resume(v1::SessionResumeCapabilities::new())
            .close(v1::SessionCloseCapabilities::new())
            .delete(v1::SessionDeleteCapabilities::new());
        let capabilities = v1::AgentCapabilities::new()
            .load_session(true)
            .prompt_capabilities(v1::PromptCapabilities::new().image(true).embedded_context(true))
            .session_capabilities(sessions);
        let key = v1::AuthMethodAgent::new(ENVIRONMENT, "API key").description(
            "Set the environment variable that the operator's file names for the provider, and start the agent again"
                .to_owned(),
        );
        Ok(v1::InitializeResponse::new(ProtocolVersion::V1)
            .agent_capabilities(capabilities)
            .agent_info(v1::Implementation::new("tidegate", env!("CARGO_PKG_VERSION")).title("Tidegate".to_owned()))
            .auth_methods(vec![v1::AuthMethod::Agent(key)])
            .meta(steering()))
    }

    /// Looks again whether there is a key.
    pub(super) async fn authenticate(
        &self,
        request: v1::AuthenticateRequest,
        responder: Responder<v1::AuthenticateResponse>,
        _: Connection,
    ) {
        let answer = if &*request.method_id.0 == ENVIRONMENT {
            self.hosts.of_records(Path::new(".")).await.map(|_| v1::AuthenticateResponse::new())
        } else {
            Err(error(-32602, format!("there is no method of authentication `{}`", request.method_id.0)))
        };
        answered(responder.respond_with_result(answer));
    }

    pub(super) async fn new_session(
        self: &Arc<Self>,
        request: v1::NewSessionRequest,
        responder: Responder<v1::NewSessionResponse>,
        connection: Connection,
    ) {
        let id = new_session_id();
        let place = Place { id: id.clone(), workspace: request.cwd, connection };
        let mcp_servers = request.mcp_servers.len();
        let opened = match self.settings(&place).await {
            // The client must know the session before it can be asked.
            Ok(settings) if settings.request().is_some() => {
                self.wait(place, mcp_servers);
                let response =
                    v1::NewSessionResponse::new(v1::SessionId::new(id.as_str())).modes(options::modes(Mode::default()));
                answered(responder.respond(response));
                return self.decide(&id).await;
            }
            Ok(settings) => self.open(place, settings).await,
            Err(error) => Err(error),
        };
        match opened {
            Err(error) => answered(responder.respond_with_error(error)),
            Ok(open) => {
                let response = v1::NewSessionResponse::new(open.client.session.clone())
                    .modes(open.modes())
                    .config_options(open.options());
                answered(responder.respond(response));
                open.introduce(mcp_servers);
            }
        }
    }

    pub(super) async fn load_session(
        &self,
        request: v1::LoadSessionRequest,
        responder: Responder<v1::LoadSessionResponse>,
        connection: Connection,
    ) {
        let known = Known { id: request.session_id, cwd: request.cwd, mcp_servers: request.mcp_servers.len() };
        match Box::pin(self.known(&known, connection, true)).await {
            Err(error) => answered(responder.respond_with_error(error)),
            Ok(found) => {
                let open = &found.open;
                let response = v1::LoadSessionResponse::new().modes(open.modes()).config_options(open.options());
                answered(responder.respond(response));
                found.take_up(known.mcp_servers);
            }
        }
    }

    pub(super) async fn resume_session(
        &self,
        request: v1::ResumeSessionRequest,
        responder: Responder<v1::ResumeSessionResponse>,
        connection: Connection,
    ) {
        let known = Known { id: request.session_id, cwd: request.cwd, mcp_servers: request.mcp_servers.len() };
        match Box::pin(self.known(&known, connection, false)).await {
            Err(error) => answered(responder.respond_with_error(error)),
            Ok(found) => {
                let open = &found.open;
                let response = v1::ResumeSessionResponse::new().modes(open.modes()).config_options(open.options());
                answered(responder.respond(response));
                found.take_up(known.mcp_servers);
            }
        }
    }

    /// Opens a session that is recorded, unless it is open. `replay`: its history is sent.
    async fn known(&self, known: &Known, connection: Connection, replay: bool) -> Result<Found, Error> {
        let id = SessionId::new(Arc::clone(&known.id.0));
        let place = Place { id: id.clone(), workspace: known.cwd.clone(), connection };
        let open = self.state().sessions.get(id.as_str()).cloned();
        let found = match open {
            Some(open) => Found { open, left: None },
            None => {
                // Nothing of a session is read where the file of its workspace says, before that counts.
                let settings = self.decided(&place, self.settings(&place).await?).await?;
                let host = self.hosts.of(settings.clone()).await?;
                let left = recorded(&host)?.summary(&id).map_err(|reason| missing(&known.id, &reason))?;
                Found { open: self.open(place, settings).await?, left: Some(left) }
            }
        };
        if replay {
            found.open.replay().await;
        }
        Ok(found)
    }

    /// The settings of the workspace of a session.
    pub(super) async fn settings(&self, place: &Place) -> Result<WorkspaceSettings, Error> {
        self.hosts.settings(&absolute(&place.workspace)?).await
    }

    /// Opens a session with settings that count.
    pub(super) async fn open(&self, place: Place, settings: WorkspaceSettings) -> Result<Arc<Open>, Error> {
        Box::pin(self.open_with(place, settings, None)).await
    }

    /// The same with a model that the client has chosen.
    pub(super) async fn open_with(
        &self,
        place: Place,
        settings: WorkspaceSettings,
        model: Option<Arc<dyn Model>>,
    ) -> Result<Arc<Open>, Error> {
        let host = self.hosts.of(settings).await?;
        let client = self.client(&place);
        let Place { id, workspace, .. } = place;
        let wanted = Wanted { id, workspace, client, settings: Settings::default(), model };
        self.opened(Open::new(host, wanted).await)
    }

    /// The client of a session.
    pub(super) fn client(&self, place: &Place) -> Client {
        let Place { id, workspace, connection } = place;
        let can = Arc::clone(&self.state().can);
        let session = v1::SessionId::new(id.as_str());
        Client::new((connection.clone(), self.outgoing.clone()), session, can, Folder::new(workspace))
    }

    /// Keeps a session that was opened.
    fn opened(&self, open: Result<Open, HostError>) -> Result<Arc<Open>, Error> {
        let open = Arc::new(open.map_err(|reason| failed(&reason))?);
        self.state().sessions.insert(open.session.id().as_str().to_owned(), Arc::clone(&open));
        Ok(open)
    }

    pub(super) async fn list_sessions(
        &self,
        request: v1::ListSessionsRequest,
        responder: Responder<v1::ListSessionsResponse>,
        _: Connection,
    ) {
        let answer = match &request.cursor {
            // No response has one.
            Some(cursor) => Err(error(-32602, format!("there is no cursor `{cursor}`: all sessions are in one page"))),
            None => Box::pin(self.list(request.cwd)).await,
        };
        answered(responder.respond_with_result(answer));
    }

    /// All sessions, the latest first: there is no second page.
    async fn list(&self, cwd: Option<PathBuf>) -> Result<v1::ListSessionsResponse, Error> {
        let mut hosts = self.hosts.all().await;
        if let Some(cwd) = &cwd {
            hosts = vec![self.hosts.of_records(&absolute(cwd)?).await?];
        } else if hosts.is_empty() {
            hosts = vec![self.hosts.of_records(Path::new(".")).await?];
        }
        let given = cwd.clone();
        let cwd = cwd.map(|cwd| cwd.canonicalize().unwrap_or(cwd));
        let mut found: BTreeMap<String, TranscriptSummary> = BTreeMap::new();
        let mut unreadable: BTreeMap<String, UnreadableTranscript> = BTreeMap::new();
        // A workspace whose sessions are not recorded has none to list.
        for store in hosts.iter().filter_map(|host| host.transcripts().cloned()) {
            let list = tokio::task::spawn_blocking(move || store.list()).await;
            let list = list.map_err(|panicked| error(-32603, panicked.to_string()))?;
            let list = list.map_err(|reason| error(-32603, reason.to_string()))?;
            found.extend(list.sessions.into_iter().map(|session| (session.id.as_str().to_owned(), session)));
            unreadable.extend(list.unreadable.into_iter().map(|session| (session.id.as_str().to_owned(), session)));
        }
        let mut sessions: Vec<TranscriptSummary> = found.into_values().collect();
        sessions.retain(|session| {
            let is_here = |workspace: &String| cwd.as_deref().is_none_or(|cwd| Path::new(workspace) == cwd);
            session.header.spawned_by.is_none() && session.workspace.as_ref().is_some_and(is_here)
        });
        sessions.sort_by_key(|session| std::cmp::Reverse(latest(session)));
        let listed = sessions.iter().filter_map(|session| info(session, given.as_deref()));
        let others = unreadable.values().filter(|one| cwd.as_deref().is_none_or(|cwd| one.may_be_of(cwd)));
        let others = others.filter_map(|one| unreadable_info(one, given.as_deref()));
        Ok(v1::ListSessionsResponse::new(listed.chain(others).collect()))
    }

    pub(super) async fn close_session(
        &self,
        request: v1::CloseSessionRequest,
        responder: Responder<v1::CloseSessionResponse>,
        _: Connection,
    ) {
        let (open, waiting) = {
            let mut state = self.state();
            (state.sessions.remove(&*request.session_id.0), state.waiting.remove(&*request.session_id.0))
        };
        let answer = match (open, waiting) {
            (Some(open), _) => {
                open.close().await;
                Ok(v1::CloseSessionResponse::new())
            }
            (None, Some(waiting)) => {
                waiting.cancel();
                Ok(v1::CloseSessionResponse::new())
            }
            (None, None) => Err(unknown(&request.session_id)),
        };
        answered(responder.respond_with_result(answer));
    }

    pub(super) async fn delete_session(
        &self,
        request: v1::DeleteSessionRequest,
        responder: Responder<v1::DeleteSessionResponse>,
        _: Connection,
    ) {
        answered(responder.respond_with_result(self.delete(&request.session_id).await));
    }

    /// Deletes a session. One that does not exist is deleted.
    async fn delete(&self, id: &v1::SessionId) -> Result<v1::DeleteSessionResponse, Error> {
        let open = self.state().sessions.remove(&*id.0);
        let mut hosts = self.hosts.all().await;
        if let Some(open) = open {
            open.close().await;
            hosts = vec![open.host.clone()];
        } else if hosts.is_empty() {
            hosts = vec![self.hosts.of_records(Path::new(".")).await?];
        }
        let id = SessionId::new(Arc::clone(&id.0));
        for host in hosts {
            host.remove_session(&id).await.map_err(|reason| error(-32603, reason.with_hint()))?;
        }
        Ok(v1::DeleteSessionResponse::new())
    }

    pub(super) fn set_mode(&self, request: &v1::SetSessionModeRequest) -> Result<v1::SetSessionModeResponse, Error> {
        let open = self.session(&request.session_id)?;
        let mode = Mode::of(&request.mode_id.0)
            .ok_or_else(|| error(-32602, format!("there is no mode `{}`", request.mode_id.0)))?;
        open.settings.set_mode(mode);
        let options = v1::ConfigOptionUpdate::new(open.options());
        open.client.update(v1::SessionUpdate::ConfigOptionUpdate(options));
        Ok(v1::SetSessionModeResponse::new())
    }

    /// The stream rules whose reminders are in the conversation.
    pub(super) fn injected_rules(&self, request: &RulesRequest) -> Result<RulesResponse, Error> {
        let injected = self.session(&request.session_id)?.session.injected_rules().into_iter();
        let rule = |record: RuleRecord| InjectedRule {
            turn: record.turn + 1,
            stream: record.stream.as_str().to_owned(),
            action: record.action.as_str().to_owned(),
            matched: record.evidence.text,
            rule: record.rule,
        };
        Ok(RulesResponse { rules: injected.map(rule).collect() })
    }

    pub(super) async fn set_option(
        &self,
        request: &v1::SetSessionConfigOptionRequest,
    ) -> Result<v1::SetSessionConfigOptionResponse, Error> {
        let mut open = self.session(&request.session_id)?;
        let id = &*request.config_id.0;
        let wrong = || error(-32602, format!("the option `{id}` has no such value"));
        if id == MODE {
            let v1::SessionConfigOptionValue::ValueId { value } = &request.value else { return Err(wrong()) };
            let mode = Mode::of(&value.0).ok_or_else(wrong)?;
            open.settings.set_mode(mode);
            open.client.update(options::mode_update(mode));
        } else if id == MODEL {
            let v1::SessionConfigOptionValue::ValueId { value } = &request.value else { return Err(wrong()) };
            if !options::models(&open.host, &open.session).iter().any(|name| **name == *value.0) {
                return Err(wrong());
            }
            open = self.with_model(&open, &value.0).await?;
        } else if let Some(plugin) = id.strip_prefix(EXTENSION) {
            let enabled = options::is_on(&request.value).ok_or_else(wrong)?;
            switch(&open, plugin, enabled)?;
        } else {
            return Err(error(-32602, format!("there is no option `{id}`")));
        }
        Ok(v1::SetSessionConfigOptionResponse::new(open.options()))
    }

    /// Continues a session with another model of its host: it is closed, and opened again.
    async fn with_model(&self, open: &Arc<Open>, name: &str) -> Result<Arc<Open>, Error> {
        if open.session.model().1 == name {
            return Ok(Arc::clone(open));
        }
        if open.session.is_running() {
            return Err(error(-32602, "a turn runs: cancel it or wait for its end, then choose the model"));
        }
        recorded(&open.host)?;
        let model = open.host.other_model(name).ok_or_else(|| error(-32602, "the host has only this model"))?;
        let model = model.map_err(|reason| failed(&reason))?;
        open.close().await;
        match open.again(Some(model)).await {
            Ok(again) => self.opened(Ok(again)),
            Err(reason) => {
                self.state().sessions.remove(open.session.id().as_str());
                self.opened(open.again(open.model.clone()).await)?;
                Err(failed(&reason))
            }
        }
    }

    /// An open session.
    ///
    /// # Errors
    /// None has the id.
    pub(super) fn session(&self, id: &v1::SessionId) -> Result<Arc<Open>, Error> {
        let state = self.state();
        let undecided = || match state.waiting.contains_key(&*id.0) {
            true => error(-32602, "the session is not open yet: decide first whether its workspace is trusted"),
            false => unknown(id),
        };
        state.sessions.get(&*id.0).cloned().ok_or_else(undecided)
    }

    /// Closes all sessions: the client is gone.
    pub(super) async fn close_all(&self) {
        self.state().waiting.clear();
        let sessions = std::mem::take(&mut self.state().sessions);
        let mut workspaces = BTreeSet::new();
        for open in sessions.into_values() {
            workspaces.insert(open.workspace.canonicalize().unwrap_or_default());
            open.leave().await;
        }
        let hosts = self.hosts.by_workspace().await;
        let has_host = |folder: &PathBuf| hosts.iter().any(|(own, _)| own.as_ref() == Some(folder));
        let others: Vec<PathBuf> = workspaces.into_iter().filter(|folder| !has_host(folder)).collect();
        // Last: none that was open is old.
        for (own, host) in hosts {
            let workspaces = own.map_or_else(|| others.clone(), |own| vec![own]);
            match host.remove_expired_sessions(&workspaces).await {
                // Nobody is connected any more, and by default only errors reach standard error.
                Ok(lines) => lines.iter().for_each(|line| tracing::error!("{line}")),
                Err(error) => tracing::error!("expired sessions and state cannot be removed: {error}"),
            }
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Uses an extension in a session, or does without it, from its next turn on.
fn switch(open: &Open, plugin: &str, enabled: bool) -> Result<(), Error> {
    let id = plugin.parse().map_err(|_| error(-32602, format!("there is no extension `{plugin}`")))?;
    let session = &open.session;
    let switched = if enabled { session.enable_plugin(&id) } else { session.disable_plugin(&id) };
    switched.map_err(|reason: HostError| error(-32602, reason.with_hint()))?;
    open.settings.set_enabled(id, enabled);
    Ok(())
}

/// A response that cannot be sent: the client is gone, and its sessions are closed.
pub(super) fn answered(sent: Result<(), Error>) {
    if let Err(error) = sent {
        tracing::debug!("a response was not sent: {error}");
    }
}

fn absolute(cwd: &Path) -> Result<PathBuf, Error> {
    if cwd.is_absolute() {
        return Ok(cwd.to_owned());
    }
    Err(error(-32602, format!("`cwd` must be an absolute path, and {} is none", cwd.display())))
}

pub(super) fn recorded(host: &Host) -> Result<TranscriptStore, Error> {
    let store = host.transcripts().cloned();
    store.ok_or_else(|| error(-32603, HostError::NotRecorded.with_hint()))
}

fn unknown(id: &v1::SessionId) -> Error {
    v1::Error::session_not_found(id.clone()).into()
}

pub(super) fn missing(id: &v1::SessionId, reason: &TranscriptError) -> Error {
    match reason {
        TranscriptError::Missing { .. } => unknown(id),
        other => error(-32603, other.to_string()),
    }
}

fn latest(session: &TranscriptSummary) -> u64 {
    session.last.as_ref().map_or(session.header.created_ms, |last| last.at_ms)
}

/// A session that is not there without a word would be missed: loading it gives the same reason. `None`: it is that of a child agent, or
/// nobody knows its folder.
fn unreadable_info(one: &UnreadableTranscript, cwd: Option<&Path>) -> Option<v1::SessionInfo> {
    let cwd = cwd.or(one.workspace.as_deref().map(Path::new)).filter(|_| !one.is_child)?;
    let info = v1::SessionInfo::new(one.id.as_str().to_owned(), cwd);
    Some(info.title(format!("cannot be read: {}", one.error)))
}

/// `cwd`: the folder that the client has asked for, as it writes it.
fn info(session: &TranscriptSummary, cwd: Option<&Path>) -> Option<v1::SessionInfo> {
    let cwd = cwd.or(session.workspace.as_deref().map(Path::new))?;
    let info = v1::SessionInfo::new(session.id.as_str().to_owned(), cwd);
    Some(info.title(session.title.clone()).updated_at(time::iso(latest(session))))
}
