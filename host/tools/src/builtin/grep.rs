//! `grep`: lines that match a regular expression.

use std::io;
use std::path::Path;

use flow::ToolOutput;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{find, here, said, walk};
use crate::blocking::Access;
use crate::text::{MAX_FILE_BYTES, as_text};
use crate::{Failure, Shared};

pub(crate) const ABOUT: &str = "Searches text files of the workspace for lines that match a regular expression, and \
                                returns them as path:line:text. Files ignored by .gitignore and binary files are \
                                skipped.";

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
/// Bytes of the cache of its lazy DFA.
const DFA_BYTES: usize = 2 << 20;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The regular expression (syntax of Rust's regex crate: no look-around, no back-references).
    pattern: String,
    /// The file or folder to look in, relative to the workspace; all of the workspace when left out.
    #[serde(default = "here")]
    pub(crate) path: String,
    /// Search only files that match this glob, such as `*.rs`.
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
struct Found {
    out: String,
    matches: usize,
    most: usize,
    /// There are more matching lines than are given.
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
        return Err(Failure(format!("there is no `{}`; omit `path` to search everywhere", place.relative)));
    }
    let matcher = matcher(&arguments.pattern, arguments.ignore_case)?;
    let mut searcher = searcher(arguments.context.min(MAX_CONTEXT));
    let glob = arguments.glob.as_deref().map(find::glob).transpose()?;
    let by_name = !arguments.glob.as_deref().unwrap_or_default().contains('/');
    let most = arguments.limit.unwrap_or(DEFAULT_MATCHES).clamp(1, MAX_MATCHES);
    let mut found = Found { out: String::new(), matches: 0, most, full: false, skipped: Skipped::default() };
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
        let Some(text) = load(access, &file, &mut found.skipped) else { continue };
        let mut sink = FileSink { found: &mut found, name: &name, before: String::new(), is_first: true };
        if searcher.search_slice(&matcher, text.as_bytes(), &mut sink).is_err() {
            found.skipped.unread += 1;
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
    match access.read_in_search(path) {
        // Binary files and other encodings are left out as announced.
        Ok(bytes) => as_text(bytes).ok(),
        Err(_) => {
            skipped.unread += 1;
            None
        }
    }
}

/// The expression, for lines: `^` and `$` match at the ends of each.
fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, Failure> {
    let mut builder = RegexMatcherBuilder::new();
    // A carriage return at the end of a line is not part of it; lines themselves end with line feeds, as for the searcher.
    builder.multi_line(true).crlf(true).line_terminator(Some(b'\n'));
    builder.case_insensitive(ignore_case).size_limit(REGEX_BYTES).dfa_size_limit(DFA_BYTES);
    builder.build(pattern).map_err(|error| Failure(format!("`{pattern}` is not a valid regular expression: {error}")))
}

/// The search, with so many lines of context on each side. What is searched is known to be UTF-8.
fn searcher(context: usize) -> Searcher {
    let mut builder = SearcherBuilder::new();
    builder.bom_sniffing(false).line_number(true);
    builder.before_context(context).after_context(context).build()
}

/// Takes the matching lines of one file.
struct FileSink<'a> {
    found: &'a mut Found,
    name: &'a str,
    /// Context of a match that is not there yet: it is not shown if there are too many matches already.
    before: String,
    is_first: bool,
}

impl FileSink<'_> {
    fn line(&self, mark: char, number: Option<u64>, bytes: &[u8]) -> String {
        let line = String::from_utf8_lossy(bytes);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        format!("{}{mark}{}{mark}{}\n", self.name, number.unwrap_or_default(), shorten(line))
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        let found = &mut *self.found;
        if found.matches == found.most || found.out.len() > MAX_BYTES {
            found.full = true;
            return Ok(false);
        }
        found.matches += 1;
        let is_first = std::mem::replace(&mut self.is_first, false);
        if is_first && searcher.after_context() > 0 && !found.out.is_empty() {
            found.out.push_str("--\n");
        }
        found.out.push_str(&std::mem::take(&mut self.before));
        let line = self.line(':', matched.line_number(), matched.bytes());
        self.found.out.push_str(&line);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let line = self.line('-', context.line_number(), context.bytes());
        match context.kind() {
            SinkContextKind::Before => self.before.push_str(&line),
            SinkContextKind::After | SinkContextKind::Other => self.found.out.push_str(&line),
        }
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.before.push_str("--\n");
        Ok(true)
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
        out = format!("[no line matches `{pattern}`]\n");
    }
    if found.full {
        out.push_str(&format!(
            "[stopped after {} matching lines; narrow the search or raise `limit`]\n",
            found.matches
        ));
    }
    let skipped = found.skipped;
    if skipped.large > 0 {
        out.push_str(&format!("[{} files larger than {MAX_FILE_BYTES} bytes were skipped]\n", skipped.large));
    }
    if skipped.hidden > 0 {
        out.push_str(&format!("[{} files were skipped because `read_file` is restricted for them]\n", skipped.hidden));
    }
    if skipped.unread > 0 {
        out.push_str(&format!("[{} files could not be read]\n", skipped.unread));
    }
    out.truncate(out.trim_end().len());
    out
}
