//! The file of one session: opening, creating, reading and writing it, and what its errors mean.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::ports::{StateError, StoredState};
use flow::{PluginId, SessionId};
use redb::{Builder, ConcurrencyMode, Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase};

use super::tables::{self, Problem, Step};
use crate::activity::Recorded;
use crate::backend::Swept;
use crate::queue::Flight;

/// Bytes of pages that are kept in memory for each open session. The plugins' values are in a cache already.
const CACHE_BYTES: usize = 1 << 20;
const REMEDY: &str = "restore the file from a copy, or delete it to start without its state";

/// An open file: of the owner of its session, or of a reader.
pub(super) struct StateFile<D> {
    path: PathBuf,
    database: D,
    identity: Identity,
}

/// Device and number of a file: they show that the path still names it.
pub(super) type Identity = (u64, u64);

/// All that is stored in a file.
pub(super) struct Snapshot {
    pub(super) session: SessionId,
    pub(super) recorded: Recorded,
    pub(super) states: Vec<(PluginId, StoredState)>,
}

/// What a reader finds.
pub(super) enum Found {
    Nothing,
    Snapshot(Snapshot),
    /// A process died while it wrote: the next owner repairs the file.
    Unrepaired,
}

impl StateFile<Database> {
    /// Opens the file of a session, whose lease the caller has. Every page is checked.
    pub(super) fn open(path: &Path, session: &SessionId) -> Result<Self, StateError> {
        let opened = builder().set_check_integrity_on_open(true).open(path);
        let database = opened.map_err(|error| failed(path, error.into()))?;
        let file = Self { path: path.to_owned(), database, identity: identity(path)? };
        let name = file.read(tables::session)?;
        if name != session.as_str() {
            let cause = format!("it belongs to the session {name:?}, not to {:?}", session.as_str());
            return Err(unreadable(path, cause));
        }
        Ok(file)
    }

    /// Opens the file of a session again, which the owner of its lease has closed before; `None`: it is another file.
    pub(super) fn open_again(path: &Path, before: Identity) -> Result<Option<Self>, StateError> {
        if identity(path)? != before {
            return Ok(None);
        }
        let database = builder().open(path).map_err(|error| failed(path, error.into()))?;
        Ok(Some(Self { path: path.to_owned(), database, identity: before }))
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Repairs what a crash has left. The caller has the lease.
    pub(super) fn repair(path: &Path) -> Result<(), StateError> {
        builder().open(path).map(drop).map_err(|error| failed(path, error.into()))
    }

    /// Creates the file of a session. A crash meanwhile leaves either no file or a complete one.
    pub(super) fn create(path: &Path, session: &SessionId, recorded: Recorded) -> Result<Self, StateError> {
        let unfinished = path.with_extension("unfinished");
        let unavailable = |error: io::Error| unavailable(path, error);
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)
            .map_err(unavailable)?;
        let step = || {
            let database = builder().create(&unfinished)?;
            let transaction = database.begin_write()?;
            tables::create(&transaction, session.as_str())?;
            tables::record(&transaction, recorded)?;
            transaction.commit()?;
            Ok(())
        };
        step().map_err(|error| failed(path, error))?;
        fs::rename(&unfinished, path).map_err(unavailable)?;
        // The name is durable when its folder is.
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(unavailable)?;
        Self::open(path, session)
    }

    /// Whether the path still names this file. Otherwise what is written goes nowhere.
    pub(super) fn is_in_place(&self) -> bool {
        identity(&self.path).is_ok_and(|now| now == self.identity)
    }

    /// Writes a flight in one durable transaction.
    pub(super) fn write(&self, flight: &Flight) -> Result<Swept, StateError> {
        let step = || {
            let transaction = self.database.begin_write()?;
            let swept = tables::write(&transaction, flight)?;
            transaction.commit()?;
            Ok(swept)
        };
        step().map_err(|error| failed(&self.path, error))
    }
}

impl<D: ReadableDatabase> StateFile<D> {
    /// Reads in one transaction.
    pub(super) fn read<T>(&self, work: impl FnOnce(&ReadTransaction) -> Step<T>) -> Result<T, StateError> {
        let step = || work(&self.database.begin_read()?);
        step().map_err(|error| failed(&self.path, error))
    }
}

/// Reads a file without the lease of its session.
pub(super) fn look(path: &Path) -> Result<Found, StateError> {
    let database: ReadOnlyDatabase = match builder().open_read_only(path) {
        Ok(database) => database,
        Err(redb::DatabaseError::RepairAborted) => return Ok(Found::Unrepaired),
        Err(redb::DatabaseError::Storage(redb::StorageError::Io(error))) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Found::Nothing);
        }
        Err(error) => return Err(failed(path, error.into())),
    };
    let file = StateFile { path: path.to_owned(), database, identity: identity(path)? };
    let snapshot = file.read(|transaction| {
        let session = SessionId::new(tables::session(transaction)?);
        let plugins = tables::plugins(transaction)?.into_iter();
        let states = plugins.map(|plugin| Ok((plugin.clone(), tables::load(transaction, &plugin)?)));
        Ok(Snapshot { session, recorded: tables::recorded(transaction)?, states: states.collect::<Step<_>>()? })
    })?;
    Ok(Found::Snapshot(snapshot))
}

/// One process writes, and others can read meanwhile.
fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES).set_concurrency_mode(ConcurrencyMode::SingleWriter);
    builder
}

fn identity(path: &Path) -> Result<Identity, StateError> {
    let about = fs::metadata(path).map_err(|error| unavailable(path, error))?;
    Ok((about.dev(), about.ino()))
}

pub(super) fn unreadable(path: &Path, cause: impl Into<String>) -> StateError {
    StateError::Unreadable { place: path.display().to_string(), cause: cause.into() }
}

pub(super) fn unavailable(path: &Path, cause: impl std::error::Error + Send + Sync + 'static) -> StateError {
    StateError::Unavailable { place: path.display().to_string(), cause: Arc::new(cause) }
}

/// Sorts an error: a damaged file stays as it is, everything else can pass.
fn failed(path: &Path, problem: Problem) -> StateError {
    use io::ErrorKind::{InvalidData, UnexpectedEof};
    match problem {
        Problem::Content(cause) => unreadable(path, cause),
        Problem::Database(redb::Error::Io(cause)) if !matches!(cause.kind(), InvalidData | UnexpectedEof) => {
            unavailable(path, cause)
        }
        Problem::Database(
            error @ (redb::Error::PreviousIo | redb::Error::DatabaseAlreadyOpen | redb::Error::DatabaseClosed),
        ) => unavailable(path, error),
        Problem::Database(error) => unreadable(path, format!("it is damaged: {error}; {REMEDY}")),
    }
}
