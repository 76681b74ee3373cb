//! Lines of an answer: matches, and the lines around them.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkContextKind, SinkMatch};

use super::{Found, MAX_BYTES, Stop};

/// Bytes of a line that are shown; minified files have lines of megabytes.
const MAX_LINE_BYTES: usize = 400;
/// How many of them are before the match, where that is further back in the line.
const MAX_BEFORE: usize = 100;

/// Takes the matching lines of one file.
pub(super) struct FileSink<'a> {
    pub(super) found: &'a mut Found,
    pub(super) matcher: &'a RegexMatcher,
    pub(super) name: &'a str,
    /// Context of a match that is not there yet: it is not shown if there are too many matches already.
    pub(super) before: String,
    pub(super) is_first: bool,
}

impl FileSink<'_> {
    fn line(&self, mark: char, number: Option<u64>, bytes: &[u8]) -> String {
        let line = String::from_utf8_lossy(bytes);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let found = self.matcher.find(bytes).ok().flatten().filter(|_| mark == ':');
        let before = found.and_then(|found| bytes.get(..found.start())).unwrap_or_default();
        let at = String::from_utf8_lossy(before).len();
        format!("{}{mark}{}{mark}{}\n", self.name, number.unwrap_or_default(), shorten(line, at))
    }
}

impl Sink for FileSink<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, matched: &SinkMatch<'_>) -> io::Result<bool> {
        let found = &mut *self.found;
        let is_full = found.matches == found.most;
        if is_full || found.out.len() > MAX_BYTES {
            found.stopped = Some(if is_full { Stop::Matches } else { Stop::Bytes });
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

/// A part of a long line, around the byte where the match begins.
fn shorten(line: &str, at: usize) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let start =
        if at + MAX_BEFORE < MAX_LINE_BYTES { 0 } else { line.floor_char_boundary(at.saturating_sub(MAX_BEFORE)) };
    let end = line.floor_char_boundary(start.saturating_add(MAX_LINE_BYTES));
    let omitted = |bytes: usize| if bytes > 0 { format!("[… {bytes} bytes omitted …]") } else { String::new() };
    let (before, after) = (omitted(start), omitted(line.len() - end));
    let parts = [before.as_str(), line.get(start..end).unwrap_or_default(), after.as_str()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
