//! Gives a file new content, whole or not at all, and so that it stays the same file: names, owner and attributes are kept.
//!
//! The content is written next to the file and moved over it. Where a file made in that way would not be the same one, it is written in place:
//! it has several names (hard links), its owner or its attributes cannot be given to another file, or nothing can be moved over it.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(unix)]
mod in_place;

/// Why nothing was moved over the file.
enum Trouble {
    /// The content cannot be written.
    Write(io::Error),
    /// It would not be the same file.
    Differs(String),
}

/// Puts `content` into a file. Creates it, and the folders it needs, where there is none.
pub(crate) fn replace(path: &Path, content: &str) -> io::Result<()> {
    let before = match fs::symlink_metadata(path) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let trouble = match &before {
        None => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            let said =
                |error: io::Error| io::Error::new(error.kind(), format!("cannot create its parent folder: {error}"));
            fs::create_dir_all(folder).map_err(said)?;
            moved(path, None, content)
        }
        Some(before) if has_other_names(before) => Err(Trouble::Differs("it has other names (hard links)".to_owned())),
        Some(before) => moved(path, Some(before), content),
    };
    match (trouble, before) {
        (Ok(()), _) => Ok(()),
        (Err(Trouble::Write(error)), _) => Err(error),
        (Err(Trouble::Differs(why)), Some(before)) => in_place(path, &before, content).map_err(|error| {
            let kind = error.kind();
            io::Error::new(
                kind,
                format!("{error}. It is written in place, as another file in its place would differ: {why}"),
            )
        }),
        (Err(Trouble::Differs(why)), None) => Err(io::Error::other(why)),
    }
}

/// Writes a file next to the path and moves it there.
fn moved(path: &Path, before: Option<&fs::Metadata>, content: &str) -> Result<(), Trouble> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let temporary = path.with_file_name(format!(".tidegate-{}-{number}.tmp", std::process::id()));
    // Without a file before, whatever fails is a failure to write.
    let differs = |what: &'static str| {
        move |error: io::Error| match before {
            Some(_) => Trouble::Differs(format!("{what}: {error}")),
            None => Trouble::Write(error),
        }
    };
    let mut out = create(&temporary, before.is_some()).map_err(differs("its folder takes no other file"))?;
    let written = (|| {
        out.write_all(content.as_bytes()).map_err(Trouble::Write)?;
        if let Some(before) = before {
            keep(&out, path, before)?;
        }
        drop(out);
        fs::rename(&temporary, path).map_err(differs("nothing can be moved over it"))
    })();
    written.inspect_err(|_| {
        // The first failure is what matters; the leftover may not even exist.
        let _ = fs::remove_file(&temporary);
    })
}

/// Creates a file. One that replaces another can be read by nobody else until it has the permissions of that one, not even after this process
/// was killed.
fn create(path: &Path, is_private: bool) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    options.open(path)
}

/// Gives a new file the owner and the attributes of the one that it replaces.
#[cfg(unix)]
fn keep(out: &fs::File, path: &Path, before: &fs::Metadata) -> Result<(), Trouble> {
    use std::os::unix::fs::MetadataExt;

    let differs =
        |what: &'static str| move |error: io::Error| Trouble::Differs(format!("{what} cannot be kept: {error}"));
    let new = out.metadata().map_err(Trouble::Write)?;
    let changed = |before: u32, new: u32| (before != new).then_some(before);
    let (user, group) = (changed(before.uid(), new.uid()), changed(before.gid(), new.gid()));
    if user.is_some() || group.is_some() {
        std::os::unix::fs::fchown(out, user, group).map_err(differs("its owner"))?;
    }
    in_place::copy_attributes(path, out).map_err(differs("its extended attributes"))?;
    out.set_permissions(before.permissions()).map_err(differs("its permissions"))
}

#[cfg(not(unix))]
fn keep(out: &fs::File, _: &Path, before: &fs::Metadata) -> Result<(), Trouble> {
    out.set_permissions(before.permissions()).map_err(Trouble::Write)
}

#[cfg(unix)]
use in_place::{has_other_names, in_place};

#[cfg(not(unix))]
fn has_other_names(_: &fs::Metadata) -> bool {
    false
}

#[cfg(not(unix))]
fn in_place(path: &Path, _: &fs::Metadata, content: &str) -> io::Result<()> {
    fs::write(path, content)
}
