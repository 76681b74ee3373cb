//! A model's answer as it grows: its text, its blocks, its tokens, and what of it was shown.

use std::borrow::Cow;
use std::sync::Arc;

use flow::{
    AnswerBlock, BlockId, EventKind, Keeping, KeptText, Message, ModelOutput, Origin, Part, Partial, Retained, Role,
    RunPosition, StopReason, StreamKind, ToolCall, Usage,
};

use rules::ContextMode;

use super::{Stopped, Surface};

/// What was received of one attempt so far.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The model's name as the provider reported it.
    pub(crate) model: Option<String>,
    /// Its blocks in order of their start.
    pub(crate) blocks: Vec<Block>,
    /// Its text: the prefix that an earlier attempt left, then the text blocks joined in order of their bytes.
    pub(crate) text: String,
    /// Bytes of `text` that an earlier attempt left.
    pub(crate) prefix: usize,
    /// Bytes of `text` that the gate released.
    pub(crate) released: usize,
    /// Its tokens as far as the provider reported them.
    pub(crate) usage: Usage,
    /// Why the model stopped; `None` while it has not.
    pub(crate) stop: Option<StopReason>,
    /// Bytes of it that `usage` covers.
    counted: u64,
    /// What the user saw of it, after the extensions, what an earlier attempt left included.
    pub(crate) shown: String,
    /// Bytes of `shown` that belong to an earlier message.
    pub(super) shown_before: usize,
    /// Of what the user saw is kept.
    pub(crate) keeping: Keeping,
    /// Nothing of a call's arguments is shown before extensions have had them.
    pub(crate) hides_calls: bool,
    /// The number of the next chunk shown.
    pub(crate) pieces: u32,
    /// Some of its reasoning was shown.
    pub(crate) reasoned: bool,
    /// The most tokens that it can have; `None`: not known.
    pub(crate) most_tokens: Option<u64>,
}

/// One block of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    id: BlockId,
    pub(super) kind: StreamKind,
    /// The thinking or the arguments; empty for text, which is in [`Answer::text`].
    pub(super) text: String,
    /// Of thinking, where it is kept: what the user saw.
    pub(super) shown: String,
    /// Of a call that extensions have had: what is shown of its arguments.
    pub(super) checked: Option<String>,
    /// Of a call: its arguments are not those that the model wrote.
    pub(super) changed: bool,
    /// Bytes of the block that were received.
    pub(super) bytes: u64,
    /// Bytes of the answer's text that were received before the block.
    pub(super) text_before: usize,
    pub(crate) signature: Option<String>,
    pub(crate) redacted: bool,
    ended: bool,
}

impl Block {
    pub(super) fn is_complete(&self) -> bool {
        self.ended
    }
}

/// What is kept of an answer that was stopped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The text of the answer up to where it is kept.
    pub text: String,
    /// Bytes of `text` that the gate had released.
    pub released: usize,
    /// Bytes of `text` that no match in progress can include: where the text is kept as a message of its own, which no
    /// rule watches again, it ends there.
    pub decided: usize,
}

impl Block {
    pub(super) fn kind(&self) -> &StreamKind {
        &self.kind
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Its thinking; empty for text, which is in [`Answer::text`].
    pub(super) fn text_mut(&mut self) -> &mut String {
        &mut self.text
    }

    /// Replaces the arguments of a call.
    pub(super) fn hide_arguments(&mut self, hidden: impl FnOnce(&str) -> String) {
        self.text = hidden(&self.text);
    }
}

/// An answer that was interrupted: what stays of it, and why it ends there.
#[derive(Debug)]
pub struct Cut<'a> {
    /// Empty where it does not stay.
    pub reasoning: &'a str,
    pub text: &'a str,
    pub error: &'a str,
    /// The estimated percentage.
    pub completion: Option<f64>,
}

impl Answer {
    /// A block begins.
    pub(super) fn begin(&mut self, id: BlockId, kind: StreamKind) {
        self.blocks.push(Block {
            id,
            kind,
            text: String::new(),
            shown: String::new(),
            checked: None,
            changed: false,
            bytes: 0,
            text_before: self.text.len(),
            signature: None,
            redacted: false,
            ended: false,
        });
    }

    /// Takes more of a block. Returns where its stream is shown; `None` for a block that was not started.
    pub(super) fn receive(&mut self, id: BlockId, text: &str) -> Option<Surface> {
        let block = self.blocks.iter_mut().rfind(|block| block.id == id)?;
        block.bytes += text.len() as u64;
        let surface = Surface::of(&block.kind);
        if surface == Surface::Text {
            self.text.push_str(text);
        } else {
            block.text.push_str(text);
        }
        Some(surface)
    }

    /// A block is complete.
    pub(super) fn end(&mut self, id: BlockId) -> Option<Surface> {
        let block = self.block(id)?;
        block.ended = true;
        Some(Surface::of(&block.kind))
    }

    /// An answer that an extension gave in the model's place. `keeping`: for which streams what the user saw is kept.
    pub fn of_text(text: &str, keeping: Keeping) -> Self {
        let mut answer = Self { keeping, ..Self::default() };
        answer.begin(0, StreamKind::Text);
        answer.receive(0, text);
        answer.end(0);
        answer
    }

    /// The provider restarted `void`, which this answer replaces: what was shown and counted of it remains so.
    pub(super) fn follow(&mut self, void: &Self) {
        self.model.clone_from(&void.model);
        (self.keeping, self.hides_calls) = (void.keeping, void.hides_calls);
        (self.pieces, self.reasoned, self.most_tokens) = (void.pieces, void.reasoned, void.most_tokens);
        self.count(void.usage);
    }

    /// The provider reports the tokens used so far.
    pub(crate) fn count(&mut self, usage: Usage) {
        self.usage.update(usage);
        self.counted = self.bytes();
    }

    /// The tokens of `discarded` bytes of it, and whether they are a guess: a quarter of the bytes that the provider did
    /// not count. The bytes of the prefix were counted in earlier attempts.
    pub fn tokens_of(&self, discarded: u64) -> (u64, bool) {
        let fresh = self.bytes().saturating_sub(self.prefix as u64);
        match self.usage.output.filter(|_| fresh > 0 && self.counted == self.bytes()) {
            Some(tokens) if discarded >= fresh => {
                let earlier = (discarded - fresh).div_ceil(4);
                (tokens.saturating_add(earlier), earlier > 0)
            }
            Some(tokens) => (tokens.saturating_mul(discarded) / fresh, true),
            None => (discarded.div_ceil(4), true),
        }
    }

    /// The block of this id. Answers have few blocks and mostly write to the last.
    pub(super) fn block(&mut self, id: BlockId) -> Option<&mut Block> {
        self.blocks.iter_mut().rfind(|block| block.id == id)
    }

    /// The thinking blocks, joined, as they are kept.
    pub(crate) fn thinking(&self) -> String {
        let thinking = self.blocks.iter().filter(|block| block.kind == StreamKind::Thinking);
        thinking.map(|block| self.kept_thinking(block)).collect()
    }

    /// The model's name as the provider reported it.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Its text, that of the prefix included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the user saw of it, after the extensions, what an earlier attempt left included.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Its tokens as far as the provider reported them.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Why the model stopped; `None` while it has not.
    pub fn stop(&self) -> Option<&StopReason> {
        self.stop.as_ref()
    }

    /// Whether the model has begun a block of it.
    pub fn has_begun(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Whether nobody has seen anything of it, but for what an earlier attempt left.
    pub fn is_unseen(&self) -> bool {
        self.pieces == 0 && !self.reasoned
    }

    /// The answer as it goes into the conversation where no extension rewrote its text.
    pub fn own_message(&self) -> Option<Message> {
        self.message(&self.text)
    }

    /// Bytes of everything that was received, the prefix included.
    pub fn bytes(&self) -> u64 {
        self.prefix as u64 + self.blocks.iter().map(|block| block.bytes).sum::<u64>()
    }

    /// The streams of its blocks, in order of their start.
    pub fn streams(&self) -> impl Iterator<Item = &StreamKind> {
        self.blocks.iter().map(|block| &block.kind)
    }

    /// The tool calls that were received completely, in order.
    pub fn calls(&self) -> Vec<ToolCall> {
        let call = |block: &Block| match &block.kind {
            StreamKind::Tool { call, name } if block.ended => {
                let arguments = if block.text.trim().is_empty() { "{}".to_owned() } else { block.text.clone() };
                Some(ToolCall { id: call.clone(), name: name.clone(), arguments })
            }
            _ => None,
        };
        self.blocks.iter().filter_map(call).collect()
    }

    /// The answer as `on_llm_output` gets it; the stage that calls it fills in the position.
    pub(crate) fn output(&self) -> ModelOutput {
        let stop = self.stop.clone().unwrap_or(StopReason::EndTurn);
        let at = RunPosition::default();
        ModelOutput { at, text: self.text.clone(), tool_calls: self.calls(), stop, usage: self.usage }
    }

    /// The answer as it goes into the conversation, with `text` for its text. `None` where nothing is left.
    ///
    /// Text that no extension rewrote keeps its places between blocks of reasoning, which providers that sign them require
    /// back as they were. Rewritten text has no such places: all of it goes where the first text was.
    pub fn message(&self, text: &str) -> Option<Message> {
        let own = text == self.text;
        let mut parts = Vec::new();
        let mut placed = 0;
        let mut place = |parts: &mut Vec<Part>, end: usize| {
            // Providers refuse text of white space alone: it goes with what follows.
            if let Some(next) = text.get(placed..end).filter(|next| !next.trim().is_empty()) {
                parts.push(Part::Text(next.to_owned()));
                placed = end;
            }
        };
        if !own && self.prefix > 0 {
            place(&mut parts, text.len());
        }
        for block in &self.blocks {
            match &block.kind {
                StreamKind::Thinking => {
                    if own {
                        place(&mut parts, block.text_before);
                    }
                    // Some servers open blocks that stay empty.
                    if !block.text.is_empty() || block.signature.is_some() {
                        parts.push(self.thinking_part(block));
                    }
                }
                StreamKind::Text if !own => place(&mut parts, text.len()),
                StreamKind::Text | StreamKind::Tool { .. } => {}
            }
        }
        place(&mut parts, text.len());
        parts.extend(self.calls().into_iter().map(Part::ToolCall));
        let only_thinking = parts.iter().all(|part| matches!(part, Part::Thinking { .. }));
        let message = Message { role: Role::Assistant, origin: Origin::Model, parts, hidden: false };
        if only_thinking { None } else { Some(message) }
    }

    /// What stays in the conversation of an answer that did not come to its end: `text` alone.
    pub fn partial_message(text: String) -> Option<Arc<Message>> {
        if text.trim().is_empty() { None } else { Some(Arc::new(Message::text(Role::Assistant, Origin::Model, text))) }
    }

    /// What the context mode keeps of the answer's text. It depends on the byte of the verdict, never on the chunking.
    ///
    /// `keep` keeps it up to the verdict, or what the user saw of it where that is kept; `rewind` up to the line in which the match begins. Reasoning is dropped because
    /// its signature is only valid with the complete answer; `rewind` also drops everything behind the first tool call,
    /// since that call never ran.
    pub fn kept(&self, stopped: &Stopped) -> Kept {
        if self.keeping.answer && stopped.judgement.context == ContextMode::Keep {
            let text = self.seen().to_owned();
            return Kept { released: text.len(), decided: text.len(), text };
        }
        let end = match stopped.judgement.context {
            ContextMode::Discard => 0,
            ContextMode::Keep => stopped.text_bytes,
            ContextMode::Rewind => {
                let call = self.blocks.iter().find(|block| block.kind.is_tool());
                let received = call.map_or(stopped.text_bytes, |call| call.text_before.min(stopped.text_bytes));
                let in_text = stopped.stopping().filter(|found| found.stream == StreamKind::Text);
                let start = in_text.map(|found| found.evidence.start).min();
                start.map_or(received, |start| line_start(&self.text, start).min(received))
            }
        };
        let decided = usize::try_from(stopped.decided).unwrap_or(usize::MAX).min(end);
        let decided = self.text.floor_char_boundary(decided);
        Kept { text: self.text[..end].to_owned(), released: self.released.min(end), decided }
    }

    /// How much of the answer there is, in percent of the most tokens that it can have: an estimate. An answer that broke off is not complete.
    fn completion(&self) -> Option<f64> {
        let most = self.most_tokens.filter(|most| *most > 0)?;
        let (tokens, _) = self.tokens_of(self.bytes());
        Some((tokens.saturating_mul(100) / most).min(99) as f64)
    }

    /// An answer that was interrupted, as it stays in the conversation: with a note that gives the cause.
    pub fn marked_message(cut: &Cut<'_>) -> Option<Arc<Message>> {
        let Cut { reasoning, text, error, completion } = cut;
        let mut marked = String::new();
        if !reasoning.trim().is_empty() {
            marked =
                format!("[Your reasoning before the stream was interrupted:]\n{reasoning}\n[End of your reasoning.]");
        }
        if !text.trim().is_empty() {
            marked.push_str(if marked.is_empty() { "" } else { "\n\n" });
            marked.push_str(text);
        }
        if !marked.is_empty() {
            let percent = completion.map(|percent| format!(" - about {percent:.0}% complete")).unwrap_or_default();
            marked.push_str(&format!("\n\n[Stream interrupted: {error}{percent}]"));
        }
        Self::partial_message(marked)
    }

    /// The message that stays of this answer, which was interrupted. With its reasoning where that has no signature: a part of signed reasoning
    /// is worth nothing to its provider.
    pub(crate) fn marked(&self, error: &str, with_reasoning: bool) -> Option<Arc<Message>> {
        let reasoning = if with_reasoning { self.thinking() } else { String::new() };
        let (text, completion) = (self.text.as_str(), self.completion());
        Self::marked_message(&Cut { reasoning: &reasoning, text, error, completion })
    }

    /// An answer as `Answer::listed` lists it. `None` where `thinking` is not what the blocks say.
    pub fn rebuilt(text: String, thinking: &str, blocks: Vec<AnswerBlock>) -> Option<Self> {
        let mut answer = Self { text, ..Self::default() };
        let mut thinking = thinking;
        for (id, block) in (0..).zip(blocks) {
            let bytes = usize::try_from(block.bytes).ok();
            if block.prefix_bytes > 0 {
                answer.prefix = bytes?;
                continue;
            }
            answer.begin(id, block.kind);
            let Some(own) = answer.blocks.last_mut() else { continue };
            match &own.kind {
                StreamKind::Text => {}
                StreamKind::Thinking => {
                    let (piece, rest) = thinking.split_at_checked(bytes?)?;
                    piece.clone_into(&mut own.text);
                    thinking = rest;
                    own.text_before = usize::try_from(block.text_before).ok()?;
                }
                StreamKind::Tool { .. } => own.text = block.arguments.unwrap_or_default(),
            }
            (own.signature, own.redacted, own.ended) = (block.signature, block.redacted, block.complete);
        }
        Some(answer)
    }

    /// What the user has seen of it, where that is neither its text nor the start of its text.
    pub(crate) fn shown_instead(&self, accepted: bool) -> Option<String> {
        let same = if accepted { self.text == self.shown } else { self.text.starts_with(&self.shown) };
        (!same).then(|| self.shown.clone())
    }

    /// The events of an answer that did not complete. `kept_bytes` of what was shown are kept; `reasoning`: it is retained as well.
    pub fn cut_events(
        &self,
        error: &str,
        kept_bytes: u64,
        (retained, reasoning): (Retained, bool),
    ) -> impl Iterator<Item = EventKind> + use<> {
        let mut kept = Cow::Borrowed(self);
        if self.keeping.answer {
            kept.to_mut().keep_shown();
        }
        let out = EventKind::CognitionOut {
            text: kept.text.clone(),
            keep: self.keep(),
            model: self.model.clone(),
            author: Origin::Model,
            shown: kept.shown_instead(false),
            partial: Some(Partial::new(error, self.shown.len() as u64, kept_bytes).with_completion(self.completion())),
            retained,
            blocks: kept.listed(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        };
        self.reasoning_event(true, reasoning).into_iter().chain([out])
    }

    /// Returns the events of an accepted answer that no callback has as a whole: without the reader's text if that differs.
    pub fn accepted_events(&self) -> impl Iterator<Item = EventKind> + use<> {
        let out = EventKind::CognitionOut {
            text: self.text.clone(),
            keep: self.keep(),
            model: self.model.clone(),
            author: Origin::Model,
            shown: None,
            partial: None,
            retained: if self.own_message().is_some() { Retained::Answer } else { Retained::Nothing },
            blocks: self.listed(),
            annotations: Vec::new(),
            rewrites: Vec::new(),
        };
        self.reasoning_event(false, true).into_iter().chain([out])
    }

    /// Its blocks, for the transcript, after the prefix of an earlier attempt. Empty blocks of prose are omitted: some
    /// servers open them, others do not.
    pub(crate) fn listed(&self) -> Vec<AnswerBlock> {
        let text = |bytes: u64| {
            let mut block = AnswerBlock::prose(StreamKind::Text, bytes);
            block.prefix_bytes = bytes;
            block
        };
        let prefix = Some(self.prefix as u64).filter(|bytes| *bytes > 0).map(text);
        let list = |block: &Block| {
            let mut listed = AnswerBlock::prose(block.kind.clone(), block.bytes);
            if block.kind.is_tool() {
                let (arguments, shown) = self.kept_arguments(block);
                (listed.arguments, listed.shown, listed.changed) = (Some(arguments), shown, block.changed);
            }
            listed.complete = block.ended;
            if block.kind == StreamKind::Thinking {
                listed.bytes = self.kept_thinking(block).len() as u64;
                listed.text_before = block.text_before as u64;
                (listed.signature, listed.redacted) = (self.kept_signature(block), block.redacted);
            }
            listed
        };
        let counts = |block: &&Block| block.kind.is_tool() || block.bytes > 0 || block.signature.is_some();
        prefix.into_iter().chain(self.blocks.iter().filter(counts).map(list)).collect()
    }

    /// The event of the reasoning, if there was some.
    pub fn reasoning_event(&self, interrupted: bool, retained: bool) -> Option<EventKind> {
        let text = self.thinking();
        let keep = if self.keeping.thinking { KeptText::Shown } else { KeptText::Original };
        (!text.is_empty()).then_some(EventKind::CognitionReasoning { text, keep, interrupted, retained })
    }
}

/// Where the line begins that contains the byte `at`.
fn line_start(text: &str, at: u64) -> usize {
    let at = text.floor_char_boundary(usize::try_from(at).unwrap_or(usize::MAX).min(text.len()));
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}
