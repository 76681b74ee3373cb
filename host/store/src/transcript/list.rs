//! Lists sessions from the ends of their files, and finds one by the start of its id.

use flow::SessionId;

use super::check;
use super::error::{TranscriptError, unusable};
use super::format::{JsonRecord, TranscriptHeader, head};
use super::place::Place;
use super::{TranscriptStore, UnreadableTranscript};

/// How many records at the start of a thread are looked at for its title.
const TITLE_WITHIN: usize = 100;
/// How many characters a title has at most.
const TITLE_LENGTH: usize = 120;
/// How many ids an error lists.
const CANDIDATES: usize = 10;

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
    /// Why the thread is suspended, such as `limit`, where the record is `thread_suspended`.
    pub suspended: Option<String>,
}

impl TranscriptStore {
    /// Lists all sessions. Of each file only the start and the end are read.
    ///
    /// # Errors
    /// The folder cannot be read. A session that cannot be read is one of the problems of the list.
    pub fn list(&self) -> Result<TranscriptList, TranscriptError> {
        let mut list = TranscriptList::default();
        for name in self.place.names()? {
            match self.summary_of(&name) {
                Ok(summary) => list.sessions.extend(summary),
                Err(error) => {
                    list.add_problem(error.clone());
                    list.unreadable.push(UnreadableTranscript::of(&*self.place, &name, error));
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
        self.summary_of(&self.place.name_of(id))?.ok_or_else(|| self.missing(id))
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
        let mut ids: Vec<SessionId> = self.place.names()?.iter().filter_map(|name| self.id_of(name)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// The ids of the sessions whose transcripts were written last, for an error.
    fn latest_ids(&self) -> Result<Vec<SessionId>, TranscriptError> {
        let mut names = self.place.names()?;
        names.sort_by_cached_key(|name| std::cmp::Reverse(self.place.written(name)));
        Ok(names.iter().filter_map(|name| self.id_of(name)).take(CANDIDATES).collect())
    }

    /// The id of a session. Its transcript is read only where its name is not its id.
    fn id_of(&self, name: &str) -> Option<SessionId> {
        self.place.id_of(name).or_else(|| match check::open(&*self.place, name) {
            Ok(found) => found.map(|(header, _)| SessionId::new(header.thread_id)),
            Err(error) => {
                tracing::warn!(%error, "the id of a session cannot be read");
                None
            }
        })
    }

    fn summary_of(&self, name: &str) -> Result<Option<TranscriptSummary>, TranscriptError> {
        let Some((header, lines)) = check::open(&*self.place, name)? else { return Ok(None) };
        let (path, id) = (lines.path(), SessionId::new(header.thread_id.as_str()));
        if self.place.name_of(&id) != name {
            check::check_thread(path, &header, name)?;
        }
        let (last, bytes) = last_record(&*self.place, name, lines.offset())?;
        let owner = self.place.owner(name)?;
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

fn suspend_reason(line: &[u8]) -> Option<String> {
    let record: JsonRecord = serde_json::from_slice(line).ok()?;
    Some(record["payload"]["suspend_reason"].as_str()?.to_owned())
}

/// Reads the last complete line after the header, which has `header` bytes: its number and the record. Also returns the size of the
/// transcript.
fn last_record(
    place: &dyn Place,
    name: &str,
    header: u64,
) -> Result<(Option<(u64, LastRecord)>, u64), TranscriptError> {
    let (line, size) = place.last_line(name, header)?;
    let Some(line) = line else { return Ok((None, size)) };
    // The number of the line is not known here.
    let head = head(&line).map_err(|reason| {
        let reason = format!("its last line: {reason}; `tidegate session repair` keeps what can be recovered");
        unusable(&place.path(name), reason)
    })?;
    let suspended = if head.kind == "thread_suspended" { suspend_reason(&line) } else { None };
    let last = LastRecord { event: head.event, at_ms: head.ts, kind: head.kind.into_owned(), suspended };
    Ok((Some((head.seq, last)), size))
}
