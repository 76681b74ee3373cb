//! Detects changes of files by their times, sizes and inode numbers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The maximum number of files that are checked: a larger folder of rules is checked in part.
const MOST: usize = 10_000;

/// The state of files at one time.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stamps(BTreeMap<PathBuf, Option<Stamp>>);

#[derive(Debug, PartialEq)]
struct Stamp {
    changed: Option<SystemTime>,
    size: u64,
    /// The inode: a file that replaces another one can have the same time and size.
    place: u64,
}

impl Stamps {
    /// Reads the state of files, and of all files in folders. A missing file has a stamp, too.
    pub(crate) fn of<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut stamps = Self::default();
        paths.into_iter().for_each(|path| stamps.add(path));
        stamps
    }

    fn add(&mut self, path: &Path) {
        let Ok(found) = path.metadata() else {
            self.0.insert(path.to_owned(), None);
            return;
        };
        let stamp = Stamp { changed: found.modified().ok(), size: found.len(), place: place(&found) };
        let is_new = self.0.insert(path.to_owned(), Some(stamp)).is_none();
        // Links can form cycles: no folder is entered twice by one path, and the number of entries is limited.
        if found.is_dir() && is_new && self.0.len() < MOST {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.for_each(|entry| self.add(&entry.path()));
        }
    }
}

#[cfg(unix)]
fn place(found: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn place(_: &std::fs::Metadata) -> u64 {
    0
}
