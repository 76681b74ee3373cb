//! The audit file: one line of JSON for each answer that a rule stopped, without any text of requests or answers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// A file that lines are added to.
#[derive(Debug)]
pub struct Audit {
    path: PathBuf,
    file: Mutex<File>,
    /// The reason why the last line could not be written.
    failed: Mutex<Option<String>>,
}

impl Audit {
    /// Opens the file. A new file is readable by its user only.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        Ok(Self { path: path.to_owned(), file: Mutex::new(file), failed: Mutex::default() })
    }

    /// Appends a line. A failure is logged, and shown by `/healthz` until a line is written again.
    pub(super) fn write(&self, line: &Value) {
        let text = format!("{line}\n");
        let written = self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(text.as_bytes());
        let failure = written.err().map(|error| format!("cannot write {}: {error}", self.path.display()));
        if let Some(failure) = &failure {
            tracing::error!("the audit file of the gateway misses a line: {failure}; the line is {line}");
        }
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
