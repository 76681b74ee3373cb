//! Walking through the workspace as its owner sees it: without what `.gitignore` and `.ignore` leave out, and without
//! `.git`. Links are not followed, so a walk never leaves the workspace and never goes in circles. Files that are not on the disk
//! come last.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;

use crate::Failure;
use crate::blocking::Access;

/// The maximum number of places that one walk visits.
pub(crate) const MAX_FILES: usize = if cfg!(test) { 200 } else { 200_000 };

/// What a walk comes to, other than folders.
pub(crate) enum Place {
    File(PathBuf),
    Link(PathBuf),
    /// A pipe, a socket or a device.
    Special(PathBuf),
    /// A folder or a file that cannot be read.
    Unread(PathBuf),
    /// An ignore file of which a part cannot be used.
    BadIgnore(PathBuf),
}

impl Place {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Link(path) | Self::Special(path) | Self::Unread(path) | Self::BadIgnore(path) => {
                path
            }
        }
    }
}

/// Walks the tree below `folder`. `ignored`: includes files that ignore files exclude.
fn walk(folder: &Path, ignored: bool) -> WalkBuilder {
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
    builder
}

/// Lists the files below a folder, relative to it and sorted by name, without files that `.gitignore` and `.ignore` exclude, and without
/// `.git`. Visits at most `most` entries; the second value is whether there are more. Blocks.
pub fn files_of(folder: &Path, most: usize) -> (Vec<PathBuf>, bool) {
    let (mut files, mut is_cut) = (Vec::new(), false);
    for (count, entry) in walk(folder, false).build().enumerate() {
        if count > most {
            is_cut = true;
            break;
        }
        // A folder that cannot be read has no files.
        let Ok(entry) = entry else { continue };
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        files.extend(entry.path().strip_prefix(folder).ok().filter(|_| is_file).map(Path::to_owned));
    }
    (files, is_cut)
}

/// Lists all entries below `folder` (or `folder` itself if it is a file), sorted by name.
///
/// # Errors
/// A file that is not on disk cannot be listed.
pub(crate) fn places(
    access: &Access,
    folder: &Path,
    ignored: bool,
) -> Result<impl Iterator<Item = Place> + use<>, Failure> {
    let builder = walk(folder, ignored);
    let root = folder.to_owned();
    let place = move |entry: Result<ignore::DirEntry, ignore::Error>| match entry {
        Ok(entry) => {
            let kind = entry.file_type()?;
            if let Some(error) = entry.error().filter(|_| !ignored) {
                return Some(Place::BadIgnore(path_of(error).unwrap_or(entry.path()).to_owned()));
            }
            let of_kind = if kind.is_symlink() {
                Place::Link
            } else if kind.is_file() {
                Place::File
            } else {
                Place::Special
            };
            (!kind.is_dir()).then(|| of_kind(entry.into_path()))
        }
        Err(error) => Some(Place::Unread(path_of(&error).unwrap_or(&root).to_owned())),
    };
    let unsaved = access.unsaved(folder)?;
    // There is nothing to walk where all that is there is not on the disk.
    let on_disk = folder.symlink_metadata().is_ok().then(|| builder.build().filter_map(place));
    Ok(on_disk.into_iter().flatten().chain(unsaved.into_iter().map(Place::File)))
}

/// Says that a walk ended early.
pub(crate) fn stopped() -> String {
    format!("[stopped after {MAX_FILES} files; narrow the path]")
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use flow::ports::Tools;
    use flow::{CallId, ToolCall};
    use serde_json::{Value, json};

    use super::MAX_FILES;
    use crate::{BuiltinTools, ToolSettings};

    /// The last file is one too many.
    #[tokio::test]
    async fn a_search_ends_after_a_number_of_files_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let tools = BuiltinTools::new(folder.path(), ToolSettings::default()).unwrap();
        let said = async |name: &str, arguments: Value| {
            let call = ToolCall { id: CallId::new("1"), name: name.to_owned(), arguments: arguments.to_string() };
            tools.prepare(&call).run(&|_| {}).await.content
        };
        let both = async || {
            [said("grep", json!({"pattern": "needle"})).await, said("find", json!({"pattern": "z.txt"})).await]
        };
        for name in 0..MAX_FILES {
            std::fs::write(folder.path().join(format!("{name:03}")), "").unwrap();
        }
        let none = ["[no line matches `needle`]", "[no file matches `z.txt`]"];
        assert_eq!(both().await, none, "all of {MAX_FILES} files");
        std::fs::write(folder.path().join("z.txt"), "needle\n").unwrap();
        let stopped = format!("[stopped after {MAX_FILES} files; narrow the path]");
        assert_eq!(both().await, none.map(|none| format!("{none}\n{stopped}")));
    }
}
