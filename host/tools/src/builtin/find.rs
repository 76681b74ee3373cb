//! `find`: files by name.

use std::path::Path;

use flow::ToolOutput;
use globset::GlobMatcher;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{here, said, walk};
use crate::Failure;
use crate::blocking::Access;
use crate::workspace::Workspace;

pub(crate) const ABOUT: &str = "Finds files of the workspace by a glob: `*.rs` matches names in every folder, \
                                `src/**/*.rs` matches paths. Files ignored by .gitignore are skipped.";

/// The most files that are shown.
const MAX_RESULTS: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The glob: `*` stops at `/`, `**` does not; `?`, `[ab]` and `{a,b}` work too. Without a `/` it is about the
    /// file's name alone, with one about the path below the folder.
    pattern: String,
    /// The folder to look in, relative to the workspace; all of the workspace when left out.
    #[serde(default = "here")]
    pub(crate) path: String,
    /// Look at files that .gitignore leaves out, too.
    #[serde(default)]
    include_ignored: bool,
}

pub(crate) fn run(workspace: &Workspace, access: &Access, arguments: &Arguments) -> Result<ToolOutput, Failure> {
    let folder = workspace.resolve(&arguments.path)?;
    if !folder.exists && access.unsaved(&folder.absolute).is_empty() {
        return Err(Failure(format!("there is no folder `{}`; omit `path` to search everywhere", folder.relative)));
    }
    let glob = glob(&arguments.pattern)?;
    let by_name = !arguments.pattern.contains('/');
    let (mut found, mut more, mut unread, mut looked) = (Vec::new(), 0_usize, 0_usize, 0_usize);
    for entry in walk::files(access, &folder.absolute, arguments.include_ignored) {
        looked += 1;
        if access.is_stopped() || looked > walk::MAX_FILES {
            break;
        }
        let Ok(file) = entry else {
            unread += 1;
            continue;
        };
        let path = if by_name {
            Path::new(file.file_name().unwrap_or_default())
        } else {
            file.strip_prefix(&folder.absolute).unwrap_or(&file)
        };
        if !glob.is_match(path) {
            continue;
        }
        if found.len() < MAX_RESULTS {
            found.push(workspace.relative(&file));
        } else {
            more += 1;
        }
    }
    if found.is_empty() {
        found.push(format!("[no file matches `{}`]", arguments.pattern));
    }
    if more > 0 {
        found.push(format!("[{more} more; narrow the pattern or the path]"));
    }
    if unread > 0 {
        found.push(format!("[{unread} places could not be read]"));
    }
    if looked > walk::MAX_FILES {
        found.push(format!("[stopped after {} files; narrow the path]", walk::MAX_FILES));
    }
    Ok(said(found.join("\n")))
}

/// Reads a glob of the model's.
pub(crate) fn glob(pattern: &str) -> Result<GlobMatcher, Failure> {
    crate::glob::compile(pattern.strip_prefix("./").unwrap_or(pattern), true)
        .map_err(|cause| Failure(format!("`{pattern}` is not a glob: {cause}; for example `*.rs` or `src/**/*.rs`")))
}
