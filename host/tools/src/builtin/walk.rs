//! Walking through the workspace as its owner sees it: without what `.gitignore` and `.ignore` leave out, and without
//! `.git`. Links are not followed, so a walk never leaves the workspace and never goes in circles.

use std::path::Path;

use ignore::WalkBuilder;

/// The most files one walk looks at.
pub(crate) const MAX_FILES: usize = 200_000;

/// All files below `folder` (or `folder` itself, when it is one), in order of their names.
pub(crate) fn files(folder: &Path, ignored: bool) -> impl Iterator<Item = Result<ignore::DirEntry, ignore::Error>> {
    let mut builder = WalkBuilder::new(folder);
    builder
        .standard_filters(!ignored)
        // Hidden files are part of a project (`.github`); only the store of git is not for reading.
        .hidden(false)
        // Rules hold without a repository too; those of the person's own machine do not make two machines differ.
        .require_git(false)
        .git_global(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git");
    let is_file = |entry: &Result<ignore::DirEntry, ignore::Error>| match entry {
        Ok(entry) => entry.file_type().is_some_and(|kind| kind.is_file()),
        Err(_) => true,
    };
    builder.build().filter(is_file)
}
