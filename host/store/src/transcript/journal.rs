//! The journal of an open transcript: the session's side, which never waits for the disk.

use std::sync::{Arc, Mutex, PoisonError};

use flow::Event;
use flow::ports::{BoxFuture, Durability, Journal, JournalError, JournalProgress};
use tokio::sync::watch;

use super::appender::Appender;
use super::error::unusable;
use super::policy::EventPolicy;
use super::queue::{Due, LINGER, Queue};
use super::writer::LineWriter;
use super::writers;

type Watcher = dyn Fn(JournalProgress) + Send + Sync;

/// Records the events of one thread in its transcript, on one of the few threads that write the transcripts of the process. The file is
/// open only while something is written.
///
/// Critical events are written and synced as soon as they are appended; those that are appended while a sync runs share the next one
/// (group commit). Droppable events are written within 50 ms, or with the next critical one. More than 1,024 of them that wait are lost,
/// except for the last; the next record has the count as `dropped`.
///
/// A journal that is dropped writes what it has, like one that is closed, but nobody waits for that.
pub struct FileJournal {
    shared: Arc<Shared>,
    policy: Arc<dyn EventPolicy>,
}

/// What the session and the writers share.
pub(super) struct Shared {
    pub(super) queue: Queue,
    pub(super) status: watch::Sender<Status>,
    watcher: Mutex<Option<Arc<Watcher>>>,
    /// Locked while something is written; `None` once the file and its lock are released.
    pub(super) lines: Mutex<Option<LineWriter>>,
}

/// How far the writer is.
#[derive(Clone, Debug, Default)]
pub(super) struct Status {
    /// How many critical events are durable, and the number of the last one.
    pub(super) durable: u64,
    pub(super) last: Option<u64>,
    pub(super) failed: Option<JournalError>,
    /// The file and the lock are released.
    pub(super) closed: bool,
}

impl FileJournal {
    /// Writes at the end of a transcript.
    pub(super) fn start(
        policy: Arc<dyn EventPolicy>,
        thread_id: &str,
        next_seq: u64,
        appender: Appender,
    ) -> Result<Self, JournalError> {
        writers::start().map_err(|error| {
            unusable(appender.path(), format!("the thread that writes it cannot be started: {error}"))
        })?;
        let lines = Mutex::new(Some(LineWriter::new(policy.filter(), thread_id, next_seq, appender)));
        let (queue, status, watcher) = (Queue::default(), watch::Sender::default(), Mutex::default());
        let shared = Arc::new(Shared { queue, status, watcher, lines });
        let weak = Arc::downgrade(&shared);
        shared.on_lost(Box::new(move |error| {
            if let Some(shared) = weak.upgrade() {
                shared.lose(error);
            }
        }));
        Ok(Self { shared, policy })
    }
}

impl std::fmt::Debug for FileJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileJournal").field("status", &*self.shared.status.borrow()).finish_non_exhaustive()
    }
}

impl Shared {
    /// Has a thread write what is queued.
    pub(super) fn ask(self: &Arc<Self>, due: Due) {
        match due {
            Due::Asked => {}
            Due::Later => writers::later(Arc::clone(self), LINGER),
            Due::Now => writers::now(Arc::clone(self)),
        }
    }

    /// Calls the watcher. It may append and wait: no lock is held.
    pub(super) fn notify(&self, progress: JournalProgress) {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(watcher) = watcher {
            watcher(progress);
        }
    }
}

impl Status {
    fn result(&self) -> Result<(), JournalError> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl Journal for FileJournal {
    fn append(&self, event: &Event) -> Durability {
        let durability = self.policy.durability(&event.kind);
        self.shared.ask(self.shared.queue.push(event.clone(), durability == Durability::Critical));
        durability
    }

    fn durable(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        // Counted now, and not when the future is polled.
        let wanted = self.shared.queue.critical();
        let mut status = self.shared.status.subscribe();
        Box::pin(async move {
            let enough = |status: &Status| status.failed.is_some() || status.closed || status.durable >= wanted;
            // The sender is in `self`.
            status.wait_for(enough).await.map_or(Ok(()), |status| status.result())
        })
    }

    fn watch(&self, watcher: Box<dyn Fn(JournalProgress) + Send + Sync>) {
        *self.shared.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::from(watcher));
        // It learns from the writer how far that is: the caller may hold a lock that the watcher takes.
        self.shared.ask(self.shared.queue.announce());
    }

    fn close(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async {
            self.shared.ask(self.shared.queue.close());
            let mut status = self.shared.status.subscribe();
            status.wait_for(|status| status.closed).await.map_or(Ok(()), |status| status.result())
        })
    }
}

impl Drop for FileJournal {
    fn drop(&mut self) {
        self.shared.ask(self.shared.queue.close());
    }
}

#[cfg(test)]
mod tests;
