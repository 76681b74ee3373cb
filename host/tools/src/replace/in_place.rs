//! What a file is besides its content, and writing it in place.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, XattrFlags, fsetxattr, lgetxattr, llistxattr};
use rustix::io::Errno;

/// The most bytes of the names of all attributes of a file, and of the value of one: the limits of Linux.
const MAX_ATTRIBUTE: usize = 64 << 10;

pub(super) fn has_other_names(before: &fs::Metadata) -> bool {
    before.nlink() > 1
}

/// Copies the extended attributes of one file to another: labels, access lists, and what programs note down.
pub(super) fn copy_attributes(from: &Path, to: &fs::File) -> io::Result<()> {
    let mut names = vec![0_u8; MAX_ATTRIBUTE];
    let length = match llistxattr(from, names.as_mut_slice()) {
        Ok(length) => length,
        // The file system has none.
        Err(Errno::NOTSUP) => 0,
        Err(error) => return Err(error.into()),
    };
    names.truncate(length);
    let mut value = vec![0_u8; MAX_ATTRIBUTE];
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let length = lgetxattr(from, name, value.as_mut_slice())?;
        let value = value.get(..length).unwrap_or_default();
        fsetxattr(to, name, value, XattrFlags::empty())?;
    }
    Ok(())
}

/// Writes new content into a file. Where that fails, the old content is there again.
pub(super) fn in_place(path: &Path, before: &fs::Metadata, content: &str) -> io::Result<()> {
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut file = fs::OpenOptions::new().read(true).write(true).custom_flags(no_follow).open(path)?;
    let now = file.metadata()?;
    if (now.dev(), now.ino()) != (before.dev(), before.ino()) {
        return Err(io::Error::other("another file was put in its place meanwhile"));
    }
    // What follows is not written over until the new content is there.
    let mut old = Vec::new();
    (&file).take(content.len() as u64).read_to_end(&mut old)?;
    let written = overwrite(&mut file, content.as_bytes());
    written.map_err(|error| match overwrite(&mut file, &old).and_then(|()| file.set_len(now.len())) {
        Ok(()) => error,
        Err(other) => io::Error::new(
            error.kind(),
            format!("{error}; a part of the new content is in it, and the old content could not be restored: {other}"),
        ),
    })?;
    file.set_len(content.len() as u64)
}

fn overwrite(file: &mut fs::File, content: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(content)
}
