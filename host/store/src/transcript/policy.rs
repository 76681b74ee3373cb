//! Which events are recorded: what the catalogue of events decides for a transcript.

use flow::ports::Durability;
use flow::{Event, EventKind};
use record::Body;

/// Decides which events are critical, and what is recorded of the others. One policy serves all threads.
pub trait EventPolicy: Send + Sync {
    /// Returns whether subscribers and the turn wait for an event of this kind. It is called under the lock that orders events: it
    /// must not wait, and must always return the same for the same event.
    fn durability(&self, kind: &EventKind) -> Durability;

    /// Returns the filter of one thread, for as long as its transcript is open.
    fn filter(&self) -> Box<dyn EventFilter>;
}

/// Throttles, joins or aggregates the events of one thread. It is called on the thread that writes the transcript, which is allowed to
/// take its time.
pub trait EventFilter: Send {
    /// Called once before the first event.
    fn prepare(&mut self) {}

    /// Takes the next event, in order, and pushes what is to be recorded now. A critical event must be pushed at once, after what was
    /// held back. The others can be held back, changed or left out.
    fn take(&mut self, event: Event, out: &mut Vec<Event>);

    /// Pushes what is still held back: no event follows.
    fn flush(&mut self, out: &mut Vec<Event>);

    /// Returns what is to be recorded in place of this body, because its payload is not valid; `None` if it is, or if nobody checks. By
    /// default, payloads are not checked.
    fn replacement(&self, body: &Body) -> Option<Body> {
        let _ = body;
        None
    }
}

/// Records every event. Chunks of text, progress, reports of callbacks, plugins' logs and state, and held bytes are
/// droppable; everything else is critical.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordAll;

impl EventPolicy for RecordAll {
    fn durability(&self, kind: &EventKind) -> Durability {
        match kind {
            EventKind::CognitionOutDelta { .. }
            | EventKind::CognitionReasoningDelta { .. }
            | EventKind::ToolCallProgress { .. }
            | EventKind::ExtensionCallback(_)
            | EventKind::ExtensionLog { .. }
            | EventKind::ExtensionState { .. }
            | EventKind::RuleHeld { .. }
            | EventKind::RuleHoldReleased { .. } => Durability::Droppable,
            // A kind that is added is critical until somebody decides otherwise.
            _ => Durability::Critical,
        }
    }

    fn filter(&self) -> Box<dyn EventFilter> {
        Box::new(Self)
    }
}

impl EventFilter for RecordAll {
    fn take(&mut self, event: Event, out: &mut Vec<Event>) {
        out.push(event);
    }

    fn flush(&mut self, _: &mut Vec<Event>) {}
}
