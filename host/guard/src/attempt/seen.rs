//! What the user saw of an answer in the place of what the model wrote, where that is what a session keeps.
//!
//! Text is replaced as a whole: it has no places between blocks of reasoning any more, unless it is the start of what was received.
//! Reasoning is kept block by block, because a provider signs each. A signed block that was changed goes back to the provider as it was,
//! and is recorded as it was seen, without its signature: a process that continues the session sends nothing of it.

use flow::{KeptText, Part, StreamKind};

use super::Answer;
use super::answer::Block;

impl Answer {
    /// The attempt begins with what an earlier one has left on the screen, of which the first `before` bytes belong to an earlier
    /// message.
    pub(crate) fn begin_shown(&mut self, shown: &str, before: usize) {
        shown.clone_into(&mut self.shown);
        self.shown_before = before;
    }

    /// Sets the text that another component has shown to the reader.
    pub fn was_shown(&mut self, shown: &str) {
        self.begin_shown(shown, 0);
    }

    /// Which text is kept of it.
    pub(crate) fn keep(&self) -> KeptText {
        if self.keeping.answer { KeptText::Shown } else { KeptText::Original }
    }

    /// What the user saw of this message.
    pub(crate) fn seen(&self) -> &str {
        self.shown.get(self.shown_before..).unwrap_or_default()
    }

    /// The user saw this of the thinking block with this number.
    pub(crate) fn saw_thinking(&mut self, number: usize, text: &str) {
        if !self.keeping.thinking {
            return;
        }
        let mut blocks = self.blocks.iter_mut().filter(|block| block.kind == StreamKind::Thinking);
        if let Some(block) = blocks.nth(number) {
            block.shown.push_str(text);
        }
    }

    /// This is shown of the arguments of the complete calls, in their order. Where that is kept, it takes the place of the arguments.
    pub fn show_calls<'s>(&mut self, shown: impl Iterator<Item = &'s str>) {
        let keeps = self.keeping.calls;
        let calls = self.blocks.iter_mut().filter(|block| block.kind.is_tool() && block.is_complete());
        for (block, shown) in calls.zip(shown) {
            if keeps && block.text != shown {
                shown.clone_into(&mut block.text);
                block.changed = true;
            }
            block.checked = Some(shown.to_owned());
        }
    }

    /// The arguments of a call as they are recorded, and what is shown of them, where that is another text. Those of a call that
    /// extensions have not had are hidden where one has to see them first.
    pub(super) fn kept_arguments(&self, block: &Block) -> (String, Option<String>) {
        match &block.checked {
            Some(shown) => (block.text.clone(), (*shown != block.text).then(|| shown.clone())),
            None if self.keeping.calls => (String::new(), None),
            None if self.hides_calls => (block.text.clone(), Some(String::new())),
            None => (block.text.clone(), None),
        }
    }

    /// What the user saw takes the place of the text, where that is what is kept.
    pub(crate) fn keep_shown(&mut self) {
        if !self.keeping.answer || self.seen() == self.text {
            return;
        }
        let shown = self.seen().to_owned();
        let is_start = self.text.starts_with(&shown);
        let (mut left, mut has_text) = (shown.len() as u64, false);
        for block in &mut self.blocks {
            match block.kind {
                StreamKind::Text => {
                    block.bytes = if is_start { block.bytes.min(left) } else { left };
                    left -= block.bytes;
                    has_text = true;
                }
                StreamKind::Thinking if is_start => block.text_before = block.text_before.min(shown.len()),
                StreamKind::Thinking => block.text_before = if has_text { shown.len() } else { 0 },
                StreamKind::Tool { .. } => {}
            }
        }
        (self.released, self.prefix) = (shown.len(), 0);
        self.text = shown;
    }

    /// The words of a thinking block as they are kept.
    pub(super) fn kept_thinking<'b>(&self, block: &'b Block) -> &'b str {
        if self.keeping.thinking { &block.shown } else { &block.text }
    }

    /// The signature of a thinking block as it is recorded: it is about the words that the model wrote.
    pub(super) fn kept_signature(&self, block: &Block) -> Option<String> {
        block.signature.clone().filter(|_| self.kept_thinking(block) == block.text)
    }

    /// A thinking block in the conversation. Only signed reasoning is ever sent again.
    pub(super) fn thinking_part(&self, block: &Block) -> Part {
        let (kept, signature, redacted) = (self.kept_thinking(block), block.signature.clone(), block.redacted);
        if kept == block.text || signature.is_none() {
            return Part::Thinking { text: kept.to_owned(), signature, redacted, shown: None };
        }
        Part::Thinking { text: block.text.clone(), signature, redacted, shown: Some(kept.to_owned()) }
    }
}
