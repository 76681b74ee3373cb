//! The lease of a session on the disk: a locked file next to its data, which names its owner.
//!
//! The operating system releases the lock when the owner's process ends, however it ends; the content of the file is only read
//! while it is locked.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A reader that looks whether a session is open locks the file for an instant: a refusal is believed only after these tries.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// A locked file. Dropping it removes the file and releases the lock.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    /// Held open for its lock.
    file: File,
}

/// The outcome of an attempt to lock.
#[derive(Debug)]
pub(crate) enum Locked {
    Acquired(LockFile),
    /// It is locked by the owner with this name.
    Held(String),
}

impl LockFile {
    /// Locks the file for `owner`; creates it where there is none.
    pub(crate) fn acquire(path: &Path, owner: &str) -> io::Result<Locked> {
        let mut tries = 0;
        loop {
            let mut file = open(path, true)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, path)? => {
                    // On a full disk the lock works without the name.
                    if let Err(error) = file.set_len(0).and_then(|()| file.write_all(owner.as_bytes())) {
                        tracing::debug!(path = %path.display(), %error, "a lock has no name of its owner");
                    }
                    return Ok(Locked::Acquired(Self { path: path.to_owned(), file }));
                }
                // Its owner has removed it between our opening and our locking.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    tries += 1;
                    if tries == TRIES {
                        return named(&mut file).map(Locked::Held);
                    }
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Whether the path still names the locked file. Otherwise somebody has removed it, and others can lock as well.
    pub(crate) fn is_in_place(&self) -> io::Result<bool> {
        is_at(&self.file, &self.path)
    }

    /// Returns the owner of a lock, if it is held.
    pub(crate) fn owner(path: &Path) -> io::Result<Option<String>> {
        let mut file = match open(path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => named(&mut file).map(Some),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // While the lock is held: who opens the file by its old name finds after locking that it is gone, and starts again. A file
        // that somebody else has put there is theirs.
        let removed = self.is_in_place().and_then(|ours| if ours { fs::remove_file(&self.path) } else { Ok(()) });
        if let Err(error) = removed {
            tracing::debug!(path = %self.path.display(), %error, "a lock file remains; it is not locked any more");
        }
    }
}

fn open(path: &Path, create: bool) -> io::Result<File> {
    // Nothing is written through a link that somebody has planted.
    let no_link = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let mut options = OpenOptions::new();
    options.read(true).write(create).create(create).truncate(false).mode(0o600).custom_flags(no_link);
    options.open(path)
}

/// Whether the path still names this file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(theirs) => Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn named(file: &mut File) -> io::Result<String> {
    let mut name = String::new();
    file.take(4_096).read_to_string(&mut name)?;
    // Between locking and writing, an owner has no name yet.
    Ok(if name.is_empty() { "another process".to_owned() } else { name })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::{LockFile, Locked, is_at, open};

    #[test]
    fn a_lock_is_refused_with_its_owner_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        assert_eq!(LockFile::owner(&path).unwrap(), None);
        let Locked::Acquired(lock) = LockFile::acquire(&path, "first").unwrap() else { panic!("it is free") };
        let Locked::Held(owner) = LockFile::acquire(&path, "second").unwrap() else { panic!("it is locked") };
        assert_eq!(owner, "first");
        assert_eq!(LockFile::owner(&path).unwrap().as_deref(), Some("first"));
        drop(lock);
        assert!(!path.exists());
        assert!(matches!(LockFile::acquire(&path, "second").unwrap(), Locked::Acquired(_)));
    }

    #[test]
    fn a_file_that_a_dead_owner_left_is_locked_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        std::fs::write(&path, "a dead process with a long name").unwrap();
        assert_eq!(LockFile::owner(&path).unwrap(), None);
        let Locked::Acquired(_lock) = LockFile::acquire(&path, "next").unwrap() else { panic!("it is free") };
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "next");
    }

    #[test]
    fn a_file_that_was_removed_or_replaced_is_not_at_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let file = open(&path, true).unwrap();
        assert!(is_at(&file, &path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!is_at(&file, &path).unwrap());
        std::fs::write(&path, "another").unwrap();
        assert!(!is_at(&file, &path).unwrap());
    }

    #[test]
    fn a_lock_that_was_removed_is_not_in_place_and_leaves_the_next_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let Locked::Acquired(lost) = LockFile::acquire(&path, "first").unwrap() else { panic!("it is free") };
        assert!(lost.is_in_place().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!lost.is_in_place().unwrap());
        let Locked::Acquired(next) = LockFile::acquire(&path, "second").unwrap() else { panic!("it is free") };
        drop(lost);
        assert!(next.is_in_place().unwrap(), "the file of the second owner is still there");
    }

    #[test]
    fn of_many_threads_one_has_the_lock_at_a_time() {
        use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let (inside, acquired) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        if let Locked::Acquired(lock) = LockFile::acquire(&path, "one").unwrap() {
                            assert_eq!(inside.fetch_add(1, SeqCst), 0);
                            acquired.fetch_add(1, SeqCst);
                            inside.fetch_sub(1, SeqCst);
                            drop(lock);
                        }
                    }
                });
            }
        });
        assert!(acquired.load(SeqCst) > 0);
    }
}
