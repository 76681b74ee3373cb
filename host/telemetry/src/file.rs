//! Writes metrics to a file, for programs that end before anybody reads them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::Metrics;

impl Metrics {
    /// Writes the OpenMetrics text to `path`. A reader sees the former content or the new one, never a part: the text is written to
    /// a file in the same folder, which then replaces the former one. A link is followed; a pipe or a device is written to directly.
    ///
    /// # Errors
    /// The file cannot be written. Nothing is left of the attempt then.
    pub fn write_file(&self, path: &Path) -> io::Result<()> {
        // Links are followed, and stay.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            // A pipe or a device cannot be replaced.
            return OpenOptions::new().write(true).open(path)?.write_all(self.openmetrics().as_bytes());
        }
        let temporary = next_to(path)?;
        let written = write_new(&temporary, &self.openmetrics()).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            // The first error is the one to report.
            drop(fs::remove_file(&temporary));
        }
        written
    }
}

/// A hidden name in the same folder that no other process uses.
fn next_to(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path does not end in the name of a file"));
    };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(hidden))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    // What a process with the same id left when it was killed, or a link that somebody put there.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
