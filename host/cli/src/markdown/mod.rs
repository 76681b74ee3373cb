//! Renders the Markdown of an answer while it streams.
//!
//! [`Markdown`] gives each row once, as soon as no continuation of the text can change its look: what is printed is never taken back. The rows
//! after it are [`tail`](Markdown::tail), which a terminal can show and erase again. Which rows an answer becomes depends on its text alone and
//! not on how it is cut into deltas, so that a line of the text is the smallest step.

mod blocks;
mod code;
mod inline;
mod look;
mod row;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use self::blocks::{Rendered, render};
use self::code::Highlighter;
pub(crate) use self::look::Look;
pub(crate) use self::row::Row;

/// The most bytes of the blocks that are not complete. Longer ones are cut, because each delta renders them again.
const MAX_OPEN: usize = 16 << 10;

/// The text of an answer as rows.
#[derive(Debug)]
pub(crate) struct Markdown {
    look: Look,
    /// The look from the next block on.
    next_look: Look,
    /// The text of the blocks that are not complete.
    open: String,
    /// Their rows that were given out.
    printed: Vec<Row>,
    /// All rows of the complete lines were given out.
    is_settled: bool,
    /// Nothing was given out yet: blank lines at the start of an answer are left out.
    is_first: bool,
    highlighter: Highlighter,
    /// The rendering of `open`, until that or the look changes.
    view: Option<Arc<Rendered>>,
    #[cfg(test)]
    renderings: usize,
}

impl Markdown {
    pub(crate) fn new(look: Look) -> Self {
        Self {
            look,
            next_look: look,
            open: String::new(),
            printed: Vec::new(),
            is_settled: true,
            is_first: true,
            highlighter: Highlighter::default(),
            view: None,
            #[cfg(test)]
            renderings: 0,
        }
    }

    /// Sets the look. A block whose first rows were given out keeps the one it has.
    pub(crate) fn set_look(&mut self, look: Look) {
        self.next_look = look;
        if self.printed.is_empty() && self.look != look {
            (self.look, self.view) = (look, None);
        }
    }

    /// Adds clean text, and returns the rows that are final now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Row> {
        let (mut rows, mut rest) = (Vec::new(), text);
        while !rest.is_empty() {
            let line = rest.find('\n').map_or(rest.len(), |end| end + 1);
            let free = rest.floor_char_boundary(MAX_OPEN.saturating_sub(self.open.len()));
            if free == 0 {
                rows.extend(self.cut());
                continue;
            }
            let (part, after) = rest.split_at(line.min(free));
            rest = after;
            self.open.push_str(part);
            self.view = None;
            if part.ends_with('\n') {
                rows.extend(self.settle());
            }
        }
        // A mark at the end can be the beginning of a longer one.
        if !self.open.ends_with(['\n', '*', '_', '~', '`']) {
            let rendered = self.view();
            // A line that is not complete can seem to begin a block, and continue the one before it in the end.
            let is_block = rendered.last > self.open.rfind('\n').unwrap_or(0);
            if rendered.rows.starts_with(&self.printed) && (self.is_settled || !is_block) {
                rows.extend(self.take(&rendered));
            }
        }
        rows
    }

    /// The rows that can still change.
    pub(crate) fn tail(&mut self) -> Vec<Row> {
        let rendered = self.view();
        if rendered.rows.starts_with(&self.printed) {
            return rendered.rows.get(self.printed.len()..).unwrap_or_default().to_vec();
        }
        let (before, line) = self.open.split_at(self.open.trim_end_matches('\n').rfind('\n').map_or(0, |end| end + 1));
        let (before, line) = (before.to_owned(), line.to_owned());
        let mut rows: Vec<_> = self.rendered(&before).rows.into_iter().skip(self.printed.len()).collect();
        rows.extend(self.rendered(&line).rows);
        rows
    }

    /// Gives out all rows, because a line of the host follows. The text can continue, also inside of a code block.
    pub(crate) fn cut(&mut self) -> Vec<Row> {
        let rendered = self.view();
        let open = std::mem::take(&mut self.open);
        self.view = None;
        let printed = std::mem::take(&mut self.printed);
        self.is_settled = true;
        self.look = self.next_look;
        if let Some(fence) = rendered.fence.clone() {
            // The rest of the block is code, too; its first line is not shown again.
            self.highlighter.seed(&open[fence.clone()], open.get(fence.end + 1..).unwrap_or_default());
            self.open = code::opening(&open[fence]);
            self.printed = self.view().rows.clone();
        } else {
            self.highlighter.clear();
        }
        let rows = rendered.rows.get(printed.len()..).unwrap_or_default().to_vec();
        self.is_first &= rows.is_empty() && printed.is_empty();
        rows
    }

    /// Gives out all rows; another text begins.
    pub(crate) fn finish(&mut self) -> Vec<Row> {
        let rows = self.cut();
        *self = Self::new(self.next_look);
        rows
    }

    /// A line of the text is complete.
    fn settle(&mut self) -> Vec<Row> {
        let rendered = self.view();
        if rendered.rows.starts_with(&self.printed) {
            let rows = self.take(&rendered);
            self.is_settled = rendered.settled == rendered.rows.len();
            self.drop_complete(&rendered);
            return rows;
        }
        // The line would make something else of rows that were given out, such as a heading of a paragraph. So it begins a block.
        let start = self.open[..self.open.len() - 1].rfind('\n').map_or(0, |end| end + 1);
        let line = self.open.split_off(start);
        let before = std::mem::take(&mut self.open);
        let rendered = self.rendered(&before).rows;
        let rows: Vec<_> = rendered.get(self.printed.len()..).unwrap_or_default().to_vec();
        if self.printed.len() <= rendered.len() {
            // The blank row between them was not given out.
            self.open.push_str(&before[before.trim_end().len()..]);
        }
        self.open.push_str(&line);
        self.printed.clear();
        (self.is_first, self.view) = (false, None);
        rows.into_iter().chain(self.settle()).collect()
    }

    /// Gives out the final rows that were not.
    fn take(&mut self, rendered: &Rendered) -> Vec<Row> {
        let rows = rendered.rows.get(self.printed.len()..rendered.settled).unwrap_or_default().to_vec();
        self.printed.extend(rows.iter().cloned());
        rows
    }

    /// Forgets the text of blocks whose rows were all given out.
    fn drop_complete(&mut self, rendered: &Rendered) {
        let complete = rendered.complete;
        if complete > 0 {
            self.open.drain(..complete);
            self.highlighter.clear();
            self.printed.drain(..rendered.rows_complete.min(self.printed.len()));
        } else if let Some(fence) = &rendered.fence
            && fence.start == 0
        {
            // Of a code block its first line and the state of the highlighter are kept.
            self.highlighter.seed(&self.open[fence.clone()], &self.open[fence.end + 1..]);
            self.open = code::opening(&self.open[fence.clone()]);
            self.view = None;
            self.printed = self.view().rows.clone();
        } else {
            return;
        }
        (self.is_first, self.view) = (false, None);
        if self.printed.is_empty() {
            self.look = self.next_look;
        }
    }

    /// Returns the rendering of the blocks that are not complete.
    fn view(&mut self) -> Arc<Rendered> {
        let view = self.view.take().unwrap_or_else(|| Arc::new(self.rendered(&self.open.clone())));
        Arc::clone(self.view.insert(view))
    }

    fn rendered(&mut self, text: &str) -> Rendered {
        #[cfg(test)]
        {
            self.renderings += 1;
        }
        render(text, self.look, self.is_first, &mut self.highlighter)
    }
}
