//! The bytes of a file that the keys and values of a rule were read from, so that a diagnostic points at the character that
//! is wrong, also where the file format escapes it.

use std::ops::Range;
use std::sync::Arc;

use flow::{Location, SourceFile};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::example::Example;

/// Where a rule is written: its file, and the positions of its keys and values. Empty for a rule without a file.
#[derive(Clone, Debug, Default)]
pub struct RulePlaces {
    file: Option<Arc<SourceFile>>,
    /// The place of a diagnostic about the rule as a whole: its name in a manifest, the first byte of a rule file.
    whole: Range<usize>,
    keys: Arc<[Key]>,
}

/// A key with its values, as they were read.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    pub(crate) values: Vec<(String, Range<usize>)>,
}

impl RulePlaces {
    /// The keys of a rule file.
    pub(crate) fn of_file(file: &Arc<SourceFile>, keys: Vec<Key>) -> Self {
        Self { file: Some(Arc::clone(file)), whole: 0..0, keys: keys.into() }
    }

    /// The keys of a table in TOML, or of the first entry of `[[rule]]`, which is at the bytes `part` of `file`.
    pub(crate) fn of_toml(file: &Arc<SourceFile>, part: Range<usize>) -> Self {
        let parsed = file.text.get(part.clone()).and_then(|toml| DeTable::parse(toml).ok());
        let Some(table) = parsed else { return Self::of_file(file, Vec::new()) };
        let table = table.into_inner();
        let entry = table.get("rule").and_then(|rules| match rules.get_ref() {
            DeValue::Array(rules) => rules.iter().find_map(|rule| rule.get_ref().as_table()),
            _ => None,
        });
        let keys = entry.unwrap_or(&table).iter().map(|(name, value)| toml_key(name, value, part.start));
        Self { whole: part.start..part.start, ..Self::of_file(file, keys.collect()) }
    }

    /// Diagnostics about the rule as a whole point at the beginning of the file, which has no other rule.
    pub(crate) fn whole_file(self) -> Self {
        Self { whole: 0..0, ..self }
    }

    /// Diagnostics about the rule as a whole point at its name, as in a manifest, where several rules share a file.
    pub(crate) fn named(mut self) -> Self {
        let name = self.keys.iter().find(|key| key.name == "name");
        if let Some((_, span)) = name.and_then(|key| key.values.first()) {
            self.whole = span.clone();
        }
        self
    }

    /// The location of a range of the file, or of the rule as a whole. `None` where the rule has no file.
    pub(crate) fn location(&self, span: Option<Range<usize>>) -> Option<Location> {
        let file = self.file.as_ref()?;
        Some(Location::new(file, span.unwrap_or_else(|| self.whole.clone())))
    }

    /// The bytes that `part` of `value` was read from; `value` is a value of one of `keys`, or is contained in one. Where the
    /// exact bytes are not known, those of the whole value, else those of the key.
    pub(crate) fn find(&self, keys: &[&str], value: &str, part: Range<usize>) -> Option<Range<usize>> {
        let known = || self.keys.iter().filter(|key| keys.contains(&key.name.as_str()));
        let values = || known().flat_map(|key| &key.values);
        let holds = |(text, span): &(String, Range<usize>)| Some((text.find(value)?, text.clone(), span.clone()));
        // The value itself comes before one that contains it.
        let whole = values().find(|(text, _)| text.trim() == value);
        let Some((at, text, span)) = whole.or_else(|| values().find(|(text, _)| text.contains(value))).and_then(holds)
        else {
            return known().next().map(|key| key.span.clone());
        };
        let source = self.file.as_ref()?.text.get(span.clone())?;
        let exact = aligned(source, &text).and_then(|places| {
            let place = |byte: usize| places.iter().find(|(read, _)| *read >= byte).map(|(_, written)| *written);
            Some(span.start + place(at + part.start)?..span.start + place(at + part.end)?)
        });
        Some(exact.unwrap_or(span))
    }

    /// The first value of one of `keys` that is empty, where the file has quotes or the like for it.
    pub(crate) fn find_empty(&self, keys: &[&str]) -> Option<Range<usize>> {
        let known = self.keys.iter().filter(|key| keys.contains(&key.name.as_str()));
        let mut values = known.flat_map(|key| &key.values);
        values.find(|(text, span)| text.trim().is_empty() && !span.is_empty()).map(|(_, span)| span.clone())
    }

    /// The bytes of a key's name.
    pub(crate) fn key(&self, keys: &[&str]) -> Option<Range<usize>> {
        self.keys.iter().find(|key| keys.contains(&key.name.as_str())).map(|key| key.span.clone())
    }

    /// Whether a key is written with a value.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.keys.iter().any(|known| known.name == key && known.values.iter().any(|(_, span)| !span.is_empty()))
    }

    /// The location of the first line of an example, where the place of its fence is known.
    pub(crate) fn example(&self, example: &Example) -> Option<Location> {
        let text = self.file.as_ref()?.text.as_str();
        let fence = example.fence.as_ref()?.end;
        let at = fence + text[fence..].find('\n')? + 1;
        self.location(Some(at..at + text[at..].find('\n').unwrap_or(text.len() - at)))
    }

    /// The byte at which a body begins, where the file contains it as it is: in the value of `body`, or at the end of a rule file.
    pub(crate) fn body(&self, body: &str) -> Option<usize> {
        let text = self.file.as_ref()?.text.as_str();
        match self.keys.iter().find(|key| key.name == "body").and_then(|key| key.values.first()) {
            Some((_, span)) => text.get(span.clone())?.find(body).map(|at| span.start + at),
            None => text.ends_with(body).then(|| text.len() - body.len()),
        }
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

/// The position of each character of a value (and of its end) in the source it was read from: behind quotes, escapes,
/// line ends and indentation.
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
                // Lines that were joined, and the indentation of a line.
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
