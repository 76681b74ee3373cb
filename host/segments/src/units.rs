//! Cuts text into the units that `on_plain_text` is called with: lines, paragraphs, or all of it.
//!
//! Joining the units gives the text, byte for byte, and the cuts do not depend on how the text arrives.

use crate::Unit;

/// The text of one handler that is not yet a whole unit.
#[derive(Debug)]
pub(crate) struct UnitBuffer {
    unit: Unit,
    text: String,
    /// The start of the current unit in `text`: the bytes before it were emitted. They are removed with the next
    /// chunk and not with each unit, which would move the rest of a long text once for every line.
    start: usize,
    /// The position up to which `text` was searched and contains no end of a unit.
    scanned: usize,
    /// Paragraphs: the start of the current line, and whether a non-blank line precedes it.
    line: usize,
    words: bool,
}

impl UnitBuffer {
    pub(crate) fn new(unit: Unit) -> Self {
        Self { unit, text: String::new(), start: 0, scanned: 0, line: 0, words: false }
    }

    pub(crate) fn push(&mut self, text: &str) {
        let given = std::mem::take(&mut self.start);
        self.text.drain(..given);
        self.scanned -= given;
        self.line -= given;
        self.text.push_str(text);
    }

    /// Bytes that are not a complete unit yet.
    pub(crate) fn len(&self) -> usize {
        self.text.len() - self.start
    }

    /// The next whole unit, if there is one.
    pub(crate) fn next_unit(&mut self) -> Option<String> {
        let end = match self.unit {
            Unit::Whole => None,
            Unit::Line => {
                let end = self.text[self.scanned..].find('\n').map(|at| self.scanned + at + 1);
                self.scanned = self.text.len();
                end
            }
            Unit::Paragraph => self.paragraph_end(),
        }?;
        let unit = self.text[self.start..end].to_owned();
        (self.start, self.scanned, self.line, self.words) = (end, end, end, false);
        Some(unit)
    }

    /// What is left, as the last unit; `None` where nothing is.
    pub(crate) fn finish(&mut self) -> Option<String> {
        let mut rest = std::mem::take(&mut self.text);
        rest.drain(..self.start);
        (self.start, self.scanned, self.line, self.words) = (0, 0, 0, false);
        if rest.is_empty() { None } else { Some(rest) }
    }

    /// A paragraph ends with the first blank line after its words; blank lines before them belong to it.
    fn paragraph_end(&mut self) -> Option<usize> {
        while let Some(at) = self.text[self.scanned..].find('\n') {
            let end = self.scanned + at + 1;
            let blank = self.text[self.line..end].trim().is_empty();
            (self.scanned, self.line) = (end, end);
            if blank && self.words {
                return Some(end);
            }
            self.words |= !blank;
        }
        self.scanned = self.text.len();
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(unit: Unit, text: &str, cut: usize) -> Vec<String> {
        let mut buffer = UnitBuffer::new(unit);
        let mut out = Vec::new();
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(cut) {
            buffer.push(&piece.iter().collect::<String>());
            while let Some(unit) = buffer.next_unit() {
                out.push(unit);
            }
        }
        out.extend(buffer.finish());
        out
    }

    #[test]
    fn units_are_the_same_at_any_chunking_and_lose_no_byte() {
        let text = "\n\none\ntwo\r\n \t\r\n\n\nthree ü\n\nfour";
        let paragraphs = ["\n\none\ntwo\r\n \t\r\n", "\n\nthree ü\n\n", "four"];
        let lines = ["\n", "\n", "one\n", "two\r\n", " \t\r\n", "\n", "\n", "three ü\n", "\n", "four"];
        for cut in 1..40 {
            assert_eq!(units(Unit::Paragraph, text, cut), paragraphs);
            assert_eq!(units(Unit::Line, text, cut), lines);
            assert_eq!(units(Unit::Whole, text, cut), [text]);
        }
    }

    #[test]
    fn a_unit_that_was_given_out_counts_no_more() {
        let mut buffer = UnitBuffer::new(Unit::Line);
        buffer.push("one\nrest");
        assert_eq!((buffer.len(), buffer.next_unit().as_deref(), buffer.len()), (8, Some("one\n"), 4));
        buffer.push("+");
        assert_eq!((buffer.len(), buffer.finish().as_deref(), buffer.len()), (5, Some("rest+"), 0));
    }

    #[test]
    fn many_short_units_in_one_piece_cost_no_more_than_their_bytes() {
        let lines = 1 << 20;
        let text = "\n".repeat(lines);
        let mut buffer = UnitBuffer::new(Unit::Line);
        let began = std::time::Instant::now();
        buffer.push(&text);
        let mut found = 0;
        while buffer.next_unit().is_some() {
            found += 1;
        }
        assert_eq!((found, buffer.len(), buffer.finish()), (lines, 0, None));
        // Moving the rest for each line would take half a terabyte of copies.
        assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    }
}
