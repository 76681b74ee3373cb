//! The lease of a session on the disk: a link next to its data, to the file of the process that has it.
//!
//! The link is made in one step, and by one process only. It counts while its process lives; the file of the process is locked that long,
//! and names the owner. A session holds no file open for it.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::process::{self, Process};

/// A process that removes what a dead one has left locks its file for an instant: a refusal is believed only after these tries.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// A lock of this process. Dropping it releases the lock and removes the link.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    link: PathBuf,
    process: Arc<Process>,
}

/// The outcome of an attempt to lock.
#[derive(Debug)]
pub(crate) enum Locked {
    Acquired(LockFile),
    /// It is locked by the owner with this name.
    Held(String),
}

/// What is at the path of a lock.
enum Found {
    Nothing,
    /// What a dead process has left.
    Left,
    HeldBy(String),
}

impl LockFile {
    /// Locks the path, which is in `root` or in a folder in it, for `owner`.
    pub(crate) fn acquire(path: &Path, root: &Path, owner: &str) -> io::Result<Locked> {
        let process = Process::own(root, owner)?;
        let depth = path.strip_prefix(root).map_or(0, |inside| inside.components().count().saturating_sub(1));
        let link = process::link(depth, process.name());
        let acquired = |process| Ok(Locked::Acquired(Self { path: path.to_owned(), link: link.clone(), process }));
        let mut tries = 0;
        loop {
            match symlink(&link, path) {
                Ok(()) => return acquired(process),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            match find(path, root)? {
                Found::Nothing => {}
                Found::Left if take_over(path, root, &link)? => return acquired(process),
                Found::Left => {}
                Found::HeldBy(owner) => {
                    tries += 1;
                    if tries == TRIES {
                        return Ok(Locked::Held(owner));
                    }
                    std::thread::sleep(BETWEEN_TRIES);
                }
            }
        }
    }

    /// Whether the path still has this lock. Otherwise somebody has removed it, and others can lock as well.
    pub(crate) fn is_in_place(&self) -> io::Result<bool> {
        match fs::read_link(&self.path) {
            Ok(link) => Ok(link == self.link && self.process.is_in_place()?),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the owner of a lock, if it is held.
    pub(crate) fn owner(path: &Path, root: &Path) -> io::Result<Option<String>> {
        Ok(match find(path, root)? {
            Found::HeldBy(owner) => Some(owner),
            Found::Nothing | Found::Left => None,
        })
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // What somebody else has put there is theirs.
        let removed = self.is_in_place().and_then(|ours| if ours { fs::remove_file(&self.path) } else { Ok(()) });
        if let Err(error) = removed {
            tracing::debug!(path = %self.path.display(), %error, "a lock remains until this process ends");
        }
    }
}

fn find(path: &Path, root: &Path) -> io::Result<Found> {
    let held = match fs::read_link(path) {
        // The name alone: a link that somebody has planted leads nowhere else.
        Ok(link) => match link.file_name() {
            Some(name) => process::owner(root, name)?,
            None => None,
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        // Earlier versions locked a file here.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => process::locked_by(path)?,
        Err(error) => return Err(error),
    };
    Ok(held.map_or(Found::Left, Found::HeldBy))
}

/// Puts the link in the place of what a dead process has left. Returns whether it was: another process can be faster.
fn take_over(path: &Path, root: &Path, link: &Path) -> io::Result<bool> {
    process::alone(root, || {
        if !matches!(find(path, root)?, Found::Left) {
            return Ok(false);
        }
        let new = path.with_extension("take-over");
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => symlink(link, &new)?,
        }
        fs::rename(&new, path)?;
        Ok(true)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::{LockFile, Locked};

    #[test]
    fn a_lock_is_refused_with_its_owner_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        assert_eq!(LockFile::owner(&path, folder.path()).unwrap(), None);
        let Locked::Acquired(lock) = LockFile::acquire(&path, folder.path(), "first").unwrap() else {
            panic!("it is free")
        };
        let Locked::Held(owner) = LockFile::acquire(&path, folder.path(), "second").unwrap() else {
            panic!("it is locked")
        };
        assert_eq!(owner, "first");
        assert_eq!(LockFile::owner(&path, folder.path()).unwrap().as_deref(), Some("first"));
        drop(lock);
        assert!(!path.exists());
        assert!(matches!(LockFile::acquire(&path, folder.path(), "second").unwrap(), Locked::Acquired(_)));
    }

    #[test]
    fn a_file_that_a_dead_owner_left_is_locked_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        std::fs::write(&path, "a dead process with a long name").unwrap();
        assert_eq!(LockFile::owner(&path, folder.path()).unwrap(), None);
        let Locked::Acquired(_lock) = LockFile::acquire(&path, folder.path(), "next").unwrap() else {
            panic!("it is free")
        };
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "next");
    }

    #[test]
    fn what_a_dead_process_left_is_taken_over_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session/lock");
        std::fs::create_dir(folder.path().join("session")).unwrap();
        for left in ["../.processes/gone", "/etc/passwd", ".."] {
            std::os::unix::fs::symlink(left, &path).unwrap();
            assert_eq!(LockFile::owner(&path, folder.path()).unwrap(), None, "{left}");
            let Locked::Acquired(lock) = LockFile::acquire(&path, folder.path(), "next").unwrap() else {
                panic!("{left}")
            };
            assert_eq!(LockFile::owner(&path, folder.path()).unwrap().as_deref(), Some("next"));
            assert!(matches!(LockFile::acquire(&path, folder.path(), "other").unwrap(), Locked::Held(_)));
            drop(lock);
            assert!(std::fs::symlink_metadata(&path).is_err());
        }
    }

    #[test]
    fn a_lock_of_an_earlier_version_is_respected_while_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let mut file = std::fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut file, b"an earlier version").unwrap();
        file.try_lock().unwrap();
        let Locked::Held(owner) = LockFile::acquire(&path, folder.path(), "next").unwrap() else {
            panic!("it is locked")
        };
        assert_eq!(owner, "an earlier version");
        drop(file);
        assert!(matches!(LockFile::acquire(&path, folder.path(), "next").unwrap(), Locked::Acquired(_)));
    }

    #[test]
    fn many_locks_take_one_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let lock = |number: u32| LockFile::acquire(&folder.path().join(format!("{number}.lock")), folder.path(), "one");
        let descriptors = || {
            let all = std::fs::read_dir("/proc/self/fd")
                .unwrap()
                .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
            all.filter(|target| target.starts_with(folder.path())).count()
        };
        let locks: Vec<Locked> = (0..100).map(|number| lock(number).unwrap()).collect();
        assert_eq!(descriptors(), 1);
        assert!(locks.iter().all(|lock| matches!(lock, Locked::Acquired(_))));
        drop(locks);
        assert_eq!(descriptors(), 0, "and none when the last one is released");
    }

    #[test]
    fn a_lock_that_was_removed_is_not_in_place_and_leaves_the_next_one_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let Locked::Acquired(lost) = LockFile::acquire(&path, folder.path(), "first").unwrap() else {
            panic!("it is free")
        };
        assert!(lost.is_in_place().unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!lost.is_in_place().unwrap());
        let Locked::Acquired(next) = LockFile::acquire(&path, folder.path(), "second").unwrap() else {
            panic!("it is free")
        };
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
                        if let Locked::Acquired(lock) = LockFile::acquire(&path, folder.path(), "one").unwrap() {
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
