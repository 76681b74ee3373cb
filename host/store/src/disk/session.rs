//! An open session on the disk: its lock, its file, and the thread that works on them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::ports::{BoxFuture, StateError, StoredState};
use flow::{PluginId, SessionId};
use redb::Database;

use super::file::{Identity, StateFile, unavailable};
use super::{LOCK, on_thread, opened, tables};
use crate::activity::Recorded;
use crate::backend::{Backend, Opened, Swept, WriteError};
use crate::lifetime::ExpiryCheck;
use crate::lock::{LockFile, Locked};
use crate::queue::Flight;

/// What opening a session gives.
pub(super) type OpenedDisk = Opened<DiskSession>;

/// A session whose lock this process has.
#[derive(Clone)]
pub(crate) struct DiskSession(Arc<Mutex<Inner>>);

pub(super) struct Inner {
    session: SessionId,
    path: PathBuf,
    /// `None` before the first write of a fresh session, after an error, and while others are used: then it is opened again. Dropped
    /// before the lock.
    file: Option<StateFile<Database>>,
    /// The file that was closed without an error, so that it need not be checked when it is opened again.
    closed: Option<Identity>,
    /// `None` once it is released.
    lock: Option<LockFile>,
    /// Whether there is a file, as far as this session knows.
    has_file: bool,
    last_number: u64,
}

impl DiskSession {
    /// Locks and opens a session; one that has expired is deleted first. Blocks.
    pub(crate) fn open(
        path: &Path,
        session: &SessionId,
        owner: &str,
        now_ms: u64,
        session_ttl_ms: u64,
    ) -> Result<Opened<Self>, StateError> {
        let lock = lock(path, session, owner)?;
        let mut inner = Inner::new(path, session, lock);
        let fresh = Recorded { active_ms: now_ms, shortest_ttl_ms: None, has_state: false };
        let recorded = match inner.file()? {
            None => fresh,
            Some(file) => {
                let recorded = file.read(tables::recorded)?;
                let check = ExpiryCheck { at_ms: now_ms, active_ms: recorded.active_ms, session_ttl_ms };
                if now_ms < check.session_end() {
                    recorded
                } else {
                    inner.delete()?;
                    fresh
                }
            }
        };
        // An idle session has no open file.
        inner.rest();
        Ok(Opened { backend: Self(Arc::new(Mutex::new(inner))), recorded })
    }

    /// Runs work on a thread for blocking work; a panic there is what a damaged file causes.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Inner) -> Result<T, StateError> + Send + 'static,
    ) -> Result<T, StateError> {
        let session = Arc::clone(&self.0);
        let path = guard(&session).path.clone();
        on_thread(path, move || {
            let mut inner = guard(&session);
            if inner.lock.is_none() {
                return Err(StateError::Closed { session: inner.session.clone() });
            }
            let done = work(&mut inner);
            if done.is_err() {
                // A database that has seen an error refuses everything from then on.
                (inner.file, inner.closed) = (None, None);
            }
            let is_open = inner.file.is_some();
            drop(inner);
            if is_open {
                opened::used(&session);
            }
            done
        })
        .await
    }
}

fn guard(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
        let mut inner: MutexGuard<'_, Inner> = poisoned.into_inner();
        (inner.file, inner.closed) = (None, None);
        inner
    })
}

/// Acquires the lock of a session.
pub(super) fn lock(path: &Path, session: &SessionId, owner: &str) -> Result<LockFile, StateError> {
    let lock = path.with_extension(LOCK);
    let folder = path.parent().unwrap_or(Path::new("."));
    match LockFile::acquire(&lock, folder, owner).map_err(|error| unavailable(&lock, error))? {
        Locked::Acquired(lock) => Ok(lock),
        Locked::Held(by) => Err(StateError::Leased { session: session.clone(), by, until_ms: None }),
    }
}

impl Inner {
    pub(super) fn new(path: &Path, session: &SessionId, lock: LockFile) -> Self {
        let has_file = path.exists();
        Self {
            session: session.clone(),
            path: path.to_owned(),
            file: None,
            closed: None,
            lock: Some(lock),
            has_file,
            last_number: 0,
        }
    }

    /// The file, opened where it is not; `None` where there is none.
    pub(super) fn file(&mut self) -> Result<Option<&StateFile<Database>>, StateError> {
        if self.file.as_ref().is_some_and(|file| !file.is_in_place()) || (self.has_file && !self.path.exists()) {
            return Err(self.lost());
        }
        if self.file.is_none() && self.has_file {
            self.file = Some(match self.closed.take() {
                Some(identity) => match StateFile::open_again(&self.path, identity)? {
                    Some(file) => file,
                    None => return Err(self.lost()),
                },
                None => StateFile::open(&self.path, &self.session)?,
            });
        }
        Ok(self.file.as_ref())
    }

    /// Closes the file until it is needed.
    pub(super) fn rest(&mut self) {
        if let Some(file) = self.file.take() {
            self.closed = Some(file.identity());
        }
    }

    /// Forgets a file that somebody has removed or replaced.
    fn lost(&mut self) -> StateError {
        (self.file, self.closed, self.has_file) = (None, None, self.path.exists());
        StateError::Lost { session: self.session.clone(), place: self.path.display().to_string() }
    }

    fn write(&mut self, flight: &Flight) -> Result<Swept, StateError> {
        if flight.number <= self.last_number {
            return Ok(Swept::new());
        }
        let is_fresh = self.file()?.is_none();
        let swept = match &self.file {
            None if is_fresh && !flight.adds() => Swept::new(),
            None => {
                let file = StateFile::create(&self.path, &self.session, flight.activity)?;
                self.has_file = true;
                self.file.insert(file).write(flight)?
            }
            Some(file) => file.write(flight)?,
        };
        if self.file.as_ref().is_some_and(|file| !file.is_in_place()) {
            return Err(self.lost());
        }
        self.last_number = flight.number;
        Ok(swept)
    }

    /// Deletes a file in which nothing is stored any more.
    fn remove_empty(&mut self) -> Result<(), StateError> {
        if self.closed.is_some() {
            self.file()?;
        }
        match &self.file {
            Some(file) if file.is_in_place() && file.read(tables::is_empty)? => self.delete(),
            _ => Ok(()),
        }
    }

    /// Deletes the file.
    pub(super) fn delete(&mut self) -> Result<(), StateError> {
        (self.file, self.closed, self.has_file) = (None, None, false);
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(unavailable(&self.path, error)),
            _ => Ok(()),
        }
    }
}

impl Backend for DiskSession {
    fn load<'a>(&'a self, plugin: &'a PluginId) -> BoxFuture<'a, Result<StoredState, StateError>> {
        let plugin = plugin.clone();
        Box::pin(self.run(move |inner| match inner.file()? {
            Some(file) => file.read(|transaction| tables::load(transaction, &plugin)),
            None => Ok(StoredState::default()),
        }))
    }

    fn plugins(&self) -> BoxFuture<'_, Result<Vec<PluginId>, StateError>> {
        Box::pin(self.run(|inner| match inner.file()? {
            Some(file) => file.read(tables::plugins),
            None => Ok(Vec::new()),
        }))
    }

    fn write(&self, flight: Arc<Flight>) -> BoxFuture<'_, Result<Swept, WriteError>> {
        Box::pin(async { Ok(self.run(move |inner| inner.write(&flight)).await?) })
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let released = self.run(|inner| {
                let removed = inner.remove_empty();
                // The file first: who has the lock next opens it.
                inner.file = None;
                inner.lock = None;
                removed
            });
            if let Err(error) = released.await {
                tracing::debug!(%error, "a file of state cannot be looked at before it is closed");
            }
        })
    }
}
