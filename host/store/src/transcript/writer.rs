//! Writing a transcript: events become lines, and everything critical of a batch becomes durable with one sync.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use flow::Event;
use flow::ports::{JournalError, JournalProgress};

use super::appender::{Appender, Lost};
use super::error::unusable;
use super::format::write_line;
use super::journal::Shared;
use super::policy::EventFilter;
use super::queue::{Batch, Queued};

/// What adds lines to one transcript.
pub(super) struct LineWriter {
    filter: Box<dyn EventFilter>,
    /// The filter was not used yet.
    is_new: bool,
    thread_id: String,
    next_seq: u64,
    /// Events that the queue lost since the last record.
    dropped: u64,
    appender: Appender,
    /// Lines of the batch that is written, and the events that become lines. Empty and without memory between two batches: most sessions
    /// are idle.
    buffer: Vec<u8>,
    recorded: Vec<Event>,
}

impl Shared {
    /// Writes what is queued, unless that is done already. The last time, the file's lock is released.
    pub(super) fn write(self: &Arc<Self>) {
        let Some(batch) = self.queue.take() else { return };
        let closing = batch.closing;
        if catch_unwind(AssertUnwindSafe(|| self.write_batch(batch))).is_err() {
            // A filter or a watcher is at fault. What was not durable is not acknowledged by anybody.
            let error =
                unusable(&self.path(), "the thread that writes it has panicked; close the session and resume it");
            if catch_unwind(AssertUnwindSafe(|| fail(self, error.clone()))).is_err() {
                tracing::error!("the watcher of a transcript has panicked again");
                stop(self, error);
            }
        }
        if closing {
            let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Whatever the filter does when it is dropped: who waits for the end must get it, and the thread has other journals to write.
            if catch_unwind(AssertUnwindSafe(|| drop(lines))).is_err() {
                tracing::error!("the filter of a transcript has panicked when it was dropped");
            }
            self.status.send_modify(|status| status.closed = true);
        }
        self.ask(self.queue.written());
    }

    /// Has this called when another writer takes over the transcript.
    pub(super) fn on_lost(&self, lost: Lost) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lines) = lines.as_mut() {
            lines.appender.on_lost(lost);
        }
    }

    /// Another writer has taken over the transcript.
    pub(super) fn lose(&self, error: JournalError) {
        let has_failed = self.status.borrow().failed.is_some();
        if !has_failed {
            fail(self, error);
        }
    }

    fn path(&self) -> std::path::PathBuf {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.as_ref().map(|lines| lines.appender.path().to_owned()).unwrap_or_default()
    }

    fn write_batch(&self, batch: Batch) {
        if batch.announce {
            self.announce();
        }
        let has_failed = self.status.borrow().failed.is_some();
        if !has_failed && let Err(error) = self.write_events(batch.events, batch.closing) {
            fail(self, error);
        }
    }

    /// Writes events and acknowledges what is critical of them.
    fn write_events(&self, events: Vec<Queued>, is_last: bool) -> Result<(), JournalError> {
        let mut critical = 0;
        let mut last = None;
        for queued in events.iter().filter(|queued| queued.is_critical) {
            critical += 1;
            last = Some(queued.event.seq);
        }
        {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(lines) = lines.as_mut() else { return Ok(()) };
            let added = lines.add(events, critical > 0, is_last);
            lines.appender.rest();
            added?;
        }
        if let Some(event) = last {
            // The watcher first: when the turn continues, subscribers have what it waited for.
            self.notify(JournalProgress::Durable(event));
            self.status.send_modify(|status| {
                status.durable += critical;
                status.last = last;
            });
        }
        Ok(())
    }

    /// Reports to a new watcher how far the journal is.
    fn announce(&self) {
        let status = self.status.borrow().clone();
        if let Some(event) = status.last {
            self.notify(JournalProgress::Durable(event));
        }
        if let Some(error) = status.failed {
            self.notify(JournalProgress::Failed(error));
        }
    }
}

/// From now on nothing is recorded. The watcher first, as with what is durable: when the turn ends for this error, subscribers know it.
fn fail(shared: &Shared, error: JournalError) {
    shared.notify(JournalProgress::Failed(error.clone()));
    stop(shared, error);
}

/// Whoever waits gets the error. Only then the queue ignores what is added: an event that it ignores is not one to wait for.
fn stop(shared: &Shared, error: JournalError) {
    shared.status.send_modify(|status| status.failed = Some(error));
    shared.queue.fail();
}

impl LineWriter {
    pub(super) fn new(filter: Box<dyn EventFilter>, thread_id: &str, next_seq: u64, appender: Appender) -> Self {
        let thread_id = thread_id.to_owned();
        let (buffer, recorded) = (Vec::new(), Vec::new());
        Self { filter, is_new: true, thread_id, next_seq, dropped: 0, appender, buffer, recorded }
    }

    fn add(&mut self, events: Vec<Queued>, is_critical: bool, is_last: bool) -> Result<(), JournalError> {
        if std::mem::take(&mut self.is_new) {
            self.filter.prepare();
        }
        events.into_iter().for_each(|queued| self.take(queued));
        if is_last {
            self.flush();
        }
        self.write()?;
        if is_critical || (is_last && !self.appender.is_synced()) {
            self.appender.sync()?;
        }
        Ok(())
    }

    fn take(&mut self, queued: Queued) {
        self.dropped += queued.dropped;
        self.filter.take(queued.event, &mut self.recorded);
        self.add_lines();
    }

    fn flush(&mut self) {
        self.filter.flush(&mut self.recorded);
        self.add_lines();
        if self.dropped > 0 {
            tracing::warn!(path = %self.appender.path().display(), dropped = self.dropped, "no record follows events that were dropped");
        }
    }

    fn add_lines(&mut self) {
        for event in self.recorded.drain(..) {
            let dropped = std::mem::take(&mut self.dropped);
            let filter = &*self.filter;
            let replacement = |body: &_| filter.replacement(body);
            let numbers = (self.next_seq, dropped);
            if write_line(&self.thread_id, numbers, &event, replacement, &mut self.buffer) {
                self.next_seq += 1;
            }
        }
    }

    fn write(&mut self) -> Result<(), JournalError> {
        self.recorded = Vec::new();
        self.appender.write(&std::mem::take(&mut self.buffer))
    }
}
