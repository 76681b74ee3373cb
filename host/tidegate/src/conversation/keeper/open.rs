//! The conversations in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use flow::SessionId;
use flow::ports::StateError;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::super::Conversation;
use super::entry::{Ended, Entry, Visited};
use super::inheritance::Inheritance;
use super::side_requests::Counted;
use super::unused::Unused;
use super::{ConversationCounts, ConversationLimits};
use crate::{Host, HostError};

/// The time limit for closing conversations when the process ends.
const CLOSING: Duration = Duration::from_secs(10);

/// The number of conversations that are closed concurrently: each of them can wait for an unavailable store.
const CLOSES: usize = 16;

/// The open conversations, and the number of exchanges in each.
pub(super) struct OpenConversations {
    limits: ConversationLimits,
    /// The store is in memory: closed conversations stay there.
    is_in_memory: bool,
    open: Mutex<HashMap<SessionId, Arc<Entry>>>,
    unused: Arc<Mutex<Unused>>,
    inheritance: Inheritance,
    sweeps: AtomicBool,
    /// One permit for each conversation that is being closed.
    closes: Arc<Semaphore>,
    /// Locked while conversations are closed to make way for others: concurrent callers would close as many each.
    way: tokio::sync::Mutex<()>,
    evicted: AtomicU64,
    forgotten: AtomicU64,
    lost: AtomicU64,
}

impl OpenConversations {
    pub(super) fn new(limits: ConversationLimits, is_in_memory: bool, inheritance: Inheritance) -> Self {
        let (evicted, forgotten, lost) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let (open, unused, sweeps) = (Mutex::default(), Arc::default(), AtomicBool::new(false));
        let (closes, way) = (Arc::new(Semaphore::new(CLOSES)), tokio::sync::Mutex::default());
        Self { limits, is_in_memory, open, unused, inheritance, sweeps, closes, way, evicted, forgotten, lost }
    }

    /// Returns how many conversations are open, and what happened to the others.
    pub(super) fn counts(&self) -> ConversationCounts {
        let (open, unstored) = {
            let open = lock(&self.open);
            (open.len(), open.values().filter(|entry| entry.is_unstored()).count())
        };
        let [evicted, forgotten, lost] =
            [&self.evicted, &self.forgotten, &self.lost].map(|count| count.load(Ordering::Relaxed));
        ConversationCounts { open, evicted, forgotten, unstored, lost, ..ConversationCounts::default() }
    }

    /// Returns whether the caller has to arrange for idle conversations to be closed.
    pub(super) fn begins_to_sweep(&self) -> bool {
        !self.sweeps.swap(true, Ordering::Relaxed)
    }

    /// Begins an exchange in a conversation; `opening` opens it if it is not open.
    pub(super) async fn visit<F: Future<Output = Result<Conversation, HostError>>>(
        self: &Arc<Self>,
        id: &SessionId,
        host: &Host,
        opening: impl Fn() -> F,
    ) -> Result<Visited, HostError> {
        loop {
            let entry = self.entry(id);
            let Some(joined) = entry.join() else {
                // Waits until it is closed, and opens it again.
                drop(entry.closing.lock().await);
                self.remove(id, &entry);
                continue;
            };
            match entry.cell.get_or_try_init(&opening).await {
                Ok(conversation) => {
                    lock(&self.inheritance.closed).remove(id);
                    let visited = Visited { conversation: conversation.clone(), joined };
                    self.make_way(host).await;
                    return Ok(visited);
                }
                Err(error) => {
                    drop(joined);
                    if let Some(_ended) = entry.end(|_| true) {
                        self.remove(id, &entry);
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Closes the conversations that have been idle for a while, up to [`CLOSES`] concurrently; the last of them close in the background. Those
    /// with data that is not in the store stay open until it is back.
    pub(super) async fn close_idle(self: &Arc<Self>, host: &Host) {
        let now = Instant::now();
        let is_idle = |last: Instant| now.saturating_duration_since(last) >= self.limits.idle;
        self.store_late().await;
        for entry in self.entries() {
            if !entry.is_unstored() && lock(&entry.use_of).is_free(is_idle) {
                drop(self.close_later(entry, is_idle, host).await);
            }
        }
    }

    /// Waits for a permit, then closes a conversation in the background if it is still due.
    async fn close_later(
        self: &Arc<Self>,
        entry: Arc<Entry>,
        is_due: impl FnOnce(Instant) -> bool,
        host: &Host,
    ) -> Option<JoinHandle<()>> {
        let permit = Arc::clone(&self.closes).acquire_owned().await.ok()?;
        let ended = entry.end(is_due)?;
        let (own, host) = (Arc::clone(self), host.clone());
        Some(tokio::spawn(async move {
            own.close(&entry, ended, &host).await;
            drop(permit);
        }))
    }

    /// Stores the data that is in memory only, if the store is back.
    async fn store_late(&self) {
        for entry in self.entries() {
            let id = &entry.id;
            let Some(conversation) = entry.cell.get().filter(|conversation| conversation.is_unstored()) else {
                continue;
            };
            match conversation.store_late().await {
                Ok(()) => {}
                Err(HostError::State(error @ StateError::Unavailable { .. })) => {
                    tracing::debug!(conversation = %id, "its data is not stored yet: {error}");
                    return;
                }
                Err(error) if !entry.was_reported.swap(true, Ordering::Relaxed) => {
                    tracing::warn!(conversation = %id, "its data is not stored: {}", error.in_one_line());
                }
                Err(_) => {}
            }
        }
    }

    /// Returns whether none is open.
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Returns whether this conversation is open.
    pub(super) fn has(&self, id: &SessionId) -> bool {
        lock(&self.open).contains_key(id)
    }

    /// Begins an exchange in an open conversation with data that is not in the store.
    pub(super) fn visit_unstored(&self, id: &SessionId) -> Option<Visited> {
        let entry = lock(&self.open).get(id).cloned()?;
        let conversation = entry.cell.get().filter(|conversation| conversation.is_unstored())?.clone();
        Some(Visited { conversation, joined: entry.join()? })
    }

    /// Closes the unused conversations whose data is in the store.
    pub(super) async fn close_stored(self: &Arc<Self>, host: &Host) {
        self.store_late().await;
        self.close_unused(host, |entry| !entry.is_unstored()).await;
    }

    /// Closes all unused conversations. What is not in the store is lost.
    pub(super) async fn close_all(self: &Arc<Self>, host: &Host) {
        self.store_late().await;
        self.close_unused(host, |_| true).await;
    }

    /// Closes unused conversations within a time limit: the changes of their exchanges were stored when those ended.
    async fn close_unused(self: &Arc<Self>, host: &Host, is_due: impl Fn(&Entry) -> bool) {
        let closing = async {
            for entry in self.entries().into_iter().filter(|entry| is_due(entry)) {
                drop(self.close_later(entry, |_| true, host).await);
            }
            // With all permits, no close is running in the background.
            let all = u32::try_from(CLOSES).unwrap_or(u32::MAX);
            drop(self.closes.acquire_many(all).await);
        };
        if tokio::time::timeout(CLOSING, closing).await.is_err() {
            let open = lock(&self.open).len();
            tracing::warn!("{open} conversations were not closed within 10 s; the data that was stored last is kept");
        }
    }

    /// Closes the least recently used conversations while there are too many.
    async fn make_way(self: &Arc<Self>, host: &Host) {
        self.forget(host).await;
        if !self.is_full() {
            return;
        }
        let _way = self.way.lock().await;
        while self.is_full() {
            let mut closes = Vec::new();
            // Closes several at once: each close can wait for an unavailable store.
            let over = lock(&self.open).len().saturating_sub(self.limits.open).clamp(1, CLOSES);
            let oldest = lock(&self.unused).oldest(over, CLOSES);
            for entry in oldest {
                closes.extend(self.close_later(entry, |_| true, host).await);
            }
            if closes.is_empty() {
                return;
            }
            self.evicted.fetch_add(closes.len() as u64, Ordering::Relaxed);
            for close in closes {
                if let Err(error) = close.await {
                    tracing::error!("a conversation could not be closed: {error}");
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        lock(&self.open).len() > self.limits.open || self.remembered() > self.limits.bytes
    }

    /// Counts bytes next to those of the conversations, until the returned value is dropped.
    pub(super) fn count_bytes(&self, bytes: usize) -> Counted {
        Counted::new(&self.inheritance.bytes, bytes)
    }

    /// Returns the total size of what they remember, in bytes.
    pub(super) fn remembered(&self) -> usize {
        self.inheritance.bytes.load(Ordering::Relaxed)
    }

    async fn close(&self, entry: &Arc<Entry>, ended: Ended, host: &Host) {
        let id = &entry.id;
        if let Some(conversation) = entry.cell.get() {
            if let Err(error) = conversation.close().await {
                tracing::warn!(conversation = %id, "its data is not stored: {}", error.in_one_line());
            }
            if conversation.is_unstored() {
                self.lost.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(conversation = %id, "its data is lost: it was closed while the store was unavailable");
            }
        }
        entry.count(0);
        if let Some(conversation) = entry.cell.get().filter(|_| self.is_in_memory) {
            let bytes = conversation.stored_bytes().saturating_add(plugin_bytes(id, host).await);
            lock(&self.inheritance.closed).insert(id.clone(), bytes);
        }
        self.remove(id, entry);
        drop(ended);
        if self.is_in_memory {
            self.forget(host).await;
        }
    }

    /// Deletes the conversations that were closed first, and are not being opened again, from a store in memory, while there are too many of them, or too many bytes of all
    /// conversations.
    async fn forget(&self, host: &Host) {
        loop {
            let bytes = self.limits.bytes.saturating_sub(self.remembered());
            let oldest = {
                let open = lock(&self.open);
                lock(&self.inheritance.closed).pop_beyond(self.limits.kept, bytes, |id| open.contains_key(id))
            };
            let Some(oldest) = oldest else { return };
            // A conversation that is open again is refused, and stays.
            if let Ok(true) = host.state_admin().clear(&oldest, None).await {
                self.forgotten.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn entry(&self, id: &SessionId) -> Arc<Entry> {
        let mut open = lock(&self.open);
        Arc::clone(
            open.entry(id.clone()).or_insert_with(|| Entry::new(id.clone(), &self.unused, &self.inheritance.bytes)),
        )
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        lock(&self.open).values().cloned().collect()
    }

    fn remove(&self, id: &SessionId, entry: &Arc<Entry>) {
        let mut open = lock(&self.open);
        if open.get(id).is_some_and(|known| Arc::ptr_eq(known, entry)) {
            open.remove(id);
        }
    }
}

impl Drop for OpenConversations {
    fn drop(&mut self) {
        for entry in self.entries().into_iter().filter(|entry| entry.is_unstored()) {
            tracing::warn!(conversation = %entry.id, "its data is lost: nothing has replaced its route");
        }
    }
}

/// Returns the size of what plugins keep in a closed conversation, in bytes.
async fn plugin_bytes(id: &SessionId, host: &Host) -> usize {
    let Ok(Some(shown)) = host.state_admin().show(id).await else { return 0 };
    let bytes: u64 = shown.summary.plugins.iter().map(|plugin| plugin.bytes).sum();
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Locks a mutex. The data is valid after every statement, so a panic elsewhere does not matter.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
