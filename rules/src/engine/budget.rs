//! The memory budget that the state caches of one rule set share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget of all automata of a rule set in bytes. A thousand real rules on a megabyte of code use about a tenth.
const SHARED: usize = 20 << 20;

/// A cache budget in bytes. Each automaton is entitled to an equal share; it may exceed its share only while all of
/// them together use less than the budget. At most twice the budget is therefore in use: one automaton that used all of
/// it before the others were created, and their shares.
#[derive(Debug)]
pub struct CacheBudget {
    max_bytes: usize,
    used: AtomicUsize,
    automata: AtomicUsize,
}

impl CacheBudget {
    /// The budget for the automata of one rule set.
    pub fn shared() -> Arc<Self> {
        Self::new(SHARED)
    }

    /// A budget of this size.
    pub fn new(max_bytes: usize) -> Arc<Self> {
        Arc::new(Self { max_bytes, used: AtomicUsize::new(0), automata: AtomicUsize::new(0) })
    }

    /// The size of the budget.
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Bytes in use by all automata.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn register(&self) {
        self.automata.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn unregister(&self) {
        self.automata.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn charge(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn refund(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether an automaton that uses `own` bytes must not allocate more.
    pub(crate) fn is_exhausted_for(&self, own: usize) -> bool {
        self.used() >= self.max_bytes && own >= self.max_bytes / self.automata.load(Ordering::Relaxed).max(1)
    }
}
