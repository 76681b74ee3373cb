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

    /// Removes a conversation that is opened again.
    pub(super) fn remove(&mut self, id: &SessionId) {
        let entry = self.numbers.remove(id).and_then(|number| self.order.remove(&number));
        self.bytes = self.bytes.saturating_sub(entry.map_or(0, |(_, bytes)| bytes));
    }

    /// Removes and returns the conversation that was closed first, if there are more than `kept`, or more bytes than these.
    pub(super) fn pop_beyond(&mut self, kept: usize, bytes: usize) -> Option<SessionId> {
        if self.order.len() <= kept && self.bytes <= bytes {
            return None;
        }
        let (_, (id, size)) = self.order.pop_first()?;
        self.numbers.remove(&id);
        self.bytes = self.bytes.saturating_sub(size);
        Some(id)
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
        assert_eq!(closed.pop_beyond(3, 65), None);
        assert_eq!(closed.pop_beyond(2, 65), Some(id("b")));
        assert_eq!(closed.pop_beyond(2, 44), Some(id("c")));
        closed.remove(&id("a"));
        assert_eq!((closed.bytes, closed.pop_beyond(0, 0)), (0, None));
    }
}
