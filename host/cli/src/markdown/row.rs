//! A row of the terminal: clean text with styles.

use anstyle::Style;

use crate::screen::terminal;

/// Text with one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) text: String,
    pub(super) style: Style,
}

/// A row, or a line of code that the terminal breaks where it is longer than a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    spans: Vec<Span>,
    /// It is a line of code, and copied as one line.
    pub(crate) is_code: bool,
}

impl Row {
    /// An empty line of code.
    pub(super) fn code() -> Self {
        Self { spans: Vec::new(), is_code: true }
    }

    /// A row with one style.
    pub(crate) fn of(text: &str, style: Style) -> Self {
        let mut row = Self::default();
        row.push(text, style);
        row
    }

    pub(super) fn push(&mut self, text: &str, style: Style) {
        match self.spans.last_mut().filter(|last| last.style == style) {
            Some(last) => last.text.push_str(text),
            None if text.is_empty() => {}
            None => self.spans.push(Span { text: text.to_owned(), style }),
        }
    }

    pub(super) fn extend(&mut self, spans: &[Span]) {
        spans.iter().for_each(|span| self.push(&span.text, span.style));
    }

    /// Removes the spaces at the end.
    pub(super) fn trim_end(&mut self) {
        while let Some(last) = self.spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches(' ').len());
            if !last.text.is_empty() {
                return;
            }
            self.spans.pop();
        }
    }

    pub(super) fn width(&self) -> usize {
        self.spans.iter().map(|span| terminal::width(&span.text)).sum()
    }

    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The row for a terminal with styles or without.
    pub(crate) fn painted(&self, is_styled: bool) -> String {
        let mut painted = String::new();
        for Span { text, style } in &self.spans {
            if !is_styled || *style == Style::new() {
                painted.push_str(text);
            } else {
                painted.push_str(&format!("{style}{text}{style:#}"));
            }
        }
        painted
    }

    /// The row without styles.
    #[cfg(test)]
    pub(super) fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }
}
