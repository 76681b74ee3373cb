//! A conversation in memory, and the exchanges that it has.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use flow::SessionId;
use tokio::sync::{OnceCell, OwnedMutexGuard};

use super::super::Conversation;
use super::open::lock;
use super::unused::Unused;

pub(super) struct Entry {
    pub(super) id: SessionId,
    pub(super) cell: OnceCell<Conversation>,
    pub(super) use_of: Mutex<Use>,
    /// All entries without an exchange.
    unused: Arc<Mutex<Unused>>,
    /// The shared total of what all conversations remember, to which this entry has added `counted`.
    bytes: Arc<AtomicUsize>,
    counted: AtomicUsize,
    /// Locked while the conversation is closed, and by the caller that opens it again.
    pub(super) closing: Arc<tokio::sync::Mutex<()>>,
    /// Whether the log has the error for which its data cannot be stored.
    pub(super) was_reported: AtomicBool,
}

/// A conversation that is being closed. A caller that opens it again waits until this is dropped.
pub(super) struct Ended(#[expect(dead_code, reason = "it is held until it is dropped")] OwnedMutexGuard<()>);

pub(super) struct Use {
    pub(super) exchanges: u32,
    pub(super) last: Instant,
    /// The place among those without an exchange; `None` while there is one.
    place: Option<u64>,
    /// The conversation is about to be closed and must not be used any more.
    pub(super) is_over: bool,
}

/// An exchange has the conversation, until this is dropped.
pub(super) struct Visited {
    pub(super) conversation: Conversation,
    pub(super) joined: Joined,
}

impl Visited {
    /// Returns whether nobody else has an exchange in it.
    pub(super) fn is_alone(&self) -> bool {
        lock(&self.joined.0.use_of).exchanges == 1
    }
}

/// An exchange counts in an entry, until this is dropped: a request can be given up while its conversation is opened.
pub(super) struct Joined(Arc<Entry>);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Use {
    /// Returns whether no exchange has it and `is_due` returns true for the time of its last use.
    pub(super) fn is_free(&self, is_due: impl FnOnce(Instant) -> bool) -> bool {
        self.exchanges == 0 && !self.is_over && is_due(self.last)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.count(0);
    }
}

impl Entry {
    pub(super) fn new(id: SessionId, unused: &Arc<Mutex<Unused>>, bytes: &Arc<AtomicUsize>) -> Arc<Self> {
        let use_of = Mutex::new(Use { exchanges: 0, last: Instant::now(), place: None, is_over: false });
        let (cell, closing, unused, bytes) = (OnceCell::new(), Arc::default(), Arc::clone(unused), Arc::clone(bytes));
        let (counted, was_reported) = (AtomicUsize::new(0), AtomicBool::new(false));
        Arc::new(Self { id, cell, use_of, unused, bytes, counted, closing, was_reported })
    }

    /// Updates the number of bytes that it is counted with.
    pub(super) fn count(&self, now: usize) {
        let before = self.counted.swap(now, Ordering::Relaxed);
        self.bytes.fetch_add(now, Ordering::Relaxed);
        self.bytes.fetch_sub(before, Ordering::Relaxed);
    }

    /// Begins an exchange; returns `None` if the entry must not be used any more.
    pub(super) fn join(self: &Arc<Self>) -> Option<Joined> {
        let mut use_of = lock(&self.use_of);
        if use_of.is_over {
            return None;
        }
        use_of.exchanges += 1;
        self.leave_place(&mut use_of);
        Some(Joined(Arc::clone(self)))
    }

    fn leave(self: &Arc<Self>) {
        self.count(self.cell.get().map_or(0, Conversation::stored_bytes));
        let mut use_of = lock(&self.use_of);
        use_of.exchanges = use_of.exchanges.saturating_sub(1);
        use_of.last = Instant::now();
        if use_of.exchanges == 0 {
            use_of.place = Some(lock(&self.unused).push(self));
        }
    }

    fn leave_place(&self, use_of: &mut Use) {
        if let Some(place) = use_of.place.take() {
            lock(&self.unused).remove(place);
        }
    }

    /// Returns whether some of its data is in memory only.
    pub(super) fn is_unstored(&self) -> bool {
        self.cell.get().is_some_and(Conversation::is_unstored)
    }

    /// Ends its use if no exchange has it and `is_due` returns true for the time of its last use.
    pub(super) fn end(&self, is_due: impl FnOnce(Instant) -> bool) -> Option<Ended> {
        let mut use_of = lock(&self.use_of);
        if !use_of.is_free(is_due) {
            return None;
        }
        // The lock is free: callers wait for it only once the use is over.
        let closing = Arc::clone(&self.closing).try_lock_owned().ok()?;
        use_of.is_over = true;
        self.leave_place(&mut use_of);
        Some(Ended(closing))
    }
}
