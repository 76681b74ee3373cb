//! Adds lines to a transcript so that an error leaves no damage: what was acknowledged stays, and no line is half there.

use std::io;
use std::path::PathBuf;

use flow::ports::JournalError;

use super::error::{failed, unusable};

/// Where the lines go: a file, or in tests what fails when they want it to.
pub(super) trait Sink: Send {
    /// Adds bytes at the end and returns how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes durable what was written.
    fn sync(&mut self) -> io::Result<()>;
    fn truncate(&mut self, length: u64) -> io::Result<()>;
    /// Nothing is written for now: nothing is held open.
    fn rest(&mut self) {}
    /// Returns why this is not the transcript any more, if so.
    fn check_in_place(&self) -> Result<(), String>;

    /// Calls this once when another writer has taken over the transcript, where that can happen.
    fn on_lost(&mut self, _lost: Lost) {}
}

/// Is called with the reason why nothing can be written any more.
pub(super) type Lost = Box<dyn FnOnce(JournalError) + Send>;

/// The end of a transcript. After an error it must not be used any more.
pub(super) struct Appender {
    sink: Box<dyn Sink>,
    path: PathBuf,
    /// Bytes that are written, and those of them that are durable.
    written: u64,
    synced: u64,
}

impl Appender {
    /// Appends after `length` durable bytes.
    pub(super) fn new(sink: Box<dyn Sink>, path: PathBuf, length: u64) -> Self {
        Self { sink, path, written: length, synced: length }
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Calls this once when another writer has taken over the transcript, where that can happen.
    pub(super) fn on_lost(&mut self, lost: Lost) {
        self.sink.on_lost(lost);
    }

    /// Writes complete lines. After an error those that were written as a whole remain.
    pub(super) fn write(&mut self, lines: &[u8]) -> Result<(), JournalError> {
        let mut done = 0;
        while done < lines.len() {
            let error = match self.sink.write(&lines[done..]) {
                Ok(0) => io::ErrorKind::WriteZero.into(),
                Ok(count) => {
                    done += count;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            let whole = memchr::memrchr(b'\n', &lines[..done]).map_or(0, |end| end + 1);
            self.cut(self.written + whole as u64);
            return Err(failed(&self.path, &error));
        }
        self.written += done as u64;
        Ok(())
    }

    /// Makes durable what was written.
    pub(super) fn sync(&mut self) -> Result<(), JournalError> {
        if let Err(error) = self.sink.sync() {
            // The kernel may have dropped what it could not write and believe it clean: a later sync would succeed and leave a hole.
            self.cut(self.synced);
            return Err(failed(&self.path, &error));
        }
        self.sink.check_in_place().map_err(|reason| unusable(&self.path, reason))?;
        self.synced = self.written;
        Ok(())
    }

    /// Nothing is written for now.
    pub(super) fn rest(&mut self) {
        self.sink.rest();
    }

    pub(super) fn is_synced(&self) -> bool {
        self.synced == self.written
    }

    fn cut(&mut self, length: u64) {
        if let Err(error) = self.sink.truncate(length) {
            tracing::warn!(path = %self.path.display(), %error, "a transcript that failed cannot be cut to its last whole line");
        }
    }
}
