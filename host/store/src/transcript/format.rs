//! The lines of a transcript: the header, and what a record has in addition to its event.

use std::borrow::Cow;
use std::path::Path;

use flow::{CallId, Event, SessionId};
use record::Body;
use serde::{Deserialize, Serialize};

use super::error::{TranscriptError, invalid};

const FORMAT: &str = "tidegate-transcript";
const VERSION: u64 = 1;

/// A record as JSON: the fields of [`record::json`], and `event` and `dropped`.
pub type JsonRecord = serde_json::Value;

/// The first line of a transcript. Unknown keys are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TranscriptHeader {
    /// The name of the format.
    #[cfg_attr(feature = "schema", schemars(extend("const" = FORMAT)))]
    format: String,
    /// The version of the format.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERSION)))]
    version: u64,
    /// The id of the session.
    pub thread_id: String,
    /// When it was created, in milliseconds since 1970-01-01 UTC.
    pub created_ms: u64,
    /// Where the records before its own are, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ForkedFrom>,
    /// The thread that started it, if it is that of a child agent. Its records are its own: none is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SpawnedBy>,
}

/// What started the thread of a child agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SpawnedBy {
    /// The id of the thread that started it.
    pub thread_id: String,
    /// The tool call in that thread whose result ends the child.
    pub call_id: String,
    /// The agent's name.
    pub agent: String,
}

impl SpawnedBy {
    /// A call in `thread` that started `agent`.
    pub fn new(thread: &SessionId, call: &CallId, agent: impl Into<String>) -> Self {
        Self { thread_id: thread.as_str().to_owned(), call_id: call.as_str().to_owned(), agent: agent.into() }
    }
}

/// The records that a fork shares with its parent: those up to the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ForkedFrom {
    /// The id of the parent.
    pub thread_id: String,
    /// The number of the last shared record when the fork was made. The fork's own records continue from it, also after a repair of the
    /// parent has given other numbers to its records.
    pub through: u64,
    /// The number of the event in that record, which no repair changes: here the parent's records end for the fork.
    pub event: u64,
    /// The turn that this record finishes.
    pub turn: u32,
}

/// What every record has. All other fields are only checked to be JSON.
#[derive(Debug, Deserialize)]
pub(super) struct RecordHead<'a> {
    pub(super) seq: u64,
    pub(super) event: u64,
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    pub(super) ts: u64,
}

#[derive(Deserialize)]
struct Preamble<'a> {
    #[serde(borrow)]
    format: Cow<'a, str>,
    version: u64,
}

impl TranscriptHeader {
    pub(super) fn new(thread: &SessionId, created_ms: u64, parent: Option<ForkedFrom>) -> Self {
        let (format, thread_id) = (FORMAT.to_owned(), thread.as_str().to_owned());
        Self { format, version: VERSION, thread_id, created_ms, parent, spawned_by: None }
    }

    /// Reads the first line of the transcript at `path`.
    pub(super) fn parse(path: &Path, line: &[u8]) -> Result<Self, TranscriptError> {
        let not_a_header = |error: serde_json::Error| invalid(path, 1, format!("it is not a header: {error}"));
        let preamble: Preamble<'_> = serde_json::from_slice(line).map_err(not_a_header)?;
        if preamble.format != FORMAT {
            let found = preamble.format;
            return Err(invalid(path, 1, format!("the format is {found:?}, and not {FORMAT:?}")));
        }
        if preamble.version != VERSION {
            let path = path.display().to_string();
            return Err(TranscriptError::Version { path, found: preamble.version, known: VERSION });
        }
        serde_json::from_slice(line).map_err(not_a_header)
    }

    /// The line of the header, with its end.
    pub(super) fn line(&self) -> serde_json::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }

    /// The number of the first record of the file.
    pub(super) fn first_seq(&self) -> u64 {
        self.parent.as_ref().map_or(0, |parent| parent.through.saturating_add(1))
    }

    /// The number that the first event gets where the file has no record yet.
    pub(super) fn first_event(&self) -> u64 {
        self.parent.as_ref().map_or(0, |parent| parent.event.saturating_add(1))
    }
}

/// Reads the head of a record. The whole line is checked: it is UTF-8, and it is JSON, except that escapes in strings may name half of a
/// surrogate pair.
pub(super) fn head(line: &[u8]) -> Result<RecordHead<'_>, String> {
    let line = std::str::from_utf8(line).map_err(|error| format!("it is not UTF-8: {error}"))?;
    serde_json::from_str(line).map_err(|error| format!("it is not a record: {error}"))
}

/// Writes the line of a record: the one place where an event becomes what is on the disk. `replacement` returns the body to write in place
/// of one that is not valid. Returns whether the line is written.
pub(super) fn write_line(
    thread_id: &str,
    (seq, dropped): (u64, u64),
    event: &Event,
    replacement: impl FnOnce(&Body) -> Option<Body>,
    out: &mut Vec<u8>,
) -> bool {
    let mut record = record::Record::of(event, thread_id);
    (record.seq, record.event, record.dropped) = (seq, Some(event.seq), dropped);
    if let Some(body) = replacement(&record.body) {
        record.body = body;
    }
    let start = out.len();
    // Records have string keys, and no number in them is infinite: nothing of them is refused.
    if let Err(error) = serde_json::to_writer(&mut *out, &record) {
        tracing::error!(%error, event = event.seq, "an event is not recorded");
        out.truncate(start);
        return false;
    }
    out.push(b'\n');
    true
}
