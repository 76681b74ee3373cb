//! The files on the disk: what tools work on where an embedder brings no others.

use std::fs;
use std::io;
use std::path::Path;

use flow::ports::{BoxFuture, FileKind, FileStatus, Files};

use crate::replace::replace;

/// The files on the disk. Its futures do their work when they are first polled, and block meanwhile: tools use it from threads for
/// blocking work.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn status<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Option<FileStatus>>> {
        Box::pin(async move {
            match fs::metadata(path) {
                Ok(about) => Ok(Some(status(&about))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        Box::pin(async move { fs::read(path) })
    }

    fn write<'a>(&'a self, path: &'a Path, content: &'a str) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move { replace(path, content) })
    }
}

/// What the disk says about a path.
fn status(about: &fs::Metadata) -> FileStatus {
    let kind = match about {
        about if about.is_file() => FileKind::File,
        about if about.is_dir() => FileKind::Folder,
        _ => FileKind::Other,
    };
    FileStatus::new(kind, about.len(), about.modified().ok())
}
