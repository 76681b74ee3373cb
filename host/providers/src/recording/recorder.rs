//! Takes down a real session while it runs. A recording that cannot be written is reported and never stops a session.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::format::{End, Expect, RecordingError};
use super::writer::{RecordingWriter, RequestNumber};
use crate::Wire;

/// The recorder of a model's requests.
pub(crate) struct Recorder {
    writer: Arc<Mutex<Writer>>,
}

struct Writer {
    /// `None` once a line could not be written: what follows would be a recording with a hole.
    to: Option<RecordingWriter>,
}

/// One request under way. Dropping it without [`Taken::end`] records the cut.
pub(crate) struct Taken {
    writer: Arc<Mutex<Writer>>,
    number: Option<RequestNumber>,
    begun: Instant,
}

impl Recorder {
    pub(crate) fn create<'s>(
        path: &Path,
        wire: Wire,
        model: &str,
        secrets: impl Iterator<Item = &'s str>,
    ) -> Result<Self, RecordingError> {
        let mut writer = RecordingWriter::create(path, wire, model).map_err(|cause| {
            let message = match cause.kind() {
                io::ErrorKind::AlreadyExists => "exists already; remove it or choose another name".to_owned(),
                _ => format!("cannot be written: {cause}"),
            };
            RecordingError { path: path.to_owned(), line: None, message }
        })?;
        secrets.for_each(|secret| writer.hide(secret));
        Ok(Self { writer: Arc::new(Mutex::new(Writer { to: Some(writer) })) })
    }

    pub(crate) fn request(&self, body: &[u8]) -> Taken {
        // We wrote this JSON ourselves, so it can be read.
        let body = serde_json::from_slice(body).unwrap_or_default();
        let number = write(&self.writer, |to| to.request(&body, &Expect::default()));
        Taken { writer: Arc::clone(&self.writer), number, begun: Instant::now() }
    }
}

impl Taken {
    pub(crate) fn response(&mut self, status: u16, headers: &[(String, String)]) {
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.write(|to, number, at_ms| to.response(number, at_ms, status, headers));
    }

    pub(crate) fn chunk(&mut self, bytes: &[u8]) {
        self.write(|to, number, at_ms| to.chunk(number, at_ms, bytes));
    }

    pub(crate) fn end(mut self, end: &End) {
        self.finish(end);
    }

    fn finish(&mut self, end: &End) {
        self.write(|to, number, at_ms| to.end(number, at_ms, end));
        self.number = None;
    }

    fn write(&self, line: impl FnOnce(&mut RecordingWriter, RequestNumber, u64) -> io::Result<()>) {
        if let Some(number) = self.number {
            let at_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            write(&self.writer, |to| line(to, number, at_ms));
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.finish(&End::Cut);
    }
}

fn write<T>(writer: &Mutex<Writer>, line: impl FnOnce(&mut RecordingWriter) -> io::Result<T>) -> Option<T> {
    // A line is written whole or not at all, so a panic elsewhere leaves nothing half done.
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    match line(writer.to.as_mut()?) {
        Ok(written) => Some(written),
        Err(cause) => {
            tracing::error!(%cause, "the recording cannot be written any further; the session goes on without it");
            writer.to = None;
            None
        }
    }
}
