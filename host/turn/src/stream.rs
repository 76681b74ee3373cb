//! Stage: drives one attempt. Every delta passes the gate before anything of it is shown.
//!
//! What may belong to a match in progress is held back; a match that interrupts ends the attempt at that delta, and the
//! caller drops the stream, which is the abort. What is let through goes to the segments (or waits, where an extension
//! rewrites whole outputs) and is shown.

use std::future::poll_fn;
use std::time::Duration;

use flow::{Action, BlockId, BlockKind, CallFailure, Delta, ErrorClass, EventKind, ModelError, RuleMatch, StreamKind};
use rules::{Fed, Gate, Judgement};
use tokio::time::Instant;

use crate::answer::Answer;
use crate::cancel::Cancel;
use crate::events::Hub;
use crate::ports::{EventSink, ModelStream};
use crate::segments::Segments;

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The answer is complete and passed the gate.
    Complete,
    /// A rule stopped it.
    Interrupted { matches: Vec<RuleMatch>, judgement: Judgement },
    /// The stream broke.
    Broken(ModelError),
    /// A required extension failed.
    Refused(CallFailure),
}

/// What fired without stopping the answer.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// The model is told after its answer, or with the result of the call.
    pub(crate) remind: Vec<RuleMatch>,
    /// These calls do not run.
    pub(crate) block: Vec<RuleMatch>,
}

/// Everything one attempt works with.
pub(crate) struct Attempt<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) cancel: &'a Cancel,
    pub(crate) rules: &'a mut rules::Session,
    pub(crate) gate: Gate,
    /// `None`: nothing is shown before the answer is complete.
    pub(crate) segments: Option<&'a mut Segments>,
    pub(crate) answer: &'a mut Answer,
    pub(crate) noted: &'a mut Noted,
    /// Told of each batch of matches at once, before the attempt goes on; must not wait.
    pub(crate) notify: &'a mut (dyn FnMut(&[RuleMatch], &Judgement) + Send),
    pub(crate) hold_max: Duration,
    /// Since when bytes are held without a break.
    pub(crate) held_since: Option<Instant>,
}

impl Attempt<'_> {
    /// Runs the stream to its end, to a match, or to its break. The stream is the caller's to drop.
    pub(crate) async fn run(&mut self, stream: &mut dyn ModelStream) -> End {
        loop {
            let next = match self.next(stream).await {
                Some(next) => next,
                None => match self.release_held("hold_max_ms").await {
                    Ok(()) => continue,
                    Err(failure) => return End::Refused(failure),
                },
            };
            let delta = match next {
                Some(Ok(delta)) => delta,
                Some(Err(error)) => return End::Broken(error),
                None => return End::Broken(unfinished()),
            };
            match self.delta(delta).await {
                Ok(None) => {}
                Ok(Some(end)) => return end,
                Err(failure) => return End::Refused(failure),
            }
        }
    }

    /// The next delta; `None` where held bytes have waited as long as they may.
    async fn next(&mut self, stream: &mut dyn ModelStream) -> Option<Option<Result<Delta, ModelError>>> {
        if self.cancel.is_cancelled() {
            // The turn is being dropped from outside; a stream that is always ready must not keep it busy.
            std::future::pending::<()>().await;
        }
        let delta = poll_fn(|cx| stream.poll_next(cx));
        match self.held_since {
            None => Some(delta.await),
            Some(since) => tokio::time::timeout_at(since + self.hold_max, delta).await.ok(),
        }
    }

    async fn delta(&mut self, delta: Delta) -> Result<Option<End>, CallFailure> {
        match delta {
            Delta::Piece { block, text } => return self.piece(block, text).await,
            Delta::BlockEnd { block } => return self.block_end(block).await,
            Delta::BlockStart { block, kind } => {
                self.gate.block_start(block, &kind);
                self.answer.begin(block, kind);
            }
            Delta::Start { model } => {
                if !self.answer.blocks.is_empty() {
                    // The provider begins anew: what came is void. What was shown of it stays shown, as of any attempt
                    // that is tried again.
                    self.gate = self.rules.gate();
                    self.answer.blocks.clear();
                }
                self.answer.model = model.or_else(|| self.answer.model.take());
            }
            Delta::Signature { block, data, redacted } => {
                if let Some(block) = self.answer.block(block) {
                    block.signature.get_or_insert_default().push_str(&data);
                    block.redacted |= redacted;
                }
            }
            Delta::Usage(usage) => self.answer.usage.update(usage),
            Delta::Stop { reason } => {
                self.answer.stop = Some(reason);
                return Ok(Some(End::Complete));
            }
        }
        Ok(None)
    }

    async fn piece(&mut self, id: BlockId, text: String) -> Result<Option<End>, CallFailure> {
        let Some(block) = self.answer.block(id) else { return Ok(None) };
        block.text.push_str(&text);
        if self.gate.is_idle() {
            block.released = block.text.len();
            let surface = Surface::of(&block.kind);
            self.show(surface, text).await?;
            return Ok(None);
        }
        let fed = self.gate.piece(id, &text);
        let (safe, over) = (fed.safe, fed.released);
        if over > 0 {
            self.tell_released(id, over, "hold_max_bytes");
        }
        if let Some(end) = self.judge(fed) {
            return Ok(Some(end));
        }
        self.release(id, safe).await?;
        Ok(None)
    }

    async fn block_end(&mut self, id: BlockId) -> Result<Option<End>, CallFailure> {
        if !self.gate.is_idle() {
            let fed = self.gate.block_end(id);
            if let Some(end) = self.judge(fed) {
                return Ok(Some(end));
            }
        }
        let whole = self.answer.block(id).map(|block| {
            block.ended = true;
            block.text.len() as u64
        });
        if let Some(whole) = whole {
            self.release(id, whole).await?;
        }
        Ok(None)
    }

    /// Asks what is to be done about matches, and says it.
    fn judge(&mut self, fed: Fed) -> Option<End> {
        let matches = fed.matches;
        if matches.is_empty() {
            return None;
        }
        let judgement = self.rules.judge(&matches);
        for ((found, action), first) in matches.iter().zip(&judgement.actions).zip(&judgement.first) {
            self.hub.emit(EventKind::RuleFired { found: found.clone(), action: *action, first: *first });
        }
        (self.notify)(&matches, &judgement);
        if matches!(judgement.action, Action::Interrupt | Action::Stop) {
            return Some(End::Interrupted { matches, judgement });
        }
        for (found, action) in matches.into_iter().zip(&judgement.actions) {
            match action {
                Action::Remind => self.noted.remind.push(found),
                Action::Block => self.noted.block.push(found),
                Action::Pass | Action::Interrupt | Action::Stop => {}
            }
        }
        None
    }

    /// Lets a block through up to byte `safe`.
    async fn release(&mut self, id: BlockId, safe: u64) -> Result<(), CallFailure> {
        let Some(block) = self.answer.block(id) else { return Ok(()) };
        let safe = usize::try_from(safe).unwrap_or(usize::MAX).min(block.text.len());
        let safe = block.text.floor_char_boundary(safe);
        if safe > block.released {
            let text = block.text[block.released..safe].to_owned();
            block.released = safe;
            let surface = Surface::of(&block.kind);
            self.show(surface, text).await?;
        }
        let holding = self.answer.blocks.iter().any(|b| b.released < b.text.len() && !b.kind.is_tool());
        if !holding {
            self.held_since = None;
        } else if self.held_since.is_none() {
            self.held_since = Some(Instant::now());
        }
        Ok(())
    }

    fn held(&mut self, id: BlockId) -> usize {
        self.answer.block(id).filter(|block| !block.kind.is_tool()).map_or(0, |block| block.text.len() - block.released)
    }

    async fn release_held(&mut self, bound: &str) -> Result<(), CallFailure> {
        let ids: Vec<BlockId> = self.answer.blocks.iter().map(|block| block.id).collect();
        for id in ids {
            if self.held(id) > 0 {
                self.release_block(id, bound).await?;
            }
        }
        self.held_since = None;
        Ok(())
    }

    /// A bound was reached: what is held goes out, and that is said.
    async fn release_block(&mut self, id: BlockId, bound: &str) -> Result<(), CallFailure> {
        let bytes = self.held(id) as u64;
        self.tell_released(id, bytes, bound);
        self.gate.release_held(id);
        self.release(id, u64::MAX).await
    }

    fn tell_released(&mut self, id: BlockId, bytes: u64, bound: &str) {
        if let Some(block) = self.answer.block(id) {
            let stream = stream_kind(&block.kind);
            self.hub.emit(EventKind::RuleHoldReleased { stream, bytes, bound: bound.to_owned() });
        }
    }

    async fn show(&mut self, surface: Surface, text: String) -> Result<(), CallFailure> {
        match surface {
            Surface::None => {}
            Surface::Reasoning => {
                self.answer.reasoned = true;
                self.hub.emit(EventKind::CognitionReasoningDelta { text });
            }
            Surface::Text => {
                let Some(segments) = &mut self.segments else { return Ok(()) };
                let text = if segments.is_idle() { text } else { segments.push(&text).await? };
                shown(self.hub, self.answer, text);
            }
        }
        Ok(())
    }
}

/// Where a block is shown.
#[derive(Clone, Copy)]
enum Surface {
    Text,
    Reasoning,
    /// Arguments of a tool are used when they are complete.
    None,
}

impl Surface {
    fn of(kind: &BlockKind) -> Self {
        match kind {
            BlockKind::Text => Self::Text,
            BlockKind::Thinking => Self::Reasoning,
            BlockKind::Tool { .. } => Self::None,
        }
    }
}

/// Shows a piece of text to the user.
pub(crate) fn shown(hub: &Hub, answer: &mut Answer, text: String) {
    if text.is_empty() {
        return;
    }
    answer.shown.push_str(&text);
    let index = answer.pieces;
    answer.pieces += 1;
    hub.emit(EventKind::CognitionOutDelta { text, index });
}

fn stream_kind(kind: &BlockKind) -> StreamKind {
    match kind {
        BlockKind::Text => StreamKind::Text,
        BlockKind::Thinking => StreamKind::Thinking,
        BlockKind::Tool { call, name } => StreamKind::Tool { call: call.clone(), name: name.clone() },
    }
}

fn unfinished() -> ModelError {
    ModelError::new(ErrorClass::Transient, "the model's stream ended before its answer was complete")
}
