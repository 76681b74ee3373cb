//! `edit_file`: replaces one part of a file by another. The part must occur exactly once.

use schemars::JsonSchema;
use serde::Deserialize;
use similar::TextDiff;

use crate::Failure;
use crate::blocking::Access;
use crate::change::{Before, Change};
use crate::text::{self, count, line_ends};
use crate::workspace::Workspace;

pub(crate) const ABOUT: &str = "Changes a part of a text file: old_text, which must be in the file exactly once, becomes \
                                new_text. White space counts. To change every occurrence set replace_all. The file keeps \
                                its line ends: CRLF and plain ones in old_text and new_text are taken for those.";

/// How many places are named in an error.
const MAX_PLACES: usize = 10;
/// The number of lines that are searched for the probably intended one.
const MAX_NEAR_LINES: usize = 20_000;
/// From which likeness (0 to 1) a line is worth naming.
const NEAR: f32 = 0.6;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The file, relative to the workspace.
    pub(crate) path: String,
    /// The text to replace, exactly as it is in the file, with enough around it to be there only once.
    old_text: String,
    /// What to put in its place; empty to delete.
    new_text: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Arguments {
    /// The arguments as a question shows them.
    pub(super) fn shown(&self) -> Vec<(&'static str, String)> {
        let mut all =
            vec![("path", self.path.clone()), ("old_text", self.old_text.clone()), ("new_text", self.new_text.clone())];
        all.extend(self.replace_all.then(|| ("replace_all", "true".to_owned())));
        all
    }
}

/// What a call with these arguments would do. `hides`: whether the model is not allowed to read a file, so that an error must
/// not quote from it.
pub(crate) fn plan(
    workspace: &Workspace,
    access: &Access,
    arguments: &Arguments,
    hides: impl Fn(&str) -> bool,
) -> Result<Change, Failure> {
    let file = workspace.resolve(&arguments.path)?;
    let name = &file.shown();
    let before = text::read(&file, access)?;
    if arguments.old_text.is_empty() {
        return Err(Failure(format!("`old_text` is empty; to write all of `{name}` use `write_file`")));
    }
    if arguments.old_text == arguments.new_text {
        return Err(Failure::new("`old_text` and `new_text` are the same; nothing would change"));
    }
    let (old, new) = line_ends::fitted(&before, &arguments.old_text, &arguments.new_text);
    let places: Vec<usize> = before.match_indices(&old).map(|(at, _)| at).collect();
    match places.len() {
        0 if hides(&file.relative) => return Err(Failure(format!("`old_text` is not in `{name}` (0 matches)"))),
        0 => return Err(Failure(not_found(name, &before, &old))),
        1 => {}
        _ if arguments.replace_all => {}
        many => return Err(Failure(ambiguous(name, &before, &places, many))),
    }
    // Few words could ask for more than the machine has: a letter of a large file, exchanged for a long text.
    let grown = (before.len() as u64)
        .saturating_sub((old.len() as u64).saturating_mul(places.len() as u64))
        .saturating_add((new.len() as u64).saturating_mul(places.len() as u64));
    if grown > text::MAX_FILE_BYTES {
        let (most, times) = (text::MAX_FILE_BYTES, count(places.len(), "place"));
        return Err(Failure(format!(
            "`{name}` would have {grown} bytes after a change in {times}, more than the {most} that are written; change \
             fewer places"
        )));
    }
    let after = before.replace(&old, &new);
    let done = Some(format!("`{name}` is changed in {}", count(places.len(), "place")));
    Ok(Change { given: arguments.path.clone(), before: Before::Text(before), file, after, done })
}

fn ambiguous(name: &str, file: &str, places: &[usize], many: usize) -> String {
    let lines: Vec<String> = places.iter().take(MAX_PLACES).map(|at| line_of(file, *at).to_string()).collect();
    let more = if many > MAX_PLACES { ", …" } else { "" };
    format!(
        "`old_text` occurs {many} times in `{name}`, at lines {}{more}; add surrounding lines so that it occurs once, \
         or set `replace_all`",
        lines.join(", ")
    )
}

fn line_of(file: &str, at: usize) -> usize {
    file.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Says that the text is not there, and what was probably meant.
fn not_found(name: &str, file: &str, old: &str) -> String {
    let message = format!("`old_text` is not in `{name}` (0 matches)");
    if let Some(line) = same_but_for_space(file, old) {
        return format!(
            "{message}; line {line} differs from it only in white space: read the file and copy the text exactly"
        );
    }
    match nearest(file, old) {
        Some((line, text)) => {
            format!("{message}; the nearest is line {line}: `{text}`. Read the file and copy the text exactly")
        }
        None if file.lines().nth(MAX_NEAR_LINES).is_some() => {
            format!("{message}, and no similar line is among the first {MAX_NEAR_LINES}; read the file first")
        }
        None => format!("{message}, and no similar line is; read the file first"),
    }
}

/// The line where the text begins when indentation and trailing space do not count.
fn same_but_for_space(file: &str, old: &str) -> Option<usize> {
    let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
    let lines: Vec<&str> = file.lines().map(str::trim).take(MAX_NEAR_LINES).collect();
    if wanted.is_empty() || wanted == [""] {
        return None;
    }
    lines.windows(wanted.len()).position(|window| window == wanted.as_slice()).map(|index| index + 1)
}

/// The line most similar to the first non-blank line of the text.
fn nearest(file: &str, old: &str) -> Option<(usize, String)> {
    let wanted: String = old.lines().map(str::trim).find(|line| !line.is_empty())?.chars().take(200).collect();
    let like = |line: &str| -> f32 {
        let line: String = line.trim().chars().take(200).collect();
        // Texts of very different length are never near; comparing them is the dear part.
        if line.len() * 3 < wanted.len() || wanted.len() * 3 < line.len() {
            return 0.0;
        }
        TextDiff::from_chars(wanted.as_str(), line.as_str()).ratio()
    };
    let scored = file.lines().take(MAX_NEAR_LINES).enumerate().map(|(index, line)| (like(line), index + 1, line));
    let (_, number, line) = scored.filter(|(score, ..)| *score >= NEAR).max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((number, line.trim().chars().take(200).collect()))
}
