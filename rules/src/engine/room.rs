//! The room that automata of one rule set share for their rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Room for the rows of all automata of a rule set, in bytes. A thousand real rules on a megabyte of code use about a tenth.
const SHARED: usize = 20 << 20;

/// Room for rows, in bytes. Each automaton may use an equal share; beyond it only while all together use less than there
/// is. So at most twice the room is ever in use: one automaton that took all of it before the others came, and their
/// shares.
#[derive(Debug)]
pub struct Room {
    most: usize,
    used: AtomicUsize,
    automata: AtomicUsize,
}

impl Room {
    /// Room for the automata of one rule set.
    pub fn shared() -> Arc<Self> {
        Self::of(SHARED)
    }

    /// Room of `most` bytes.
    pub fn of(most: usize) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicUsize::new(0), automata: AtomicUsize::new(0) })
    }

    /// Bytes there are.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Bytes in use by all automata.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn join(&self) {
        self.automata.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.automata.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether an automaton that uses `own` bytes has no room for more.
    pub(crate) fn is_full_for(&self, own: usize) -> bool {
        self.used() >= self.most && own >= self.most / self.automata.load(Ordering::Relaxed).max(1)
    }
}
