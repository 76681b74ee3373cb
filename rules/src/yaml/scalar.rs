//! Scalars of YAML: plain ones, quoted ones, blocks, and lists in brackets, each with its place.

use std::ops::Range;

use super::{Line, is_blank};

/// A value with the place that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
    /// The value was quoted.
    pub(crate) quoted: bool,
    /// What is wrong with the quotes around the value, which are then part of it, or with a line that continues it.
    pub(crate) flaw: Option<Flaw>,
}

/// Quotes that do not quote, or a key that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) kind: FlawKind,
    /// The place of the quote, of the character behind it, or of the line.
    pub(crate) span: Range<usize>,
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlawKind {
    /// They do not close.
    Open,
    /// They close before the value ends.
    Closed,
    /// They close, and another value in quotes follows.
    Several,
    /// They are typographic quotes, or backticks.
    NotStraight,
    /// A list in brackets, the quotes of which do not fit.
    List,
    /// A line that continues the value has the form of a key.
    Key,
}

impl Scalar {
    fn plain(text: String, span: Range<usize>) -> Self {
        Self { text, span, quoted: false, flaw: None }
    }
}

/// A part of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'t> {
    pub(super) at: usize,
    pub(super) text: &'t str,
}

impl Piece<'_> {
    pub(super) fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        Self { at: self.at + self.text.len() - text.len(), text: text.trim_end() }
    }

    pub(super) fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    fn end(self) -> usize {
        self.at + self.text.len()
    }
}

/// A scalar that begins with `first` and continues in the lines `below`.
pub(super) fn scalar(first: Piece<'_>, below: &[Line<'_>]) -> Scalar {
    if let Some(fold) = block_head(first.text) {
        return block(first, fold, below);
    }
    let nothing = first.is_empty() || first.text.starts_with('#');
    let mut pieces = if nothing { Vec::new() } else { vec![first] };
    pieces.extend(below.iter().map(|line| Piece { at: line.at, text: line.text }.trimmed()));
    pieces.retain(|piece| !is_blank(piece.text));
    let Some((head, last)) = pieces.first().zip(pieces.last()) else {
        return Scalar::plain(String::new(), first.at..first.end());
    };
    let span = head.at..last.end();
    let joined = pieces.iter().map(|piece| piece.text).collect::<Vec<_>>().join(" ");
    // The exact place is known as long as the value has one line.
    let place = |at: usize, len: usize| if pieces.len() == 1 { head.at + at..head.at + at + len } else { span.clone() };
    if let Some((text, rest)) = quoted(&joined) {
        if is_blank(rest) {
            return Scalar { text, span, quoted: true, flaw: None };
        }
        let next = rest.trim_start();
        let next = next.strip_prefix([',', ';']).unwrap_or(if next.len() < rest.len() { next } else { "" });
        let several = next.trim_start().starts_with(['"', '\'']);
        let kind = if several { FlawKind::Several } else { FlawKind::Closed };
        let flaw = Some(Flaw { kind, span: place(joined.len() - rest.len() - 1, 1) });
        return Scalar { text: joined, span, quoted: false, flaw };
    }
    let key = pieces.iter().skip(1).filter(|_| !nothing).find(|piece| super::split_key(piece.text).is_some());
    let key = key.map(|piece| Flaw { kind: FlawKind::Key, span: piece.at..piece.end() });
    let flaw = flaw(&joined).map(|(kind, len)| Flaw { kind, span: place(0, len) }).or(key);
    let text = match pieces.iter().map(|piece| without_comment(piece.text)).collect::<Vec<_>>().join(" ") {
        text if matches!(text.as_str(), "~" | "null" | "Null" | "NULL") => String::new(),
        text => text,
    };
    Scalar { flaw, ..Scalar::plain(text, span) }
}

/// What is wrong with the quote at the beginning of a value that is not quoted, and its length.
fn flaw(text: &str) -> Option<(FlawKind, usize)> {
    let first = text.chars().next()?;
    let quote = text[first.len_utf8()..].chars().next().filter(|c| matches!(c, '"' | '\''));
    let list = quote.is_some_and(|quote| text.contains(',') || text.ends_with(&format!("{quote}]")));
    match first {
        '"' | '\'' => Some((FlawKind::Open, 1)),
        '`' | '“' | '”' | '„' | '‘' | '’' | '«' | '»' => Some((FlawKind::NotStraight, first.len_utf8())),
        '[' if list && text.ends_with(']') => Some((FlawKind::List, 1)),
        _ => None,
    }
}

/// The text before a comment, which starts with a `#` after a blank.
fn without_comment(text: &str) -> &str {
    let comment = text.match_indices('#').find(|(at, _)| text[..*at].ends_with([' ', '\t']));
    comment.map_or(text, |(at, _)| &text[..at]).trim_end()
}

/// The text before a comment, which starts with a `#` after a blank; quoted ones do not count.
fn outside_quotes(text: &str) -> &str {
    let (mut quote, mut escaped, mut blank) = (None, false, true);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '#') if blank => return text[..at].trim_end(),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if c == open && !escaped => quote = None,
            _ => {}
        }
        escaped = c == '\\' && !escaped && quote == Some('"');
        blank = c.is_whitespace();
    }
    text
}

/// Whether a value is a block (`|`, `>-`, `|2 # why`), and if so, whether its lines are joined.
fn block_head(text: &str) -> Option<bool> {
    let signs = without_comment(text);
    let fold = signs.starts_with('>');
    let rest = signs.strip_prefix(['|', '>'])?;
    (rest.len() <= 2 && rest.chars().all(|c| matches!(c, '-' | '+' | '1'..='9'))).then_some(fold)
}

fn block(head: Piece<'_>, fold: bool, below: &[Line<'_>]) -> Scalar {
    // A comment that is not indented belongs to no block.
    let below: Vec<Line<'_>> = below.iter().filter(|line| !line.text.starts_with('#')).copied().collect();
    let indent = |line: &Line<'_>| line.text.len() - line.text.trim_start().len();
    let full = |line: &&Line<'_>| !line.text.trim().is_empty();
    let depth = below.iter().filter(full).map(indent).min().unwrap_or(0);
    let mut text = String::new();
    for line in below.iter().map(|line| line.text.get(depth..).unwrap_or_default().trim_end()) {
        // Where lines are joined, an empty one is a line end.
        let joins = fold && !line.is_empty();
        match text.is_empty() {
            true => {}
            false if joins && text.ends_with('\n') => {}
            false => text.push(if joins { ' ' } else { '\n' }),
        }
        text.push_str(line);
    }
    let first = below.iter().find(full).map_or(head.at, |line| line.at + depth);
    let last = below.iter().rfind(full).map_or(head.end(), |line| line.at + line.text.len());
    Scalar::plain(text.trim_end().to_owned(), first..last)
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
                // `"\b"` is a backspace in YAML and a word boundary for the author of the rule.
                c => out.extend(['\\', c]),
            },
            c => out.push(c),
        }
    }
    None
}

/// `[a, "b", c]`, also over several lines; nothing when it is not one list to its end.
pub(super) fn flow_list(first: Piece<'_>, below: &[Line<'_>]) -> Option<Vec<Scalar>> {
    let mut pieces = vec![first];
    pieces.extend(below.iter().map(|line| Piece { at: line.at, text: line.text }.trimmed()));
    pieces.retain(|piece| !is_blank(piece.text));
    // Where each segment begins in the joined text, and in the file.
    let (mut joined, mut places) = (String::new(), Vec::new());
    for piece in &pieces {
        places.push((joined.len(), piece.at));
        joined.push_str(outside_quotes(piece.text));
        joined.push(' ');
    }
    let origin = |at: usize| {
        let place = places.iter().rfind(|(here, _)| *here <= at);
        place.map_or(first.at, |(here, from)| from + (at - here))
    };
    let mut rest = joined.strip_prefix('[')?.trim_start();
    let mut out = Vec::new();
    loop {
        if let Some(end) = rest.strip_prefix(']') {
            return is_blank(end).then_some(out);
        }
        let start = joined.len() - rest.len();
        let (text, after, quoted) = match quoted(rest) {
            Some((inside, after)) => (inside, after, true),
            None => {
                let end = item_end(rest)?;
                (rest[..end].trim().to_owned(), &rest[end..], false)
            }
        };
        let end = start + rest[..rest.len() - after.len()].trim_end().len();
        let span = origin(start)..origin(end.max(start + 1) - 1) + 1;
        let flaw = flaw(&text).filter(|_| !quoted);
        let flaw = flaw.map(|(kind, len)| Flaw { kind, span: span.start..span.start + len });
        out.push(Scalar { text, span, quoted, flaw });
        rest = after.trim_start();
        rest = match rest.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if rest.starts_with(']') => rest,
            None => return None,
        };
    }
}

/// The end of an entry without quotes: a comma or a bracket that is not within braces, as in `*.{ts,tsx}`.
fn item_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (matches!(c, ',' | ']') && (depth == 0 || c == ']')).then_some(at)
    })
}
