//! An event as it crosses the wire, and the position of a reader.

use serde_json::{Value, json};
use tidegate::event::Snapshot;

use super::problem::Problem;

/// The name of an event of the session itself.
pub(super) const MESSAGE: &str = "message";
pub(super) const CHILD: &str = "child";
pub(super) const SNAPSHOT: &str = "snapshot";
pub(super) const END: &str = "end";

/// An event as it crosses the wire.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WireEvent {
    /// The position of the session when it was sent.
    pub(super) id: String,
    pub(super) kind: &'static str,
    pub(super) data: Value,
}

impl WireEvent {
    /// Makes an event whose id is the position behind `last`, the number of the last event of the session; `None`: before the first.
    /// `generation`: distinguishes the numbers of the session's events from those of another time.
    pub(super) fn new(generation: &str, last: Option<u64>, kind: &'static str, data: Value) -> Self {
        let seq = last.map_or_else(|| "start".to_owned(), |last| last.to_string());
        Self { id: format!("{generation}.{seq}"), kind, data }
    }
}

pub(super) fn snapshot_data(snapshot: &Snapshot) -> Value {
    let next_seq = snapshot.chat.next_seq();
    json!({"omitted": snapshot.omitted, "next_seq": next_seq, "chat": snapshot.chat.clone().shown()})
}

/// A position of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// After the event with this number, or before the first.
    After(Option<u64>),
    /// Of another time when the session was open.
    Elsewhere,
}

impl Position {
    /// Reads the id of an event.
    ///
    /// # Errors
    /// It is not the id of an event.
    pub(super) fn of(id: &str, generation: &str) -> Result<Self, Problem> {
        let invalid = || Problem::invalid("the position is not the id of an event");
        let (of, seq) = id.split_once('.').ok_or_else(invalid)?;
        let is_generation = of.len() == 16 && of.bytes().all(|byte| byte.is_ascii_hexdigit());
        let seq = if seq == "start" { None } else { Some(seq.parse().map_err(|_| invalid())?) };
        match (is_generation, of == generation) {
            (false, _) => Err(invalid()),
            (true, true) => Ok(Self::After(seq)),
            (true, false) => Ok(Self::Elsewhere),
        }
    }

    /// Returns the number of the next event for the reader. Numbers of another time are given again: nothing that the reader has counts.
    pub(super) fn next(self) -> u64 {
        match self {
            Self::After(last) => last.map_or(0, |last| last.saturating_add(1)),
            Self::Elsewhere => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_of_this_time_or_of_another() {
        let own = "0123456789abcdef";
        for (id, expected) in [
            ("0123456789abcdef.7", Some(Position::After(Some(7)))),
            ("0123456789abcdef.start", Some(Position::After(None))),
            ("fedcba9876543210.7", Some(Position::Elsewhere)),
            ("7", None),
            ("", None),
            ("0123456789abcdef.", None),
            ("0123456789abcdef.-1", None),
            ("0123456789abcdef.18446744073709551616", None),
            ("short.7", None),
        ] {
            assert_eq!(Position::of(id, own).ok(), expected, "{id}");
        }
    }
}
