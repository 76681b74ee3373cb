//! Which rows of a text no continuation of it can change.

use super::{Blocks, Leaf, Rendered};

impl Blocks<'_> {
    /// The rows, at the end of the text.
    pub(super) fn end(mut self) -> Rendered {
        self.flush();
        self.define(usize::MAX);
        let ends_line = self.text.ends_with('\n');
        let last = self.text.strip_suffix('\n').map(|text| text.rsplit('\n').next().unwrap_or_default());
        let is_blank = last.is_some_and(|line| line.chars().all(|c| " \t>".contains(c)));
        let (settled, is_complete) = match &self.leaf {
            Leaf::Paragraph | Leaf::Other if is_blank => (self.rows.len(), true),
            Leaf::Paragraph => {
                let rows = self.decided.unwrap_or(self.rows.len() - self.before);
                // Text can be added to the last one.
                (self.before + rows.saturating_sub(1), false)
            }
            Leaf::Line | Leaf::Code { is_closed: true, .. } if ends_line => (self.rows.len(), true),
            Leaf::Code { .. } => (self.until(self.text.rfind('\n').map_or(0, |end| end + 1)), false),
            Leaf::None | Leaf::Line | Leaf::Other => (self.before, false),
        };
        let (complete, rows_complete) = match is_complete && !self.is_nested && self.top.1 < self.rows.len() {
            true if is_blank => (self.text.trim_end().len() + 1, self.rows.len()),
            true => (self.text.len(), self.rows.len()),
            false => self.top,
        };
        let fence = match self.leaf {
            Leaf::Code { fence, .. } => fence,
            _ => None,
        };
        Rendered { rows: self.rows, settled, last: self.start, complete, rows_complete, fence }
    }

    /// The number of rows before the last block and of those of it that end at a place or before it.
    fn until(&self, place: usize) -> usize {
        self.before + self.ends.iter().skip(self.before).take_while(|end| **end <= place).count()
    }

    /// Where a paragraph has a line that the next one can make the head of a table.
    pub(super) fn cell(&self) -> Option<usize> {
        let text = self.text.get(self.start..)?;
        let last = text.trim_end_matches('\n').rfind('\n').map_or(0, |end| end + 1);
        let before = text[..last].trim_end_matches('\n').rfind('\n').map_or(0, |end| end + 1);
        let lines = [(before, &text[before..last]), (last, &text[last..])];
        let is_complete = text.ends_with('\n');
        let open = lines.iter().skip(usize::from(is_complete)).find(|(start, line)| match start {
            0 => line.contains('|'),
            // Only a table that is marked as such ends a paragraph.
            _ => line.trim_start_matches([' ', '\t', '>']).starts_with('|'),
        });
        open.map(|(start, line)| self.start + start + line.find('|').filter(|_| *start == 0).unwrap_or(0))
    }
}
