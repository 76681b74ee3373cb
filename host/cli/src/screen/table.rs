//! A table for the terminal: each column is as wide as its content, and the last one has no limit.

use std::fmt::Write as _;

use anstyle::Style;

use crate::style;

/// A cell: what is in it, and how it looks.
pub(crate) struct Cell(pub(crate) String, pub(crate) Style);

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self(text, Style::new())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// The lines of a table: a head, then the rows. Cells that are missing at the end of a row are blank.
pub(crate) fn lines(head: &[&str], rows: &[Vec<Cell>]) -> Vec<String> {
    let mut widths: Vec<usize> = head.iter().map(|title| title.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.0.chars().count());
        }
    }
    let head = head.iter().map(|title| Cell((*title).to_owned(), style::DIM)).collect();
    std::iter::once(&head).chain(rows).map(|row| line(row, &widths)).collect()
}

fn line(row: &[Cell], widths: &[usize]) -> String {
    let mut out = String::new();
    for (at, (Cell(text, look), width)) in row.iter().zip(widths).enumerate() {
        if at > 0 {
            out.push_str("  ");
        }
        let pad = width.saturating_sub(text.chars().count());
        // Styles of an empty cell would keep the blanks before it.
        let shown = if text.is_empty() {
            String::new()
        } else if *look == Style::new() {
            text.clone()
        } else {
            style::out(*look, text)
        };
        let _ = write!(out, "{shown}{}", " ".repeat(pad));
    }
    out.truncate(out.trim_end().len());
    out
}
