//! Threads as files: a folder for each.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flow::SessionId;
use flow::ports::JournalError;
use tempfile::NamedTempFile;

use super::appender::Sink;
use super::check::Checked;
use super::error::{failed, unusable};
use super::file::{self, OpenFile};
use super::lines::Lines;
use super::place::{Held, Place, TranscriptDurability, Written};
use crate::lock::{LockFile, Locked};
use crate::names::encoded;

const ACCESS: &str = "access.json";
const UNFINISHED: &str = "access.unfinished";
/// The maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// The lock of the root folder. The name is not that of a session.
const TREE_LOCK: &str = ".lock";
/// What a session is called while it is removed; such a folder is not listed.
const REMOVED: &str = ".removed";
/// How much of the end of a file is read for its last record, at first.
const TAIL: u64 = 16 << 10;

/// A folder with a folder for each thread.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
    owner: String,
}

/// A folder that is locked.
#[derive(Debug)]
struct HeldFolder {
    folder: PathBuf,
    lock: LockFile,
}

impl Folder {
    /// Uses this folder; creates it where there is none, readable by its owner only.
    pub(super) fn new(root: &Path, owner: &str) -> Result<Self, JournalError> {
        file::create_folder(root).map_err(|error| failed(root, &error))?;
        Ok(Self { root: root.to_owned(), owner: owner.to_owned() })
    }

    /// The folders of sessions that contain this file.
    fn folders_with(&self, file: &str) -> Result<Vec<String>, JournalError> {
        let failed = |error| failed(&self.root, &error);
        let entries = fs::read_dir(&self.root).map_err(failed)?.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        let folders = entries.into_iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let shown = folders.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        // One that cannot be looked into is not one without a transcript.
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let is_session = |folder: &Path| {
            fs::symlink_metadata(folder.join(file)).err().as_ref().is_none_or(|error| !is_missing(error))
        };
        let sessions = shown.filter(|entry| is_session(&entry.path()));
        // No folder of a session has a name that is not UTF-8.
        Ok(sessions.filter_map(|entry| entry.file_name().into_string().ok()).collect())
    }
}

impl Place for Folder {
    fn name_of(&self, id: &SessionId) -> String {
        name_of(id)
    }

    fn id_of(&self, name: &str) -> Option<SessionId> {
        is_plain(name).then(|| SessionId::new(name))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name).join(file::TRANSCRIPT)
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn root(&self) -> String {
        self.root.display().to_string()
    }

    fn names(&self) -> Result<Vec<String>, JournalError> {
        self.folders_with(file::TRANSCRIPT)
    }

    fn exists(&self, name: &str) -> Result<bool, JournalError> {
        Ok(self.root.join(name).exists())
    }

    fn hold(&self, name: &str) -> Result<Box<dyn Held>, JournalError> {
        let folder = self.root.join(name);
        let lock = file::lock(&folder, &self.owner)?;
        Ok(Box::new(HeldFolder { folder, lock }))
    }

    fn hold_tree(&self) -> Result<Box<dyn Debug>, JournalError> {
        let path = self.root.join(TREE_LOCK);
        match LockFile::acquire(&path, &self.root, &self.owner).map_err(|error| failed(&path, &error))? {
            Locked::Acquired(lock) => Ok(Box::new(lock)),
            Locked::Held(by) => Err(unusable(&self.root, format!("{by} forks or removes a session there; try again"))),
        }
    }

    fn owner(&self, name: &str) -> Result<Option<String>, JournalError> {
        let lock = self.root.join(name).join(file::LOCK);
        LockFile::owner(&lock, &self.root).map_err(|error| failed(&lock, &error))
    }

    fn lines(&self, name: &str) -> Result<Option<Lines>, JournalError> {
        let path = self.path(name);
        // Nothing else is opened: reading a pipe waits for a writer, and a link leads elsewhere.
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_file() => {}
            Ok(_) => return Err(unusable(&path, "it is not a file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&path, &error)),
        }
        Lines::open(&path).map(Some).map_err(|error| failed(&path, &error))
    }

    fn last_line(&self, name: &str, header: u64) -> Result<(Option<Vec<u8>>, u64), JournalError> {
        let path = self.path(name);
        last_line(&path, header).map_err(|error| failed(&path, &error))
    }

    fn sync(&self, name: &str) -> Result<(), JournalError> {
        let path = self.path(name);
        File::open(&path).and_then(|file| file.sync_data()).map_err(|error| failed(&path, &error))
    }

    fn written(&self, name: &str) -> Option<SystemTime> {
        fs::symlink_metadata(self.path(name)).and_then(|about| about.modified()).ok()
    }

    fn access(&self, name: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let path = self.root.join(name).join(ACCESS);
        let file = match File::open(&path) {
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(None);
            }
            opened => opened.map_err(|error| failed(&path, &error))?,
        };
        let mut content = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut content).map_err(|error| failed(&path, &error))?;
        Ok(Some(content))
    }

    fn set_access(&self, name: &str, content: &[u8]) -> Result<(), JournalError> {
        let folder = self.root.join(name);
        let (path, unfinished) = (folder.join(ACCESS), folder.join(UNFINISHED));
        let write = || {
            file::create_folder(&folder)?;
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)?;
            file::sync_folder(&folder)?;
            file::sync_folder(&self.root)
        };
        write().map_err(|error| failed(&path, &error))
    }

    fn with_access(&self) -> Result<Vec<String>, JournalError> {
        self.folders_with(ACCESS)
    }

    fn check(&self) -> Result<TranscriptDurability, JournalError> {
        // A file, because folders are sessions; with a name of its own, because several programs may check at once; and with a byte,
        // because a full disk still takes empty files.
        let written = NamedTempFile::with_prefix_in(".check-", &self.root).and_then(|mut file| {
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.close()
        });
        written.map_err(|error| failed(&self.root, &error))?;
        let detail = "a file was written to their folder and removed".to_owned();
        Ok(TranscriptDurability { detail, is_durable: Some(true) })
    }
}

impl Held for HeldFolder {
    fn create(&mut self, header: &[u8]) -> Result<(), JournalError> {
        file::replace(&self.folder, |file| file.write_all(header))
    }

    fn replace(&mut self, write: &mut Written<'_>) -> Result<(), JournalError> {
        file::replace(&self.folder, write)
    }

    fn sink(self: Box<Self>, end: &Checked) -> Result<Box<dyn Sink>, JournalError> {
        Ok(Box::new(OpenFile::open(&self.folder, end.length, self.lock)?))
    }

    fn remove(self: Box<Self>) -> Result<(), JournalError> {
        let root = self.folder.parent().unwrap_or(Path::new("."));
        // At once for everybody else, and what a crash leaves is not a session any more.
        let removed = root.join(REMOVED);
        delete(&removed)
            .and_then(|()| fs::rename(&self.folder, &removed))
            .and_then(|()| delete(&removed))
            .and_then(|()| file::sync_folder(root))
            .map_err(|error| failed(&self.folder, &error))
    }
}

fn delete(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        deleted => deleted,
    }
}

/// Returns the name of the folder of a session.
pub(super) fn name_of(id: &SessionId) -> String {
    if is_plain(id.as_str()) { id.as_str().to_owned() } else { encoded(id, '@') }
}

/// Whether an id is the name of its folder: every file system distinguishes such names, and none means anything else.
fn is_plain(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    id.len() <= 128 && id.starts_with(|first: char| first.is_ascii_alphanumeric()) && id.bytes().all(plain)
}

/// Reads the last complete line after the header, and the size of the file.
fn last_line(path: &Path, header: u64) -> io::Result<(Option<Vec<u8>>, u64)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut window = TAIL;
    loop {
        let from = header.max(size.saturating_sub(window));
        file.seek(SeekFrom::Start(from))?;
        let mut tail = Vec::new();
        (&mut file).take(size.saturating_sub(from)).read_to_end(&mut tail)?;
        let end = memchr::memrchr(b'\n', &tail);
        let start = end.and_then(|end| memchr::memrchr(b'\n', &tail[..end])).map(|start| start + 1);
        match (start, end) {
            (Some(start), Some(end)) => return Ok((Some(tail[start..end].to_vec()), size)),
            (None, Some(end)) if from == header => return Ok((Some(tail[..end].to_vec()), size)),
            (None, None) if from == header => return Ok((None, size)),
            _ => window = window.saturating_mul(8),
        }
    }
}
