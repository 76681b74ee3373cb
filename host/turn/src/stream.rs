//! Stage: drives one attempt. Every delta passes the gate before anything of it is shown.
//!
//! What may belong to a match in progress is held back; a match that interrupts ends the attempt at that delta, and the
//! caller drops the stream, which is the abort. What is let through goes to the segments (or waits, where an extension
//! rewrites whole outputs) and is shown.

use std::future::poll_fn;
use std::time::Duration;

use flow::{Action, BlockId, BlockKind, CallFailure, Delta, ErrorClass, EventKind, HoldOutcome, ModelError, RuleMatch};
use rules::{Fed, Gate, Judgement};
use tokio::time::Instant;

use crate::answer::{Answer, Block};
use crate::beginning::{BEGINNING, Beginning};
use crate::cancel::Cancel;
use crate::events::Hub;
use crate::metrics::Metrics;
use crate::ports::{EventSink, ModelStream};
use crate::segments::Segments;

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The answer is complete and passed the gate.
    Complete,
    /// A rule stopped it, in this block; its bytes before `safe` are no part of what was found.
    Interrupted { stopped: Stopped, safe: u64 },
    /// The stream broke.
    Broken(ModelError),
    /// A required extension failed.
    Refused(CallFailure),
}

/// What stopped an answer.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// All that came together.
    pub(crate) matches: Vec<RuleMatch>,
    pub(crate) judgement: Judgement,
    /// The block in which it was found.
    pub(crate) block: BlockId,
}

/// What fired without stopping the answer.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// The model is told after its answer, or with the result of the call.
    pub(crate) remind: Vec<RuleMatch>,
    /// These calls do not run.
    pub(crate) block: Vec<RuleMatch>,
}

impl Noted {
    /// The answer ended before its time: what waited to be delivered with it never will be, and its rules may fire
    /// again.
    pub(crate) fn roll_back(&mut self, rules: &mut rules::Session) {
        let noted = std::mem::take(self);
        let names: Vec<String> = noted.remind.into_iter().chain(noted.block).map(|found| found.rule).collect();
        rules.release(&names);
    }
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
    /// What the answer begins with; it is in `answer` already.
    pub(crate) beginning: &'a mut Beginning,
    /// The block that goes on from the beginning, as the decoder numbers it.
    pub(crate) goes_on: Option<BlockId>,
    pub(crate) metrics: &'a mut Metrics,
    pub(crate) noted: &'a mut Noted,
    /// Told of each batch of matches at once, before the attempt goes on; must not wait.
    pub(crate) notify: &'a mut (dyn FnMut(&[RuleMatch], &Judgement) + Send),
    /// The longest that a byte is held; `None`: until its block is complete.
    pub(crate) hold_max: Option<Duration>,
}

impl Attempt<'_> {
    /// Runs the stream to its end, to a match, or to its break, and drops it.
    pub(crate) async fn run(&mut self, stream: Box<dyn ModelStream>) -> End {
        let end = self.drive(stream).await;
        let open: Vec<BlockId> =
            self.answer.blocks.iter().filter(|block| block.was_held()).map(|block| block.id).collect();
        open.into_iter().for_each(|id| self.tell_holds(id));
        end
    }

    async fn drive(&mut self, mut stream: Box<dyn ModelStream>) -> End {
        if let Err(failure) = self.begin().await {
            return End::Refused(failure);
        }
        loop {
            let next = match self.next(&mut *stream).await {
                Some(next) => next,
                None => match self.release_overdue().await {
                    Ok(()) => continue,
                    Err(failure) => return End::Refused(failure),
                },
            };
            let mut delta = match next {
                Some(Ok(delta)) => delta,
                Some(Err(error)) => return End::Broken(error),
                None => return End::Broken(unfinished()),
            };
            self.renumber(&mut delta);
            let Some(delta) = self.straight(delta) else { continue };
            match self.delta(delta).await {
                Ok(None) => {}
                Ok(Some(end)) => {
                    // This is the abort: it comes before anything that could wait.
                    drop(stream);
                    return self.show_safe(end).await;
                }
                Err(failure) => return End::Refused(failure),
            }
        }
    }

    /// What stands before a match is shown, so that the same is shown however the answer was cut.
    async fn show_safe(&mut self, end: End) -> End {
        let End::Interrupted { stopped, safe } = &end else { return end };
        match self.release(stopped.block, *safe).await {
            Ok(()) => end,
            Err(failure) => End::Refused(failure),
        }
    }

    /// The next delta; `None` where held bytes have waited as long as they may.
    async fn next(&mut self, stream: &mut dyn ModelStream) -> Option<Option<Result<Delta, ModelError>>> {
        // A stream that is always ready must not keep a cancelled turn busy.
        self.cancel.checkpoint().await;
        let delta = poll_fn(|cx| stream.poll_next(cx));
        match self.deadline() {
            None => Some(delta.await),
            Some(deadline) => tokio::time::timeout_at(deadline, delta).await.ok(),
        }
    }

    /// When the byte that is held longest has waited long enough.
    fn deadline(&self) -> Option<Instant> {
        if self.gate.is_idle() {
            return None;
        }
        let oldest = self.answer.blocks.iter().filter_map(Block::oldest_held).min()?;
        Some(oldest + self.hold_max?)
    }

    /// Text that no rule watches and no extension handles goes through as it is; anything else comes back. This is most
    /// deltas of most hosts: it must cost next to nothing beside decoding them.
    fn straight(&mut self, delta: Delta) -> Option<Delta> {
        let handled = self.segments.as_ref().is_some_and(|segments| !segments.is_idle());
        match delta {
            Delta::Piece { block, text } if !handled && self.gate.is_idle() => {
                let block = self.answer.block(block)?;
                block.text.push_str(&text);
                block.released = block.text.len();
                match Surface::of(&block.kind) {
                    Surface::Text if self.segments.is_some() => shown(self.hub, self.answer, text),
                    Surface::Text | Surface::None => {}
                    Surface::Reasoning => {
                        self.answer.reasoned = true;
                        self.hub.emit(EventKind::CognitionReasoningDelta { text });
                    }
                }
                None
            }
            other => Some(other),
        }
    }

    async fn delta(&mut self, delta: Delta) -> Result<Option<End>, CallFailure> {
        match delta {
            Delta::Piece { block, text } => return self.piece(block, text).await,
            Delta::BlockEnd { block } => return self.block_end(block).await,
            Delta::BlockStart { block, kind } => return self.block_start(block, kind).await,
            Delta::Start { model } => {
                if self.has_come() {
                    self.begin_anew().await?;
                }
                self.answer.model = model.or_else(|| self.answer.model.take());
            }
            Delta::Signature { block, data, redacted } => {
                if let Some(block) = self.answer.block(block) {
                    block.signature.get_or_insert_default().push_str(&data);
                    block.redacted |= redacted;
                }
            }
            Delta::Usage(usage) => self.answer.count(usage),
            Delta::Stop { reason } => {
                // An answer that is only its beginning is complete too.
                if self.beginning_is_open()
                    && let Some(end) = self.block_end(BEGINNING).await?
                {
                    return Ok(Some(end));
                }
                self.answer.stop = Some(reason);
                return Ok(Some(End::Complete));
            }
        }
        Ok(None)
    }

    /// The provider begins its answer anew: what came is void, for rules and extensions too. What was shown of it stays
    /// shown, as of any attempt that is tried again.
    async fn begin_anew(&mut self) -> Result<(), CallFailure> {
        self.answer.tell_partial(self.hub, "the provider began its answer anew", self.beginning.shown.len() as u64);
        self.noted.roll_back(self.rules);
        self.gate = self.rules.gate();
        self.goes_on = None;
        let void = std::mem::replace(self.answer, self.beginning.answer());
        let Answer { model, usage, pieces, reasoned, .. } = void;
        (self.answer.model, self.answer.pieces, self.answer.reasoned) = (model, pieces, reasoned);
        self.answer.count(usage);
        if let Some(segments) = &mut self.segments {
            **segments = self.beginning.segments(segments.caller(), true).await?;
        }
        self.begin().await
    }

    /// Whether something of the answer itself has come.
    fn has_come(&self) -> bool {
        self.goes_on.is_some() || self.answer.blocks.iter().any(|block| block.id != BEGINNING)
    }

    /// The beginning has had its verdict and is watched again, without being judged: a match may begin in it and end in
    /// what follows. What of it was not shown yet is shown as far as may be.
    async fn begin(&mut self) -> Result<(), CallFailure> {
        if self.beginning.text.is_empty() {
            return Ok(());
        }
        let mut safe = u64::MAX;
        if !self.gate.is_idle() {
            self.gate.block_start(BEGINNING, &BlockKind::Text);
            let fed = self.gate.piece(BEGINNING, &self.beginning.text);
            self.noted.remind.extend(self.rules.due_again(fed.matches));
            safe = fed.safe;
            self.hold(BEGINNING, safe);
        }
        self.release(BEGINNING, safe).await
    }

    /// A block begins. The first text of the answer goes on from the beginning and is one block with it; a call ends the
    /// beginning.
    async fn block_start(&mut self, id: BlockId, kind: BlockKind) -> Result<Option<End>, CallFailure> {
        if self.beginning_is_open() {
            match kind {
                BlockKind::Text => {
                    self.goes_on = Some(id);
                    return Ok(None);
                }
                BlockKind::Thinking => {}
                BlockKind::Tool { .. } => {
                    if let Some(end) = self.block_end(BEGINNING).await? {
                        return Ok(Some(end));
                    }
                }
            }
        }
        self.gate.block_start(id, &kind);
        self.answer.begin(id, kind);
        Ok(None)
    }

    /// Whether the answer has a beginning that nothing has gone on from yet.
    fn beginning_is_open(&mut self) -> bool {
        self.goes_on.is_none() && self.answer.block(BEGINNING).is_some_and(|block| !block.ended)
    }

    /// The block that goes on from the beginning is the beginning's.
    fn renumber(&self, delta: &mut Delta) {
        if let Delta::Piece { block, .. } | Delta::BlockEnd { block } = delta
            && self.goes_on == Some(*block)
        {
            *block = BEGINNING;
        }
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
        if let Some(end) = self.judge(id, fed) {
            return Ok(Some(end));
        }
        self.hold(id, safe);
        self.release(id, safe).await?;
        Ok(None)
    }

    /// What came last of a block may be shown up to `safe`: notes what waits.
    fn hold(&mut self, id: BlockId, safe: u64) {
        if self.hold_max.is_some() {
            self.answer.note_arrival(id, safe);
        }
        let gate = &self.gate;
        if let Some(block) = self.answer.block(id).filter(|block| !block.kind.is_tool()) {
            block.waiting((block.text.len() as u64).saturating_sub(safe), || gate.holding(id));
        }
    }

    /// What was held in a block is told, once.
    fn tell_holds(&mut self, id: BlockId) {
        let Some(block) = self.answer.block(id) else { return };
        let stream = block.stream();
        if let Some(holds) = block.take_holds() {
            self.metrics.held(holds.rules());
            self.hub.emit(holds.report(stream));
        }
    }

    async fn block_end(&mut self, id: BlockId) -> Result<Option<End>, CallFailure> {
        if !self.gate.is_idle() {
            self.tell_unreadable(id);
            let fed = self.gate.block_end(id);
            if let Some(end) = self.judge(id, fed) {
                return Ok(Some(end));
            }
        }
        let whole = self.answer.block(id).map(|block| {
            block.ended = true;
            block.waiting(0, Vec::new);
            block.text.len() as u64
        });
        if let Some(whole) = whole {
            self.release(id, whole).await?;
            self.tell_holds(id);
        }
        Ok(None)
    }

    /// Asks what is to be done about matches, and says it.
    fn judge(&mut self, block: BlockId, fed: Fed) -> Option<End> {
        let safe = fed.safe;
        let matches = fed.matches;
        if matches.is_empty() {
            return None;
        }
        let judgement = self.rules.judge(&matches);
        for ((found, action), first) in matches.iter().zip(&judgement.actions).zip(&judgement.first) {
            self.metrics.fired(&found.rule, *action);
            self.hub.emit(EventKind::RuleFired { found: found.clone(), action: *action, first: *first });
        }
        (self.notify)(&matches, &judgement);
        if matches!(judgement.action, Action::Interrupt | Action::Stop) {
            if let Some(block) = self.answer.block(block) {
                block.hold_ended(HoldOutcome::Matched);
            }
            return Some(End::Interrupted { stopped: Stopped { matches, judgement, block }, safe });
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
            block.release_to(safe);
            let surface = Surface::of(&block.kind);
            self.show(surface, text).await?;
        }
        Ok(())
    }

    /// Blocks with bytes that have waited as long as they may let go what they hold, and that is said.
    async fn release_overdue(&mut self) -> Result<(), CallFailure> {
        let (now, Some(max)) = (Instant::now(), self.hold_max) else { return Ok(()) };
        let overdue = |block: &Block| block.oldest_held().is_some_and(|since| since + max <= now);
        let ids: Vec<BlockId> =
            self.answer.blocks.iter().filter(|block| overdue(block)).map(|block| block.id).collect();
        for id in ids {
            let bytes = self.gate.release_held(id);
            self.tell_released(id, bytes, "hold_max_ms");
            if let Some(block) = self.answer.block(id) {
                block.waiting(0, Vec::new);
            }
            self.release(id, u64::MAX).await?;
        }
        Ok(())
    }

    /// Arguments that are no JSON cannot be watched to their end: that is said.
    fn tell_unreadable(&self, id: BlockId) {
        if let Some(error) = self.gate.decode_error(id) {
            let message = format!("stream rules could not read the arguments of a tool call to their end: {error}");
            self.hub.emit(EventKind::Notice { message });
        }
    }

    fn tell_released(&mut self, id: BlockId, bytes: u64, bound: &str) {
        if let Some(block) = self.answer.block(id) {
            block.hold_ended(HoldOutcome::Released);
            let stream = block.stream();
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

fn unfinished() -> ModelError {
    ModelError::new(ErrorClass::Transient, "the model's stream ended before its answer was complete")
}
