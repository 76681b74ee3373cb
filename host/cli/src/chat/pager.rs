//! A long text on a screen of its own, which is scrolled by keys.

use crate::ask::page;
use crate::screen::keys::Key;

/// A text, and which part of it is on the screen.
#[derive(Debug)]
pub(super) struct Pager {
    rows: Vec<String>,
    /// The columns that the rows were made for.
    pub(super) columns: usize,
    /// The first row on the screen.
    top: usize,
    /// Rows of the screen for the text; 0 before it is drawn.
    height: usize,
    /// The rows from the first that were on the screen, none left out.
    read: usize,
    /// Each row is one row of the screen: a truncated row was not shown.
    fits: bool,
}

impl Pager {
    pub(super) fn new(rows: Vec<String>, columns: usize) -> Self {
        Self { fits: page::fits(&rows, columns), rows, columns, top: 0, height: 0, read: 0 }
    }

    /// Takes the rows of the same text for another number of columns, and stays about where it is. It is to be read from its beginning.
    pub(super) fn replace(&mut self, rows: Vec<String>, columns: usize) {
        self.top = self.top * rows.len() / self.rows.len().max(1);
        self.fits = page::fits(&rows, columns);
        (self.rows, self.columns, self.read) = (rows, columns, 0);
    }

    /// Returns the rows for a screen that has so many for it.
    pub(super) fn rows(&mut self, height: usize) -> &[String] {
        let height = height.max(1);
        let was_at_end = self.height > 0 && self.top + self.height >= self.rows.len();
        self.height = height;
        let last = self.rows.len().saturating_sub(height);
        self.top = if was_at_end { last } else { self.top.min(last) };
        &self.rows[self.top..self.end()]
    }

    fn end(&self) -> usize {
        (self.top + self.height).min(self.rows.len())
    }

    /// The screen shows the rows. Returns whether all of them were on it by now.
    pub(super) fn drawn(&mut self) -> bool {
        if self.fits && self.top <= self.read {
            self.read = self.read.max(self.end());
        }
        self.fits && self.read >= self.rows.len()
    }

    /// Where it is, in a few words.
    pub(super) fn place(&self) -> String {
        format!("{}–{} of {} rows", self.top + 1, self.end(), self.rows.len())
    }

    /// Returns the reason why reading on is not enough: rows above were not on the screen, or no row fits.
    pub(super) fn unread(&self) -> Option<String> {
        if !self.fits {
            return Some("the terminal is too narrow to show it".to_owned());
        }
        (self.read < self.top).then(|| format!("unread from row {}", self.read + 1))
    }

    /// Scrolls; `false`: the key does not scroll.
    pub(super) fn key(&mut self, key: &Key) -> bool {
        let page = self.height.saturating_sub(1).max(1);
        let last = self.rows.len().saturating_sub(self.height);
        let to = match key {
            Key::Up | Key::Char('k') => self.top.saturating_sub(1),
            Key::Down | Key::Char('j') => self.top + 1,
            Key::PageUp | Key::Char('b') => self.top.saturating_sub(page),
            Key::PageDown | Key::Char(' ') | Key::Enter => self.top + page,
            Key::Home | Key::Char('g') => 0,
            Key::End | Key::Char('G') => last,
            _ => return false,
        };
        self.top = to.min(last);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pager(rows: usize) -> Pager {
        Pager::new((0..rows).map(|row| row.to_string()).collect(), 80)
    }

    #[test]
    fn keys_scroll() {
        let cases: [(&[Key], usize); 8] = [
            (&[], 0),
            (&[Key::Up], 0),
            (&[Key::Down, Key::Char('j'), Key::Up], 1),
            (&[Key::PageDown, Key::Char(' '), Key::Enter], 27),
            (&[Key::PageDown, Key::Char('b')], 0),
            (&[Key::End], 90),
            (&[Key::Char('G'), Key::PageDown, Key::Down], 90),
            (&[Key::End, Key::Home], 0),
        ];
        for (keys, top) in cases {
            let mut pager = pager(100);
            let _drawn = pager.rows(10);
            assert!(keys.iter().all(|key| pager.key(key)));
            assert_eq!(pager.rows(10)[0], top.to_string(), "{keys:?}");
        }
        assert!(!pager(3).key(&Key::Char('y')));
        assert_eq!(pager(3).rows(10).len(), 3);
    }

    #[test]
    fn it_is_read_when_every_row_was_on_the_screen() {
        let mut pager = pager(25);
        let mut draw = |keys: &[Key]| {
            keys.iter().for_each(|key| assert!(pager.key(key)));
            let _drawn = pager.rows(10);
            (pager.drawn(), pager.unread().is_some())
        };
        assert_eq!(draw(&[]), (false, false));
        assert_eq!(draw(&[Key::End]), (false, true), "rows 11 to 15 were not on the screen");
        assert_eq!(draw(&[Key::Home, Key::PageDown]), (false, false));
        assert_eq!(draw(&[Key::PageDown]), (true, false));
        assert_eq!(draw(&[Key::Home]), (true, false), "it stays read");
    }

    #[test]
    fn what_the_terminal_cuts_is_not_read() {
        let rows = || vec!["a".to_owned(), "▌".to_owned(), "a row".to_owned()];
        // A character that could be mistaken for the gutter is escaped.
        for (columns, is_read) in [(6, false), (9, false), (10, true)] {
            let mut pager = Pager::new(rows(), columns);
            let _drawn = pager.rows(10);
            assert_eq!((pager.drawn(), pager.unread().is_none()), (is_read, is_read), "{columns}");
        }
        let mut pager = Pager::new(rows(), 80);
        let _drawn = pager.rows(10);
        assert!(pager.drawn());
        pager.replace(rows(), 6);
        assert!(!pager.drawn());
    }

    #[test]
    fn another_size_keeps_the_place_and_other_rows_are_read_anew() {
        let mut pager = pager(25);
        let _drawn = pager.rows(10);
        assert!(pager.key(&Key::End));
        assert_eq!(pager.rows(8)[0], "17");
        assert_eq!(pager.place(), "18–25 of 25 rows");
        pager.replace((0..50).map(|row| row.to_string()).collect(), 40);
        assert_eq!(pager.rows(8)[0], "34");
        assert!(!pager.drawn());
        assert_eq!(pager.rows(100).len(), 50);
        assert!(pager.drawn());
    }
}
