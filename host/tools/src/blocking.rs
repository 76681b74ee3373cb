//! Work on files off the async threads, stopped when its result is no longer needed.

use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use flow::ports::{BoxFuture, FileStatus, Files, Progress, ProgressLine};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::Failure;

/// The files of a session, for work on a thread of its own. Each access ends at once when the work is no longer wanted.
pub(crate) struct Access {
    files: Arc<dyn Files>,
    runtime: Handle,
    stop: CancellationToken,
    lines: mpsc::UnboundedSender<(String, f64)>,
}

impl Access {
    /// Reports what the work is doing, and how much of it is done, from 0 to 100.
    pub(crate) fn report(&self, line: String, percent: f64) {
        // Who runs the work can have gone; then the work is stopped.
        let _ = self.lines.send((line, percent));
    }

    /// Whether the result of the work is no longer wanted.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    pub(crate) fn status(&self, path: &Path) -> io::Result<Option<FileStatus>> {
        self.wait(self.files.status(path))
    }

    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.wait(self.files.read(path))
    }

    pub(crate) fn read_in_search(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.wait(self.files.read_in_search(path))
    }

    pub(crate) fn write(&self, path: &Path, content: &str) -> io::Result<()> {
        self.wait(self.files.write(path, content))
    }

    /// The files at or below `folder` that are not on the disk, in order of their names.
    ///
    /// # Errors
    /// They cannot be listed: an answer would pass them over.
    pub(crate) fn unsaved(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        let listed = self.wait(self.files.unsaved());
        let mut all = listed.map_err(|error| Failure(format!("files that are not saved cannot be listed: {error}")))?;
        let is_plain = |path: &Path| path.components().all(|part| part != Component::ParentDir);
        all.retain(|path| path.starts_with(folder) && is_plain(path) && path.symlink_metadata().is_err());
        all.sort();
        Ok(all)
    }

    fn wait<T>(&self, access: BoxFuture<'_, io::Result<T>>) -> io::Result<T> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => Err(io::Error::new(io::ErrorKind::Interrupted, "the call was stopped")),
                done = access => done,
            }
        })
    }
}

/// Runs `work` on a thread for blocking work. Dropping the future stops its accesses, and work that asks.
pub(crate) async fn run<T: Send + 'static>(
    files: &Arc<dyn Files>,
    progress: Progress<'_>,
    work: impl FnOnce(&Access) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (lines, mut reported) = mpsc::unbounded_channel();
    let access = Access { files: Arc::clone(files), runtime: Handle::current(), stop: CancellationToken::new(), lines };
    let _stops_when_dropped = access.stop.clone().drop_guard();
    let done = tokio::task::spawn_blocking(move || work(&access));
    // They end with the work, which owns the other end.
    while let Some((line, percent)) = reported.recv().await {
        progress(ProgressLine::new(&line, Some(percent)));
    }
    done.await.unwrap_or_else(|error| Err(Failure(format!("the tool failed unexpectedly: {error}"))))
}
