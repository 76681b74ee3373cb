//! A table with a column of secrets: of Markdown, of CSV, of what programs print with tabs.

use crate::Found;
use crate::assigned::{self, Judged};
use crate::names::{Strength, strength};

/// The columns of a table that a name says are secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Table {
    separator: Option<char>,
    cells: usize,
    /// A line of dashes is below the names of its columns: it is no list of words.
    is_ruled: bool,
    /// Bits of columns with passwords, and with tokens.
    passwords: u64,
    tokens: u64,
}

const SEPARATORS: [char; 4] = ['|', '\t', ',', ';'];

impl Table {
    /// The secrets of the next line, if it is a row of the table.
    pub(crate) fn take(&mut self, line: &str) -> Vec<Found> {
        if let Some(separator) = self.separator {
            if line.split(separator).count() == self.cells {
                self.is_ruled |= line.contains("--") && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
                return self.row(line, separator);
            }
            *self = Self::default();
        }
        let header = SEPARATORS.iter().find_map(|separator| Self::header(line, *separator));
        *self = header.unwrap_or_default();
        Vec::new()
    }

    fn header(line: &str, separator: char) -> Option<Self> {
        if !line.contains(separator) {
            return None;
        }
        let mut table = Self { separator: Some(separator), ..Self::default() };
        for (at, cell) in line.split(separator).enumerate() {
            table.cells = at + 1;
            let name = cell.trim().trim_matches(['*', '_', '`', '"', '\'']);
            // Of a list of words, cells have no blanks around them.
            let is_tight = separator == '|' || cell.trim() == cell;
            let is_name =
                name.len() <= 40 && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' '));
            if !(is_tight && is_name) || at >= 64 {
                return None;
            }
            match strength(name) {
                Some(Strength::Password) => table.passwords |= 1 << at,
                Some(Strength::Token) => table.tokens |= 1 << at,
                Some(Strength::Weak) | None => {}
            }
        }
        let has_two = line.split(separator).filter(|cell| !cell.trim().is_empty()).count() >= 2;
        (has_two && table.passwords | table.tokens != 0).then_some(table)
    }

    fn row(&self, line: &str, separator: char) -> Vec<Found> {
        let judged = if self.is_ruled { Judged::Alone } else { Judged::Listed };
        let mut at = 0;
        let mut found = Vec::new();
        for (column, cell) in line.split(separator).enumerate() {
            let is = |columns: u64| columns & 1 << column.min(63) != 0;
            let strength =
                if is(self.passwords) { Some(Strength::Password) } else { is(self.tokens).then_some(Strength::Token) };
            let start = at + cell.len() - cell.trim_start_matches([' ', '`', '"', '\'', '*']).len();
            let is_word = !cell.trim().contains(char::is_whitespace) && !cell.trim().is_empty();
            let row = &line[..at + cell.len()];
            found.extend(
                strength.filter(|_| is_word).and_then(|strength| assigned::value_of(row, start, strength, judged)),
            );
            at = row.len() + separator.len_utf8();
        }
        found
    }
}
