//! A record as the line that it is on disk.

use flow::{Event, EventKind, TurnStatus};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Body;

/// One line of a transcript: what happened, and where in the run of the thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// The number of the record in its stream, from 0. In a transcript it has no gaps.
    pub seq: u64,
    /// In a transcript: the number of the event in the thread. Events that have no record leave gaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// In a transcript: how many droppable events were lost since the record before this one, because they came too fast.
    #[serde(skip_serializing_if = "is_zero")]
    #[cfg_attr(feature = "schema", schemars(default))]
    pub dropped: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub ts: u64,
    /// The session's id.
    pub thread_id: String,
    /// The turn, from 1; 0 before the first.
    pub turn: u32,
    /// The step in the turn, from 1; 0 before the first.
    pub step: u32,
    /// The attempt in the step, from 1; 0 before the first.
    pub attempt: u32,
    /// The type, and what is to be said about it.
    #[serde(flatten)]
    pub body: Body,
}

/// A line as it is on disk, before its payload is looked at.
#[derive(Deserialize)]
pub(crate) struct Fields {
    pub(crate) seq: u64,
    #[serde(default)]
    pub(crate) event: Option<u64>,
    #[serde(default)]
    dropped: u64,
    #[serde(default)]
    pub(crate) ts: u64,
    thread_id: String,
    pub(crate) turn: u32,
    pub(crate) step: u32,
    pub(crate) attempt: u32,
    pub(crate) r#type: String,
    pub(crate) payload: Value,
}

/// Why a line is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is not JSON.
    #[error("is not valid JSON: {0}")]
    Json(serde_json::Error),
    /// It is not an object with the fields of a record.
    #[error("is not a record: {0}")]
    Line(serde_json::Error),
    /// The payload of a known type is not as that type requires.
    #[error("the payload of `{kind}` is not valid: {error}")]
    Payload {
        /// The type of the record.
        kind: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// A value of the payload is none that this version knows.
    #[error("record {seq}: `{key}` of `{kind}` is missing, or has a value that this version does not know")]
    Value {
        /// The number of the record.
        seq: u64,
        /// The type of the record.
        kind: String,
        /// The key of the value.
        key: &'static str,
    },
}

/// A line of a transcript.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Line {
    /// The first one, which says what the file is.
    Header,
    /// Any other one.
    Record(Box<Record>),
}

impl Line {
    /// Reads a line of a transcript or of `--output stream-json`.
    ///
    /// # Errors
    /// As [`Record::read`].
    pub fn read(line: &[u8]) -> Result<Self, RecordError> {
        Self::of(serde_json::from_slice(line).map_err(RecordError::Json)?)
    }

    /// As [`Line::read`], of a line that is JSON already.
    ///
    /// # Errors
    /// As [`Record::read`].
    pub fn of(line: Value) -> Result<Self, RecordError> {
        if line.get("format").is_some() && line.get("type").is_none() {
            return Ok(Self::Header);
        }
        let fields = Fields::deserialize(line).map_err(RecordError::Line)?;
        Ok(Self::Record(Box::new(Record::of_fields(fields)?)))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Record {
    /// The record of an event of the thread, with the event's number as its own.
    ///
    /// ```
    /// use flow::{Event, EventKind, RunPosition};
    /// use tidegate_record::Record;
    /// let kind = EventKind::CognitionOutDelta { text: "Hello".into(), index: 0, is_final: false };
    /// let event = Event::new(7, 0, RunPosition { turn: 1, step: 1, attempt: 1 }, kind);
    /// let record = Record::of(&event, "thread-1");
    /// assert_eq!(record.body.name(), "cognition_out_delta");
    /// let line = serde_json::to_string(&record)?;
    /// assert_eq!(Record::read(line.as_bytes())?, record);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(event: &Event, thread_id: &str) -> Self {
        Self {
            seq: event.seq,
            event: None,
            dropped: 0,
            ts: event.at_ms,
            thread_id: thread_id.to_owned(),
            turn: event.place.turn,
            step: event.place.step,
            attempt: event.place.attempt,
            body: Body::of(&event.kind),
        }
    }

    /// Reads one line. A type that this version does not know is [`Body::Unknown`].
    ///
    /// # Errors
    /// The line is not JSON, not a record, or the payload is not that of its type.
    pub fn read(line: &[u8]) -> Result<Self, RecordError> {
        Self::of_fields(serde_json::from_slice(line).map_err(|error| match error.classify() {
            serde_json::error::Category::Data => RecordError::Line(error),
            _ => RecordError::Json(error),
        })?)
    }

    fn of_fields(fields: Fields) -> Result<Self, RecordError> {
        let Fields { seq, event, dropped, ts, thread_id, turn, step, attempt, r#type, payload } = fields;
        let body = Body::read(r#type, payload)?;
        Ok(Self { seq, event, dropped, ts, thread_id, turn, step, attempt, body })
    }
}

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        Self::of_fields(Fields::deserialize(line)?).map_err(D::Error::custom)
    }
}

/// Returns the record of an event as JSON, as `--output stream-json` prints it.
pub fn json(event: &Event, thread_id: &str) -> Value {
    // Records have string keys, and no number in them is infinite: nothing of them is refused.
    serde_json::to_value(Record::of(event, thread_id))
        .unwrap_or_else(|error| serde_json::json!({"error": error.to_string()}))
}

/// How a turn ended, as the payload of `turn_finish`.
pub fn status(status: &TurnStatus) -> Value {
    let kind = EventKind::TurnFinish { status: status.clone() };
    match Body::of(&kind) {
        Body::TurnFinish(payload) => serde_json::to_value(payload).unwrap_or_default(),
        _ => Value::Null,
    }
}
