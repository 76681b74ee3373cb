//! The sources of a document: files in one space of positions, so that a tree made of several files keeps the place of each value.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::{Location, SourceFile};

/// Files one behind the other, the lowest layer first.
#[derive(Debug, Default)]
pub(crate) struct Sources<'a>(Vec<Part<'a>>);

#[derive(Debug)]
struct Part<'a> {
    /// The position of its first byte.
    begin: usize,
    source: &'a Arc<SourceFile>,
    /// The source as diagnostics show it, without secrets: the same bytes at the same places.
    shown: Arc<SourceFile>,
}

impl<'a> Sources<'a> {
    /// The source of one file.
    pub(crate) fn of(source: &'a Arc<SourceFile>, shown: Arc<SourceFile>) -> Self {
        Self(vec![Part { begin: 0, source, shown }])
    }

    /// Adds files behind those that are there. Returns by how much their positions move.
    pub(crate) fn add(&mut self, more: Self) -> usize {
        // The end of a file is a position of its own.
        let begin = self.0.last().map_or(0, |last| last.begin + last.source.text.len() + 1);
        self.0.extend(more.0.into_iter().map(|part| Part { begin: part.begin + begin, ..part }));
        begin
    }

    fn part(&self, position: usize) -> Option<&Part<'a>> {
        self.0.iter().rev().find(|part| part.begin <= position)
    }

    /// The bytes of a file.
    pub(crate) fn location(&self, span: Range<usize>) -> Location {
        match self.part(span.start) {
            Some(part) => Location::new(&part.shown, span.start - part.begin..span.end.saturating_sub(part.begin)),
            // A document has a source.
            None => Location::new(&SourceFile::new("", ""), 0..0),
        }
    }

    /// The folder of the file that a position is in.
    pub(crate) fn folder(&self, position: usize) -> &'a Path {
        self.part(position).map_or(Path::new("."), |part| part.source.folder())
    }
}

/// A value with all its places moved.
pub(crate) fn moved(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    if by == 0 {
        return value;
    }
    let span = moved_span(&value.span(), by);
    let value = match value.into_inner() {
        DeValue::Table(table) => {
            let entries = table
                .into_iter()
                .map(|(key, value)| (Spanned::new(moved_span(&key.span(), by), key.into_inner()), moved(value, by)));
            DeValue::Table(entries.collect::<DeTable<'_>>())
        }
        DeValue::Array(items) => DeValue::Array(items.into_iter().map(|item| moved(item, by)).collect::<DeArray<'_>>()),
        other => other,
    };
    Spanned::new(span, value)
}

fn moved_span(span: &Range<usize>, by: usize) -> Range<usize> {
    span.start + by..span.end + by
}
