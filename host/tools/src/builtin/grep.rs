//! `grep`: lines that a regular expression fits.

use std::path::Path;

use flow::ToolOutput;
use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{find, here, said, walk};
use crate::blocking::Access;
use crate::text::{MAX_FILE_BYTES, as_text};
use crate::{Failure, Shared};

pub(crate) const ABOUT: &str = "Searches text files of the workspace for lines that a regular expression fits, and gives \
                                them as path:line:text. Files that .gitignore leaves out, and binary files, are left out.";

/// Matching lines that are given when nothing else is asked for, and the most that can be.
const DEFAULT_MATCHES: usize = 200;
const MAX_MATCHES: usize = 2000;
/// The most lines of context on each side.
const MAX_CONTEXT: usize = 20;
/// Bytes of a line that are shown; minified files have lines of megabytes.
const MAX_LINE_BYTES: usize = 400;
/// The most bytes of one answer.
const MAX_BYTES: usize = 256 << 10;
/// Bytes of a compiled expression; the search itself is linear in the text, whatever the expression.
const REGEX_BYTES: usize = 4 << 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The regular expression (syntax of Rust's regex crate: no look-around, no back-references).
    pattern: String,
    /// The file or folder to look in, relative to the workspace; all of the workspace when left out.
    #[serde(default = "here")]
    pub(crate) path: String,
    /// Look only at files that fit this glob, such as `*.rs`.
    #[serde(default)]
    glob: Option<String>,
    /// Upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// Lines to show before and after each match, at most 20.
    #[serde(default)]
    #[schemars(range(max = 20))]
    context: usize,
    /// How many matching lines to give; 200 when left out, at most 2000.
    #[serde(default)]
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<usize>,
    /// Look at files that .gitignore leaves out, too.
    #[serde(default)]
    include_ignored: bool,
}

/// What a search has found so far.
#[derive(Default)]
struct Found {
    out: String,
    matches: usize,
    full: bool,
    skipped: Skipped,
}

/// Files that were not searched, by reason.
#[derive(Default)]
struct Skipped {
    large: usize,
    hidden: usize,
    unread: usize,
}

pub(crate) fn run(shared: &Shared, access: &Access, arguments: &Arguments) -> Result<ToolOutput, Failure> {
    let place = shared.workspace.resolve(&arguments.path)?;
    if !place.exists && access.unsaved(&place.absolute).is_empty() {
        return Err(Failure(format!("there is no `{}`; leave `path` out to look everywhere", place.relative)));
    }
    let regex =
        RegexBuilder::new(&arguments.pattern).case_insensitive(arguments.ignore_case).size_limit(REGEX_BYTES).build();
    let regex = regex.map_err(|error| Failure(format!("`{}` is no usable expression: {error}", arguments.pattern)))?;
    let glob = arguments.glob.as_deref().map(find::glob).transpose()?;
    let by_name = !arguments.glob.as_deref().unwrap_or_default().contains('/');
    let most = arguments.limit.unwrap_or(DEFAULT_MATCHES).clamp(1, MAX_MATCHES);
    let mut found = Found::default();
    for (looked, entry) in walk::files(access, &place.absolute, arguments.include_ignored).enumerate() {
        if access.is_stopped() || found.full || looked >= walk::MAX_FILES {
            break;
        }
        let Ok(file) = entry else {
            found.skipped.unread += 1;
            continue;
        };
        let below = if by_name {
            Path::new(file.file_name().unwrap_or_default())
        } else {
            file.strip_prefix(&place.absolute).unwrap_or(&file)
        };
        if glob.as_ref().is_some_and(|glob| !glob.is_match(below)) {
            continue;
        }
        let name = shared.workspace.relative(&file);
        if shared.policy.hides(&name) {
            found.skipped.hidden += 1;
            continue;
        }
        if let Some(text) = load(access, &file, &mut found.skipped) {
            search(&mut found, &regex, &name, &text, arguments.context.min(MAX_CONTEXT), most);
        }
    }
    Ok(said(told(found, &arguments.pattern)))
}

/// The file's text; `None` where it is none, or cannot be read, which is counted.
fn load(access: &Access, path: &Path, skipped: &mut Skipped) -> Option<String> {
    match access.status(path) {
        Ok(Some(status)) if status.bytes > MAX_FILE_BYTES => {
            skipped.large += 1;
            return None;
        }
        Ok(Some(_)) => {}
        Ok(None) | Err(_) => {
            skipped.unread += 1;
            return None;
        }
    }
    match access.read(path) {
        // Binary files and other encodings are left out as announced.
        Ok(bytes) => as_text(bytes).ok(),
        Err(_) => {
            skipped.unread += 1;
            None
        }
    }
}

fn search(found: &mut Found, regex: &Regex, name: &str, text: &str, context: usize, most: usize) {
    // Most files hold no match; finding that out does not need their lines.
    if !regex.is_match(text) && !regex.as_str().contains(['^', '$', '\\']) {
        return;
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = 0;
    for (index, line) in lines.iter().enumerate() {
        if !regex.is_match(line) {
            continue;
        }
        if found.matches == most || found.out.len() > MAX_BYTES {
            found.full = true;
            return;
        }
        found.matches += 1;
        let first = index.saturating_sub(context).max(shown);
        if context > 0 && first > shown && !found.out.is_empty() {
            found.out.push_str("--\n");
        }
        let last = (index + context).min(lines.len() - 1);
        for (at, line) in lines.iter().enumerate().take(last + 1).skip(first) {
            // A later match inside this one's context is shown as a match of its own.
            if at > index && regex.is_match(line) {
                break;
            }
            let mark = if at == index { ':' } else { '-' };
            found.out.push_str(&format!("{name}{mark}{}{mark}{}\n", at + 1, shorten(line)));
            shown = at + 1;
        }
    }
}

fn shorten(line: &str) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    format!("{} [… {} bytes]", &line[..line.floor_char_boundary(MAX_LINE_BYTES)], line.len())
}

fn told(found: Found, pattern: &str) -> String {
    let mut out = found.out;
    if found.matches == 0 {
        out = format!("[no line fits `{pattern}`]\n");
    }
    if found.full {
        out.push_str(&format!(
            "[stopped after {} matching lines; narrow the search or raise `limit`]\n",
            found.matches
        ));
    }
    let skipped = found.skipped;
    if skipped.large > 0 {
        out.push_str(&format!("[{} files larger than {MAX_FILE_BYTES} bytes were left out]\n", skipped.large));
    }
    if skipped.hidden > 0 {
        out.push_str(&format!("[{} files were left out because `read_file` is restricted for them]\n", skipped.hidden));
    }
    if skipped.unread > 0 {
        out.push_str(&format!("[{} files could not be read]\n", skipped.unread));
    }
    out.truncate(out.trim_end().len());
    out
}
