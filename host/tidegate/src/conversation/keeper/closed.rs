//! The closed conversations of a store in memory, whose number and size are limited.

use std::collections::{BTreeMap, HashMap};

use flow::SessionId;

/// Closed conversations with their sizes, in the order in which they were closed.
#[derive(Debug, Default)]
pub(super) struct Closed {
    /// By their numbers, which increase.
    order: BTreeMap<u64, (SessionId, usize)>,
    numbers: HashMap<SessionId, u64>,
    /// The number of the next one.
    next: u64,
    /// The total size, in bytes.
    bytes: usize,
}

impl Closed {
    /// Adds a conversation that is closed now.
    pub(super) fn insert(&mut self, id: SessionId, bytes: usize) {
        self.remove(&id);
        self.bytes = self.bytes.saturating_add(bytes);
        self.numbers.insert(id.clone(), self.next);
        self.order.insert(self.next, (id, bytes));
        self.next += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Removes a conversation that is opened again.
    pub(super) fn remove(&mut self, id: &SessionId) {
        let entry = self.numbers.remove(id).and_then(|number| self.order.remove(&number));
        self.bytes = self.bytes.saturating_sub(entry.map_or(0, |(_, bytes)| bytes));
    }

    /// Removes and returns the conversation that was closed first and is not opened again, if there are more than `kept`, or more bytes than
    /// these. One that is opened again is counted until it is open.
    pub(super) fn pop_beyond(
        &mut self,
        kept: usize,
        bytes: usize,
        is_opened: impl Fn(&SessionId) -> bool,
    ) -> Option<SessionId> {
        if self.order.len() <= kept && self.bytes <= bytes {
            return None;
        }
        let oldest = self.order.values().find(|(id, _)| !is_opened(id)).map(|(id, _)| id.clone())?;
        self.remove(&oldest);
        Some(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conversation_that_was_closed_first_goes_first() {
        let id = |name: &str| SessionId::new(name);
        let mut closed = Closed::default();
        for (name, bytes) in [("a", 10), ("b", 20), ("c", 30), ("a", 15)] {
            closed.insert(id(name), bytes);
        }
        assert_eq!(closed.bytes, 65);
        let none = |_: &SessionId| false;
        assert_eq!(closed.pop_beyond(3, 65, none), None);
        assert_eq!(closed.pop_beyond(2, 65, none), Some(id("b")));
        assert_eq!(closed.pop_beyond(1, 65, |one| *one == id("c")), Some(id("a")), "one is opened again");
        assert_eq!(closed.pop_beyond(0, 65, |one| *one == id("c")), None);
        assert_eq!(closed.pop_beyond(2, 29, none), Some(id("c")));
        closed.insert(id("a"), 10);
        closed.remove(&id("a"));
        assert_eq!((closed.bytes, closed.pop_beyond(0, 0, none)), (0, None));
    }
}
