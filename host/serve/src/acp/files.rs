//! The files of a session as its client has them: changes that are not saved are read, and what is written goes into them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate::BoxFuture;
use tidegate::tool::{DiskFiles, FileStatus, Files};

use super::client::Client;
use super::sdk::{Error, v1};

/// Files through the client, as far as it can read and write them, and else on the disk.
#[derive(Debug)]
pub(super) struct ClientFiles {
    client: Client,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The files whose text the client has given or taken. Searches ask it for these.
    known: BTreeSet<PathBuf>,
    /// Those that it did not give, which was reported.
    refused: BTreeSet<PathBuf>,
}

impl ClientFiles {
    pub(super) fn new(client: Client) -> Self {
        Self { client, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The text that the client has.
    async fn text(&self, path: &Path) -> Result<String, Error> {
        let text = self.client.read(path).await?;
        self.state().known.insert(path.to_owned());
        Ok(text)
    }

    /// A file of the disk is read although the client was asked, so that changes in it that are not saved are not seen.
    fn report(&self, path: &Path, error: &Error) {
        if !self.state().refused.insert(path.to_owned()) {
            return;
        }
        let title = format!("{} did not give `{}`: the file on the disk is used", self.client.can.name, path.display());
        tracing::warn!("{title}: {error}");
        self.client.notice(v1::NoticeSeverity::Warning, &title, Some(&error.message));
    }
}

impl Files for ClientFiles {
    fn status<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Option<FileStatus>>> {
        Box::pin(async move {
            match DiskFiles.status(path).await? {
                Some(status) => Ok(Some(status)),
                None if !self.client.can.read_file => Ok(None),
                // A new buffer that was never saved. Without one there is no such file, of which some clients give an empty text.
                None => match self.client.read(path).await {
                    Ok(text) if !text.is_empty() => {
                        self.state().known.insert(path.to_owned());
                        Ok(Some(FileStatus::file(text.len() as u64)))
                    }
                    _ => Ok(None),
                },
            }
        })
    }

    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        if !self.client.can.read_file {
            return DiskFiles.read(path);
        }
        Box::pin(async move {
            match self.text(path).await {
                Ok(text) => Ok(text.into_bytes()),
                // A client refuses files that are not text, or outside of its project.
                Err(error) => {
                    let read = DiskFiles.read(path).await;
                    if read.is_ok() {
                        self.report(path, &error);
                    }
                    read
                }
            }
        })
    }

    fn read_in_search<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        // The protocol has no list of open files, and a request for each file of a project would take minutes. What the session itself has
        // read or changed is searched as it has seen it.
        let is_known = self.state().known.contains(path);
        if is_known { self.read(path) } else { DiskFiles.read(path) }
    }

    fn write<'a>(&'a self, path: &'a Path, content: &'a str) -> BoxFuture<'a, io::Result<()>> {
        if !self.client.can.write_file {
            return DiskFiles.write(path, content);
        }
        Box::pin(async move {
            let written = self.client.write(path, content).await;
            written.map_err(|error| io::Error::other(format!("{} did not write it: {error}", self.client.can.name)))?;
            self.state().known.insert(path.to_owned());
            Ok(())
        })
    }

    fn unsaved<'a>(&'a self) -> BoxFuture<'a, io::Result<Vec<PathBuf>>> {
        // The protocol has no list of them. The new buffers that the session has read or written are known.
        let known = self.state().known.clone();
        Box::pin(async move { Ok(known.into_iter().filter(|path| !path.exists()).collect()) })
    }
}
