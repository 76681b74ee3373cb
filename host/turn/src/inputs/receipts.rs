//! What became of inputs, as far as it is remembered.

use std::collections::{HashMap, VecDeque};

use flow::{InputId, Receipt};

/// The most receipts that are kept; the oldest goes first. An id that is forgotten can be used again.
const KEPT: usize = 4096;

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
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }

    /// The next id that the session makes. It can be known already, where a front end has given one like it.
    pub(super) fn make(&mut self) -> InputId {
        self.made += 1;
        InputId::new(format!("input-{}", self.made))
    }

    /// Ids are made after this one.
    pub(super) fn made(&mut self, number: u64) {
        self.made = self.made.max(number);
    }
}
