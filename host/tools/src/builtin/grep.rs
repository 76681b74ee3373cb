//! `grep`: lines that match a regular expression.

mod lines;

use std::path::Path;

use flow::ToolOutput;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use lines::FileSink;

use super::find::Glob;
use super::skipped::{Reason, Skipped};
use super::walk::{self, Place};
use super::{here, left_out, said};
use crate::blocking::Access;
use crate::text::{Encoding, MAX_FILE_BYTES, shown};
use crate::{Failure, Shared};

pub(crate) const ABOUT: &str = "Searches text files of the workspace for lines that match a regular expression, and \
                                returns them as path:line:text. Files ignored by .gitignore, `.git` and binary files are \
                                skipped, and links are not followed.";

/// Matching lines that are given when nothing else is asked for, and the most that can be.
const DEFAULT_MATCHES: usize = 200;
const MAX_MATCHES: usize = 2000;
/// A search of so many files reports its progress.
const MANY_FILES: usize = 100;
/// The most lines of context on each side.
const MAX_CONTEXT: usize = 20;
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
    /// Why there is more than what is given.
    stopped: Option<Stop>,
    skipped: Skipped,
}

/// Why a search ended early.
#[derive(Clone, Copy)]
enum Stop {
    Matches,
    Bytes,
    Files,
}

pub(crate) fn run(shared: &Shared, access: &Access, arguments: &Arguments) -> Result<ToolOutput, Failure> {
    let place = shared.workspace.resolve(&arguments.path)?;
    if !place.exists && access.unsaved(&place.absolute)?.is_empty() {
        return Err(Failure(format!("there is no `{}`; omit `path` to search everywhere", place.shown())));
    }
    if arguments.limit == Some(0) {
        return Err(Failure::new("`limit` counts from 1; leave it out for 200 matching lines"));
    }
    let matcher = matcher(&arguments.pattern, arguments.ignore_case)?;
    let mut searcher = searcher(arguments.context.min(MAX_CONTEXT));
    let most = arguments.limit.unwrap_or(DEFAULT_MATCHES).min(MAX_MATCHES);
    let mut found = Found { out: String::new(), matches: 0, most, stopped: None, skipped: Skipped::default() };
    let (wanted, looked) = wanted(access, &place.absolute, arguments)?;
    for (searched, one) in wanted.iter().enumerate() {
        if access.is_stopped() || found.stopped.is_some() {
            break;
        }
        report(access, searched, wanted.len());
        found.look_into(shared, access, one, (&matcher, &mut searcher));
    }
    if looked > walk::MAX_FILES {
        found.stopped.get_or_insert(Stop::Files);
    }
    let is_whole = arguments.include_ignored || found.stopped.is_some() || found.matches > 0;
    let left_out = if is_whole { None } else { left_out(access, &place.absolute, looked)? };
    Ok(said(rendered(found, arguments, left_out)))
}

/// The places that are searched, and how many were looked at: one more than the most where there are more.
fn wanted(access: &Access, folder: &Path, arguments: &Arguments) -> Result<(Vec<Place>, usize), Failure> {
    let glob = arguments.glob.as_deref().map(Glob::new).transpose()?;
    let (mut wanted, mut looked) = (Vec::new(), 0);
    for one in walk::places(access, folder, arguments.include_ignored)? {
        if access.is_stopped() {
            break;
        }
        looked += 1;
        if looked > walk::MAX_FILES {
            break;
        }
        if matches!(one, Place::Unread(_) | Place::BadIgnore(_))
            || glob.as_ref().is_none_or(|glob| glob.is_match(folder, one.path()))
        {
            wanted.push(one);
        }
    }
    Ok((wanted, looked))
}

/// Reports each tenth of the files that has been searched, where there are many.
fn report(access: &Access, searched: usize, all: usize) {
    let tenths = |searched: usize| searched * 10 / all;
    if all >= MANY_FILES && searched > 0 && tenths(searched) > tenths(searched - 1) {
        let percent = (tenths(searched) * 10) as f64;
        access.report(format!("searched {searched} of {all} files"), percent);
    }
}

impl Found {
    fn look_into(
        &mut self,
        shared: &Shared,
        access: &Access,
        place: &Place,
        (matcher, searcher): (&RegexMatcher, &mut Searcher),
    ) {
        let relative = shared.workspace.relative(place.path());
        let name = shown(&relative);
        let loaded = match place {
            Place::Link(_) => Err(Reason::Link),
            Place::Special(_) => Err(Reason::Special),
            Place::Unread(_) => Err(Reason::Unread),
            Place::BadIgnore(_) => Err(Reason::BadIgnore),
            Place::File(_) if shared.policy.hides(&relative) => Err(Reason::Restricted),
            Place::File(path) => load(access, path),
        };
        let (bytes, encoding) = match loaded {
            Ok(loaded) => loaded,
            Err(reason) => return self.skipped.add(reason, &name),
        };
        if encoding == Encoding::Other {
            self.skipped.add(Reason::Encoding, &name);
        }
        let mut sink = FileSink { found: self, matcher, name: &name, before: String::new(), is_first: true };
        if searcher.search_slice(matcher, &bytes, &mut sink).is_err() {
            self.skipped.add(Reason::Unread, &name);
        }
    }
}

/// The content of a file; why there is none to search.
fn load(access: &Access, path: &Path) -> Result<(Vec<u8>, Encoding), Reason> {
    match access.status(path) {
        Ok(Some(status)) if status.bytes > MAX_FILE_BYTES => return Err(Reason::Large),
        Ok(Some(_)) => {}
        Ok(None) | Err(_) => return Err(Reason::Unread),
    }
    let bytes = access.read_in_search(path).map_err(|_| Reason::Unread)?;
    match Encoding::of(&bytes) {
        Encoding::Binary => Err(Reason::Binary),
        encoding => Ok((bytes, encoding)),
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

/// The search, with so many lines of context on each side. A byte order mark says how the text is decoded.
fn searcher(context: usize) -> Searcher {
    let mut builder = SearcherBuilder::new();
    builder.bom_sniffing(true).line_number(true);
    builder.before_context(context).after_context(context).build()
}

/// The answer, with what it does not contain.
fn rendered(found: Found, arguments: &Arguments, left_out: Option<&str>) -> String {
    let Found { mut out, matches, most, stopped, skipped } = found;
    if matches == 0 {
        out = format!("[no line matches `{}`]\n", arguments.pattern);
    }
    let mut notes: Vec<String> = left_out.map(str::to_owned).into_iter().collect();
    notes.extend(stopped.map(|stop| match stop {
        Stop::Matches if most == MAX_MATCHES => {
            format!("[stopped after {matches} matching lines, the most that are given; narrow the search]")
        }
        Stop::Matches => format!("[stopped after {matches} matching lines; narrow the search or raise `limit`]"),
        Stop::Bytes => {
            format!(
                "[stopped after {matches} matching lines with {MAX_BYTES} bytes; narrow the search or lower `context`]"
            )
        }
        Stop::Files => walk::stopped(),
    }));
    if arguments.context > MAX_CONTEXT {
        notes.push(format!("[`context` is at most {MAX_CONTEXT} lines]"));
    }
    notes.extend(skipped.lines());
    out.push_str(&notes.join("\n"));
    out.truncate(out.trim_end().len());
    out
}
