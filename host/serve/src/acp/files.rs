//! The files of a session as its client has them: changes that are not saved are read, and what is written goes into them.

use std::io;
use std::path::{Path, PathBuf};

use tidegate::{BoxFuture, DiskFiles, FileStatus, Files};

use super::client::Client;

/// Files through the client, as far as it can read and write them, and else on the disk.
#[derive(Debug)]
pub(super) struct ClientFiles(pub(super) Client);

impl ClientFiles {
    /// The text that the client has, where it has the file.
    async fn text(&self, path: &Path) -> Option<String> {
        if !self.0.can.read_file {
            return None;
        }
        // A client refuses files that are not text, not there, or outside of its project: what counts is on the disk then.
        let read = self.0.read(path).await;
        read.inspect_err(|error| tracing::debug!(path = %path.display(), "the client does not read it: {error}")).ok()
    }
}

impl Files for ClientFiles {
    fn status<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Option<FileStatus>>> {
        Box::pin(async move {
            match DiskFiles.status(path).await? {
                Some(status) => Ok(Some(status)),
                // A new buffer that was never saved.
                None => Ok(self.text(path).await.map(|text| FileStatus::file(text.len() as u64))),
            }
        })
    }

    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        Box::pin(async move {
            match self.text(path).await {
                Some(text) => Ok(text.into_bytes()),
                None => DiskFiles.read(path).await,
            }
        })
    }

    fn write<'a>(&'a self, path: &'a Path, content: &'a str) -> BoxFuture<'a, io::Result<()>> {
        if !self.0.can.write_file {
            return DiskFiles.write(path, content);
        }
        Box::pin(async move {
            let written = self.0.write(path, content).await;
            written.map_err(|error| io::Error::other(format!("{} did not write it: {error}", self.0.can.name)))
        })
    }

    fn unsaved<'a>(&'a self) -> BoxFuture<'a, io::Result<Vec<PathBuf>>> {
        // The protocol has no list of them.
        Box::pin(async { Ok(Vec::new()) })
    }
}
