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
        // A file that was truncated by a crash is ignored.
        Ok(text) => Ok(text.strip_suffix('\n').map(str::to_owned)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unavailable(&path, error)),
    }
}

/// Records a line under a name, unless there is one, which is returned. Blocks. The file is not synced: a name that is lost in a power
/// failure is recorded again.
pub(super) fn write(folder: &Path, name: &str, line: &str) -> Result<Option<String>, StateError> {
    let path = path(folder, name);
    let parent = path.parent().unwrap_or(folder);
    let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(parent);
    created.map_err(|error| unavailable(parent, error))?;
    for _ in 0..2 {
        match create(&path, line) {
            Ok(()) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match read(folder, name)? {
                Some(before) => return Ok(Some(before)),
                None => drop(fs::remove_file(&path)),
            },
            Err(error) => return Err(unavailable(&path, error)),
        }
    }
    read(folder, name)
}

fn create(path: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Removes names that are older than sessions are kept. Failures are retried the next time. Blocks.
pub(super) fn sweep(folder: &Path, ttl: Duration, now: SystemTime) {
    let Ok(folders) = fs::read_dir(folder.join(FOLDER)) else { return };
    for folder in folders.flatten() {
        let Ok(files) = fs::read_dir(folder.path()) else { continue };
        for file in files.flatten() {
            let written = file.metadata().and_then(|about| about.modified());
            let age = written.ok().and_then(|written| now.duration_since(written).ok());
            if age.is_some_and(|age| age > ttl) {
                drop(fs::remove_file(file.path()));
            }
        }
    }
}
