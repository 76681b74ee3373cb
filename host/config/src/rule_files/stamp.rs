//! Tells whether a file or folder was touched since it was last looked at, without reading it.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What was written so shortly before it was looked at may have been written again without a sign: the clocks of file
/// systems are as coarse as this.
const COARSE: Duration = Duration::from_secs(2);

/// What the system says of a file, and when it was asked.
#[derive(Clone, Debug)]
pub struct FileStamp {
    /// `None`: there is nothing, or nothing can be found out.
    facts: Option<Facts>,
    looked: SystemTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Facts {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and when either last changed in seconds and nanoseconds: a file put in the place of another.
    inode: [i64; 4],
}

impl FileStamp {
    /// Of something that was never looked at.
    pub fn never() -> Self {
        Self { facts: None, looked: SystemTime::UNIX_EPOCH }
    }

    /// Of the file or folder at this path.
    pub fn of_path(path: &Path) -> Self {
        Self::of(path.metadata().ok().as_ref())
    }

    /// Take it before reading: a change in between is then seen at the next look.
    pub fn of(about: Option<&Metadata>) -> Self {
        let facts =
            about.map(|about| Facts { bytes: about.len(), modified: about.modified().ok(), inode: inode(about) });
        Self { facts, looked: SystemTime::now() }
    }

    /// Whether there was nothing, or nothing could be found out.
    pub fn is_absent(&self) -> bool {
        self.facts.is_none()
    }

    /// Whether nothing can have happened since `before`. A change within two seconds before it was taken may leave no sign, so
    /// the answer is no then.
    pub fn settled_since(&self, before: &Self) -> bool {
        let quiet = |facts: Facts| facts.modified.is_some_and(|time| time + COARSE < before.looked);
        self.facts.is_some_and(quiet) && self.facts == before.facts
    }
}

#[cfg(unix)]
fn inode(about: &Metadata) -> [i64; 4] {
    use std::os::unix::fs::MetadataExt;
    // They are only compared, so the sign is of no matter.
    [about.dev().cast_signed(), about.ino().cast_signed(), about.ctime(), about.ctime_nsec()]
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> [i64; 4] {
    [0; 4]
}
