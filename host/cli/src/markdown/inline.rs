//! The text of a block with its styles, and how it becomes rows.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use anstyle::Style;

use super::look::Look;
use super::row::Row;
use crate::screen::clean::{Cleaner, Keep};
use crate::screen::wrap::between_words;

/// Text with styles, and the place in the source of each part.
#[derive(Debug)]
pub(super) struct Inline {
    /// Lines, which are separated by `\n`.
    text: String,
    parts: Vec<Part>,
    cleaner: Cleaner,
}

/// A part of the text, up to the one after it.
#[derive(Debug)]
struct Part {
    start: usize,
    style: Style,
    source: Range<usize>,
}

impl Inline {
    pub(super) fn new(look: Look) -> Self {
        Self { text: String::new(), parts: Vec::new(), cleaner: Cleaner::new(Keep::Line, look.guard) }
    }

    /// Adds text. What acts on a terminal is written out once more: an entity can stand for it.
    pub(super) fn push(&mut self, text: &str, style: Style, source: Range<usize>) {
        let start = self.text.len();
        self.cleaner.push(text, &mut self.text);
        self.parts.push(Part { start, style, source });
    }

    /// Ends a line.
    pub(super) fn end_line(&mut self, source: Range<usize>) {
        self.cleaner.finish(&mut self.text);
        self.parts.push(Part { start: self.text.len(), style: Style::new(), source });
        self.text.push('\n');
    }

    /// The text so far, of lines that are complete and the last one.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The number of rows of the text before a place in the source.
    pub(super) fn count(&self, place: usize, columns: usize) -> usize {
        let part = self.parts.iter().position(|part| part.source.end > place);
        let end = part.map_or(self.text.len(), |index| {
            let start = self.parts[index].start;
            let next = self.parts.get(index + 1).map_or(self.text.len(), |next| next.start);
            let source = &self.parts[index].source;
            if next - start == source.len() { start + place.saturating_sub(source.start) } else { start }
        });
        let text = self.text.get(..end).unwrap_or_default();
        text.split('\n').map(|line| between_words(line, columns).len()).sum()
    }

    /// The rows, with the end of each in the source. `None`: rows without a limit, one a line.
    pub(super) fn rows(mut self, columns: Option<usize>) -> Vec<(Row, usize)> {
        self.cleaner.finish(&mut self.text);
        let (mut rows, mut start, mut part) = (Vec::new(), 0, 0);
        for line in self.text.split('\n') {
            for piece in columns.map_or_else(|| vec![line], |columns| between_words(line, columns)) {
                let end = start + piece.len();
                rows.push(self.row(start..end, &mut part));
                start = end;
            }
            start += 1;
        }
        rows
    }

    /// A row of the text. `part`: the first part that can be in it.
    fn row(&self, range: Range<usize>, part: &mut usize) -> (Row, usize) {
        let (mut row, mut end) = (Row::default(), 0);
        while let Some(one) = self.parts.get(*part) {
            let next = self.parts.get(*part + 1).map_or(self.text.len(), |next| next.start);
            if one.start <= range.end {
                let (from, to) = (one.start.max(range.start), next.min(range.end));
                row.push(self.text.get(from..to).unwrap_or_default(), one.style);
                // Where the text is not that of the source, the row ends no earlier than the whole part.
                let is_exact = next - one.start == one.source.len();
                end = if is_exact { one.source.start + to.saturating_sub(one.start) } else { one.source.end };
            }
            if next > range.end || *part + 1 == self.parts.len() {
                break;
            }
            *part += 1;
        }
        row.trim_end();
        (row, end)
    }
}

/// The first byte of literal text in a paragraph that what follows can make the beginning of something else, such as `*` of an emphasis.
pub(super) fn undecided(source: &str, mut text: Range<usize>, brackets: &Brackets) -> Option<usize> {
    let bytes = source.as_bytes();
    let at = |index: usize| bytes.get(index).copied();
    let is_word = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
    text.find(|&index| {
        let (before, next) = (index.checked_sub(1).and_then(at), at(index + 1));
        let can_begin = match bytes[index] {
            b'*' | b'~' => next.is_none_or(|next| !next.is_ascii_whitespace()),
            b'_' => !is_word(before) && next.is_none_or(|next| !next.is_ascii_whitespace()),
            b'`' => true,
            // At the end of a line it breaks the line, if another follows.
            b'\\' => bytes[index + 1..].iter().all(u8::is_ascii_whitespace),
            b'<' => next.is_none_or(|next| next.is_ascii_alphabetic() || b"/!?".contains(&next)),
            b'&' => {
                let name = bytes[index + 1..].iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'#');
                at(index + 1 + name.count()).is_none()
            }
            b'[' => brackets.is_open(source, index),
            _ => false,
        };
        // Backslashes are counted last: only the end of a run of them gets here.
        can_begin && bytes[..index].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
    })
}

/// The square brackets of a text, which are paired once, at the first lookup: there can be many nested ones.
#[derive(Debug, Default)]
pub(super) struct Brackets {
    /// The end of each closed pair, by the byte of its `[`.
    pairs: OnceCell<HashMap<usize, usize>>,
}

impl Brackets {
    /// Returns whether the bracket at a byte can begin a link.
    fn is_open(&self, source: &str, at: usize) -> bool {
        let end = self.pairs.get_or_init(|| pairs(source.as_bytes())).get(&at);
        end.is_none_or(|end| source.as_bytes().get(end + 1).is_none_or(|next| b"([:".contains(next)))
    }
}

fn pairs(bytes: &[u8]) -> HashMap<usize, usize> {
    let (mut pairs, mut open) = (HashMap::new(), Vec::new());
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'[' => open.push(index),
            b']' => pairs.extend(open.pop().map(|start| (start, index))),
            _ => {}
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the same as [`Brackets::is_open`], according to its definition.
    fn is_open(bytes: &[u8]) -> bool {
        let mut depth = 0_usize;
        for (index, byte) in bytes.iter().enumerate() {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return bytes.get(index + 1).is_none_or(|next| b"([:".contains(next));
            }
        }
        true
    }

    #[test]
    fn a_bracket_is_open_until_its_own_end_is_there_and_no_link_follows() {
        // Each string of up to six of these characters.
        let letters = b"[](x";
        for count in 1..=6_u32 {
            for number in 0..letters.len().pow(count) {
                let letter = |place: u32| letters[number / letters.len().pow(place) % letters.len()];
                let text: Vec<u8> = (0..count).map(letter).collect();
                let (source, brackets) = (String::from_utf8_lossy(&text), Brackets::default());
                for at in (0..text.len()).filter(|at| text[*at] == b'[') {
                    assert_eq!(brackets.is_open(&source, at), is_open(&text[at..]), "{source:?} at {at}");
                }
            }
        }
    }
}
