//! The file of a transcript: its lock, its creation, and how lines are added to it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use flow::ports::JournalError;

use super::appender::Sink;
use super::error::{failed, unusable};
use crate::descriptors;
use crate::lock::{LockFile, Locked};

/// The files in the folder of a thread.
pub(super) const TRANSCRIPT: &str = "transcript.jsonl";
pub(super) const LOCK: &str = "lock";
const UNFINISHED: &str = "transcript.unfinished";

/// Creates a folder that only its owner can read, unless it exists.
pub(super) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Locks the folder of a thread, which is created where there is none.
pub(super) fn lock(folder: &Path, owner: &str) -> Result<LockFile, JournalError> {
    let path = folder.join(LOCK);
    let mut tries = 0;
    loop {
        create_folder(folder).map_err(|error| failed(folder, &error))?;
        if fs::symlink_metadata(folder).is_ok_and(|found| !found.is_dir()) {
            return Err(unusable(folder, "it is not a folder of its own but a link; remove it"));
        }
        match LockFile::acquire(&path, folder.parent().unwrap_or(Path::new(".")), owner) {
            Ok(Locked::Acquired(lock)) => return Ok(lock),
            Ok(Locked::Held(by)) => return Err(JournalError::Locked { by }),
            // Somebody removes the session at this moment.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries < 10 => tries += 1,
            Err(error) => return Err(failed(&path, &error)),
        }
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Creates or replaces the transcript in a locked folder. A crash meanwhile leaves the file as it was, or the complete new one.
pub(super) fn replace(folder: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), JournalError> {
    let (path, unfinished) = (folder.join(TRANSCRIPT), folder.join(UNFINISHED));
    let replace = || {
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        let mut file = io::BufWriter::new(file);
        write(&mut file)?;
        file.into_inner()?.sync_all()?;
        fs::rename(&unfinished, &path)?;
        sync_folder(folder)?;
        // The folder may be new as well.
        sync_folder(folder.parent().unwrap_or(Path::new(".")))
    };
    replace().map_err(|error| failed(&path, &error))
}

/// A transcript that this process writes, with its lock. The file is open only while it is written.
#[derive(Debug)]
pub(super) struct OpenFile {
    path: PathBuf,
    file: Option<File>,
    /// Device and number of the file: they show that the path still names it.
    identity: (u64, u64),
    /// Dropped last: whoever locks next finds the file closed.
    lock: LockFile,
}

impl OpenFile {
    /// Opens a transcript, cuts it to `length`, and makes durable what is there.
    pub(super) fn open(folder: &Path, length: u64, lock: LockFile) -> Result<Self, JournalError> {
        let path = folder.join(TRANSCRIPT);
        let open = || {
            let file = OpenOptions::new().append(true).open(&path)?;
            let about = file.metadata()?;
            if about.len() != length {
                file.set_len(length)?;
            }
            // A killed process may have written more than it synced: from now on that counts as recorded.
            file.sync_all()?;
            Ok((file, (about.dev(), about.ino())))
        };
        let (_file, identity) = open().map_err(|error| failed(&path, &error))?;
        Ok(Self { path, file: None, identity, lock })
    }

    /// The open file, which is still that of the path.
    fn file(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let file = descriptors::open(|| OpenOptions::new().append(true).open(&self.path));
                let found = file.and_then(|file| Ok((file.metadata()?, file)));
                match found {
                    Ok((about, file)) if (about.dev(), about.ino()) == self.identity => file,
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(_) | Err(_) => return Err(io::Error::other(REPLACED)),
                }
            }
        };
        Ok(self.file.insert(file))
    }
}

const REPLACED: &str = "it was removed or replaced while the session was open; what follows is not recorded";

impl Sink for OpenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file()?.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file()?.set_len(length)
    }

    fn rest(&mut self) {
        self.file = None;
    }

    fn check_in_place(&self) -> Result<(), String> {
        let named = fs::metadata(&self.path).map(|about| (about.dev(), about.ino()));
        if named.ok() != Some(self.identity) {
            return Err(REPLACED.to_owned());
        }
        match self.lock.is_in_place() {
            Ok(true) => Ok(()),
            Ok(false) => Err("its lock was removed, so that other processes can write it as well; close the session \
                              and resume it"
                .to_owned()),
            Err(error) => Err(format!("its lock cannot be checked: {error}")),
        }
    }
}
