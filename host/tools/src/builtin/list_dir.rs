//! `list_dir`: what is in a folder.

use std::fs;
use std::path::Path;

use flow::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::find::target;
use super::{here, said};
use crate::Failure;
use crate::blocking::Access;
use crate::text::{count, shown};
use crate::workspace::Workspace;

pub(crate) const ABOUT: &str = "Lists a folder of the workspace, hidden files included: folders end with `/`, links show \
                                where they lead, files show their size in bytes.";

/// The most entries that are shown.
const MAX_ENTRIES: usize = 1000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The folder, relative to the workspace; the workspace itself when left out.
    #[serde(default = "here")]
    pub(crate) path: String,
}

pub(crate) fn run(workspace: &Workspace, access: &Access, arguments: &Arguments) -> Result<ToolOutput, Failure> {
    let folder = workspace.resolve(&arguments.path)?;
    let name = &folder.shown();
    let unsaved = access.unsaved(&folder.absolute)?;
    if !folder.exists && unsaved.is_empty() {
        return Err(Failure(format!("there is no folder `{name}`; `find` shows what is there")));
    }
    if folder.exists && !folder.absolute.is_dir() {
        return Err(Failure(format!("`{name}` is a file; `read_file` shows it")));
    }
    let failed = |error: std::io::Error| Failure(format!("`{name}` cannot be listed: {error}"));
    let mut entries = Vec::new();
    // A folder of unsaved files alone is not on the disk.
    if folder.exists {
        for entry in fs::read_dir(&folder.absolute).map_err(failed)? {
            entries.push(line(access, &entry.map_err(failed)?));
        }
    }
    let here = unsaved.iter().filter(|path| path.parent() == Some(&*folder.absolute));
    entries.extend(here.map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("{} ({})", shown(&name), size(access, path, 0))
    }));
    if entries.is_empty() {
        return Ok(said(format!("[`{name}` is empty]")));
    }
    entries.sort();
    let all = entries.len();
    entries.truncate(MAX_ENTRIES);
    if all > MAX_ENTRIES {
        entries.push(format!("[and {} more; `find` with a pattern narrows it]", all - MAX_ENTRIES));
    }
    Ok(said(entries.join("\n")))
}

/// The size of a file as its readers see it; that on the disk where it cannot be asked for.
fn size(access: &Access, path: &Path, on_disk: u64) -> String {
    let seen = access.status(path).ok().flatten().map_or(on_disk, |status| status.bytes);
    count(usize::try_from(seen).unwrap_or(usize::MAX), "byte")
}

fn line(access: &Access, entry: &fs::DirEntry) -> String {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    let name = shown(&name);
    match entry.metadata() {
        Ok(about) if about.is_dir() => format!("{name}/"),
        Ok(about) if about.is_symlink() => format!("{name} -> {}", target(&entry.path())),
        Ok(about) if about.is_file() => format!("{name} ({})", size(access, &entry.path(), about.len())),
        Ok(about) => format!("{name} ({})", count(usize::try_from(about.len()).unwrap_or(usize::MAX), "byte")),
        Err(error) => format!("{name} [{error}]"),
    }
}
