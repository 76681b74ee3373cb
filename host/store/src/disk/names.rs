//! Names of sessions on disk: one small file for each, in folders by their first digits.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flow::ports::StateError;

use super::file::unavailable;

/// The folder of all names, inside that of the sessions.
const FOLDER: &str = "names";
/// The file in that folder that is locked while a damaged file is replaced.
const LOCK: &str = ".lock";
/// The prefix of files that are not complete.
const UNFINISHED: &str = ".new-";
/// The age at which an incomplete file is one of a process that was killed.
const ABANDONED: Duration = Duration::from_secs(3_600);
/// The maximum length of a line.
const MAX_LINE: u64 = 4_096;

fn path(folder: &Path, name: &str) -> PathBuf {
    // A name that is not made of digits cannot lead to another folder.
    let name: String = name.chars().filter(char::is_ascii_hexdigit).collect();
    folder.join(FOLDER).join(name.get(..2).unwrap_or("0")).join(name)
}

/// Reads the line that is recorded under a name. Blocks.
pub(super) fn read(folder: &Path, name: &str) -> Result<Option<String>, StateError> {
    let path = path(folder, name);
    match fs::metadata(&path) {
        Ok(about) if about.len() <= MAX_LINE && about.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unavailable(&path, error)),
    }
    match fs::read_to_string(&path) {
        // A file that a crash has truncated or filled with other bytes is ignored.
        Ok(text) => Ok(text.strip_suffix('\n').map(str::to_owned)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidData) => Ok(None),
        Err(error) => Err(unavailable(&path, error)),
    }
}

/// Records a line under a name, unless there is one, which is returned. Blocks. The file is written under another name and then renamed, so
/// that it appears with all of its line or not at all. It is not synced: a name that is lost in a power failure is recorded again.
pub(super) fn write(folder: &Path, name: &str, line: &str) -> Result<Option<String>, StateError> {
    let path = path(folder, name);
    let parent = path.parent().unwrap_or(folder);
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
    created.map_err(|error| unavailable(parent, error))?;
    match create(&path, line) {
        Ok(()) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unavailable(&path, error)),
    }
    match read(folder, name)? {
        Some(before) => Ok(Some(before)),
        None => replace(folder, name, line),
    }
}

/// Replaces a file without a line, such as one that a power failure has truncated. One process does so at a time: another one could remove
/// the file that was written in its place.
fn replace(folder: &Path, name: &str, line: &str) -> Result<Option<String>, StateError> {
    let lock = folder.join(FOLDER).join(LOCK);
    let locked = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&lock);
    let locked = locked.and_then(|file| file.lock().map(|()| file)).map_err(|error| unavailable(&lock, error))?;
    if let Some(before) = read(folder, name)? {
        return Ok(Some(before));
    }
    let path = path(folder, name);
    drop(fs::remove_file(&path));
    let made = match create(&path, line) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => match read(folder, name)? {
            Some(before) => Ok(Some(before)),
            None => Err(unavailable(&path, error)),
        },
        Err(error) => Err(unavailable(&path, error)),
    };
    drop(locked);
    made
}

/// Creates a file with a line; an error of the kind [`ErrorKind::AlreadyExists`] if there is a file.
fn create(path: &Path, line: &str) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(path.parent().unwrap_or(path))?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.persist_noclobber(path).map(drop).map_err(|error| error.error)
}

/// Removes names that are older than sessions are kept, and incomplete files. Failures are retried the next time. Blocks.
pub(super) fn sweep(folder: &Path, ttl: Duration, now: SystemTime) {
    let Ok(folders) = fs::read_dir(folder.join(FOLDER)) else { return };
    for folder in folders.flatten() {
        let Ok(files) = fs::read_dir(folder.path()) else { continue };
        for file in files.flatten() {
            let written = file.metadata().and_then(|about| about.modified());
            let age = written.ok().and_then(|written| now.duration_since(written).ok());
            let is_unfinished = file.file_name().as_encoded_bytes().starts_with(UNFINISHED.as_bytes());
            if age.is_some_and(|age| age > if is_unfinished { ABANDONED } else { ttl }) {
                drop(fs::remove_file(file.path()));
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::sync::Barrier;

    use super::*;

    const NAMES: usize = 300;
    const OWNERS: usize = 8;

    fn name(number: usize) -> String {
        format!("{number:024x}")
    }

    /// Each name has one owner, whether there was a file without a line before or not: all others get the owner's line.
    #[test]
    fn of_owners_at_once_one_records_a_name() {
        for before in [None, Some(b"".as_slice()), Some(b"gateway-1 0"), Some(b"\xff\xfe\n")] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            for number in (0..NAMES).filter(|_| before.is_some()) {
                let path = path(folder, &name(number));
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, before.unwrap()).unwrap();
            }
            let start = Barrier::new(OWNERS);
            let write = |owner: usize| {
                let own = |number: usize| {
                    start.wait();
                    write(folder, &name(number), &format!("owner {owner}")).unwrap()
                };
                (0..NAMES).map(own).collect::<Vec<_>>()
            };
            let all: Vec<Vec<Option<String>>> = std::thread::scope(|scope| {
                let write = &write;
                let running: Vec<_> = (0..OWNERS).map(|owner| scope.spawn(move || write(owner))).collect();
                running.into_iter().map(|one| one.join().unwrap()).collect()
            });
            for number in 0..NAMES {
                let is_owner = |owner: &usize| all[*owner][number].is_none();
                let owners: Vec<usize> = (0..OWNERS).filter(is_owner).collect();
                assert_eq!(owners.len(), 1, "{before:?}: name {number} has the owners {owners:?}");
                let line = format!("owner {}", owners[0]);
                assert_eq!(read(folder, &name(number)).unwrap().as_ref(), Some(&line));
                assert!(all.iter().filter_map(|one| one[number].as_ref()).all(|given| *given == line), "{number}");
            }
        }
    }

    /// The file of a process that was killed while it wrote is removed later, and is no name.
    #[test]
    fn what_a_killed_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(write(folder, &name(1), "one").unwrap(), None);
        let path = path(folder, &name(1));
        let left = path.with_file_name(".new-x");
        fs::write(&left, "on").unwrap();
        let (ttl, hour) = (Duration::from_secs(90_000), Duration::from_secs(3_600));
        for (after, is_left, is_named) in [(hour / 2, true, true), (hour * 2, false, true), (hour * 30, false, false)] {
            sweep(folder, ttl, SystemTime::now() + after);
            assert_eq!((left.exists(), path.exists()), (is_left, is_named), "{after:?}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_recorded_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(path(folder.path(), &name(1))).unwrap();
        assert!(write(folder.path(), &name(1), "one").is_err());
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(write(&folder.path().join("file"), &name(1), "one").is_err());
    }
}
