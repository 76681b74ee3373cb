//! State on the disk: one file for each session in a folder, and next to it a lock while the session is open.

mod file;
mod names;
mod opened;
mod session;
mod tables;

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use flow::ports::{
    BoxFuture, Clock, SessionList, SessionState, ShownSession, StateAdmin, StateError, StateStore, SweptState,
};
use flow::{PluginId, SessionId};

use crate::expiry::Expiry;
use crate::lifetime::ExpiryCheck;
use crate::lock::LockFile;
use crate::memory::shown;
use crate::names::encoded;
use crate::options::StoreOptions;
use crate::session::OpenSession;
use file::{Found, Snapshot, StateFile, look, unavailable, unreadable};
use session::Inner;

pub(crate) use session::DiskSession;

/// The extensions of the files of a session.
const STATE: &str = "state";
const LOCK: &str = "lock";

/// Keeps the state of each session in a file of a folder. Only the owner of the files can read them.
///
/// A write is durable when `fsync` has returned. A process that dies leaves the state of its last completed `settle`, and
/// its sessions can be opened at once. A file that is damaged is refused with its path and left as it is.
#[derive(Clone)]
pub struct DiskStore {
    folder: PathBuf,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
}

impl DiskStore {
    /// Uses this folder; creates it where there is none, readable by its owner only.
    ///
    /// # Errors
    /// [`StateError::Unavailable`] with the path: the folder cannot be created.
    pub fn new(folder: impl Into<PathBuf>, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Self, StateError> {
        let folder = folder.into();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|error| unavailable(&folder, error))?;
        Ok(Self { folder, options, clock })
    }

    /// The path of a session's file, whether it exists or not.
    fn path(&self, session: &SessionId) -> PathBuf {
        self.folder.join(format!("{}.{STATE}", encoded(session, '-')))
    }

    fn check(&self, snapshot: &Snapshot) -> ExpiryCheck {
        let (active_ms, session_ttl_ms) = (snapshot.recorded.active_ms, self.options.session_ttl_ms());
        ExpiryCheck { at_ms: self.clock.now_ms(), active_ms, session_ttl_ms }
    }

    /// Reads a file; `None` if it is gone. Only one that a crash has left needs its lease for a moment, to be repaired. Blocks.
    fn snapshot(&self, path: &Path) -> Result<Option<Snapshot>, StateError> {
        match look(path)? {
            Found::Nothing => return Ok(None),
            Found::Snapshot(snapshot) => return Ok(Some(snapshot)),
            Found::Unrepaired => {}
        }
        let name = SessionId::new(path.file_stem().unwrap_or_default().to_string_lossy());
        let _lock = session::lock(path, &name, &self.options.owner)?;
        StateFile::repair(path)?;
        match look(path)? {
            Found::Nothing => Ok(None),
            Found::Snapshot(snapshot) => Ok(Some(snapshot)),
            Found::Unrepaired => Err(unreadable(path, "it is damaged, and cannot be repaired")),
        }
    }

    fn show_now(&self, path: &Path) -> Result<Option<ShownSession>, StateError> {
        let Some(snapshot) = self.snapshot(path)? else { return Ok(None) };
        let check = self.check(&snapshot);
        let mut states = snapshot.states;
        states.iter_mut().for_each(|(_, state)| check.retain(&mut state.entries));
        let Some(mut shown) = shown(&snapshot.session, check, states) else { return Ok(None) };
        let lock = path.with_extension(LOCK);
        shown.summary.owner = LockFile::owner(&lock, &self.folder).map_err(|error| unavailable(&lock, error))?;
        Ok(Some(shown))
    }

    /// The files of all sessions, in order of their names.
    fn paths(&self) -> Result<Vec<PathBuf>, StateError> {
        let unavailable = |error| unavailable(&self.folder, error);
        let entries = fs::read_dir(&self.folder).map_err(unavailable)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
        let mut paths = paths.map_err(unavailable)?;
        // Nothing else is opened: reading a pipe waits for a writer, and a link leads elsewhere.
        let is_file = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        paths.retain(|path| path.extension().is_some_and(|extension| extension == STATE) && is_file(path));
        paths.sort_unstable();
        Ok(paths)
    }

    fn list_now(&self) -> Result<SessionList, StateError> {
        let mut list = SessionList::default();
        for path in self.paths()? {
            match self.show_now(&path) {
                Ok(shown) => list.sessions.extend(shown.map(|shown| shown.summary)),
                Err(error) => list.problems.push(error),
            }
        }
        list.sessions.sort_by(|one, other| one.session.cmp(&other.session));
        Ok(list)
    }

    fn delete_now(&self, session: &SessionId) -> Result<bool, StateError> {
        let path = self.path(session);
        if !path.exists() {
            return Ok(false);
        }
        let lock = session::lock(&path, session, &self.options.owner)?;
        Inner::new(&path, session, lock).delete()?;
        Ok(true)
    }

    fn remove_expired_now(&self) -> Result<SweptState, StateError> {
        let (now_ms, ttl_ms) = (self.clock.now_ms(), self.options.session_ttl_ms());
        names::sweep(&self.folder, self.options.session_ttl, UNIX_EPOCH + Duration::from_millis(now_ms));
        // The times of the last writes: most files need not be opened. A time after now says nothing: the clock is not that of the file
        // system, or somebody has set the time.
        let used: Vec<(u64, PathBuf)> = self.paths()?.into_iter().map(|path| (written_ms(&path), path)).collect();
        let is_due = |written: u64| written > now_ms || written.saturating_add(ttl_ms) <= now_ms;
        let due = used.iter().filter(|(written, _)| is_due(*written)).cloned().collect();
        match Expiry::decide(used.iter().map(|(written, _)| *written), due, now_ms) {
            Expiry::Remove { sessions, left } => {
                let removed = sessions.iter().filter(|path| self.remove_if_expired(path)).count();
                Ok(SweptState { removed: removed as u64, left: left as u64, pause_days: None })
            }
            Expiry::Distrust { due, pause_days } => {
                Ok(SweptState { removed: 0, left: due as u64, pause_days: Some(pause_days) })
            }
        }
    }

    fn remove_if_expired(&self, path: &Path) -> bool {
        let expired = || -> Result<bool, StateError> {
            let Some(snapshot) = self.snapshot(path)? else { return Ok(false) };
            let check = self.check(&snapshot);
            // Opening deletes what has expired, unless its owner was faster.
            Ok(check.session_end() <= check.at_ms && self.open_now(&snapshot.session).is_ok() && !path.exists())
        };
        expired().unwrap_or_else(|error| {
            tracing::warn!(%error, "an expired session cannot be looked for");
            false
        })
    }

    fn open_now(&self, session: &SessionId) -> Result<session::OpenedDisk, StateError> {
        let (owner, now_ms) = (&self.options.owner, self.clock.now_ms());
        DiskSession::open(&self.path(session), session, owner, now_ms, self.options.session_ttl_ms())
    }
}

impl std::fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskStore")
            .field("folder", &self.folder)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl StateStore for DiskStore {
    fn open<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Arc<dyn SessionState>, StateError>> {
        Box::pin(async {
            let (store, id) = (self.clone(), session.clone());
            let opened = on_thread(self.path(session), move || store.open_now(&id)).await?;
            let (clock, ttl_ms) = (Arc::clone(&self.clock), self.options.session_ttl_ms());
            let open: Arc<dyn SessionState> = Arc::new(OpenSession::new(session.clone(), opened, clock, ttl_ms));
            Ok(open)
        })
    }

    fn named<'a>(&'a self, names: &'a [String]) -> BoxFuture<'a, Result<Vec<Option<String>>, StateError>> {
        let (folder, names) = (self.folder.clone(), names.to_vec());
        let read = move || names.iter().map(|name| names::read(&folder, name)).collect();
        Box::pin(on_thread(self.folder.clone(), read))
    }

    fn name<'a>(&'a self, name: &'a str, line: &'a str) -> BoxFuture<'a, Result<Option<String>, StateError>> {
        let (folder, name, line) = (self.folder.clone(), name.to_owned(), line.to_owned());
        Box::pin(on_thread(self.folder.clone(), move || names::write(&folder, &name, &line)))
    }
}

impl StateAdmin for DiskStore {
    fn sessions(&self) -> BoxFuture<'_, Result<SessionList, StateError>> {
        let store = self.clone();
        Box::pin(on_thread(self.folder.clone(), move || store.list_now()))
    }

    fn show<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, Result<Option<ShownSession>, StateError>> {
        let (store, path) = (self.clone(), self.path(session));
        Box::pin(on_thread(path.clone(), move || store.show_now(&path)))
    }

    fn clear<'a>(
        &'a self,
        session: &'a SessionId,
        plugin: Option<&'a PluginId>,
    ) -> BoxFuture<'a, Result<bool, StateError>> {
        Box::pin(async move {
            let path = self.path(session);
            let Some(plugin) = plugin else {
                let (store, id) = (self.clone(), session.clone());
                return on_thread(path, move || store.delete_now(&id)).await;
            };
            if !path.exists() {
                return Ok(false);
            }
            let open = self.open(session).await?;
            let cleared = open.clear(plugin).await;
            open.close(Duration::ZERO).await.and(cleared).map(|()| true)
        })
    }

    fn remove_expired(&self) -> BoxFuture<'_, Result<SweptState, StateError>> {
        let store = self.clone();
        Box::pin(on_thread(self.folder.clone(), move || store.remove_expired_now()))
    }
}

/// When a file was written last; 0 where that is not known.
fn written_ms(path: &Path) -> u64 {
    let written = fs::metadata(path).and_then(|about| about.modified()).ok();
    let since = written.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Runs work on a thread for blocking work. A panic there is what a damaged file causes.
async fn on_thread<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> Result<T, StateError> + Send + 'static,
) -> Result<T, StateError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(unreadable(&path, format!("reading or writing it failed unexpectedly: {error}"))))
}
