//! Reports of recorded sessions, for operators who read, share and analyse them.
//!
//! A [`Report`] is made of the records of a transcript in one pass. [`markdown`] and [`html`] write it out, and [`explain`] lists which
//! extension or rule changed which bytes in a turn, with the original. All of it is pure: no I/O, no clock.
//!
//! ```
//! use tidegate_report::{Report, explain, html, markdown};
//! use record::Record;
//! let place = r#""seq": 0, "ts": 0, "thread_id": "t", "turn": 1, "step": 0, "attempt": 0"#;
//! let line = format!(r#"{{{place}, "type": "input_received", "payload": {{"text": "Hello", "role": "user", "hidden": false}}}}"#);
//! let report = Report::of([Record::read(line.as_bytes())?].into_iter());
//! assert!(markdown(&report).contains("Hello"));
//! assert!(html(&report).starts_with("<!doctype html>"));
//! assert_eq!(explain(&report, None).map(|explanation| explanation.turn), Some(1));
//! # Ok::<(), record::RecordError>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod collect;
mod diff;
mod explain;
mod figures;
mod html;
mod markdown;
mod report;
mod totals;
mod view;
mod visible;

pub use self::diff::Chunk;
pub use self::explain::{By, Candidate, Change, ChangeKind, Explanation, explain};
pub use self::html::html;
pub use self::markdown::markdown;
pub use self::report::{
    Answer, Attempt, Callback, Entry, Extension, Log, ModelName, Reasoning, Report, Sent, Step, ToolCall, Turn, What,
};
pub use self::totals::{RuleTotal, ToolTotal, Totals};
