//! Walking through the workspace as its owner sees it: without what `.gitignore` and `.ignore` leave out, and without
//! `.git`. Links are not followed, so a walk never leaves the workspace and never goes in circles. Files that are not on the disk
//! come last.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::blocking::Access;

/// The maximum number of files that one walk visits.
pub(crate) const MAX_FILES: usize = 200_000;

/// A place that could not be read.
pub(crate) struct Unread;

/// All files below `folder` (or `folder` itself, when it is one), in order of their names.
pub(crate) fn files(
    access: &Access,
    folder: &Path,
    ignored: bool,
) -> impl Iterator<Item = Result<PathBuf, Unread>> + use<> {
    let mut builder = WalkBuilder::new(folder);
    builder
        .standard_filters(!ignored)
        // Hidden files are part of a project (`.github`); only the store of git is not for reading.
        .hidden(false)
        // Ignore files apply without a repository too; global ones of the machine do not, so that two machines do not
        // differ.
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git");
    let file = |entry: Result<ignore::DirEntry, ignore::Error>| match entry {
        Ok(entry) => entry.file_type().is_some_and(|kind| kind.is_file()).then(|| Ok(entry.into_path())),
        Err(_) => Some(Err(Unread)),
    };
    let unsaved = access.unsaved(folder);
    // There is nothing to walk where all that is there is not on the disk.
    let on_disk = folder.symlink_metadata().is_ok().then(|| builder.build().filter_map(file));
    on_disk.into_iter().flatten().chain(unsaved.into_iter().map(Ok))
}
