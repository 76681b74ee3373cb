//! The records of a thread: every event has one, `{seq, ts, thread_id, turn, step, attempt, type, payload}`, and is written and read here.
//!
//! Transcripts, `tidegate run --output stream-json` and `rules replay` share these types. Names and required fields are those of the
//! thread-event specification; `host/config/reference/thread_events.md` lists the deviations. This crate does no I/O: the store writes the lines.
#![forbid(unsafe_code)]

mod body;
mod convert;
mod event;
pub mod figures;
mod inputs;
mod kept_rules;
mod left_out;
mod line;
mod message;
mod payload;
mod sentence;
mod shown;
mod values;

pub use self::body::Body;
pub use self::event::read_event;
pub use self::kept_rules::{keep_rules, kept_rules};
pub use self::line::{Line, Record, RecordError, json, status};
pub use self::message::{Author, MessageRecord, PartRecord, role};
pub use self::payload::*;
pub use self::sentence::Sentence;
pub use self::shown::{Shown, ShownBody};

/// The version of the records. A reader accepts all versions up to its own; what a later version adds to a record is ignored.
pub const VERSION: u32 = 1;
