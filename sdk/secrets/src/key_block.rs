//! Private keys in blocks, `-----BEGIN … PRIVATE KEY-----`, over their lines, whatever those are wrapped in: a diff, a quote, numbers,
//! a table, tags, strings of a program.

use crate::plausible::looks_random;
use crate::text::{is_base64, looked_at};

/// How many lines a doubt lasts at most: more than a key has before its first long line.
const DOUBTED_LINES: u32 = 16;

/// No key has more lines.
const MOST_LINES: u32 = 1024;

/// A run of base64 of this length with capitals, small letters and digits is a line of a key where one may have begun.
const LINE_OF_KEY: usize = 32;

/// Whether a key block is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct KeyBlock {
    /// The place of the open block, and its lines so far.
    open: Option<(String, u32)>,
    /// A key may have begun: within that many lines, what looks like the middle of one is one.
    doubted_lines: u32,
}

/// What of a line belongs to a key block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A block begins in it: its bytes from here to there.
    Begins(usize, usize),
    /// It is in the open block up to here.
    Inside(usize),
    /// Nothing of it does.
    Outside,
}

impl KeyBlock {
    /// Lines before the next one were not seen, and with them perhaps the one that begins a block.
    pub(crate) fn missed(&mut self) {
        self.doubted_lines = DOUBTED_LINES;
    }

    /// Neither a block nor a doubt is open.
    pub(crate) fn is_settled(&self) -> bool {
        self.open.is_none() && self.doubted_lines == 0
    }

    /// Takes the next line, without its end.
    pub(crate) fn take(&mut self, line: &str, place: &str) -> Part {
        looked_at(line.len());
        let doubted = core::mem::take(&mut self.doubted_lines);
        if let Some((of, lines)) = self.open.take() {
            if of != place {
                self.open = Some((of, lines));
            } else if let Some(end) = end_marker(line, 0) {
                return Part::Inside(end);
            } else if lines < MOST_LINES && !is_over(line) {
                self.open = Some((of, lines + 1));
                return Part::Inside(line.len());
            }
        }
        if let Some((start, body)) = begin_marker(line) {
            return self.begun(line, (start, body), place);
        }
        if doubted > 0 && is_middle(line) {
            self.open = Some((place.to_owned(), 1));
            return Part::Begins(0, line.len());
        }
        if let (true, Some(end)) = (doubted > 0, end_marker(line, 0)) {
            return Part::Begins(0, end);
        }
        if doubted > 0 && !is_over(line) {
            self.doubted_lines = doubted - 1;
        }
        Part::Outside
    }

    fn begun(&mut self, line: &str, (start, body): (usize, usize), place: &str) -> Part {
        if let Some(end) = end_marker(line, body) {
            let has_key = key_runs(&line[body..end]).any(|run| run.len() >= 16 || is_short_key(run));
            return if has_key { Part::Begins(start, end) } else { Part::Outside };
        }
        let rest = undecorated(&line[body..]);
        let is_literal = line[body..].starts_with(['"', '\'', '`']);
        let key_follows = key_runs(rest).next().is_some_and(|run| rest.starts_with(run) && run.len() >= 16);
        if key_follows || (rest.is_empty() && !is_literal) {
            self.open = Some((place.to_owned(), 1));
            return Part::Begins(start, line.len());
        }
        // A line of a program, or words about such a line; the key may follow in the same form.
        self.doubted_lines = DOUBTED_LINES;
        Part::Outside
    }
}

/// Where `-----BEGIN … PRIVATE KEY-----` begins in a line, and where it ends.
pub(crate) fn begin_marker(line: &str) -> Option<(usize, usize)> {
    // The format of PuTTY has no dashes.
    if let Some(at) = line.find("Private-Lines: ") {
        let end = line[at..].find(|c: char| c.is_ascii_digit()).map_or(line.len(), |number| at + number + 1);
        return Some((at, end));
    }
    for (start, _) in line.match_indices("BEGIN ") {
        let dashes = line[..start].bytes().rev().take_while(|byte| matches!(byte, b'-' | b' ')).count();
        let label = &line[start..line.floor_char_boundary(start + 120)];
        let Some(end) = label.find("--") else { continue };
        let is_private = label[..end].contains("PRIVATE KEY");
        if dashes >= 4 && is_private {
            let close = label[end..].bytes().take_while(|byte| *byte == b'-').count();
            let begin = start - line[start - dashes..start].trim_start().len();
            return Some((begin, start + end + close));
        }
    }
    None
}

/// Where the end of a block ends that is behind `from`.
fn end_marker(line: &str, from: usize) -> Option<usize> {
    let start = from + line.get(from..)?.find("-END ").or_else(|| line[from..].find("- END "))?;
    let label = start + 5;
    let close = line[label..].find("--").map_or(line.len(), |at| label + at);
    Some(close + line[close..].bytes().take_while(|byte| *byte == b'-').count())
}

/// Without what wraps a line: blanks, quotes, marks of lists and tables, tags, escapes of line ends.
fn undecorated(text: &str) -> &str {
    let mut rest = text;
    loop {
        let before = rest;
        rest = rest.trim_start_matches([
            ' ', '\t', '"', '\'', '`', ',', ';', '>', '|', '+', '*', '.', ')', ']', '}', '~', '\r',
        ]);
        for escape in ["\\n", "\\r", "\\t", "\\\\", "\\"] {
            rest = rest.strip_prefix(escape).unwrap_or(rest);
        }
        if rest.starts_with('<')
            && let Some(end) = rest.find('>')
        {
            rest = &rest[end + 1..];
        }
        if rest.len() == before.len() {
            return rest.trim_end();
        }
    }
}

/// The runs of base64 of a text.
fn key_runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii() || !is_base64(c as u8)).filter(|run| !run.is_empty())
}

/// A few letters of a key: capitals or digits, as no word has them.
fn is_short_key(run: &str) -> bool {
    run.len() >= 3 && run.bytes().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

/// The middle of a key where its beginning may have been missed.
fn is_middle(line: &str) -> bool {
    let of_key = ["Proc-Type:", "DEK-Info:"].iter().any(|name| undecorated(line).starts_with(name));
    let is_long = |run: &str| {
        run.len() >= LINE_OF_KEY
            && looks_random(run.as_bytes())
            && run.bytes().any(|byte| byte.is_ascii_uppercase())
            && run.bytes().any(|byte| byte.is_ascii_lowercase())
    };
    of_key || key_runs(line).any(is_long)
}

/// Words behind a key whose end is missing: no line of a block, however it is wrapped, has two of them and no part of a key.
fn is_over(line: &str) -> bool {
    let text = line.trim_start_matches(['>', ' ', '\t', '|', '+', '-']);
    if text.starts_with("```") || text.starts_with("~~~") {
        return true;
    }
    if is_header(text) || key_runs(text).any(|run| run.len() >= 16 && looks_random(run.as_bytes())) {
        return false;
    }
    let is_word = |word: &&str| {
        // A quoted word is a string, of a program that writes the key.
        let word = word.trim_matches(['.', ',', ';', ':', '!', '?', '(', ')', '*', '_']);
        word.chars().count() >= 2
            && word.chars().all(char::is_alphabetic)
            && word.chars().skip(1).all(char::is_lowercase)
    };
    text.split_whitespace().filter(is_word).count() >= 2
}

/// `Name: value`, as between the beginning of a block and its key.
fn is_header(line: &str) -> bool {
    let known = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Charset:", "MessageID:", "Hash:"];
    let text = undecorated(line);
    known.iter().any(|name| text.starts_with(name))
        || text.split_once(": ").is_some_and(|(name, _)| {
            name.contains('-') && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}
