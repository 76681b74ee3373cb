//! Where a key of TOML that is set twice was set first. The parser reports the second place alone.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::front_matter::line_at;

/// A key that is set twice in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The key, or the name of a table, as it is written.
    pub key: String,
    /// The bytes where it is set first, if they can be found.
    pub first: Option<Range<usize>>,
    /// Whether it is the heading of a table.
    pub is_table: bool,
}

impl Duplicate {
    /// What a parser's error is about, where that is a key which is set twice.
    pub fn of(text: &str, error: &toml::de::Error) -> Option<Self> {
        let again = error.span().filter(|_| error.message() == "duplicate key")?;
        let key = text.get(again.clone())?.trim().to_owned();
        let line = line_at(text, again.start);
        let is_table = text[line.clone()].trim_start().starts_with('[');
        Some(Self { first: first(text, &line, &again, is_table), key, is_table })
    }

    /// What is wrong, in a sentence.
    pub fn message(&self) -> String {
        let key = &self.key;
        if self.is_table { format!("the table `{key}` begins twice") } else { format!("`{key}` is set twice") }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        if self.is_table { "put the keys of both under one of the headings" } else { "keep one of the two" }
    }
}

/// What a label says of the second place, and of the first.
pub const AGAIN: &str = "set again here";
/// What a label says of the first place.
pub const FIRST: &str = "set first here";

fn first(text: &str, line: &Range<usize>, again: &Range<usize>, is_table: bool) -> Option<Range<usize>> {
    let (all, _) = DeTable::parse_recoverable(text);
    let inline = all.get_ref().values().find_map(|value| around(value, again.start)).filter(|_| !is_table);
    if let Some(table) = inline {
        let own = keys(&text[again.clone()], false)?;
        return place(table, &own).filter(|first| first.end <= again.start);
    }
    let before = &text[..line.start];
    let (table, _) = DeTable::parse_recoverable(before);
    let outer = if is_table { Vec::new() } else { heading(before) };
    let own = keys(&text[line.start..again.end], is_table)?;
    place(table.get_ref(), &[outer, own].concat())
}

/// The innermost table on one line, between braces, that contains a place.
fn around<'t, 'v>(value: &'t Spanned<DeValue<'v>>, at: usize) -> Option<&'t DeTable<'v>> {
    match value.get_ref() {
        DeValue::Table(table) => {
            let inner = table.values().find_map(|value| around(value, at));
            inner.or_else(|| value.span().contains(&at).then_some(table))
        }
        DeValue::Array(list) => list.iter().find_map(|value| around(value, at)),
        _ => None,
    }
}

/// The path of the table that the end of a text belongs to.
fn heading(text: &str) -> Vec<String> {
    let headings = text.lines().rev().map(str::trim).filter(|line| line.starts_with('['));
    headings
        .filter_map(|line| DeTable::parse(line).ok())
        .map(|table| names(&table.into_inner()))
        .next()
        .unwrap_or_default()
}

/// The names in what precedes the end of a key on its line.
fn keys(written: &str, is_table: bool) -> Option<Vec<String>> {
    let toml = match written.trim_start().chars().take_while(|c| *c == '[').count() {
        0 if !is_table => format!("{written} = 0"),
        1 => format!("{written}]"),
        _ => format!("{written}]]"),
    };
    DeTable::parse(&toml).ok().map(|table| names(&table.into_inner()))
}

/// The first key of a table, of the table that it contains, and so on.
fn names(table: &DeTable<'_>) -> Vec<String> {
    let Some((name, value)) = table.iter().next() else { return Vec::new() };
    let mut out = vec![name.get_ref().to_string()];
    out.extend(inside(value).map(names).unwrap_or_default());
    out
}

/// The table that a value is, or the last one of a list.
fn inside<'t, 'v>(value: &'t Spanned<DeValue<'v>>) -> Option<&'t DeTable<'v>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        DeValue::Array(list) => list.iter().last().and_then(inside),
        _ => None,
    }
}

fn place(table: &DeTable<'_>, path: &[String]) -> Option<Range<usize>> {
    let (name, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    if rest.is_empty() { Some(key.span()) } else { place(inside(value)?, rest) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use toml::de::DeTable;

    use super::Duplicate;

    #[test]
    fn both_places_are_found() {
        for (text, key, line, is_table) in [
            ("a = 1\nb = 2\na = 3\n", "a", 1, false),
            ("a = 1\n[t]\na = 2\n'a' = 3\n", "'a'", 3, false),
            ("[t]\nx = 1\n[u]\nx = 1\n[t]\n", "t", 1, true),
            ("[[r]]\nn = 1\n[[r]]\nn = 2\nm = 3\nn = 4\n", "n", 4, false),
            ("[a.b]\nc = 1\n[d]\nb = 1\n[a.b]\n", "b", 1, true),
            ("x.y = 1\n\nx.y = 2\n", "y", 1, false),
            ("t = {a = 1, a = 2}\n", "a", 1, false),
            ("a = 1\n[a]\n", "a", 1, true),
        ] {
            let error = DeTable::parse(text).unwrap_err();
            let found = Duplicate::of(text, &error).unwrap_or_else(|| panic!("{text}: {error}"));
            let first = found.first.clone().unwrap_or_else(|| panic!("{text}: no place"));
            let at = text[..first.start].matches('\n').count() + 1;
            assert_eq!((found.key.as_str(), at, found.is_table), (key, line, is_table), "{text}");
            assert!(first.start < error.span().unwrap().start, "{text}");
        }
        // In a table between braces the place is that of the key, and not of the same letters elsewhere.
        for (text, first) in [
            ("t = {a = \"banana\", a = 2}\n", Some(5)),
            ("a = 0\nt = [{b = 'a'}, {'a' = 1, u = {a = 2}, a = 3}]\n", Some(23)),
            ("[x]\nt = {u = {a = 2}, a = 3, u = 1}\n", Some(9)),
            ("a = 0\nt = {\n a = 1,\n a = 2,\n}\n", Some(13)),
            ("t = {b.a = 1, b.a = 2}\n", None),
        ] {
            let error = DeTable::parse(text).unwrap_err();
            let found = Duplicate::of(text, &error).unwrap_or_else(|| panic!("{text}: {error}"));
            assert_eq!(found.first.map(|place| place.start), first, "{text}");
        }
        let error = DeTable::parse("a = \n").unwrap_err();
        assert_eq!(Duplicate::of("a = \n", &error), None);
    }
}
