//! `write_file`: puts a file in place, whole.

use std::fs;

use flow::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::said;
use crate::Failure;
use crate::text::{self, count, diff};
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

pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<ToolOutput, Failure> {
    let file = workspace.resolve(&arguments.path)?;
    let (name, content) = (&file.relative, &arguments.content);
    if arguments.path.ends_with('/') || (file.exists && file.absolute.is_dir()) {
        return Err(Failure(format!("`{name}` is a folder; name the file to write")));
    }
    if file.exists && !file.absolute.is_file() {
        return Err(Failure(format!("`{name}` is no regular file; only those are written")));
    }
    let before = if file.exists { text::read(&file).ok() } else { None };
    if before.as_ref() == Some(content) {
        return Ok(said(format!("`{name}` has this content already; nothing was written")));
    }
    if let Some(folder) = file.absolute.parent() {
        let failed = |error| Failure(format!("the folder of `{name}` cannot be made: {error}"));
        fs::create_dir_all(folder).map_err(failed)?;
    }
    text::replace(&file, content)?;
    let size = format!("{}, {}", count(content.lines().count(), "line"), count(content.len(), "byte"));
    let done = if file.exists { "replaced" } else { "created" };
    let mut output = said(format!("{done} `{name}` ({size})"));
    // Of what was no text before, or too large, there is no difference to show.
    if before.is_some() || !file.exists {
        output.diff = diff(name, before.as_deref().unwrap_or_default(), content);
    }
    Ok(output)
}
