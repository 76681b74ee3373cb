//! The conversations without an exchange, in the order of their last uses.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use super::entry::Entry;

/// The entries of conversations without an exchange.
#[derive(Default)]
pub(super) struct Unused {
    /// By their places, which increase.
    order: BTreeMap<u64, Weak<Entry>>,
    /// The place of the next one.
    next: u64,
}

impl Unused {
    /// Adds an entry whose last exchange ends now, and returns its place.
    pub(super) fn push(&mut self, entry: &Arc<Entry>) -> u64 {
        let place = self.next;
        self.next += 1;
        self.order.insert(place, Arc::downgrade(entry));
        place
    }

    /// Removes the entry at this place.
    pub(super) fn remove(&mut self, place: u64) {
        self.order.remove(&place);
    }

    /// Returns so many of the least recently used entries, preferring those whose data is all in the store. Where there are not enough of those,
    /// it returns a batch: each entry was looked at, which is not to be repeated for the next conversation.
    pub(super) fn oldest(&self, number: usize, batch: usize) -> Vec<Arc<Entry>> {
        let entries = || self.order.values().filter_map(Weak::upgrade);
        let mut oldest: Vec<_> = entries().filter(|entry| !entry.is_unstored()).take(number).collect();
        if oldest.len() < number {
            let more = batch.saturating_sub(oldest.len());
            oldest.extend(entries().filter(|entry| entry.is_unstored()).take(more));
        }
        oldest
    }
}
