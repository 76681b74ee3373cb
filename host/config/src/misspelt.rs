//! Files and folders with nearly the name of something that is read: `rule/`, `rules.md`, `error.toml`.

use std::path::{Path, PathBuf};

use flow::text::differs_by_one_letter;

use crate::{errors, events, thread_limits};

/// The folders that are read in the folder of Tidegate, each with its files.
const FOLDERS: [(&str, &str); 2] = [("rules", "NAME.md"), ("agents", "NAME.md")];

/// The files that are read in the folder of Tidegate.
const FILES: [&str; 3] = [events::FILE, thread_limits::FILE, errors::FILE];

/// The endings of files that somebody may have written.
const ENDINGS: [&str; 7] = ["md", "mdc", "toml", "yaml", "yml", "json", "txt"];

/// What is in a folder of Tidegate under a name that is nearly one that is read, each with where it would be.
pub(crate) fn in_folder(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let near = |(path, is_folder): (PathBuf, bool)| {
        let target = target(&path, is_folder)?;
        Some((path, folder.join(target)))
    };
    entries(folder).into_iter().filter_map(near).collect()
}

/// Folders of a workspace that are nearly named as that of Tidegate and have what belongs there.
pub(crate) fn folders(workspace: &Path, own: &str) -> Vec<(PathBuf, PathBuf)> {
    let is_near = |path: &Path| {
        let name = name(path);
        let has_ours = |name: &&str| path.join(name).exists();
        name.starts_with('.')
            && name != own
            && differs_by_one_letter(&name, own)
            && FOLDERS.iter().map(|(folder, _)| *folder).chain(FILES).any(|one| has_ours(&one))
    };
    let all = entries(workspace).into_iter().filter(|(path, is_folder)| *is_folder && is_near(path));
    all.map(|(path, _)| (path, workspace.join(own))).collect()
}

/// Where an entry would be read, relative to its folder. A file of another format than that which is read is not misspelt.
fn target(path: &Path, is_folder: bool) -> Option<PathBuf> {
    let name = name(path);
    let (stem, ending) = name.split_once('.').unwrap_or((&name, ""));
    let is_near = |known: &str| differs_by_one_letter(stem, known);
    if is_folder {
        let known = FOLDERS.iter().map(|(folder, _)| *folder).find(|folder| is_near(folder) && name != *folder);
        return known.map(PathBuf::from);
    }
    if !ENDINGS.contains(&ending) {
        return None;
    }
    // `AGENTS.md` is the file of many hosts, and read in the workspace itself.
    if name.eq_ignore_ascii_case("AGENTS.md") {
        return Some(PathBuf::from("../AGENTS.md"));
    }
    if let Some((folder, file)) = FOLDERS.iter().find(|(folder, _)| is_near(folder)) {
        return Some(Path::new(folder).join(file));
    }
    let known = FILES.into_iter().find(|file| {
        let known = file.split_once('.').map_or(*file, |(stem, _)| stem);
        is_near(known) && stem != known
    });
    known.map(PathBuf::from)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The entries of a folder in the order of their names, and whether each is a folder. One that cannot be read is reported by those who
/// read it.
fn entries(folder: &Path) -> Vec<(PathBuf, bool)> {
    let Ok(read) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<(PathBuf, bool)> =
        read.flatten().map(|entry| (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()))).collect();
    all.sort();
    all
}
