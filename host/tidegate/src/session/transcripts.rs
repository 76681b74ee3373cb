//! Recorded sessions: the store that the operator has chosen, and what a session continues from.

use std::path::PathBuf;
use std::sync::Arc;

use chat::{ChatSession, SavedChat};
use config::events::Variables;
use config::{Operator, StatePlace};
use flow::ports::{Clock, JournalError};
use flow::{Event, EventCatalogue, EventKind, RunPosition, SessionId, TranscriptBackend};
use record::{Body, Record, RecordError};
use store::emission::EmissionPolicy;
use store::{Entry, FileJournal, SpawnedBy, StoreOptions, TranscriptError, TranscriptStore};
use turn::rebuild::{Rebuild, RebuildError, Resumed};

use crate::host::blocking;
use crate::host::loaded::Shared;
use crate::session::approvals::DecisionFiles;
use crate::{Host, HostBuilder, HostError};

/// A session's transcript, open for writing.
pub(crate) struct Recorded {
    pub(crate) journal: Arc<FileJournal>,
    /// Another process that creates this file asks for a cancel.
    pub(crate) cancel_file: PathBuf,
    /// Another process that creates one of these files decides about a limit.
    pub(crate) decisions: DecisionFiles,
    /// What the session continues from; `None`: it is new.
    pub(crate) resumed: Option<Resumed>,
    /// What is to be reported, a sentence each.
    pub(crate) notices: Vec<String>,
    /// What a chat knows of the records, where it was asked for.
    pub(crate) chat: Option<SavedChat>,
    /// The catalogue by which it is recorded.
    pub(crate) catalogue: Arc<EventCatalogue>,
}

/// Opens the store as the operator's file says; `None`: sessions are not recorded.
///
/// # Errors
/// The folder, or the settings of the server, cannot be used.
pub(crate) fn open(operator: &Operator, clock: Arc<dyn Clock>) -> Result<Option<TranscriptStore>, HostError> {
    let settings = &operator.transcript;
    if settings.enabled != Some(true) {
        return Ok(None);
    }
    let folder = settings.folder.clone().or_else(default_folder).ok_or(HostError::NoTranscriptFolder)?;
    Ok(Some(match (settings.backend, &operator.state.place) {
        #[cfg(feature = "redis")]
        (TranscriptBackend::Redis, StatePlace::Redis(place)) => {
            let redis = crate::host::redis_place::options(place, StoreOptions::default())?;
            TranscriptStore::on_redis(folder, &redis, clock)?
        }
        #[cfg(not(feature = "redis"))]
        (TranscriptBackend::Redis, StatePlace::Redis(_)) => return Err(HostError::NoRedis),
        // An embedder has replaced the settings of the state that the file is checked with.
        (TranscriptBackend::Redis, _) => return Err(HostError::NoTranscriptServer),
        (TranscriptBackend::Disk, _) => TranscriptStore::new(folder, StoreOptions::default().owner, clock)?,
    }))
}

/// `tidegate/sessions` in the user's state folder. `None` where the user has no home.
fn default_folder() -> Option<PathBuf> {
    crate::host::assemble::state_folder().map(|folder| folder.join("sessions"))
}

/// Opens the transcript of a session for writing, and rebuilds what is recorded in it.
///
/// # Errors
/// The session is that of a child agent and was closed, the catalogue of events of the workspace is wrong, another process has the transcript, a line is damaged, or the conversation cannot be
/// rebuilt.
pub(crate) async fn record(
    store: TranscriptStore,
    id: SessionId,
    (shared, workspace): (Arc<Shared>, PathBuf),
    variables: Variables,
    (spawned_by, has_backlog): (Option<SpawnedBy>, bool),
) -> Result<Recorded, HostError> {
    blocking(move || {
        let (catalogue, left_out) = shared.event_catalogue(&workspace)?;
        let policy = EmissionPolicy::new(catalogue.for_session(&variables));
        let catalogue = Arc::clone(policy.catalogue());
        let opened = store.open_child(&id, Arc::new(policy), spawned_by)?;
        // It would continue with the prompt, the tools and the limits of another agent.
        if let Some(parent) = opened.header.spawned_by.as_ref().filter(|_| !opened.is_new) {
            return Err(HostError::ChildThread { id, parent: SessionId::new(parent.thread_id.as_str()) });
        }
        let cancel_file = store.cancel_file(&id);
        let (approve, deny) = (store.approve_file(&id), store.deny_file(&id));
        let mut notices: Vec<String> = left_out.iter().map(config::in_one_line).collect();
        if opened.torn_bytes > 0 {
            notices.push(format!(
                "the last record of the transcript was not complete: {} bytes were removed; no acknowledged event was in them",
                opened.torn_bytes
            ));
        }
        let (mut resumed, mut chat) = (None, None);
        if opened.records > 0 {
            let (mut rebuilt, shown) = rebuild(&store, &id, has_backlog.then(ChatSession::default))?;
            rebuilt.next_event = opened.next_event;
            // What closes an open turn has no number of its own: the next event of the thread is one that the chat has not taken.
            chat = shown.map(|shown| shown.at(opened.next_event));
            if rebuilt.is_interrupted {
                notices.push(format!(
                    "turn {} was cut off: its process ended before the turn did; the part of an answer that was shown is marked as interrupted",
                    rebuilt.turns
                ));
            }
            notices.append(&mut rebuilt.problems);
            resumed = Some(rebuilt);
        }
        let open = resumed.as_ref().and_then(|resumed| resumed.open_request.as_ref());
        let decisions = DecisionFiles { approve, deny, resumed: open.map(|(id, _)| id.clone()) };
        Ok(Recorded { journal: Arc::new(opened.journal), cancel_file, decisions, resumed, notices, chat, catalogue })
    })
    .await
}

/// Rebuilds a session from its records, and what `chat` shows of them, where there is one.
fn rebuild(
    store: &TranscriptStore,
    id: &SessionId,
    mut chat: Option<ChatSession>,
) -> Result<(Resumed, Option<SavedChat>), TranscriptError> {
    let mut rebuild = Rebuild::default();
    for entry in store.read(id)?.records::<Record>() {
        let entry = entry?;
        take(&mut rebuild, &entry.record, id).map_err(|error| invalid(&entry, error))?;
        if let Some(chat) = &mut chat {
            show(chat, &entry.record, id).map_err(|error| invalid(&entry, error))?;
        }
    }
    let Some(mut chat) = chat else { return Ok((rebuild.finish(), None)) };
    if chat.snapshot().steering.is_executing() {
        // What a process left open is closed, as by the event that the next turn begins with.
        let (by, next) = (String::new(), chat.next_seq());
        let kind = EventKind::ThreadResumed { by, suspended: None, provider: String::new(), model: String::new() };
        let _changed = chat.process(&Event::new(next, 0, RunPosition::default(), kind));
    }
    Ok((rebuild.finish(), Some(chat.save())))
}

fn take(rebuild: &mut Rebuild, record: &Record, id: &SessionId) -> Result<(), RebuildError> {
    rebuild.take(record)?;
    if record.thread_id != id.as_str() {
        rebuild.fork();
    }
    Ok(())
}

fn show(chat: &mut ChatSession, record: &Record, id: &SessionId) -> Result<(), RecordError> {
    if counts(record, id) {
        let _changed = record.event()?.map(|event| chat.process(&event));
    }
    Ok(())
}

/// Returns whether a record is of the session. What waits in the session that a fork was made from is none of the fork's.
pub(crate) fn counts(record: &Record, id: &SessionId) -> bool {
    let is_of_input = matches!(record.body, Body::InputQueued(_) | Body::InputEdited(_) | Body::InputWithdrawn(_));
    record.thread_id == id.as_str() || !is_of_input
}

pub(crate) fn invalid<R>(entry: &Entry<R>, reason: impl std::fmt::Display) -> JournalError {
    JournalError::Invalid { path: entry.path.display().to_string(), line: entry.line, reason: reason.to_string() }
}

impl Host {
    /// The transcripts of its sessions; `None`: they are not recorded.
    pub fn transcripts(&self) -> Option<&TranscriptStore> {
        self.transcripts.as_ref()
    }

    /// Removes a session: its transcript, and what plugins keep for it in the store of this host. Returns whether plugins
    /// kept anything.
    ///
    /// # Errors
    /// The session is open, or a fork continues it, or its state cannot be removed; nothing was removed then. Or only its transcript cannot
    /// be removed.
    pub async fn remove_session(&self, id: &SessionId) -> Result<bool, HostError> {
        self.with_transcript(id, TranscriptStore::check_removable).await?;
        // First: what plugins keep can be secrets, and is not found any more without the transcript.
        let kept = self.state_admin().clear(id, None).await?;
        self.with_transcript(id, TranscriptStore::remove).await?;
        Ok(kept)
    }

    /// Does something with the transcript of a session, if it has one.
    async fn with_transcript(
        &self,
        id: &SessionId,
        action: fn(&TranscriptStore, &SessionId) -> Result<(), TranscriptError>,
    ) -> Result<(), HostError> {
        let (store, id) = (self.transcripts.clone(), id.clone());
        blocking(move || match store.map_or(Ok(()), |store| action(&store, &id)) {
            Ok(()) | Err(TranscriptError::Missing { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        })
        .await
    }
}

impl HostBuilder {
    /// The transcripts of sessions, without opening the host; `None`: they are not recorded.
    ///
    /// # Errors
    /// The folder, or the settings of the server, cannot be used.
    pub fn transcripts(&self) -> Result<Option<TranscriptStore>, HostError> {
        open(&self.operator, Arc::clone(&self.clock))
    }
}
