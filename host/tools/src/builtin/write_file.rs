//! `write_file`: puts a file in place, whole.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::Failure;
use crate::blocking::Access;
use crate::change::{Before, Change};
use crate::workspace::Workspace;

pub(crate) const ABOUT: &str = "Writes a file of the workspace: creates it, with the folders it needs, or replaces all \
                                of it. To change a part of a file use edit_file.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file, relative to the workspace.
    pub(crate) path: String,
    /// All of its new content.
    content: String,
}

impl Arguments {
    /// The arguments as a question shows them.
    pub(super) fn shown(&self) -> Vec<(&'static str, String)> {
        vec![("path", self.path.clone()), ("content", self.content.clone())]
    }
}

/// What a call with these arguments would do.
pub(crate) fn plan(workspace: &Workspace, access: &Access, arguments: &Arguments) -> Result<Change, Failure> {
    let file = workspace.resolve(&arguments.path)?;
    if arguments.path.ends_with('/') {
        return Err(Failure(format!("`{}` is a folder; name the file to write", file.shown())));
    }
    let before = Before::of(&file, access)?;
    Ok(Change { given: arguments.path.clone(), file, before, after: arguments.content.clone(), done: None })
}
