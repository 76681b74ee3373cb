//! The input line: its text, which can have several lines, the cursor, and the inputs before it.
//!
//! The cursor moves by grapheme clusters (Unicode Standard Annex 29): what a person sees as one character, such as a flag, is one.

use unicode_segmentation::UnicodeSegmentation as _;

use crate::screen::clean::flat;
use crate::screen::keys::Key;
use crate::screen::terminal;
use crate::style;

/// Inputs that are kept.
const MOST: usize = 1000;
/// Rows of the input that are shown at once.
const ROWS: usize = 10;

/// The input line.
#[derive(Debug, Default)]
pub(super) struct Input {
    text: String,
    /// The byte where the next character goes.
    at: usize,
    /// Earlier inputs, the oldest first.
    before: Vec<String>,
    /// The earlier input that is shown, and the text that it has replaced.
    recalled: Option<(usize, String)>,
}

/// The input as rows of the terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) rows: Vec<String>,
    /// The row and the column of the cursor, from 0.
    pub(super) cursor: (usize, usize),
}

impl Input {
    /// An empty input after earlier ones.
    pub(super) fn after(mut before: Vec<String>) -> Self {
        before.drain(..before.len().saturating_sub(MOST));
        Self { before, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes the text and leaves nothing. It is not remembered.
    pub(super) fn take(&mut self) -> String {
        (self.at, self.recalled) = (0, None);
        std::mem::take(&mut self.text)
    }

    /// Takes the text, and remembers it.
    pub(super) fn submit(&mut self) -> String {
        let text = self.take();
        if self.before.last() != Some(&text) {
            self.before.push(text.clone());
        }
        if self.before.len() > MOST {
            self.before.remove(0);
        }
        text
    }

    /// Puts a text before the present one, on lines of its own.
    pub(super) fn prepend(&mut self, text: &str) {
        let end = if self.text.is_empty() { "" } else { "\n" };
        self.text.insert_str(0, &format!("{text}{end}"));
        self.at = self.text.len();
    }

    /// Replaces the text.
    pub(super) fn set(&mut self, text: String) {
        self.at = text.len();
        (self.text, self.recalled) = (text, None);
    }

    /// The text before the cursor, where a word ends at the cursor.
    pub(super) fn before_cursor(&self) -> Option<&str> {
        let (before, after) = self.text.split_at(self.at);
        after.chars().next().is_none_or(char::is_whitespace).then_some(before)
    }

    /// Replaces the text between a byte and the cursor.
    pub(super) fn complete(&mut self, start: usize, with: &str) {
        self.delete(start.min(self.at), self.at);
        self.insert(with);
    }

    /// Edits the text; `false`: the key does not edit.
    pub(super) fn key(&mut self, key: &Key) -> bool {
        match key {
            Key::Char(letter) => self.insert(letter.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(text),
            Key::NewLine => self.insert("\n"),
            Key::Backspace => self.delete(self.left(), self.at),
            Key::Delete => self.delete(self.at, self.right()),
            Key::Left | Key::Ctrl('b') => self.at = self.left(),
            Key::Right | Key::Ctrl('f') => self.at = self.right(),
            Key::WordLeft => self.at = self.word_left(),
            Key::WordRight => self.at = self.word_right(),
            Key::Home | Key::Ctrl('a') => self.at = self.line_start(),
            Key::End | Key::Ctrl('e') => self.at = self.line_end(),
            Key::Ctrl('u') => self.delete(self.line_start(), self.at),
            Key::Ctrl('k') => self.delete(self.at, self.line_end().max(self.right().min(self.line_end() + 1))),
            Key::Ctrl('w') => self.delete(self.word_left(), self.at),
            Key::Up | Key::Ctrl('p') => self.up(),
            Key::Down | Key::Ctrl('n') => self.down(),
            _ => return false,
        }
        true
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.drain(from..to);
        self.at = from;
    }

    fn left(&self) -> usize {
        self.text[..self.at].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.at + self.text[self.at..].graphemes(true).next().map_or(0, str::len)
    }

    fn word_left(&self) -> usize {
        let before = self.text[..self.at].grapheme_indices(true).rev();
        let word =
            before.skip_while(|(_, cluster)| !is_of_word(cluster)).take_while(|(_, cluster)| is_of_word(cluster));
        word.last().map_or(0, |(at, _)| at)
    }

    fn word_right(&self) -> usize {
        let after = self.text[self.at..].grapheme_indices(true);
        let word = after.skip_while(|(_, cluster)| !is_of_word(cluster)).take_while(|(_, cluster)| is_of_word(cluster));
        word.last().map_or(self.text.len(), |(at, cluster)| self.at + at + cluster.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.at..].find('\n').map_or(self.text.len(), |end| self.at + end)
    }

    /// Goes to the line above, or to the input before this one.
    fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.text[start..self.at].graphemes(true).count();
            self.at = start - 1;
            self.at = self.column(self.line_start(), column);
            return;
        }
        let index = self.recalled.as_ref().map_or(self.before.len(), |(index, _)| *index);
        if let Some(index) = index.checked_sub(1) {
            self.recall(index);
        }
    }

    /// Goes to the line below, or to the input after this one.
    fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.text[self.line_start()..self.at].graphemes(true).count();
            self.at = self.column(end + 1, column);
            return;
        }
        match self.recalled.take() {
            Some((index, draft)) if index + 1 == self.before.len() => self.set(draft),
            Some((index, draft)) => {
                self.recalled = Some((index, draft));
                self.recall(index + 1);
            }
            None => {}
        }
    }

    fn recall(&mut self, index: usize) {
        let Some(text) = self.before.get(index).cloned() else { return };
        let draft = self.recalled.take().map_or_else(|| self.text.clone(), |(_, draft)| draft);
        self.set(text);
        self.recalled = Some((index, draft));
    }

    /// The byte of a column of the line that begins at `start`, or of its end.
    fn column(&self, start: usize, column: usize) -> usize {
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        start + line.grapheme_indices(true).nth(column).map_or(line.len(), |(at, _)| at)
    }

    /// The input after a prompt, at a terminal of so many columns. What is invisible is written out.
    pub(super) fn shown(&self, prompt: &str, columns: usize) -> Shown {
        let indent = terminal::width(prompt);
        let most = columns.saturating_sub(indent + 1).max(8);
        let (mut rows, mut cursor, mut start) = (Vec::new(), (0, 0), 0);
        for line in self.text.split('\n') {
            let here = (start..=start + line.len()).contains(&self.at);
            let (mut row, mut used) = (String::new(), 0);
            for (at, cluster) in line.grapheme_indices(true) {
                let is_at = here && (start + at..start + at + cluster.len()).contains(&self.at);
                for (index, shown) in parts(cluster, most).into_iter().enumerate() {
                    let width = terminal::width(&shown);
                    if used + width > most && used > 0 {
                        rows.push(std::mem::take(&mut row));
                        used = 0;
                    }
                    if is_at && index == 0 {
                        cursor = (rows.len(), used);
                    }
                    row.push_str(&shown);
                    used += width;
                }
            }
            if here && self.at == start + line.len() {
                cursor = (rows.len(), used);
            }
            rows.push(row);
            start += line.len() + 1;
        }
        let first = (cursor.0 + 1).saturating_sub(ROWS);
        let begin = |index: usize| match index {
            0 => style::out(style::STRONG, prompt),
            _ => " ".repeat(indent),
        };
        let rows: Vec<String> = rows.iter().enumerate().map(|(at, row)| format!("{}{row}", begin(at))).collect();
        let rows = rows.into_iter().skip(first).take(ROWS).collect();
        Shown { rows, cursor: (cursor.0 - first, cursor.1 + indent) }
    }
}

/// Whether a cluster is a letter or a number, with whatever belongs to it.
fn is_of_word(cluster: &str) -> bool {
    cluster.chars().next().is_some_and(char::is_alphanumeric)
}

/// A cluster as it is shown: whole where it fits into a row.
fn parts(cluster: &str, most: usize) -> Vec<String> {
    let shown = if cluster == "\t" { "\u{21e5}".to_owned() } else { flat(cluster) };
    if terminal::width(&shown) > most { shown.chars().map(String::from).collect() } else { vec![shown] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(input: &mut Input, keys: &[Key]) {
        keys.iter().for_each(|key| assert!(input.key(key), "{key:?}"));
    }

    fn typed(text: &str) -> Input {
        let mut input = Input::default();
        press(&mut input, &[Key::Paste(text.into())]);
        input
    }

    #[test]
    fn keys_edit_the_text() {
        let cases: [(&str, &[Key], &str, usize); 11] = [
            ("one two", &[Key::Ctrl('w')], "one ", 4),
            ("one two ", &[Key::Ctrl('w'), Key::Ctrl('w')], "", 0),
            ("é\u{1f600}", &[Key::Left, Key::Backspace], "\u{1f600}", 0),
            ("ab", &[Key::Home, Key::Delete, Key::Char('x')], "xb", 1),
            ("a\nbcd", &[Key::Ctrl('u')], "a\n", 2),
            ("abc\nd", &[Key::Up, Key::Ctrl('k')], "a\nd", 1),
            ("abc\nde", &[Key::Up, Key::Up, Key::Down, Key::Char('x')], "abc\ndex", 7),
            ("one two three", &[Key::WordLeft, Key::WordLeft, Key::Char('x')], "one xtwo three", 5),
            ("one two", &[Key::Home, Key::WordRight, Key::NewLine], "one\n two", 4),
            ("ab", &[Key::Left, Key::Left, Key::Left, Key::Right], "ab", 1),
            ("a\nb", &[Key::Home, Key::Left, Key::Ctrl('k')], "ab", 1),
        ];
        for (text, keys, after, at) in cases {
            let mut input = typed(text);
            press(&mut input, keys);
            assert_eq!((input.text(), input.at), (after, at), "{text:?} {keys:?}");
        }
        assert!(!Input::default().key(&Key::Enter));
    }

    #[test]
    fn what_is_seen_as_one_character_is_one() {
        let clusters = [
            "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}",
            "\u{1f1e9}\u{1f1ea}",
            "\u{1f1eb}\u{1f1f7}",
            "e\u{301}",
            "\u{1f44d}\u{1f3fd}",
            "\u{2764}\u{fe0f}",
            "\u{1100}\u{1161}\u{11a8}",
            "\u{915}\u{94d}\u{937}",
        ];
        let text = clusters.concat();
        for (index, cluster) in clusters.iter().enumerate() {
            let (before, after) = (clusters[..index].concat(), clusters[index + 1..].concat());
            let lefts = vec![Key::Left; clusters.len() - index];
            let mut input = typed(&text);
            press(&mut input, &lefts);
            assert_eq!(input.at, before.len(), "{cluster}");
            press(&mut input, &[Key::Right]);
            assert_eq!(input.at, before.len() + cluster.len(), "{cluster}");
            press(&mut input, &[Key::Backspace]);
            assert_eq!(input.text(), format!("{before}{after}"));
            let mut input = typed(&text);
            press(&mut input, &lefts);
            press(&mut input, &[Key::Delete]);
            assert_eq!(input.text(), format!("{before}{after}"));
        }
        // A mark is not the end of a word, and a line is as long as it is seen.
        let cases: [(&str, &[Key], usize); 4] = [
            ("cafe\u{301} noir", &[Key::Home, Key::WordRight], 6),
            ("cafe\u{301}s noir", &[Key::WordLeft, Key::WordLeft], 0),
            ("e\u{301}e\u{301}x\nab", &[Key::Up], 6),
            ("\u{1f468}\u{1f469}", &[Key::Left, Key::Char('\u{200d}'), Key::Left], 0),
        ];
        for (text, keys, at) in cases {
            let mut input = typed(text);
            press(&mut input, keys);
            assert_eq!(input.at, at, "{text:?} {keys:?}");
        }
    }

    #[test]
    fn earlier_inputs_return_and_so_does_what_was_being_written() {
        let mut input = Input::after(vec!["first".into(), "second".into()]);
        press(&mut input, &[Key::Paste("draft".into()), Key::Up]);
        assert_eq!(input.text(), "second");
        press(&mut input, &[Key::Up, Key::Up]);
        assert_eq!(input.text(), "first");
        press(&mut input, &[Key::Down, Key::Down]);
        assert_eq!(input.text(), "draft");
        assert_eq!((input.submit(), input.take()), ("draft".to_owned(), String::new()));
        press(&mut input, &[Key::Up]);
        assert_eq!(input.text(), "draft");
        input.prepend("queued");
        assert_eq!(input.text(), "queued\ndraft");
    }

    #[test]
    fn long_and_invisible_input_is_shown_in_rows() {
        let plain = |text: &str, columns| {
            let Shown { rows, cursor } = typed(text).shown("> ", columns);
            let row = |row: String| {
                let parts = style::parts(&row).into_iter();
                parts.filter_map(|part| if let style::Part::Text(text) = part { Some(text) } else { None }).collect()
            };
            (rows.into_iter().map(row).collect::<Vec<String>>(), cursor)
        };
        assert_eq!(plain("", 20), (vec!["> ".into()], (0, 2)));
        assert_eq!(plain("a\nb", 20), (vec!["> a".into(), "  b".into()], (1, 3)));
        assert_eq!(plain("0123456789ab", 13), (vec!["> 0123456789".into(), "  ab".into()], (1, 4)));
        assert_eq!(plain("\u{1b}[2J\t", 30), (vec!["> \\u{1b}[2J\u{21e5}".into()], (0, 12)));
        // A family is one, as wide as its parts where a terminal draws them so; what is too wide for a row is broken all the same.
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        assert_eq!(plain(&format!("12345{family}"), 13), (vec!["> 12345".into(), format!("  {family}")], (1, 8)));
        let flag: String = "\u{1f3f4}\u{e0067}\u{e007f}".into();
        assert_eq!(plain(&flag, 13).0.concat().replace("  ", ""), "> \u{1f3f4}\\u{e0067}\\u{e007f}");
        let (rows, cursor) = plain(&"x\n".repeat(30), 20);
        assert_eq!((rows.len(), cursor), (ROWS, (ROWS - 1, 2)));
    }
}
