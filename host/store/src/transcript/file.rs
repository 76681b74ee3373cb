//! The file of a transcript: its creation, its check when it is opened, and how lines are added to it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use flow::ports::JournalError;

use super::appender::Sink;
use super::error::{TranscriptError, failed, invalid, unusable};
use super::format::{TranscriptHeader, head};
use super::lines::Lines;
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
pub(super) fn replace(
    folder: &Path,
    write: impl FnOnce(&mut io::BufWriter<File>) -> io::Result<()>,
) -> Result<(), JournalError> {
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

/// Creates the transcript of a new thread.
pub(super) fn create(folder: &Path, header: &TranscriptHeader) -> Result<(), JournalError> {
    let line = header.line().map_err(|error| unusable(folder, error.to_string()))?;
    replace(folder, |file| file.write_all(&line))
}

/// Opens the transcript of a thread for reading, and reads its header; `None` where there is none.
pub(super) fn open_thread(folder: &Path, id: &str) -> Result<Option<(TranscriptHeader, Lines)>, TranscriptError> {
    let found = open(folder)?;
    found.map(|(header, lines)| check_thread(lines.path(), &header, id).map(|()| (header, lines))).transpose()
}

/// A folder that was copied or renamed has the records of another session.
pub(super) fn check_thread(path: &Path, header: &TranscriptHeader, id: &str) -> Result<(), TranscriptError> {
    if header.thread_id == id {
        return Ok(());
    }
    let reason =
        format!("it belongs to the session {:?}, and its folder to {id:?}; rename the folder", header.thread_id);
    Err(unusable(path, reason).into())
}

/// The same, whichever thread it belongs to.
pub(super) fn open(folder: &Path) -> Result<Option<(TranscriptHeader, Lines)>, TranscriptError> {
    let path = folder.join(TRANSCRIPT);
    // Nothing else is opened: reading a pipe waits for a writer, and a link leads elsewhere.
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(unusable(&path, "it is not a file").into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&path, &error).into()),
    }
    let mut lines = Lines::open(&path).map_err(|error| failed(&path, &error))?;
    let header = match lines.next().map_err(|error| failed(&path, &error))? {
        Some(line) if line.is_complete => TranscriptHeader::parse(&path, line.bytes)?,
        _ => return Err(invalid(&path, 1, "the header is missing")),
    };
    Ok(Some((header, lines)))
}

/// What a check of all lines of a transcript finds.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) header: TranscriptHeader,
    /// The number of the next record.
    pub(super) next_seq: u64,
    /// The number of the next event.
    pub(super) next_event: u64,
    /// The bytes of all complete lines.
    pub(super) length: u64,
    /// The bytes of a last line that a crash has left without its end.
    pub(super) torn: u64,
}

/// Checks every line of a transcript; `None` where there is none.
pub(super) fn check(folder: &Path, id: &str) -> Result<Option<Checked>, TranscriptError> {
    let Some((header, mut lines)) = open_thread(folder, id)? else { return Ok(None) };
    let path = folder.join(TRANSCRIPT);
    let (mut next_seq, mut next_event) = (header.first_seq(), header.first_event());
    let (mut length, mut torn) = (lines.offset(), 0);
    while let Some(line) = lines.next().map_err(|error| failed(&path, &error))? {
        if !line.is_complete {
            torn = line.bytes.len() as u64;
            break;
        }
        let head = head(line.bytes).map_err(|reason| invalid(&path, line.number, reason))?;
        if head.seq != next_seq {
            let reason = format!("record {next_seq} is expected here, and this is record {}", head.seq);
            return Err(invalid(&path, line.number, reason));
        }
        next_seq += 1;
        next_event = next_event.max(head.event.saturating_add(1));
        length = line.offset + line.bytes.len() as u64 + 1;
    }
    Ok(Some(Checked { header, next_seq, next_event, length, torn }))
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
