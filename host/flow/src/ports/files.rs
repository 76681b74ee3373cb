//! The port of file tools: which content a file has, and where new content goes.

use std::future::ready;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::BoxFuture;

/// The files that file tools read and write: those on the disk, or what an editor has in its buffers.
///
/// Paths are absolute, with links resolved, and inside the workspace. Which file a path of the model means, and whether it is guarded,
/// is decided on the disk before the port is asked; the port decides what the file contains. Dropping a future stops the access.
pub trait Files: Send + Sync {
    /// The metadata of a path; `None` if it does not exist.
    fn status<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Option<FileStatus>>>;

    /// The content of a file.
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Vec<u8>>>;

    /// The content of a file for a search, which looks at any number of files. Default: that of [`Files::read`]. Where each file is a request
    /// to another program, an implementation can answer from the disk for files that it has no reason to ask for.
    fn read_in_search<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        self.read(path)
    }

    /// Gives a file new content, as a whole or not at all. Creates the file, and the folders it needs, where there is none.
    fn write<'a>(&'a self, path: &'a Path, content: &'a str) -> BoxFuture<'a, io::Result<()>>;

    /// The files that are not on the disk, such as new buffers that were never saved: searches and listings show them as well.
    fn unsaved<'a>(&'a self) -> BoxFuture<'a, io::Result<Vec<PathBuf>>> {
        Box::pin(ready(Ok(Vec::new())))
    }
}

/// The metadata of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStatus {
    /// A file, a folder, or something else.
    pub kind: FileKind,
    /// The size of a file.
    pub bytes: u64,
    /// The time of the last change, where it is known: of content that is not text, it shows whether the file has changed.
    pub modified: Option<SystemTime>,
}

/// The type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file. Only these are read and written.
    File,
    /// A folder, which has entries.
    Folder,
    /// A device, a pipe, a socket.
    Other,
}

impl FileStatus {
    /// A regular file of this size.
    pub fn file(bytes: u64) -> Self {
        Self::new(FileKind::File, bytes, None)
    }

    /// The metadata of a path, whatever is there.
    pub fn new(kind: FileKind, bytes: u64, modified: Option<SystemTime>) -> Self {
        Self { kind, bytes, modified }
    }
}
