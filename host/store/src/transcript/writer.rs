//! The thread that writes a transcript: events become lines, and everything critical of a batch becomes durable with one sync.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flow::Event;
use turn::ports::{JournalError, JournalProgress};

use super::appender::Appender;
use super::error::unusable;
use super::format::write_line;
use super::journal::Shared;
use super::policy::EventFilter;
use super::queue::Queued;

/// A buffer of lines that has grown larger is not kept.
const BUFFER: usize = 1 << 20;

pub(super) struct Writer {
    shared: Arc<Shared>,
    lines: LineWriter,
}

struct LineWriter {
    filter: Box<dyn EventFilter>,
    thread_id: String,
    next_seq: u64,
    /// Events that the queue lost since the last record.
    dropped: u64,
    appender: Appender,
    buffer: Vec<u8>,
    recorded: Vec<Event>,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        filter: Box<dyn EventFilter>,
        thread_id: &str,
        next_seq: u64,
        appender: Appender,
    ) -> Self {
        let lines = LineWriter {
            filter,
            thread_id: thread_id.to_owned(),
            next_seq,
            dropped: 0,
            appender,
            buffer: Vec::new(),
            recorded: Vec::new(),
        };
        Self { shared, lines }
    }

    /// Writes until the queue is closed; then the file and its lock are released.
    pub(super) fn run(self) {
        let (shared, path) = (Arc::clone(&self.shared), self.lines.appender.path().to_owned());
        if catch_unwind(AssertUnwindSafe(|| self.write_all())).is_err() {
            // A filter or a watcher is at fault. What was not durable is not acknowledged by anybody.
            let error = unusable(&path, "the thread that writes it has panicked; close the session and resume it");
            if catch_unwind(AssertUnwindSafe(|| fail(&shared, error.clone()))).is_err() {
                tracing::error!("the watcher of a transcript has panicked again");
                stop(&shared, error);
            }
        }
        shared.status.send_modify(|status| status.closed = true);
    }

    fn write_all(mut self) {
        self.lines.filter.prepare();
        loop {
            let batch = self.shared.queue.take();
            if batch.announce {
                self.announce();
            }
            let has_failed = self.shared.status.borrow().failed.is_some();
            if !has_failed && let Err(error) = self.write(batch.events, batch.closing) {
                fail(&self.shared, error);
            }
            if batch.closing {
                return;
            }
        }
    }

    /// Writes a batch and acknowledges what is critical in it.
    fn write(&mut self, events: Vec<Queued>, is_last: bool) -> Result<(), JournalError> {
        let mut critical = 0;
        let mut last = None;
        for queued in events {
            if queued.is_critical {
                critical += 1;
                last = Some(queued.event.seq);
            }
            self.lines.take(queued);
        }
        if is_last {
            self.lines.flush();
        }
        self.lines.write()?;
        if critical > 0 || (is_last && !self.lines.appender.is_synced()) {
            self.lines.appender.sync()?;
        }
        if let Some(event) = last {
            // The watcher first: when the turn continues, subscribers have what it waited for.
            self.shared.notify(JournalProgress::Durable(event));
            self.shared.status.send_modify(|status| {
                status.durable += critical;
                status.last = last;
            });
        }
        Ok(())
    }

    /// Reports to a new watcher how far the journal is.
    fn announce(&self) {
        let status = self.shared.status.borrow().clone();
        if let Some(event) = status.last {
            self.shared.notify(JournalProgress::Durable(event));
        }
        if let Some(error) = status.failed {
            self.shared.notify(JournalProgress::Failed(error));
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
        let written = self.appender.write(&self.buffer);
        if self.buffer.capacity() > BUFFER {
            self.buffer = Vec::new();
        }
        self.buffer.clear();
        written
    }
}
