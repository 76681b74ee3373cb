//! Where the values of a rule stand in its file: so that a diagnostic points at the byte, also where the file escapes it.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The places of a rule's keys and values in a text.
#[derive(Debug, Default)]
pub(crate) struct Places<'t> {
    text: &'t str,
    keys: Vec<Key>,
}

/// A key with its values, as they were read.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    pub(crate) values: Vec<(String, Range<usize>)>,
}

impl<'t> Places<'t> {
    pub(crate) fn new(text: &'t str, keys: Vec<Key>) -> Self {
        Self { text, keys }
    }

    /// Of keys written in TOML at the bytes `part` of `text`: a table, or the first entry of `[[rule]]`.
    pub(crate) fn of_toml(text: &'t str, part: Range<usize>) -> Self {
        let parsed = text.get(part.clone()).and_then(|toml| DeTable::parse(toml).ok());
        let Some(table) = parsed else { return Self::new(text, Vec::new()) };
        let table = table.into_inner();
        let entry = table.get("rule").and_then(|rules| match rules.get_ref() {
            DeValue::Array(rules) => rules.iter().find_map(|rule| rule.get_ref().as_table()),
            _ => None,
        });
        let keys = entry.unwrap_or(&table).iter().map(|(name, value)| toml_key(name, value, part.start));
        Self::new(text, keys.collect())
    }

    /// Where `part` of `value` stands: a value of one of `keys`, or a part of one. Where it cannot be told to the byte it is
    /// the value's place, and else the key's.
    pub(crate) fn find(&self, keys: &[&str], value: &str, part: Range<usize>) -> Option<Range<usize>> {
        let known = || self.keys.iter().filter(|key| keys.contains(&key.name.as_str()));
        let values = || known().flat_map(|key| &key.values);
        let holds = |(text, span): &(String, Range<usize>)| Some((text.find(value)?, text.clone(), span.clone()));
        // The value itself comes before one that holds it.
        let whole = values().find(|(text, _)| text.trim() == value);
        let Some((at, text, span)) = whole.or_else(|| values().find(|(text, _)| text.contains(value))).and_then(holds)
        else {
            return known().next().map(|key| key.span.clone());
        };
        let source = self.text.get(span.clone())?;
        let exact = aligned(source, &text).and_then(|places| {
            let place = |byte: usize| places.iter().find(|(read, _)| *read >= byte).map(|(_, written)| *written);
            Some(span.start + place(at + part.start)?..span.start + place(at + part.end)?)
        });
        Some(exact.unwrap_or(span))
    }

    /// Where a key stands.
    pub(crate) fn key(&self, keys: &[&str]) -> Option<Range<usize>> {
        self.keys.iter().find(|key| keys.contains(&key.name.as_str())).map(|key| key.span.clone())
    }

    /// Whether a key stands there with something behind it.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known.name == key && known.values.iter().any(|(_, span)| !span.is_empty()))
    }

    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }
}

fn toml_key(name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>, shift: usize) -> Key {
    let place = |span: Range<usize>| span.start + shift..span.end + shift;
    let text = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::String(text) => Some((text.to_string(), place(value.span()))),
        _ => None,
    };
    let values = match value.get_ref() {
        DeValue::Array(entries) => entries.iter().filter_map(text).collect(),
        _ => vec![text(value).unwrap_or_else(|| (String::new(), place(value.span())))],
    };
    Key { name: name.get_ref().to_string(), span: place(name.span()), values }
}

/// Where each character of a value (and its end) stands in the source it was read from: behind quotes, escapes, line
/// ends and indentation.
fn aligned(source: &str, value: &str) -> Option<Vec<(usize, usize)>> {
    let quote =
        ["\"\"\"", "'''", "\"", "'"].into_iter().find(|q| source.starts_with(q) && source[q.len()..].ends_with(q));
    let mut at = quote.map_or(0, str::len);
    if quote.is_some_and(|quote| quote.len() == 3) {
        at += if source[at..].starts_with("\r\n") { 2 } else { usize::from(source[at..].starts_with('\n')) };
    }
    let escapes = quote.is_some_and(|quote| quote.starts_with('"'));
    let mut places = Vec::with_capacity(value.len() + 1);
    for (read, c) in value.char_indices() {
        loop {
            let rest = &source[at..];
            let blank = rest.len() - rest.trim_start().len();
            let escaped = if escapes { escape(rest) } else { None };
            let taken = match escaped {
                Some((decoded, len)) if decoded == c => len,
                _ if rest.starts_with(c) => c.len_utf8() + usize::from(c == '\'' && quote == Some("'")),
                // Lines that were joined, and what stands before a line.
                _ if c.is_whitespace() && blank > 0 => blank,
                _ if blank > 0 => {
                    at += blank;
                    continue;
                }
                _ if escapes && rest.strip_prefix('\\')?.starts_with(['\n', '\r', ' ']) => {
                    at += 1;
                    continue;
                }
                _ => return None,
            };
            places.push((read, at));
            at += taken;
            break;
        }
    }
    places.push((value.len(), at));
    Some(places)
}

/// An escape at the beginning of `text`, with its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let mut chars = text.strip_prefix('\\')?.chars();
    let code = |digits: usize| {
        let text = text.get(2..2 + digits)?;
        Some((char::from_u32(u32::from_str_radix(text, 16).ok()?)?, 2 + digits))
    };
    let c = match chars.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'e' => '\u{1b}',
        'x' => return code(2),
        'u' => return code(4),
        'U' => return code(8),
        c @ ('"' | '\\' | '/') => c,
        _ => return None,
    };
    Some((c, 2))
}

/// `did you mean …?` where something known is near.
pub(crate) fn suggestion(word: &str, known: &[&str]) -> Option<String> {
    let near = known.iter().map(|name| (strsim::jaro_winkler(&word.to_lowercase(), &name.to_lowercase()), name));
    let best = near.filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, name)| format!("did you mean `{name}`?"))
}
