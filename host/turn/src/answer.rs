//! A model's answer as it grows: its blocks, its tokens, and how far the gate has let it through.

use std::collections::VecDeque;
use std::sync::Arc;

use flow::{
    AnswerBlock, BlockId, BlockKind, EventKind, HoldOutcome, Message, ModelOutput, Origin, Part, Partial, Role,
    StopReason, StreamKind, ToolCall, Usage,
};
use tokio::time::Instant;

use crate::events::Hub;
use crate::hold::Holds;
use crate::ports::EventSink;

/// What came of one attempt so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) model: Option<String>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) usage: Usage,
    pub(crate) stop: Option<StopReason>,
    /// Bytes of it that `usage` speaks of.
    counted: u64,
    /// What the user saw of it, after the extensions, a beginning from an earlier attempt included.
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
    /// Bytes of `text` that an earlier attempt left.
    pub(crate) stood: usize,
    /// Bytes of `text` that the gate has let through.
    pub(crate) released: usize,
    /// The pieces that are held back, oldest first: where each ends, and when it came.
    held: VecDeque<(usize, Instant)>,
    /// What is to be told of its holds; `None` while nothing was held.
    holds: Option<Box<Holds>>,
}

/// What stands of an answer that was stopped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stands {
    pub(crate) text: String,
    /// Bytes of `text` that the gate had let through.
    pub(crate) released: usize,
}

impl Block {
    /// So many bytes of it wait after a delta; `who` names the rules they wait for.
    pub(crate) fn waiting(&mut self, bytes: u64, who: impl FnOnce() -> Vec<String>) {
        if bytes > 0 {
            self.holds.get_or_insert_with(|| Box::new(Holds::new())).waiting(bytes, who);
        } else if let Some(holds) = &mut self.holds {
            holds.over();
        }
    }

    /// How its last hold ended, where it did not come to nothing.
    pub(crate) fn hold_ended(&mut self, outcome: HoldOutcome) {
        if let Some(holds) = &mut self.holds {
            holds.ended(outcome);
        }
    }

    /// Whether there is something to tell of holds.
    pub(crate) fn was_held(&self) -> bool {
        self.holds.is_some()
    }

    /// What was held in it, for telling it once.
    pub(crate) fn take_holds(&mut self) -> Option<Holds> {
        self.holds.take().map(|holds| *holds)
    }

    /// Which stream of rules it is.
    pub(crate) fn stream(&self) -> StreamKind {
        match &self.kind {
            BlockKind::Text => StreamKind::Text,
            BlockKind::Thinking => StreamKind::Thinking,
            BlockKind::Tool { call, name } => StreamKind::Tool { call: call.clone(), name: name.clone() },
        }
    }

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
        self.blocks.push(Block {
            id,
            kind,
            text: String::new(),
            signature: None,
            redacted: false,
            ended: false,
            stood: 0,
            released: 0,
            held: VecDeque::new(),
            holds: None,
        });
    }

    /// The provider says how many tokens it took so far.
    pub(crate) fn count(&mut self, usage: Usage) {
        self.usage.update(usage);
        self.counted = self.bytes();
    }

    /// The tokens of `discarded` bytes of it, and whether they are a guess: a quarter of the bytes that the provider did
    /// not count. `before` bytes of the answer came in earlier attempts.
    pub(crate) fn tokens_of(&self, discarded: u64, before: u64) -> (u64, bool) {
        let fresh = self.bytes().saturating_sub(before);
        match self.usage.output.filter(|_| fresh > 0 && self.counted == self.bytes()) {
            Some(tokens) if discarded >= fresh => {
                let earlier = (discarded - fresh).div_ceil(4);
                (tokens.saturating_add(earlier), earlier > 0)
            }
            Some(tokens) => (tokens.saturating_mul(discarded) / fresh, true),
            None => (discarded.div_ceil(4), true),
        }
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

    /// What stands where a rule stopped the block `stopped` with a match that begins at its byte `start`: the text before
    /// the line of the match, or before the call or the reasoning with the match. No reasoning: its seal is for an
    /// answer that is not there. And nothing after an earlier call of the answer: it never ran.
    pub(crate) fn before_match(&self, stopped: BlockId, start: u64) -> Stands {
        let mut stands = Stands::default();
        for block in &self.blocks {
            let end = match &block.kind {
                BlockKind::Tool { .. } => break,
                BlockKind::Thinking if block.id == stopped => break,
                BlockKind::Thinking => continue,
                BlockKind::Text if block.id == stopped => line_start(&block.text, start),
                BlockKind::Text => block.text.len(),
            };
            if stands.released == stands.text.len() {
                stands.released += block.released.min(end);
            }
            stands.text.push_str(&block.text[..end]);
            if block.id == stopped {
                break;
            }
        }
        stands
    }

    /// The transcript gets what came of an answer that did not come to its end.
    /// `stands_bytes` of what was shown stay.
    pub(crate) fn tell_partial(&mut self, hub: &Hub, error: &str, stands_bytes: u64) {
        for block in &mut self.blocks {
            let stream = block.stream();
            if let Some(holds) = block.take_holds() {
                hub.emit(holds.report(stream));
            }
        }
        self.tell_reasoning(hub, true);
        hub.emit(EventKind::CognitionOut {
            text: self.text(),
            model: self.model.clone(),
            partial: Some(Partial { error: error.to_owned(), shown_bytes: self.shown.len() as u64, stands_bytes }),
            blocks: self.listed(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        });
    }

    /// Its blocks, for the transcript. Prose without a word says nothing: some servers open such blocks, others do not.
    pub(crate) fn listed(&self) -> Vec<AnswerBlock> {
        let list = |block: &Block| AnswerBlock {
            kind: block.kind.clone(),
            bytes: block.text.len() as u64,
            stood_bytes: block.stood as u64,
            arguments: block.kind.is_tool().then(|| block.text.clone()),
            complete: block.ended,
        };
        let said = |block: &&Block| block.kind.is_tool() || !block.text.is_empty();
        self.blocks.iter().filter(said).map(list).collect()
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

/// Where the line begins that the byte `at` stands in.
fn line_start(text: &str, at: u64) -> usize {
    let at = text.floor_char_boundary(usize::try_from(at).unwrap_or(usize::MAX).min(text.len()));
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}
