//! Lists sessions from the ends of their files, and finds one by the start of its id.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flow::SessionId;

use super::error::{TranscriptError, failed, unusable};
use super::format::{JsonRecord, TranscriptHeader, head};
use super::{TranscriptStore, UnreadableTranscript, file, is_plain};
use crate::lock::LockFile;

/// How many records at the start of a thread are looked at for its title.
const TITLE_WITHIN: usize = 100;
/// How many characters a title has at most.
const TITLE_LENGTH: usize = 120;
/// How many ids an error lists.
const CANDIDATES: usize = 10;
/// How much of the end of a file is read for its last record, at first.
const TAIL: u64 = 16 << 10;

/// The sessions of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptList {
    /// The session with the latest record first.
    pub sessions: Vec<TranscriptSummary>,
    /// Why others are not in the list: a parent that is gone is one problem, and not one for each of its forks.
    pub problems: Vec<TranscriptError>,
    /// Those others, with what is known of them.
    pub unreadable: Vec<UnreadableTranscript>,
}

/// What is known of a session without reading all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TranscriptSummary {
    /// The session's id.
    pub id: SessionId,
    /// The first line of its file, with its parent and the time of its creation.
    pub header: TranscriptHeader,
    /// The start of the first line of the user's first input, if there was one.
    pub title: Option<String>,
    /// The workspace's folder, absolute; `None` where it has none, or no turn began.
    pub workspace: Option<String>,
    /// The number of records of the thread, those of its parents included.
    pub records: u64,
    /// Its last record; `None` where it has none of its own.
    pub last: Option<LastRecord>,
    /// The size of its own file.
    pub bytes: u64,
    /// The process that has it open for writing.
    pub owner: Option<String>,
}

/// The last record of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastRecord {
    /// The number of its event.
    pub event: u64,
    /// When that happened, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Its type, such as `turn_finish`.
    pub kind: String,
}

impl TranscriptStore {
    /// Lists all sessions. Of each file only the start and the end are read.
    ///
    /// # Errors
    /// The folder cannot be read. A session that cannot be read is one of the problems of the list.
    pub fn list(&self) -> Result<TranscriptList, TranscriptError> {
        let mut list = TranscriptList::default();
        for folder in self.folders()? {
            match self.summary_in(&folder) {
                Ok(summary) => list.sessions.extend(summary),
                Err(error) => {
                    list.add_problem(error.clone());
                    list.unreadable.push(UnreadableTranscript::of(&folder, error));
                }
            }
        }
        list.sessions.sort_by_key(|one| std::cmp::Reverse(one.latest_ms()));
        Ok(list)
    }

    /// Returns what is known of one session without reading all of it, and without a look at any other but its parents.
    ///
    /// # Errors
    /// It does not exist, or it cannot be read.
    pub fn summary(&self, id: &SessionId) -> Result<TranscriptSummary, TranscriptError> {
        self.summary_in(&self.folder(id))?.ok_or_else(|| self.missing(id))
    }

    /// Returns the session whose id is `prefix`, or else the only one whose id starts with it. No transcript is read, unless its folder
    /// does not have the id as its name.
    ///
    /// # Errors
    /// No id starts with it, or several do, or the folder cannot be read.
    pub fn find(&self, prefix: &str) -> Result<SessionId, TranscriptError> {
        let mut ids = self.ids()?;
        // An unset variable of a script is no choice.
        ids.retain(|_| !prefix.is_empty());
        ids.retain(|id| id.as_str().starts_with(prefix));
        let prefix = prefix.to_owned();
        match &ids[..] {
            [] => {
                let candidates = self.latest_ids()?;
                Err(TranscriptError::NoMatch { prefix, candidates })
            }
            // The shortest comes first: if it is the prefix itself, it is meant.
            [only] => Ok(only.clone()),
            [first, ..] if first.as_str() == prefix => Ok(first.clone()),
            _ => {
                ids.truncate(CANDIDATES);
                Err(TranscriptError::Ambiguous { prefix, candidates: ids })
            }
        }
    }

    /// The ids of all sessions, in their order.
    fn ids(&self) -> Result<Vec<SessionId>, TranscriptError> {
        let mut ids: Vec<SessionId> = self.folders()?.iter().filter_map(|folder| id_of(folder)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// The ids of the sessions whose files were written last, for an error.
    fn latest_ids(&self) -> Result<Vec<SessionId>, TranscriptError> {
        let mut folders = self.folders()?;
        folders.sort_by_cached_key(|folder| {
            let written = fs::metadata(folder.join(file::TRANSCRIPT)).and_then(|about| about.modified());
            std::cmp::Reverse(written.ok())
        });
        Ok(folders.iter().filter_map(|folder| id_of(folder)).take(CANDIDATES).collect())
    }

    /// The folders that contain a transcript.
    pub(super) fn folders(&self) -> Result<Vec<PathBuf>, TranscriptError> {
        self.folders_with(file::TRANSCRIPT)
    }

    /// The folders of sessions that contain this file.
    pub(super) fn folders_with(&self, file: &str) -> Result<Vec<PathBuf>, TranscriptError> {
        let failed = |error| failed(&self.root, &error);
        let entries = fs::read_dir(&self.root).map_err(failed)?.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        let folders = entries.into_iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let shown = folders.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
        // One that cannot be looked into is not one without a transcript.
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let is_session = |folder: &PathBuf| {
            fs::symlink_metadata(folder.join(file)).err().as_ref().is_none_or(|error| !is_missing(error))
        };
        Ok(shown.map(|entry| entry.path()).filter(is_session).collect())
    }

    fn summary_in(&self, folder: &Path) -> Result<Option<TranscriptSummary>, TranscriptError> {
        let Some((header, lines)) = file::open(folder)? else { return Ok(None) };
        let (path, id) = (lines.path(), SessionId::new(header.thread_id.as_str()));
        if self.folder(&id) != folder {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            file::check_thread(path, &header, &name)?;
        }
        let (last, bytes) = last_record(path, lines.offset())?;
        let lock = folder.join(file::LOCK);
        let owner = LockFile::owner(&lock, &self.root).map_err(|error| failed(&lock, &error))?;
        let records = last.as_ref().map_or(header.first_seq(), |(seq, _)| seq + 1);
        let ((title, workspace), last) = (self.start(&id)?, last.map(|(_, last)| last));
        Ok(Some(TranscriptSummary { id, header, title, workspace, records, last, bytes, owner }))
    }

    /// The title and the workspace of a session, from its first records.
    fn start(&self, id: &SessionId) -> Result<(Option<String>, Option<String>), TranscriptError> {
        let mut workspace = None;
        for entry in self.read(id)?.records::<JsonRecord>().take(TITLE_WITHIN) {
            let record = entry?.record;
            if record["type"] == "thread_started" {
                workspace = record["payload"]["workspace"].as_str().filter(|path| !path.is_empty()).map(str::to_owned);
            }
            if let Some(text) = input(&record) {
                let line = text.trim().lines().next().unwrap_or_default();
                return Ok((Some(line.chars().take(TITLE_LENGTH).collect()), workspace));
            }
        }
        Ok((None, workspace))
    }
}

impl TranscriptList {
    fn add_problem(&mut self, error: TranscriptError) {
        if let TranscriptError::MissingParent { id: parent, forks: more, .. } = &error {
            for known in &mut self.problems {
                if let TranscriptError::MissingParent { id, forks, .. } = known
                    && id == parent
                {
                    forks.extend_from_slice(more);
                    forks.sort_unstable();
                    return;
                }
            }
        }
        self.problems.push(error);
    }
}

impl TranscriptSummary {
    /// The time of the last record, or of the creation, in milliseconds since 1970-01-01 UTC.
    pub fn latest_ms(&self) -> u64 {
        self.last.as_ref().map_or(self.header.created_ms, |last| last.at_ms)
    }
}

/// The id of the session in a folder. The file is read only where the folder does not have the id as its name.
fn id_of(folder: &Path) -> Option<SessionId> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if is_plain(&name) {
        return Some(SessionId::new(name));
    }
    match file::open(folder) {
        Ok(found) => found.map(|(header, _)| SessionId::new(header.thread_id)),
        Err(error) => {
            tracing::warn!(%error, "the id of a session cannot be read");
            None
        }
    }
}

/// The text that a user wrote, if this is its record.
fn input(record: &JsonRecord) -> Option<&str> {
    let payload = &record["payload"];
    let is_input = match record["type"].as_str()? {
        "input_received" => true,
        "cognition_in" => payload["role"] == "user" && payload["hidden"] != true,
        _ => false,
    };
    payload["text"].as_str().filter(|text| is_input && !text.trim().is_empty())
}

/// Reads the last complete line after the header, which has `header` bytes: its number and the record. Also returns the size of the
/// file.
fn last_record(path: &Path, header: u64) -> Result<(Option<(u64, LastRecord)>, u64), TranscriptError> {
    let failed = |error| failed(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut window = TAIL;
    loop {
        let from = header.max(size.saturating_sub(window));
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
        let mut tail = Vec::new();
        (&mut file).take(size.saturating_sub(from)).read_to_end(&mut tail).map_err(failed)?;
        let end = memchr::memrchr(b'\n', &tail);
        let start = end.and_then(|end| memchr::memrchr(b'\n', &tail[..end])).map(|start| start + 1);
        let line = match (start, end) {
            (Some(start), Some(end)) => &tail[start..end],
            (None, Some(end)) if from == header => &tail[..end],
            (None, None) if from == header => return Ok((None, size)),
            _ => {
                window = window.saturating_mul(8);
                continue;
            }
        };
        // The number of the line is not known here.
        let head = head(line).map_err(|reason| {
            unusable(path, format!("its last line: {reason}; `tidegate session repair` keeps what can be recovered"))
        })?;
        let last = LastRecord { event: head.event, at_ms: head.ts, kind: head.kind.into_owned() };
        return Ok((Some((head.seq, last)), size));
    }
}
