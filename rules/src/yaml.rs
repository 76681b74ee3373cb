//! YAML front matter, as far as rule files use it: keys with scalars and lists. It is read as leniently as the files
//! have always been: text that is not YAML (`condition: *.rs`, `scope: "text","thinking"`) is taken literally, and a line that is nothing costs
//! none of the others. What is no file of this kind is read by `config::yaml`, which refuses all of that.

mod scalar;

use std::ops::Range;

pub(crate) use scalar::{FlawKind, Scalar};
use scalar::{Piece, scalar};

/// One key with its value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// The position of the key in the text given to [`parse`], in bytes.
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

/// A value; words such as `true` are strings here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    One(Scalar),
    Many(Vec<Scalar>),
}

impl Value {
    /// The value as one string.
    pub(crate) fn text(&self) -> String {
        self.scalars().iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn scalars(&self) -> &[Scalar] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// A line of the text, without its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'t> {
    at: usize,
    text: &'t str,
}

/// Reads the entries in order. Lines that are none are passed over and given back with their places.
pub(crate) fn parse(text: &str) -> (Vec<Entry>, Vec<Range<usize>>) {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lines.push(Line { at, text: line.trim_end_matches(['\n', '\r']) });
        at += line.len();
    }
    let (mut entries, mut strange, mut next): (Vec<Entry>, _, _) = (Vec::new(), Vec::new(), 0);
    let mut anchors: Vec<(String, Value)> = Vec::new();
    while next < lines.len() {
        let line = lines[next];
        next += 1;
        if line.text.trim().is_empty() || line.text.trim_start().starts_with('#') {
            continue;
        }
        let Some((key, after)) = split_key(line.text) else {
            strange.push(line.at..line.at + line.text.len());
            continue;
        };
        let below = lines[next..].iter().take_while(|line| belongs_to_key(line.text)).count();
        let first = Piece { at: line.at + after, text: &line.text[after..] }.trimmed();
        let value = anchored(first, &lines[next..next + below], &mut anchors);
        next += below;
        let span = line.at..line.at + key.len();
        entries.push(Entry { key: key.trim_matches(['"', '\'']).to_owned(), span, value });
    }
    (entries, strange)
}

/// The key, which begins at the line's first byte, and where its value begins: after a colon before a blank or the
/// line's end.
fn split_key(line: &str) -> Option<(&str, usize)> {
    let colon = line.find(':')?;
    let key = line[..colon].trim_end();
    let quoted = ['"', '\''].iter().find_map(|quote| key.strip_prefix(*quote)?.strip_suffix(*quote));
    let name = quoted.unwrap_or(key);
    let fine = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let rest = &line[colon + 1..];
    (fine && !name.starts_with('-') && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some((key, colon + 1))
}

/// Whether a line continues the value above it: it is indented, empty, a comment, an entry of a list, or its end.
fn belongs_to_key(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with([' ', '\t', '#', ']', '}']) || is_item(line)
}

fn is_item(line: &str) -> bool {
    line.trim_start().strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// A value that may carry a name (`&name …`) or be another's (`*name`); a type tag (`!!str …`) is dropped.
fn anchored(first: Piece<'_>, below: &[Line<'_>], anchors: &mut Vec<(String, Value)>) -> Value {
    let word = first.text.split_whitespace().next().unwrap_or_default();
    let rest = Piece { at: first.at + word.len(), text: &first.text[word.len()..] }.trimmed();
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    if let Some(name) = word.strip_prefix('*')
        && rest.is_empty()
        && let Some((_, known)) = anchors.iter().find(|(known, _)| known == name)
    {
        return known.clone();
    }
    let more = !rest.is_empty() || below.iter().any(|line| !is_blank(line.text));
    if let Some(name) = word.strip_prefix('&').filter(|name| is_name(name) && more) {
        let value = value(rest, below);
        anchors.push((name.to_owned(), value.clone()));
        return value;
    }
    let is_type = word.strip_prefix('!').is_some_and(|name| is_name(name.trim_start_matches('!')));
    value(if is_type && more { rest } else { first }, below)
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn value(first: Piece<'_>, below: &[Line<'_>]) -> Value {
    if first.text.starts_with('[')
        && let Some(items) = scalar::flow_list(first, below)
    {
        return Value::Many(items);
    }
    let nothing = first.is_empty() || first.text.starts_with('#');
    let head = below.iter().find(|line| !is_blank(line.text));
    if nothing && head.is_some_and(|line| is_item(line.text)) {
        return Value::Many(items(below));
    }
    Value::One(scalar(first, below))
}

/// The entries of a list, each with its continuation lines.
fn items(lines: &[Line<'_>]) -> Vec<Scalar> {
    let depth = |line: &Line<'_>| line.text.len() - line.text.trim_start().len();
    let own = lines.iter().find(|line| is_item(line.text)).map_or(0, depth);
    let begins = |line: &Line<'_>| is_item(line.text) && depth(line) <= own;
    let starts: Vec<usize> = (0..lines.len()).filter(|at| begins(&lines[*at])).collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    let one = |(start, end): (usize, usize)| {
        let line = lines[start];
        let after = depth(&line) + 1;
        let first = Piece { at: line.at + after, text: &line.text[after..] }.trimmed();
        scalar(first, &lines[start + 1..end])
    };
    starts.iter().copied().zip(ends).map(one).collect()
}
