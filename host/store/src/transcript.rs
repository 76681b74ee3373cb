//! Transcripts: the events of each thread in a file of records that survives crashes and full disks.
//!
//! A folder for each thread, named after its session: `transcript.jsonl`, and `lock` while a process writes it. The first line is the
//! [`TranscriptHeader`]; each following line is one record, JSON in one line:
//!
//! ```json
//! {"seq":5,"event":7,"ts":1790000000000,"thread_id":"chat-1","turn":1,"step":1,"attempt":1,"type":"cognition_out_delta","payload":{"text":"Hello","chunk_index":0}}
//! ```
//!
//! `seq` numbers the records of the thread without gaps; those of a fork continue from its parent's. `event` is the number of the event:
//! events that were not recorded leave gaps. `dropped` is the number of droppable events that a full queue lost since the record before.
//!
//! Only the end of the file changes. A record is acknowledged after `fdatasync`; a line that a crash has cut is removed at the next
//! opening, any other line that is not a record is an error until [`TranscriptStore::repair`] has removed it.

mod access;
mod appender;
mod check;
mod error;
mod file;
mod folder;
mod fork;
mod format;
mod journal;
mod latest;
mod lines;
mod list;
mod place;
mod policy;
mod queue;
mod reader;
mod repair;
#[cfg(feature = "schema")]
mod schema;
#[cfg(feature = "redis")]
mod streams;
mod writer;
mod writers;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::SessionId;
use flow::ports::Clock;

pub use access::SessionAccess;
pub use error::TranscriptError;
pub use format::{ForkedFrom, JsonRecord, SpawnedBy, TranscriptHeader};
pub use journal::FileJournal;
pub use latest::UnreadableTranscript;
pub use list::{LastRecord, TranscriptList, TranscriptSummary};
pub use place::{SessionHolder, TranscriptDurability};
pub use policy::{EventFilter, EventPolicy, RecordAll};
pub use reader::{Entry, Records, TranscriptReader};
pub use repair::{DroppedLine, Repair};
#[cfg(feature = "schema")]
pub use schema::transcript_schema;

use appender::Appender;
use error::unusable;
use folder::Folder;
use place::{Held, Place};

/// The transcripts in a folder. All functions block on the disk: an async program calls them on a thread for blocking work.
///
/// ```
/// use std::sync::Arc;
/// use flow::{Event, EventKind, RunPosition, SessionId};
/// use tidegate_store::{JsonRecord, RecordAll, StoreOptions, TranscriptStore};
/// use flow::ports::{Clock, Journal};
///
/// # let folder = tempfile::tempdir()?;
/// let store = TranscriptStore::new(folder.path(), StoreOptions::default().owner, Arc::new(system::SystemClock))?;
/// let session = SessionId::new("chat-1");
/// let opened = store.open(&session, Arc::new(RecordAll))?;
/// let place = RunPosition { turn: 1, ..RunPosition::default() };
/// opened.journal.append(&Event::new(opened.next_event, system::SystemClock.now_ms(), place, EventKind::TurnStart));
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// opened.journal.durable().await?;
/// opened.journal.close().await?;
/// # Ok::<(), flow::ports::JournalError>(())
/// # })?;
///
/// for entry in store.read(&session)?.records::<JsonRecord>() {
///     assert_eq!(entry?.record["type"], "turn_start");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct TranscriptStore {
    root: PathBuf,
    place: Arc<dyn Place>,
    clock: Arc<dyn Clock>,
}

/// A transcript that was opened for writing.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenedTranscript {
    /// Records the events. The session is locked until it is closed.
    pub journal: FileJournal,
    /// The first line of the file.
    pub header: TranscriptHeader,
    /// The number that the first event must have: it continues those that are recorded.
    pub next_event: u64,
    /// The number of records of the thread, those of its parents included.
    pub records: u64,
    /// The bytes of an incomplete last line that were removed; 0 if there was none. No acknowledged event was in it.
    pub torn_bytes: u64,
    /// The thread did not exist.
    pub is_new: bool,
}

impl TranscriptStore {
    /// Uses this folder; creates it where there is none, readable by its owner only. `owner` is how this process is named where another
    /// one is refused, usually [`StoreOptions::owner`](crate::StoreOptions::owner).
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(
        root: impl Into<PathBuf>,
        owner: impl Into<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TranscriptError> {
        let root = root.into();
        let place = Arc::new(Folder::new(&root, &owner.into())?);
        Ok(Self { root, place, clock })
    }

    /// Keeps all transcripts on a Redis server, so that each host of the server can continue them. In the folder are requests of other processes
    /// of this machine, and copies of what was repaired.
    ///
    /// # Errors
    /// The folder cannot be created, or the options cannot be used.
    #[cfg(feature = "redis")]
    pub fn on_redis(
        root: impl Into<PathBuf>,
        options: &crate::RedisOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, TranscriptError> {
        let root = root.into();
        let place = Arc::new(streams::Streams::new(&root, options, Arc::clone(&clock))?);
        Ok(Self { root, place, clock })
    }

    /// Writes something to the place of all transcripts and removes it, which is what a new session needs. Returns what is promised of
    /// records there.
    ///
    /// # Errors
    /// The place cannot be written.
    pub fn check_writable(&self) -> Result<TranscriptDurability, TranscriptError> {
        Ok(self.place.check()?)
    }

    /// Opens a session for writing, and creates it if it does not exist. Every line is checked.
    ///
    /// # Errors
    /// Another writer has it, a line is damaged, its version is unknown, or it cannot be read or written.
    pub fn open(&self, id: &SessionId, policy: Arc<dyn EventPolicy>) -> Result<OpenedTranscript, TranscriptError> {
        self.open_child(id, policy, None)
    }

    /// Opens a session as [`TranscriptStore::open`] does; one that does not exist is created as that of a child agent.
    ///
    /// # Errors
    /// As for [`TranscriptStore::open`].
    pub fn open_child(
        &self,
        id: &SessionId,
        policy: Arc<dyn EventPolicy>,
        spawned_by: Option<SpawnedBy>,
    ) -> Result<OpenedTranscript, TranscriptError> {
        let name = self.place.name_of(id);
        let mut held = self.place.hold(&name)?;
        let found = check::check(&*self.place, id.as_str())?;
        let is_new = found.is_none();
        let checked = match found {
            Some(checked) => checked,
            None => {
                let mut header = TranscriptHeader::new(id, self.clock.now_ms(), None);
                header.spawned_by = spawned_by;
                self.create(&mut *held, id, &header)?;
                check::check(&*self.place, id.as_str())?.ok_or_else(|| self.missing(id))?
            }
        };
        let appender = Appender::new(held.sink(&checked)?, self.place.path(&name), checked.length);
        let journal = FileJournal::start(policy, id.as_str(), checked.next_seq, appender)?;
        Ok(OpenedTranscript {
            journal,
            header: checked.header,
            next_event: checked.next_event,
            records: checked.next_seq,
            torn_bytes: checked.torn,
            is_new,
        })
    }

    /// Opens a session for reading, with the records that it shares with its parents.
    ///
    /// # Errors
    /// It or a parent does not exist, has an unknown version, or cannot be read.
    pub fn read(&self, id: &SessionId) -> Result<TranscriptReader, TranscriptError> {
        let missing_parent = |parent: &str| TranscriptError::MissingParent {
            id: SessionId::new(parent),
            forks: vec![id.clone()],
            root: self.place.root(),
        };
        TranscriptReader::open(id.as_str(), &*self.place, missing_parent)?.ok_or_else(|| self.missing(id))
    }

    /// The folder of a session, whether it exists or not. Its transcript is `transcript.jsonl` there.
    pub fn folder(&self, id: &SessionId) -> PathBuf {
        self.root.join(folder::name_of(id))
    }

    /// The file with which another process asks the one that has the session open to cancel its turn: creating it is enough.
    pub fn cancel_file(&self, id: &SessionId) -> PathBuf {
        self.folder(id).join("cancel")
    }

    /// The file with which another process, or a person, approves the request of a session for a higher limit: creating it is enough. It
    /// is TOML: `request`, the id of the request that is meant; `max`, another limit than the proposed one; `by`, who decides.
    pub fn approve_file(&self, id: &SessionId) -> PathBuf {
        self.folder(id).join("approve")
    }

    /// The file that denies the request; `request` and `by` as in [`TranscriptStore::approve_file`], and `reason`.
    pub fn deny_file(&self, id: &SessionId) -> PathBuf {
        self.folder(id).join("deny")
    }

    /// The folder of all transcripts.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether several hosts use the transcripts, each of which can continue the sessions.
    pub fn is_shared(&self) -> bool {
        self.place.is_shared()
    }

    /// Notes the URL at which other hosts reach this one, for sessions that are opened from here on. Where transcripts are not shared, it has
    /// no effect.
    pub fn announce(&self, address: &str) {
        self.place.announce(address);
    }

    /// Returns the other host that has a session open; `None`: none has, or transcripts are not shared.
    ///
    /// # Errors
    /// It cannot be found out.
    pub fn elsewhere(&self, id: &SessionId) -> Result<Option<SessionHolder>, TranscriptError> {
        Ok(self.place.elsewhere(&self.place.name_of(id))?)
    }

    /// Whether something is kept of a session, be it only who is allowed to use it.
    ///
    /// # Errors
    /// It cannot be found out.
    pub fn exists(&self, id: &SessionId) -> Result<bool, TranscriptError> {
        Ok(self.place.exists(&self.place.name_of(id))?)
    }

    fn create(&self, held: &mut dyn Held, id: &SessionId, header: &TranscriptHeader) -> Result<(), TranscriptError> {
        let path = self.place.path(&self.place.name_of(id));
        let line = header.line().map_err(|error| unusable(&path, error.to_string()))?;
        Ok(held.create(&line)?)
    }

    fn missing(&self, id: &SessionId) -> TranscriptError {
        TranscriptError::Missing { id: id.clone(), root: self.place.root() }
    }
}

impl fmt::Debug for TranscriptStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TranscriptStore").field("place", &self.place).finish_non_exhaustive()
    }
}
