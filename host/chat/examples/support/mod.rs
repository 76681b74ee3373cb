//! Events of a recorded session, in the place of a subscription.

use std::error::Error;

use flow::Event;
use record::Line;

/// A recorded session: two turns, with stopped answers, tool calls and a question.
pub(crate) const RECORDED: &str = include_str!("../../../../tests/corpus/transcripts/interrupts.jsonl");

/// The events of a recorded session.
///
/// # Errors
/// A line is not a record.
pub(crate) fn events(recorded: &str) -> Result<Vec<Event>, Box<dyn Error>> {
    let mut events = Vec::new();
    for line in recorded.lines() {
        if let Line::Record(record) = Line::read(line.as_bytes())? {
            events.extend(record.event()?);
        }
    }
    Ok(events)
}
