//! Reads the records of a thread, as transcripts and `--output stream-json` have them, into the events that the primitives use.
//!
//! For front ends in another process, and for the test data that implementations in several languages share. Records of types that no
//! primitive uses, and of types that this version does not know, have no event. Some fields that no primitive uses are not read.

mod payload;

use flow::{Event, EventKind, RunPosition};
use serde::Deserialize;
use serde_json::Value;

/// What a line of records is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Line {
    /// The first line of a transcript.
    Header,
    /// A record of a type that no primitive uses.
    Other,
    /// An event, with the thread that it belongs to.
    Event {
        /// The id of the thread: of the session, or of a child.
        thread: String,
        /// What happened, as far as the primitives use it.
        event: Box<Event>,
    },
}

/// Why a line is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is not JSON, or not an object with the fields of a record.
    #[error("the line is not a record: {0}")]
    Line(serde_json::Error),
    /// The payload is not that of its type.
    #[error("record {seq}: the payload of `{kind}` is not valid: {problem}")]
    Payload {
        /// The number of the record.
        seq: u64,
        /// The type of the record.
        kind: String,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
struct Record {
    seq: u64,
    event: Option<u64>,
    #[serde(default)]
    ts: u64,
    #[serde(default)]
    thread_id: String,
    turn: u32,
    step: u32,
    attempt: u32,
    r#type: String,
    payload: Value,
}

/// Reads one line.
///
/// # Errors
/// The line is not JSON, not a record, or the payload is not that of its type.
pub fn read(line: &str) -> Result<Line, RecordError> {
    read_value(serde_json::from_str(line).map_err(RecordError::Line)?)
}

/// Reads a record that is JSON already.
///
/// # Errors
/// As [`read`].
pub fn read_value(value: Value) -> Result<Line, RecordError> {
    if value.get("format").is_some() && value.get("type").is_none() {
        return Ok(Line::Header);
    }
    let record = Record::deserialize(value).map_err(RecordError::Line)?;
    let Record { seq, event, ts, thread_id, turn, step, attempt, r#type, payload } = record;
    let kind =
        payload::kind(&r#type, payload).map_err(|problem| RecordError::Payload { seq, kind: r#type, problem })?;
    let place = RunPosition { turn, step, attempt };
    let event = |kind: EventKind| Box::new(Event::new(event.unwrap_or(seq), ts, place, kind));
    Ok(kind.map_or(Line::Other, |kind| Line::Event { thread: thread_id, event: event(kind) }))
}
