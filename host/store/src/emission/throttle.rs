//! Throttles: a shortest time between two records of a type.

use std::collections::BTreeMap;

use flow::Event;

use super::kinds;

/// The types of a thread that are throttled, by name.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    types: BTreeMap<String, Window>,
}

/// What is known of one type.
#[derive(Debug, Default)]
struct Window {
    /// When an event was recorded last.
    last_ms: Option<u64>,
    /// What is held back, oldest first: at most one event that could take the place of another.
    held: Vec<Event>,
}

impl Throttle {
    /// Takes an event that may be recorded once in `interval_ms`.
    pub(super) fn take(&mut self, event: Event, interval_ms: u64, out: &mut Vec<Event>) {
        // Most events are of a type that has a window.
        if !self.types.contains_key(event.kind.type_name()) {
            self.types.insert(event.kind.type_name().to_owned(), Window::default());
        }
        let Some(window) = self.types.get_mut(event.kind.type_name()) else { return out.push(event) };
        let at_ms = event.at_ms;
        let event = window.follow(event, out);
        let is_due = match window.last_ms {
            // A clock that was set back must not close the window for hours.
            Some(last) => at_ms < last || at_ms - last >= interval_ms,
            None => true,
        };
        if is_due {
            window.last_ms = Some(at_ms);
            out.push(event);
        } else {
            window.held.push(event);
        }
    }

    /// Pushes all that is held back, oldest first.
    pub(super) fn release(&mut self, out: &mut Vec<Event>) {
        let start = out.len();
        self.types.values_mut().for_each(|window| window.release(out));
        out[start..].sort_by_key(|event| event.seq);
    }
}

impl Window {
    /// The event with the held one whose place it takes. Text of another attempt is released first: chunks stay in order.
    fn follow(&mut self, event: Event, out: &mut Vec<Event>) -> Event {
        if let Some(at) = self.held.iter().position(|held| kinds::is_followed_by(held, &event)) {
            return kinds::join(self.held.remove(at), event);
        }
        if kinds::is_text(&event.kind) {
            self.release(out);
        }
        event
    }

    /// None of the memory is kept: most sessions are idle.
    fn release(&mut self, out: &mut Vec<Event>) {
        self.last_ms = self.held.last().map(|event| event.at_ms).or(self.last_ms);
        out.extend(std::mem::take(&mut self.held));
    }
}
