//! `read_file`: the text of a file, whole or some lines of it.

use flow::ToolOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use super::said;
use crate::Failure;
use crate::blocking::Access;
use crate::text::{self, count};
use crate::workspace::Workspace;

pub(crate) const ABOUT: &str = "Reads a text file of the workspace, exactly as it is. A long file is given in parts: \
                                the last line then says where to continue. Binary files are refused.";

/// Lines that are given when nothing else is asked for.
const DEFAULT_LINES: usize = 2000;
/// The most bytes of one answer: what a model can still use.
const MAX_BYTES: usize = 256 << 10;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file, relative to the workspace.
    pub(crate) path: String,
    /// The first line to read, counted from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// How many lines to read; 2000 when left out.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<usize>,
}

pub(crate) fn run(workspace: &Workspace, access: &Access, arguments: &Arguments) -> Result<ToolOutput, Failure> {
    let file = workspace.resolve(&arguments.path)?;
    let (first, most) = (arguments.offset.unwrap_or(1), arguments.limit.unwrap_or(DEFAULT_LINES));
    if first == 0 || most == 0 {
        return Err(Failure::new("`offset` and `limit` count from 1"));
    }
    let content = text::read(&file, access)?;
    if content.is_empty() {
        return Ok(said(format!("[`{}` is empty]", file.shown())));
    }
    let lines: Vec<&str> = content.split_inclusive('\n').collect();
    if first > lines.len() {
        let has = count(lines.len(), "line");
        return Err(Failure(format!("`{}` has {has}; there is nothing from line {first} on", file.shown())));
    }
    let mut out = String::new();
    let mut taken = 0;
    for line in lines.iter().skip(first - 1).take(most) {
        if out.len() + line.len() > MAX_BYTES {
            break;
        }
        out.push_str(line);
        taken += 1;
    }
    // One line longer than an answer may be: its beginning is better than nothing.
    if taken == 0 {
        let line = lines[first - 1];
        out.push_str(&line[..line.floor_char_boundary(MAX_BYTES)]);
        out.push_str(&format!("\n[line {first} has {} bytes; the first {MAX_BYTES} are shown]", line.len()));
        taken = 1;
    }
    let last = first + taken - 1;
    if last < lines.len() {
        let end = if out.ends_with('\n') { "" } else { "\n" };
        let all = lines.len();
        out.push_str(&format!("{end}[lines {first} to {last} of {all}; continue with \"offset\": {}]", last + 1));
    }
    Ok(said(out))
}
