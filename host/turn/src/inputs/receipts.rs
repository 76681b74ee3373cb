//! What became of inputs, as far as it is remembered.

use std::collections::{HashMap, VecDeque};

use flow::{InputId, Receipt};

/// The most receipts of inputs that a session keeps; the oldest goes first. An id that is forgotten can be used again.
pub const RECEIPTS_KEPT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Receipts {
    all: HashMap<InputId, Receipt>,
    order: VecDeque<InputId>,
    /// Ids that were made.
    made: u64,
}

impl Receipts {
    pub(super) fn get(&self, id: &InputId) -> Option<Receipt> {
        self.all.get(id).copied()
    }

    /// The first receipt of an input is the one that counts.
    pub(super) fn keep_first(&mut self, id: &InputId, receipt: Receipt) {
        if self.all.contains_key(id) {
            return;
        }
        self.all.insert(id.clone(), receipt);
        self.order.push_back(id.clone());
        if self.order.len() > RECEIPTS_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    /// Forgets an input that whoever handed it over has back: it can be handed over again under its id.
    pub(super) fn forget(&mut self, id: &InputId) {
        if self.all.remove(id).is_some() {
            self.order.retain(|known| known != id);
        }
    }

    /// Returns the next id that the session makes. It can be known already, where a front end has given one like it.
    pub(super) fn next_id(&mut self) -> InputId {
        // A front end can have given an id with the greatest number.
        self.made = self.made.wrapping_add(1);
        InputId::new(format!("input-{}", self.made))
    }

    /// An earlier process has made ids up to this number.
    pub(super) fn continue_after(&mut self, number: u64) {
        self.made = self.made.max(number);
    }
}
