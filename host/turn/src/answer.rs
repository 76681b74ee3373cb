//! A model's answer as it grows: its blocks, its tokens, and how far the gate has let it through.

use std::collections::VecDeque;
use std::sync::Arc;

use flow::{
    BlockId, BlockKind, EventKind, Message, ModelOutput, Origin, Part, Partial, Role, RuleMatch, StopReason,
    StreamKind, ToolCall, Usage,
};
use tokio::time::Instant;

use crate::events::Hub;
use crate::ports::EventSink;

/// What came of one attempt so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) model: Option<String>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) usage: Usage,
    pub(crate) stop: Option<StopReason>,
    /// What the user saw of it, after the extensions.
    pub(crate) shown: String,
    /// Number of the next piece shown.
    pub(crate) pieces: u32,
    /// Something of its reasoning was shown.
    pub(crate) reasoned: bool,
}

/// One block of an answer.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) id: BlockId,
    pub(crate) kind: BlockKind,
    pub(crate) text: String,
    pub(crate) signature: Option<String>,
    pub(crate) redacted: bool,
    pub(crate) ended: bool,
    /// Bytes of `text` that the gate has let through.
    pub(crate) released: usize,
    /// The pieces that are held back, oldest first: where each ends, and when it came.
    held: VecDeque<(usize, Instant)>,
}

impl Block {
    /// The gate lets it through up to here.
    pub(crate) fn release_to(&mut self, end: usize) {
        self.released = end;
        while self.held.front().is_some_and(|(piece_end, _)| *piece_end <= end) {
            self.held.pop_front();
        }
    }

    /// When the oldest byte that is held back came.
    pub(crate) fn oldest_held(&self) -> Option<Instant> {
        self.held.front().map(|(_, came)| *came)
    }
}

impl Answer {
    pub(crate) fn begin(&mut self, id: BlockId, kind: BlockKind) {
        let (text, signature, held) = (String::new(), None, VecDeque::new());
        self.blocks.push(Block { id, kind, text, signature, redacted: false, ended: false, released: 0, held });
    }

    /// The last piece of a block came just now and is not all to be let through.
    pub(crate) fn note_arrival(&mut self, id: BlockId, safe: u64) {
        if let Some(block) = self.block(id).filter(|block| safe < block.text.len() as u64) {
            block.held.push_back((block.text.len(), Instant::now()));
        }
    }

    /// The block of this id. Answers have few blocks and mostly write to the last.
    pub(crate) fn block(&mut self, id: BlockId) -> Option<&mut Block> {
        self.blocks.iter_mut().rfind(|block| block.id == id)
    }

    /// The text blocks, joined.
    pub(crate) fn text(&self) -> String {
        self.join(|kind| *kind == BlockKind::Text)
    }

    /// The thinking blocks, joined.
    pub(crate) fn thinking(&self) -> String {
        self.join(|kind| *kind == BlockKind::Thinking)
    }

    /// Bytes of everything that came.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.text.len() as u64).sum()
    }

    /// The tool calls that came whole, in order.
    pub(crate) fn calls(&self) -> Vec<ToolCall> {
        let call = |block: &Block| match &block.kind {
            BlockKind::Tool { call, name } if block.ended => {
                let arguments = if block.text.trim().is_empty() { "{}".to_owned() } else { block.text.clone() };
                Some(ToolCall { id: call.clone(), name: name.clone(), arguments })
            }
            _ => None,
        };
        self.blocks.iter().filter_map(call).collect()
    }

    /// The answer as `on_llm_output` gets it.
    pub(crate) fn output(&self) -> ModelOutput {
        let stop = self.stop.clone().unwrap_or(StopReason::EndTurn);
        ModelOutput { text: self.text(), tool_calls: self.calls(), stop, usage: self.usage }
    }

    /// The answer as it goes into the conversation, with `text` for its text. `None` where nothing is left.
    pub(crate) fn message(&self, text: &str) -> Option<Message> {
        let mut parts = Vec::new();
        // Providers refuse text of white space alone.
        let mut rest = Some(text).filter(|text| !text.trim().is_empty());
        for block in &self.blocks {
            match &block.kind {
                BlockKind::Thinking => parts.push(Part::Thinking {
                    text: block.text.clone(),
                    signature: block.signature.clone(),
                    redacted: block.redacted,
                }),
                // All text stands where the first of it stood.
                BlockKind::Text => parts.extend(rest.take().map(|text| Part::Text(text.to_owned()))),
                BlockKind::Tool { .. } => {}
            }
        }
        parts.extend(rest.map(|text| Part::Text(text.to_owned())));
        parts.extend(self.calls().into_iter().map(Part::ToolCall));
        let only_thinking = parts.iter().all(|part| matches!(part, Part::Thinking { .. }));
        let message = Message { role: Role::Assistant, origin: Origin::Model, parts, hidden: false };
        if only_thinking { None } else { Some(message) }
    }

    /// What stays in the conversation of an answer that did not come to its end: `text` alone.
    pub(crate) fn partial_message(text: String) -> Option<Arc<Message>> {
        if text.trim().is_empty() { None } else { Some(Arc::new(Message::text(Role::Assistant, Origin::Model, text))) }
    }

    /// The text before the line of the first match; all text where the match was in another stream.
    pub(crate) fn before_match(&self, matches: &[RuleMatch]) -> String {
        let start =
            matches.iter().filter(|found| found.stream == StreamKind::Text).map(|found| found.evidence.start).min();
        let Some(start) = start else { return self.text() };
        let mut text = String::new();
        for block in self.blocks.iter().filter(|block| block.kind == BlockKind::Text) {
            if block.ended {
                text.push_str(&block.text);
                continue;
            }
            let at = block.text.floor_char_boundary(usize::try_from(start).unwrap_or(usize::MAX).min(block.text.len()));
            let line = block.text[..at].rfind('\n').map_or(0, |end| end + 1);
            text.push_str(&block.text[..line]);
            break;
        }
        text
    }

    /// The transcript gets what came of an answer that did not come to its end.
    pub(crate) fn tell_partial(&self, hub: &Hub, error: &str) {
        self.tell_reasoning(hub, true);
        hub.emit(EventKind::CognitionOut {
            text: self.text(),
            model: self.model.clone(),
            partial: Some(Partial { error: error.to_owned(), shown_bytes: self.shown.len() as u64 }),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        });
    }

    /// The transcript gets the reasoning, where there was some.
    pub(crate) fn tell_reasoning(&self, hub: &Hub, interrupted: bool) {
        let text = self.thinking();
        if !text.is_empty() {
            hub.emit(EventKind::CognitionReasoning { text, interrupted });
        }
    }

    fn join(&self, wanted: impl Fn(&BlockKind) -> bool) -> String {
        self.blocks.iter().filter(|block| wanted(&block.kind)).map(|block| block.text.as_str()).collect()
    }
}
