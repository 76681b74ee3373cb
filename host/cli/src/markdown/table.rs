//! Tables: columns where the terminal has the place for them, and a list of `HEAD: cell` where it has not.

use anstyle::Style;
use pulldown_cmark::Alignment;

use super::inline::Inline;
use super::look::{DIM, STRONG};
use super::row::Row;
use crate::screen::terminal;
use crate::screen::wrap::between_words;

/// Columns below which no cell is broken.
const MIN_CELL: usize = 8;
/// Between two cells.
const GAP: &str = " │ ";
const GAP_WIDTH: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Row>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new() }
    }

    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    pub(super) fn cell(&mut self, cell: Inline) {
        let row = cell.rows(None).into_iter().next().map(|(row, _)| row).unwrap_or_default();
        if let Some(last) = self.rows.last_mut() {
            last.push(row);
        }
    }

    /// The rows of the table in so many columns.
    pub(super) fn rows(&self, columns: usize) -> Vec<Row> {
        let count = self.alignments.len();
        let free = columns.saturating_sub(GAP_WIDTH * count.saturating_sub(1));
        match self.widths(free) {
            Some(widths) => self.grid(&widths),
            None => self.list(columns),
        }
    }

    /// The columns of each cell; `None`: there are too few.
    fn widths(&self, free: usize) -> Option<Vec<usize>> {
        let natural = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(Row::width).max();
        let mut widths: Vec<_> = (0..self.alignments.len()).map(|column| natural(column).unwrap_or(0).max(1)).collect();
        let least: usize = widths.iter().map(|width| (*width).min(MIN_CELL)).sum();
        if least > free {
            return None;
        }
        // The widest becomes narrower until all fit.
        while widths.iter().sum::<usize>() > free {
            let widest = widths.iter_mut().max()?;
            *widest -= 1;
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, cells) in self.rows.iter().enumerate() {
            let bold = if index == 0 { STRONG } else { anstyle::Effects::new() };
            let cells: Vec<Vec<Row>> = widths
                .iter()
                .enumerate()
                .map(|(column, width)| cells.get(column).map(|cell| broken(cell, *width)).unwrap_or_default())
                .collect();
            for line in 0..cells.iter().map(Vec::len).max().unwrap_or_default().max(1) {
                rows.push(self.line(&cells, line, widths, bold));
            }
            if index == 0 {
                let mut rule = Row::default();
                let lines: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
                rule.push(&lines.join("─┼─"), DIM);
                rows.push(rule);
            }
        }
        rows
    }

    fn line(&self, cells: &[Vec<Row>], line: usize, widths: &[usize], bold: anstyle::Effects) -> Row {
        let mut row = Row::default();
        for (column, width) in widths.iter().enumerate() {
            if column > 0 {
                row.push(GAP, DIM);
            }
            let cell = cells.get(column).and_then(|lines| lines.get(line)).cloned().unwrap_or_default();
            let free = width.saturating_sub(cell.width());
            let left = match self.alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                _ => 0,
            };
            row.push(&" ".repeat(left), Style::new());
            cell.spans().iter().for_each(|span| row.push(&span.text, span.style | bold));
            row.push(&" ".repeat(free - left), Style::new());
        }
        row.trim_end();
        row
    }

    /// The cells of each row, one below the other.
    fn list(&self, columns: usize) -> Vec<Row> {
        let (head, body) = self.rows.split_first().map_or((&[][..], &[][..]), |(head, body)| (head.as_slice(), body));
        let mut rows = Vec::new();
        // A table can have no rows but its head.
        if body.is_empty() {
            rows.extend(head.iter().flat_map(|cell| broken(cell, columns)));
        }
        for (index, cells) in body.iter().enumerate() {
            if index > 0 {
                rows.push(Row::default());
            }
            for (column, cell) in cells.iter().enumerate() {
                let mut line = Row::default();
                if let Some(title) = head.get(column).filter(|title| title.width() > 0) {
                    title.spans().iter().for_each(|span| line.push(&span.text, span.style | STRONG));
                    line.push(": ", Style::new());
                }
                line.extend(cell.spans());
                rows.extend(broken(&line, columns));
            }
        }
        rows
    }
}

/// A row as several of so many columns.
fn broken(row: &Row, columns: usize) -> Vec<Row> {
    let text: String = row.spans().iter().map(|span| span.text.as_str()).collect();
    if terminal::width(&text) <= columns {
        return vec![row.clone()];
    }
    let mut rows = Vec::new();
    let (mut spans, mut left) = (row.spans().iter(), "");
    let mut style = Style::new();
    for part in between_words(&text, columns) {
        let (mut one, mut wanted) = (Row::default(), part.len());
        while wanted > 0 {
            if left.is_empty() {
                let Some(span) = spans.next() else { break };
                (left, style) = (&span.text, span.style);
            }
            let (now, rest) = left.split_at(wanted.min(left.len()));
            one.push(now, style);
            (wanted, left) = (wanted - now.len(), rest);
        }
        one.trim_end();
        rows.push(one);
    }
    rows
}
