//! The model's reasoning, dimmed and with a mark before each row: it is no part of the answer.

use std::io;

use super::answer::{columns, draw};
use super::clean::{Cleaner, Keep};
use super::wrap::between_words;
use super::{is_shared, terminal};
use crate::markdown::Row;
use crate::style;

/// Begins a row.
const MARK: &str = "┊ ";

/// Reasoning that is printed as it streams.
#[derive(Debug)]
pub(crate) struct Reasoning {
    cleaner: Cleaner,
    /// The last row, which can grow.
    open: String,
}

impl Reasoning {
    pub(crate) fn new() -> Self {
        Self { cleaner: Cleaner::new(Keep::Lines, is_shared()), open: String::new() }
    }

    /// Prints a chunk.
    pub(crate) fn push(&mut self, text: &str) -> io::Result<()> {
        self.cleaner.push(text, &mut self.open);
        let mut rows = Vec::new();
        let text = std::mem::take(&mut self.open);
        let (lines, last) = text.rsplit_once('\n').map_or((None, text.as_str()), |(lines, last)| (Some(lines), last));
        lines.into_iter().flat_map(|lines| lines.split('\n')).for_each(|line| rows.extend(rows_of(line)));
        let columns = columns().saturating_sub(terminal::width(MARK)).max(1);
        let parts = between_words(last, columns);
        if let Some((last, full)) = parts.split_last() {
            rows.extend(full.iter().map(|part| row(part)));
            self.open = (*last).to_owned();
        }
        let tail = if self.open.is_empty() { Vec::new() } else { vec![row(&self.open)] };
        draw(&rows, &tail)
    }

    /// Ends the last row.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.cleaner.finish(&mut self.open);
        self.cleaner = Cleaner::new(Keep::Lines, is_shared());
        let open = std::mem::take(&mut self.open);
        if open.is_empty() { Ok(()) } else { draw(&[row(&open)], &[]) }
    }
}

fn rows_of(line: &str) -> Vec<Row> {
    let columns = columns().saturating_sub(terminal::width(MARK)).max(1);
    between_words(line, columns).into_iter().map(row).collect()
}

fn row(text: &str) -> Row {
    Row::of(&format!("{MARK}{}", text.trim_end()), style::DIM)
}
