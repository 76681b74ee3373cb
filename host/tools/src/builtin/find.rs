//! `find`: files by name.

use std::path::Path;

use flow::ToolOutput;
use globset::GlobMatcher;
use schemars::JsonSchema;
use serde::Deserialize;

use super::skipped::{Reason, Skipped};
use super::walk::{self, Place};
use super::{here, left_out, said};
use crate::Failure;
use crate::blocking::Access;
use crate::text::shown;
use crate::workspace::Workspace;

pub(crate) const ABOUT: &str = "Finds files of the workspace by a glob: `*.rs` matches names in every folder, \
                                `src/**/*.rs` matches paths. Links are shown with the place they lead \
                                to. Files ignored by .gitignore are skipped, and `.git` always is.";

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
    if !folder.exists && access.unsaved(&folder.absolute)?.is_empty() {
        let name = folder.shown();
        return Err(Failure(format!("there is no folder `{name}`; omit `path` to search everywhere")));
    }
    let glob = Glob::new(&arguments.pattern)?;
    let (mut found, mut more, mut looked, mut skipped) = (Vec::new(), 0_usize, 0_usize, Skipped::default());
    for place in walk::places(access, &folder.absolute, arguments.include_ignored)? {
        looked += 1;
        if access.is_stopped() || looked > walk::MAX_FILES {
            break;
        }
        let name = workspace.relative(place.path());
        let name = shown(&name);
        match &place {
            Place::Unread(_) => skipped.add(Reason::Unread, &name),
            Place::BadIgnore(_) => skipped.add(Reason::BadIgnore, &name),
            _ if !glob.is_match(&folder.absolute, place.path()) => {}
            _ if found.len() == MAX_RESULTS => more += 1,
            Place::Link(link) => found.push(format!("{name} -> {}", target(link))),
            Place::File(_) | Place::Special(_) => found.push(name.into_owned()),
        }
    }
    if found.is_empty() {
        found.push(format!("[no file matches `{}`]", arguments.pattern));
        let is_whole = arguments.include_ignored || looked > walk::MAX_FILES;
        let left_out = if is_whole { None } else { left_out(access, &folder.absolute, looked)? };
        found.extend(left_out.map(str::to_owned));
    }
    if more > 0 {
        found.push(format!("[{more} more; narrow the pattern or the path]"));
    }
    found.extend(skipped.lines());
    if looked > walk::MAX_FILES {
        found.push(walk::stopped());
    }
    Ok(said(found.join("\n")))
}

/// Where a link leads, for an answer.
pub(super) fn target(link: &Path) -> String {
    match std::fs::read_link(link) {
        Ok(target) => shown(&target.to_string_lossy()).into_owned(),
        Err(error) => format!("[{error}]"),
    }
}

/// A glob of the model's: about the path below the folder where it has a `/`, else about the name alone.
pub(super) struct Glob {
    matcher: GlobMatcher,
    by_name: bool,
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Result<Self, Failure> {
        let matcher = crate::glob::compile(pattern.strip_prefix("./").unwrap_or(pattern), true);
        let said = |cause| Failure(format!("`{pattern}` is not a glob: {cause}; for example `*.rs` or `src/**/*.rs`"));
        Ok(Self { matcher: matcher.map_err(said)?, by_name: !pattern.contains('/') })
    }

    pub(super) fn is_match(&self, folder: &Path, file: &Path) -> bool {
        let name = || Path::new(file.file_name().unwrap_or_default());
        self.matcher.is_match(if self.by_name { name() } else { file.strip_prefix(folder).unwrap_or(file) })
    }
}
