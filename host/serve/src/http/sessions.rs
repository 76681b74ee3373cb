//! The sessions of all users: which there are, whose they are, and opening them when they are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::StatusCode;
use sha2::{Digest as _, Sha256};
use tidegate::event::Backlog;
use tidegate::gateway::is_conversation;
use tidegate::model::Model;
use tidegate::transcript::{
    SessionAccess, SessionHolder, TranscriptError, TranscriptStore, TranscriptSummary, last_finished_turn,
};
use tidegate::{Host, SessionId, SessionOptions, new_session_id};

use super::known::{Known, admits, of_terminal};
use super::open::Open;
use super::problem::Problem;

/// The name of the agent where a session names none.
const MAIN: &str = "main";

/// The longest id of a session or of a write, in characters.
pub(super) const MAX_ID: usize = 128;

/// The sessions of a host in one workspace.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) host: Host,
    workspace: PathBuf,
    /// The sessions that were used. One that is closed and that nobody uses is forgotten.
    known: Mutex<BTreeMap<SessionId, Arc<Known>>>,
}

/// What a session is created with.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    /// Names the write: the same one again creates no other session.
    pub(super) write: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) model: Option<String>,
}

impl Sessions {
    pub(super) fn new(host: Host, workspace: &Path) -> Self {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        Self { host, workspace, known: Mutex::default() }
    }

    /// Creates a session for a user, or returns the one that the same write has created before.
    ///
    /// # Errors
    /// The host does not have the model, or the session cannot be opened.
    pub(super) async fn create(&self, user: &str, wanted: Wanted) -> Result<Arc<Known>, Problem> {
        let id = id_of(user, "create", wanted.write.as_deref());
        if let Some(known) = self.created(&id, user).await? {
            return Ok(known);
        }
        if let Some(model) = &wanted.model {
            self.model(model)?;
        }
        let agent = wanted.agent.unwrap_or_else(|| MAIN.to_owned());
        let access = self.owned(&id, user, agent, wanted.model);
        self.add(id, access).await
    }

    /// Forks a session at the end of a turn, by default of the last one that has finished.
    ///
    /// # Errors
    /// No turn has finished, sessions are not recorded, or the fork cannot be made.
    pub(super) async fn fork(
        &self,
        parent: &Known,
        user: &str,
        (write, turn): (Option<String>, Option<u32>),
    ) -> Result<Arc<Known>, Problem> {
        let id = id_of(user, &format!("fork {}", parent.id), write.as_deref());
        if let Some(known) = self.created(&id, user).await? {
            return Ok(known);
        }
        let nothing = || Problem::new(StatusCode::CONFLICT, "no_such_turn", "no turn of the session has finished");
        let turn = match turn {
            Some(turn) => turn,
            None => self.last_turn(&parent.id).await?.ok_or_else(nothing)?,
        };
        self.host.fork(&parent.id, turn, &id).await.map_err(|error| match Problem::from(error) {
            // The parent is there: it has no record yet.
            missing if missing.status == 404 => nothing(),
            other => other,
        })?;
        let of = parent.access();
        let access = self.owned(&id, user, of.agent, of.model);
        self.add(id, access).await
    }

    /// Returns the session that the same write has created before; `None`: there is none.
    async fn created(&self, id: &SessionId, user: &str) -> Result<Option<Arc<Known>>, Problem> {
        match self.find(id, user).await {
            Ok(known) => Ok(Some(known)),
            Err(problem) if problem.status == StatusCode::NOT_FOUND.as_u16() => Ok(None),
            // It can be there: a new one would take its place.
            Err(problem) => Err(problem),
        }
    }

    /// Returns the number of the last turn of a session that has finished.
    ///
    /// # Errors
    /// The transcript cannot be read.
    pub(super) async fn last_turn(&self, id: &SessionId) -> Result<Option<u32>, Problem> {
        let Some(store) = self.host.transcripts().cloned() else { return Ok(None) };
        let id = id.clone();
        match blocking(move || last_finished_turn(&store, &id)).await? {
            Err(TranscriptError::Missing { .. }) => Ok(None),
            read => Ok(read?),
        }
    }

    fn owned(&self, id: &SessionId, user: &str, agent: String, model: Option<String>) -> SessionAccess {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let created_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let (thread_id, owner) = (id.as_str().to_owned(), user.to_owned());
        SessionAccess { thread_id, owner, users: BTreeSet::new(), agent, model, created_ms }
    }

    /// Keeps whose a new session is before anything of it can be found, and opens it.
    async fn add(&self, id: SessionId, access: SessionAccess) -> Result<Arc<Known>, Problem> {
        self.keep(&id, &access).await?;
        let known = self.insert(Known::new(id, access));
        match self.open(&known).await {
            Ok(_) => Ok(known),
            Err(problem) => {
                self.lock().remove(&known.id);
                // The same write has created it on another host, at this moment.
                if problem.code == "open_elsewhere" {
                    return Err(problem);
                }
                if let Err(left) = self.host.remove_session(&known.id).await {
                    tracing::warn!("the session {} cannot be opened, and is not removed either: {left}", known.id);
                }
                Err(problem)
            }
        }
    }

    /// Replaces who is allowed to use a session.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) async fn share(&self, known: &Known, change: impl FnOnce(&mut SessionAccess)) -> Result<(), Problem> {
        // One change after the other.
        let _turn = known.open.lock().await;
        let mut access = known.access();
        change(&mut access);
        self.keep(&known.id, &access).await?;
        known.set_access(access);
        Ok(())
    }

    async fn keep(&self, id: &SessionId, access: &SessionAccess) -> Result<(), Problem> {
        let Some(store) = self.host.transcripts().cloned() else { return Ok(()) };
        let (id, access) = (id.clone(), access.clone());
        Ok(blocking(move || store.set_access(&id, &access)).await??)
    }

    /// Returns a session that a user is allowed to use.
    ///
    /// # Errors
    /// There is none, or it is another user's: nobody can tell which.
    pub(super) async fn find(&self, id: &SessionId, user: &str) -> Result<Arc<Known>, Problem> {
        let used = self.lock().get(id).cloned();
        let known = match used {
            Some(known) => {
                self.refresh(&known).await?;
                known
            }
            None => {
                let access = self.recorded(id).await?.filter(|access| admits(access, user));
                self.insert(Known::new(id.clone(), access.ok_or_else(Problem::not_found)?))
            }
        };
        if known.admits(user) { Ok(known) } else { Err(Problem::not_found()) }
    }

    /// Whether another process can change who is allowed to use a session, or delete it.
    fn others_change(&self, id: &SessionId) -> bool {
        self.is_shared() || is_conversation(id)
    }

    /// Whether other hosts can continue the sessions.
    fn is_shared(&self) -> bool {
        self.host.transcripts().is_some_and(TranscriptStore::is_shared)
    }

    /// Returns the other host that has a session open; `None`: none has, or it is open here.
    ///
    /// # Errors
    /// It cannot be found out.
    pub(super) async fn elsewhere(&self, id: &SessionId) -> Result<Option<SessionHolder>, Problem> {
        let is_here = || self.opened(id).is_some_and(|open| !open.session.is_unrecorded());
        let Some(store) = self.host.transcripts().filter(|store| store.is_shared() && !is_here()).cloned() else {
            return Ok(None);
        };
        let id = id.clone();
        Ok(blocking(move || store.elsewhere(&id)).await??)
    }

    /// Notes what another process has changed: who is allowed to use the session, or that it was deleted.
    async fn refresh(&self, known: &Known) -> Result<(), Problem> {
        if !self.others_change(&known.id) {
            return Ok(());
        }
        match self.recorded(&known.id).await? {
            Some(access) if access == known.access() => {}
            Some(access) => known.set_access(access),
            None => {
                known.delete();
                self.lock().remove(&known.id);
            }
        }
        Ok(())
    }

    /// Reads whose session it is.
    async fn recorded(&self, id: &SessionId) -> Result<Option<SessionAccess>, Problem> {
        let Some(store) = self.host.transcripts().cloned() else { return Ok(None) };
        let (id, workspace) = (id.clone(), self.workspace.clone());
        blocking(move || {
            if let Some(access) = store.access(&id)? {
                return Ok(Some(access));
            }
            match store.summary(&id) {
                Ok(summary) => {
                    Ok(is_of(&summary, &workspace).then(|| of_terminal(&summary.id, MAIN, summary.header.created_ms)))
                }
                Err(TranscriptError::Missing { .. }) => Ok(None),
                Err(error) => Err(Problem::from(error)),
            }
        })
        .await?
    }

    /// Returns all sessions that a user is allowed to use, with what their transcripts report.
    ///
    /// # Errors
    /// The transcripts cannot be read.
    pub(super) async fn list(&self, user: &str) -> Result<Vec<(SessionAccess, Option<TranscriptSummary>)>, Problem> {
        let mut all: BTreeMap<String, (SessionAccess, Option<TranscriptSummary>)> = BTreeMap::new();
        for known in self.all() {
            let access = known.access();
            // A conversation of a gateway is listed as long as its transcript is there.
            if !known.is_deleted() && !is_conversation(&known.id) {
                all.insert(access.thread_id.clone(), (access, None));
            }
        }
        if let Some(store) = self.host.transcripts().cloned() {
            let (accesses, summaries) = blocking(move || read_all(&store)).await??;
            for access in accesses {
                all.entry(access.thread_id.clone()).or_insert((access, None));
            }
            for summary in summaries {
                let id = summary.id.as_str().to_owned();
                match all.get_mut(&id) {
                    Some((_, known)) => *known = Some(summary),
                    None if is_of(&summary, &self.workspace) => {
                        let access = of_terminal(&summary.id, MAIN, summary.header.created_ms);
                        all.insert(id, (access, Some(summary)));
                    }
                    None => {}
                }
            }
        }
        Ok(all.into_values().filter(|(access, _)| admits(access, user)).collect())
    }

    /// Returns what the transcript of a session reports; `None`: it has none yet.
    pub(super) async fn summary(&self, id: &SessionId) -> Result<Option<TranscriptSummary>, Problem> {
        let Some(store) = self.host.transcripts().cloned() else { return Ok(None) };
        let id = id.clone();
        match blocking(move || store.summary(&id)).await? {
            Err(TranscriptError::Missing { .. }) => Ok(None),
            read => Ok(Some(read?)),
        }
    }

    /// Returns the session, which is opened if it is not open. What a person was asked when another process ended is asked again.
    ///
    /// # Errors
    /// It was deleted meanwhile, or it cannot be opened; a conversation of a gateway, of which this would take the recording, never is.
    pub(super) async fn open(&self, known: &Known) -> Result<Arc<Open>, Problem> {
        if is_conversation(&known.id) {
            return Err(Problem::of_gateway());
        }
        let mut slot = known.open.lock().await;
        if known.is_deleted() {
            return Err(Problem::not_found());
        }
        if let Some(open) = slot.as_ref().filter(|open| !open.session.is_unrecorded()) {
            open.touch();
            return Ok(Arc::clone(open));
        }
        // Another host can have taken it over.
        if let Some(lost) = slot.take() {
            lost.session.close();
            lost.session.closed().await;
        }
        let access = known.access();
        let mut options = SessionOptions::new(&self.workspace)
            .id(known.id.clone())
            .agent(access.agent)
            .backlog(Backlog::default())
            .questions_wait();
        let is_recorded = self.summary(&known.id).await?.is_some_and(|summary| summary.records > 0);
        options = match access.model.filter(|_| !is_recorded) {
            Some(model) => options.model(self.model(&model)?),
            None => options.keep_model(),
        };
        let session = self.host.session(options).await?;
        let open = Arc::new(Open::new(session, self.is_shared())?);
        if open.session.interrupted().is_some_and(|left| left.is_asking()) {
            open.session.resume().detach();
        }
        *slot = Some(Arc::clone(&open));
        Ok(open)
    }

    /// Returns the session if it is open now, without waiting for who opens or closes it.
    pub(super) fn opened(&self, id: &SessionId) -> Option<Arc<Open>> {
        let known = self.lock().get(id).cloned()?;
        let slot = known.open.try_lock().ok()?;
        slot.clone()
    }

    fn model(&self, name: &str) -> Result<Arc<dyn Model>, Problem> {
        let offered = self.host.models();
        let unknown = || {
            let why = format!("the models are {}", offered.join(", "));
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "no_such_model", why)
        };
        if !offered.iter().any(|known| known == name) {
            return Err(unknown());
        }
        Ok(self.host.other_model(name).ok_or_else(unknown)??)
    }

    /// Deletes a session with its transcript and what plugins keep in it.
    ///
    /// # Errors
    /// Other sessions continue it, or it cannot be deleted: it is still there then.
    pub(super) async fn delete(&self, known: &Known, user: &str) -> Result<(), Problem> {
        let mut slot = known.open.lock().await;
        if let Some(open) = slot.take() {
            open.session.cancel_because(user, "the session is deleted");
            open.session.close();
            open.session.closed().await;
        }
        self.host.remove_session(&known.id).await?;
        known.delete();
        self.lock().remove(&known.id);
        Ok(())
    }

    /// Closes sessions that nobody has used for a while, and forgets those that are closed.
    pub(super) async fn sweep(&self) {
        // Nothing is left of a session that is closed and not recorded.
        if self.host.transcripts().is_none() {
            return;
        }
        for known in self.all() {
            // Who opens or closes it has the lock, and uses it.
            let Ok(mut slot) = known.open.try_lock() else { continue };
            if let Some(open) = slot.take_if(|open| open.is_idle()) {
                open.leave().await;
            }
            let is_closed = slot.is_none();
            drop(slot);
            let mut all = self.lock();
            // One in the map, one here.
            if is_closed && Arc::strong_count(&known) <= 2 {
                all.remove(&known.id);
            }
        }
    }

    /// Closes all sessions, because the server ends.
    pub(super) async fn close(&self) {
        let mut closing = tokio::task::JoinSet::new();
        for known in self.all() {
            closing.spawn(async move {
                let open = known.open.lock().await.take();
                if let Some(open) = open {
                    open.leave().await;
                }
            });
        }
        while closing.join_next().await.is_some() {}
    }

    fn insert(&self, known: Known) -> Arc<Known> {
        let mut all = self.lock();
        Arc::clone(all.entry(known.id.clone()).or_insert_with(|| Arc::new(known)))
    }

    fn all(&self) -> Vec<Arc<Known>> {
        self.lock().values().cloned().collect()
    }

    /// The data are valid after every statement, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, Arc<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the id of a session that a write creates: the same for the same write, also after a restart. Without a name it is a new one.
fn id_of(user: &str, what: &str, write: Option<&str>) -> SessionId {
    let Some(write) = write else { return new_session_id() };
    let mut digest = Sha256::new();
    for part in [user, what, write] {
        digest.update(part.len().to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    let hex = digest.iter().take(16).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    SessionId::new(format!("s-{hex}"))
}

/// Returns whether a session is one of the workspace that a user began, and not one of an agent's.
fn is_of(summary: &TranscriptSummary, workspace: &Path) -> bool {
    summary.header.spawned_by.is_none() && summary.workspace.as_deref().is_some_and(|own| Path::new(own) == workspace)
}

type All = (Vec<SessionAccess>, Vec<TranscriptSummary>);

fn read_all(store: &TranscriptStore) -> Result<All, TranscriptError> {
    Ok((store.accesses()?, store.list()?.sessions))
}

/// Runs what waits for the disk.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(Problem::internal)
}
