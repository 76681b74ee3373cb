//! The file that represents this process in a folder of sessions: locked while the process lives, and named by the locks of its sessions.
//!
//! One descriptor is enough for any number of sessions. The operating system releases the lock when the process ends, however it ends.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The folder of these files.
const FOLDER: &str = ".processes";
/// Who takes over what a dead process has left holds the lock of this file.
const TAKE_OVER: &str = "take-over";
/// Between tries to get that lock, and how many.
const PAUSE: Duration = Duration::from_millis(5);
const TRIES: u32 = 2_000;

/// Files of this process, by folder and name of the owner.
type Own = HashMap<(PathBuf, String), Weak<Process>>;

static OWN: LazyLock<Mutex<Own>> = LazyLock::new(Mutex::default);

/// The file of a process that lives.
#[derive(Debug)]
pub(crate) struct Process {
    path: PathBuf,
    /// Held open for its lock.
    file: File,
}

impl Process {
    /// The file of this process in a folder; made where there is none.
    pub(crate) fn own(folder: &Path, owner: &str) -> io::Result<Arc<Self>> {
        let mut all = OWN.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (folder.to_owned(), owner.to_owned());
        if let Some(own) = all.get(&key).and_then(Weak::upgrade).filter(|own| own.is_in_place().unwrap_or(false)) {
            return Ok(own);
        }
        let own = Arc::new(Self::create(folder, owner)?);
        all.retain(|_, other| other.strong_count() > 0);
        all.insert(key, Arc::downgrade(&own));
        Ok(own)
    }

    fn create(folder: &Path, owner: &str) -> io::Result<Self> {
        let folder = folder.join(FOLDER);
        for tries in 0.. {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            remove_dead(&folder);
            let (mut file, path) = match tempfile::Builder::new().prefix("").rand_bytes(16).tempfile_in(&folder) {
                Ok(created) => created.keep()?,
                // Another process has removed the folder, which was empty.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 10 => continue,
                Err(error) => return Err(error),
            };
            match file.try_lock() {
                // Somebody who removes what dead processes have left can be faster.
                Ok(()) if is_at(&file, &path)? => {
                    // On a full disk the lock works without the name.
                    if let Err(error) = file.write_all(owner.as_bytes()) {
                        tracing::debug!(path = %path.display(), %error, "a lock has no name of its owner");
                    }
                    return Ok(Self { path, file });
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other("the file of this process cannot be locked"))
    }

    /// The name that its locks have.
    pub(crate) fn name(&self) -> &std::ffi::OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// Whether the path still names the locked file. Otherwise others believe that the process is dead.
    pub(crate) fn is_in_place(&self) -> io::Result<bool> {
        is_at(&self.file, &self.path)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_in_place().unwrap_or(false)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::debug!(path = %self.path.display(), %error, "the file of a process remains; it is not locked any more");
        }
        // The last one leaves nothing behind.
        let _not_empty = self.path.parent().map(fs::remove_dir);
    }
}

/// Where the file with this name is, as a lock in `folder` or in a folder in it names it.
pub(crate) fn link(depth: usize, name: &std::ffi::OsStr) -> PathBuf {
    let mut path: PathBuf = std::iter::repeat_n("..", depth).collect();
    path.push(FOLDER);
    path.push(name);
    path
}

/// The owner's name of a process that lives; `None`: it is dead.
pub(crate) fn owner(folder: &Path, name: &std::ffi::OsStr) -> io::Result<Option<String>> {
    locked_by(&folder.join(FOLDER).join(name))
}

/// The content of a file that is locked; `None`: it is not locked, or not there.
pub(crate) fn locked_by(path: &Path) -> io::Result<Option<String>> {
    let file = match OpenOptions::new().read(true).no_link().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            let mut name = String::new();
            file.take(4_096).read_to_string(&mut name)?;
            // Between locking and writing, an owner has no name yet.
            Ok(Some(if name.is_empty() { "another process".to_owned() } else { name }))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Runs work that only one process does at a time in the folder. The file that is locked for it is removed with the end of the work.
pub(crate) fn alone<T>(folder: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let path = folder.join(FOLDER).join(TAKE_OVER);
    for _ in 0..TRIES {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).no_link().open(&path)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, &path)? => {
                let done = work();
                // While it is locked: a process that has opened this file and waits finds that the path does not name it any more.
                if let Err(error) = fs::remove_file(&path) {
                    tracing::debug!(path = %path.display(), %error, "the file of a take-over cannot be removed");
                }
                return done;
            }
            // It was removed in between.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("another process holds the lock of {}", path.display())))
}

/// Options for a file in a folder in which somebody may have planted a link.
trait NoLink {
    /// Opens no file through a link.
    fn no_link(&mut self) -> &mut Self;
}

impl NoLink for OpenOptions {
    fn no_link(&mut self) -> &mut Self {
        self.custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0))
    }
}

/// Whether the path still names this file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(theirs) => Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes the files of processes that are dead.
fn remove_dead(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        match remove_unlocked(&path) {
            Ok(true) => tracing::debug!(path = %path.display(), "the file of a process that has ended was removed"),
            Ok(false) => {}
            Err(error) => tracing::debug!(path = %path.display(), %error, "what a process has left cannot be removed"),
        }
    }
}

/// Removes a file, unless somebody has locked it. Returns whether it was removed.
fn remove_unlocked(path: &Path) -> io::Result<bool> {
    let file = OpenOptions::new().read(true).no_link().open(path)?;
    // The path can name another file by now.
    let is_left = file.try_lock().is_ok() && is_at(&file, path)?;
    if is_left {
        fs::remove_file(path)?;
    }
    Ok(is_left)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::fs;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{FOLDER, Process, TAKE_OVER, alone};

    #[test]
    fn what_is_done_alone_is_done_by_one_at_a_time_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let own = Process::own(folder.path(), "one").unwrap();
        let (inside, done) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let work = || {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two at a time");
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                            done.fetch_add(1, Ordering::SeqCst);
                            Ok(())
                        };
                        alone(folder.path(), work).unwrap();
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 200);
        drop(own);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the last process leaves nothing");
    }

    #[test]
    fn a_planted_link_is_neither_followed_nor_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let own = Process::own(folder.path(), "one").unwrap();
        let (outside, link) = (folder.path().join("outside"), folder.path().join(FOLDER).join(TAKE_OVER));
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        alone(folder.path(), || Ok(())).unwrap_err();
        assert!(!outside.exists(), "nothing was made where the link leads");
        drop(own);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_by_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let processes = folder.path().join(FOLDER);
        fs::create_dir(&processes).unwrap();
        for left in [TAKE_OVER, "a process"] {
            fs::write(processes.join(left), "").unwrap();
        }
        let own = Process::own(folder.path(), "one").unwrap();
        assert_eq!(fs::read_dir(&processes).unwrap().count(), 1, "its own");
        assert_eq!(Arc::strong_count(&own), 1);
    }
}
