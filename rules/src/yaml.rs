//! YAML front matter, as far as rule files use it: keys with scalars and lists. It is read as leniently as the files
//! have always been: what is no YAML (`condition: *.rs`, `scope: "text","thinking"`) is taken as it stands.

use std::ops::Range;

/// One key with its value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Where the key stands, in bytes of the text given to [`parse`].
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

/// A value; words such as `true` are not told from other text here.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    One(String),
    Many(Vec<String>),
}

/// Reads the entries in order. Lines that are none are passed over and given back with their places.
pub(crate) fn parse(text: &str) -> (Vec<Entry>, Vec<Range<usize>>) {
    let mut lines = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        lines.push((at, line.trim_end_matches(['\n', '\r'])));
        at += line.len();
    }
    let (mut entries, mut strange, mut next) = (Vec::new(), Vec::new(), 0);
    while next < lines.len() {
        let (start, line) = lines[next];
        next += 1;
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let Some((key, rest)) = split_key(line) else {
            strange.push(start..start + line.len());
            continue;
        };
        let below = lines[next..].iter().take_while(|(_, line)| belongs_to_key(line)).count();
        let block: Vec<&str> = lines[next..next + below].iter().map(|(_, line)| *line).collect();
        next += below;
        let value = value(rest.trim(), &block);
        entries.push(Entry { key: key.to_owned(), span: start..start + key.len(), value });
    }
    (entries, strange)
}

/// A key begins at the line's first byte and ends at a colon before a blank or the line's end.
fn split_key(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let fine = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    (fine && (rest.is_empty() || rest.starts_with([' ', '\t']))).then_some((key, rest))
}

/// Whether a line goes on with the value above it: it is indented, empty, or an entry of a list.
fn belongs_to_key(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with([' ', '\t']) || line == "-" || line.starts_with("- ")
}

fn value(first: &str, below: &[&str]) -> Value {
    match first.as_bytes().first() {
        Some(b'|' | b'>') if first.len() <= 3 => Value::One(block_scalar(first, below)),
        Some(b'[') => flow_list(&joined(first, below)).map_or_else(|| Value::One(first.to_owned()), Value::Many),
        None | Some(b'#') => {
            let items = below.iter().map(|line| line.trim());
            let items: Vec<&str> = items.filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
            if !items.is_empty() && items.iter().all(|item| item.starts_with('-')) {
                Value::Many(items.iter().map(|item| scalar(item[1..].trim())).collect())
            } else {
                Value::One(scalar(&items.join(" ")))
            }
        }
        Some(_) => Value::One(scalar(&joined(first, below))),
    }
}

fn joined(first: &str, below: &[&str]) -> String {
    let more = below.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    std::iter::once(first).chain(more).collect::<Vec<_>>().join(" ")
}

fn block_scalar(head: &str, below: &[&str]) -> String {
    let indent = |line: &&str| line.len() - line.trim_start().len();
    let depth = below.iter().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let lines = below.iter().map(|line| line.get(depth..).unwrap_or_default());
    let by = if head.starts_with('|') { "\n" } else { " " };
    lines.collect::<Vec<_>>().join(by).trim_end().to_owned()
}

/// A scalar: quotes are taken away when they stand around the whole of it, a comment after a blank is dropped.
fn scalar(text: &str) -> String {
    if let Some((inside, rest)) = quoted(text) {
        if rest.is_empty() || rest.trim_start().starts_with('#') {
            return inside;
        }
        return text.to_owned();
    }
    text.split(" #").next().unwrap_or(text).trim_end().to_owned()
}

/// A quoted scalar at the beginning of `text`, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (mut out, mut chars) = (String::new(), text.char_indices().skip(1).peekable());
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' if quote == '\'' && chars.peek().is_some_and(|(_, c)| *c == '\'') => {
                chars.next();
                out.push('\'');
            }
            c if c == quote => return Some((out, &text[at + 1..])),
            '\\' if quote == '"' => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                c @ ('"' | '\\' | '/') => out.push(c),
                // `"\b"` is a backspace in YAML and a word boundary to whoever wrote the rule.
                c => out.extend(['\\', c]),
            },
            c => out.push(c),
        }
    }
    None
}

/// `[a, "b", c]`; nothing when it is not one list to its end.
fn flow_list(text: &str) -> Option<Vec<String>> {
    let mut rest = text.strip_prefix('[')?.trim_start();
    let mut out = Vec::new();
    loop {
        if let Some(end) = rest.strip_prefix(']') {
            let end = end.trim();
            return (end.is_empty() || end.starts_with('#')).then_some(out);
        }
        let after = if let Some((inside, after)) = quoted(rest) {
            out.push(inside);
            after
        } else {
            let end = rest.find([',', ']'])?;
            out.push(rest[..end].trim().to_owned());
            &rest[end..]
        };
        rest = after.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if rest.starts_with(']') => rest,
            None => return None,
        };
    }
}
