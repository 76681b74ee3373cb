//! The files on the disk: what tools work on where an embedder brings no others.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use turn::ports::{BoxFuture, FileStatus, Files};

/// The files on the disk. Its futures do their work when they are first polled, and block meanwhile: tools use it from threads for
/// blocking work.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskFiles;

impl Files for DiskFiles {
    fn status<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, io::Result<Option<FileStatus>>> {
        Box::pin(async move {
            match fs::metadata(path) {
                Ok(about) => Ok(Some(FileStatus::from(&about))),
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

/// Puts `content` into a file, whole or not at all: it is written next to the file and moved over it.
fn replace(path: &Path, content: &str) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot create its parent folder: {error}")))?;
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = folder.join(format!(".tidegate-{}-{number}.tmp", std::process::id()));
    let written = (|| {
        let mut out = fs::File::create_new(&temporary)?;
        out.write_all(content.as_bytes())?;
        if let Ok(before) = fs::metadata(path) {
            out.set_permissions(before.permissions())?;
        }
        drop(out);
        fs::rename(&temporary, path)
    })();
    written.inspect_err(|_| {
        // The first failure is what matters; the leftover may not even exist.
        let _ = fs::remove_file(&temporary);
    })
}
