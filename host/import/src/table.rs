//! Values of a table by their keys, with diagnostics at the place of what is of another type.

use std::ops::Range;
use std::sync::Arc;

use flow::text::nearest;
use flow::{Diagnostic, DiagnosticCode as Code, Location, SourceFile};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::set::Expression;
use crate::{Feature, LeftOut};

/// A table, and what was found wrong in its file so far.
pub(crate) struct Table<'t> {
    pub(crate) source: &'t Arc<SourceFile>,
    pub(crate) table: &'t DeTable<'t>,
    pub(crate) span: Range<usize>,
}

type Value<'t> = Spanned<DeValue<'t>>;

impl<'t> Table<'t> {
    pub(crate) fn of(source: &'t Arc<SourceFile>, value: &'t Value<'t>, found: &mut Vec<Diagnostic>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(table) => Some(Self { source, table, span: value.span() }),
            _ => {
                found.push(wrong(source, value, "a table"));
                None
            }
        }
    }

    pub(crate) fn place(&self, key: &str) -> Location {
        let span = self.value(key).map_or_else(|| self.span.clone(), Spanned::span);
        Location::new(self.source, span)
    }

    /// The first line of the table.
    pub(crate) fn head(&self) -> Location {
        let line = self.source.text[self.span.start..].lines().next().unwrap_or_default().len();
        Location::new(self.source, self.span.start..self.span.end.min(self.span.start + line))
    }

    /// The value of a key. Upper and lower case of keys do not count, as the scanners read them.
    pub(crate) fn value(&self, key: &str) -> Option<&'t Value<'t>> {
        let mut all = self.table.iter();
        all.find(|(known, _)| known.get_ref().eq_ignore_ascii_case(key)).map(|(_, value)| value)
    }

    pub(crate) fn text(&self, key: &str, found: &mut Vec<Diagnostic>) -> Option<String> {
        self.expression(key, found).map(|one| one.text)
    }

    pub(crate) fn expression(&self, key: &str, found: &mut Vec<Diagnostic>) -> Option<Expression> {
        let value = self.value(key)?;
        match value.get_ref() {
            DeValue::String(text) => {
                Some(Expression { text: text.to_string(), place: Location::new(self.source, value.span()) })
            }
            _ => {
                found.push(wrong(self.source, value, "a string"));
                None
            }
        }
    }

    pub(crate) fn texts(&self, key: &str, found: &mut Vec<Diagnostic>) -> Vec<String> {
        self.items(key, found)
            .into_iter()
            .filter_map(|item| match item.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => {
                    found.push(wrong(self.source, item, "a string"));
                    None
                }
            })
            .collect()
    }

    pub(crate) fn tables(&self, key: &str, found: &mut Vec<Diagnostic>) -> Vec<Self> {
        let items = self.items(key, found);
        items.into_iter().filter_map(|item| Table::of(self.source, item, found)).collect()
    }

    pub(crate) fn table(&self, key: &str, found: &mut Vec<Diagnostic>) -> Option<Self> {
        Table::of(self.source, self.value(key)?, found)
    }

    /// A number as it is written.
    pub(crate) fn number(&self, key: &str, found: &mut Vec<Diagnostic>) -> Option<f64> {
        let value = self.value(key)?;
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok().map(|one| one as f64),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => None,
        };
        if number.is_none() {
            found.push(wrong(self.source, value, "a number"));
        }
        number
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.value(key).is_some_and(|value| matches!(value.get_ref(), DeValue::Boolean(true)))
    }

    /// Keys and strings of a table of strings.
    pub(crate) fn strings(&self, found: &mut Vec<Diagnostic>) -> Vec<(String, Expression)> {
        let mut all: Vec<_> = self.table.iter().collect();
        all.sort_by_key(|(key, _)| key.span().start);
        let keys: Vec<String> = all.into_iter().map(|(key, _)| key.get_ref().to_string()).collect();
        keys.into_iter().filter_map(|key| self.expression(&key, found).map(|value| (key, value))).collect()
    }

    fn items(&self, key: &str, found: &mut Vec<Diagnostic>) -> Vec<&'t Value<'t>> {
        match self.value(key).map(|value| (value, value.get_ref())) {
            None => Vec::new(),
            Some((_, DeValue::Array(items))) => items.iter().collect(),
            Some((value, _)) => {
                found.push(wrong(self.source, value, "a list"));
                Vec::new()
            }
        }
    }

    /// Keys that are none of `known`, to be named.
    pub(crate) fn unknown(&self, known: &[&str]) -> Vec<LeftOut> {
        let mut keys: Vec<_> = self.table.keys().collect();
        keys.sort_by_key(|key| key.span().start);
        let keys = keys.into_iter().map(|key| (key.span(), key.get_ref().to_string()));
        let unknown = keys.filter(|(_, key)| !known.iter().any(|one| one.eq_ignore_ascii_case(key)));
        unknown
            .map(|(span, key)| {
                let line = Location::new(self.source, span).line();
                let meant = nearest(&key, known.iter().copied()).map(|one| format!("; did you mean `{one}`?"));
                LeftOut::new(Feature::UnknownKey, format!("`{key}` in line {line}{}", meant.unwrap_or_default()))
            })
            .collect()
    }
}

fn wrong(source: &Arc<SourceFile>, value: &Value<'_>, wanted: &str) -> Diagnostic {
    let is = match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    };
    Diagnostic::error(Code::ConfigWrongType, format!("this is {is}, and the scanner takes {wanted} here"))
        .at(Location::new(source, value.span()), "")
}
