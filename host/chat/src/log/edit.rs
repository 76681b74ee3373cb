//! Changes of one message: text that is added, completed, corrected, and made void.

use crate::list::List;
use crate::message::{Block, BlockKind, ChatMessage};
use crate::text::Str;

impl ChatMessage {
    /// Adds shown text. Returns whether a block before it is complete now.
    pub(super) fn grow(&mut self, kind: BlockKind, text: &str) -> bool {
        if !self.blocks.last().is_some_and(|block| block.continues(kind)) {
            let completed = self.complete_block();
            self.blocks.push(Block::new(kind, text));
            return completed;
        }
        if let Some(block) = self.blocks.last_mut() {
            block.text.push(text);
        }
        false
    }

    /// Completes the last block. Returns whether there was one to complete.
    pub(super) fn complete_block(&mut self) -> bool {
        let open = self.blocks.last().is_some_and(|block| !block.complete);
        if let Some(block) = self.blocks.last_mut().filter(|_| open) {
            block.complete = true;
        }
        open
    }

    /// No text follows; `partial` is the reason where it did not come to its end.
    pub(super) fn finish(&mut self, partial: Option<&str>) {
        self.complete_block();
        self.complete = true;
        self.partial = partial.map(Str::from);
    }

    /// Makes its valid text what the user has seen, where deltas were lost. Returns whether it was something else.
    pub(super) fn correct(&mut self, seen: &str) -> bool {
        let (mut same, mut total) = (0, 0);
        for block in self.blocks.iter().filter(|block| block.is_text()) {
            // Behind the first difference nothing is compared.
            if same == total {
                same += block.text.common_prefix(&seen[same..]);
            }
            total += block.text.len();
        }
        if (same, same) == (total, seen.len()) {
            return false;
        }
        if same < total {
            let (blocks, after) = self.split(same);
            let others = after.into_iter().filter(|block| !block.is_text());
            self.blocks = blocks.iter().cloned().chain(others).collect();
        }
        if same < seen.len() {
            let rest = &seen[same..];
            let last = self.blocks.last_mut().filter(|block| block.is_text());
            match last {
                Some(block) => block.text.push(rest),
                None => self.blocks.push(Block::new(BlockKind::Text, rest)),
            }
        }
        true
    }

    /// Marks everything after the first `kept` bytes of its valid text as void. Returns whether there was anything.
    pub(super) fn void_after(&mut self, kept: usize, why: &str) -> bool {
        let (mut blocks, after) = self.split(kept);
        let mut any = false;
        for mut block in after {
            any |= block.void.is_none();
            block.void.get_or_insert_with(|| why.into());
            block.complete = true;
            blocks.push(block);
        }
        self.blocks = blocks;
        any
    }

    /// The blocks up to `at` bytes of valid text, and those after. Reasoning in front of the first byte after `at` is after.
    fn split(&self, at: usize) -> (List<Block>, Vec<Block>) {
        let (mut before, mut after, mut done) = (List::default(), Vec::new(), 0);
        // Blocks between two of valid text belong to the one behind them.
        let mut between = Vec::new();
        for block in self.blocks.iter() {
            if !block.is_text() || done >= at {
                between.push(block.clone());
                continue;
            }
            between.drain(..).for_each(|block| before.push(block));
            let mut first = block.clone();
            let rest = first.text.split_off(at - done);
            done += block.text.len();
            if !rest.is_empty() {
                after.push(Block { text: rest, ..first.clone() });
                first.complete = true;
            }
            if !first.text.is_empty() {
                before.push(first);
            }
        }
        after.append(&mut between);
        (before, after)
    }
}
