//! Stage: drives one attempt: gives its deltas to the attempt core and performs what the core decides.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{self, Poll, ready};
use std::time::Duration;

use flow::{CallFailure, Delta, ErrorClass, EventKind, ModelError, Retained, RuleMatch};
use rules::Judgement;
use tokio::task::coop::poll_proceed;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::attempt::{Answer, Attempt, Context, Effect, Ending, Stopped};
use crate::beginning::Beginning;
use crate::events::Hub;
use crate::found;
use crate::inputs::{Claim, Inputs};
use crate::metrics::Metrics;
use crate::reasoning::{Reasoning, Seen};
use crate::run::deadline::Deadline;
use crate::segments::Segments;
use flow::ports::{EventSink, ModelStream};

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum End {
    /// The answer is complete and passed the gate.
    Complete,
    /// Rules stopped it.
    Interrupted(Stopped),
    /// The user stopped it, for these inputs.
    Halted(Claim),
    /// It was not over when its time was.
    OutOfTime,
    /// The stream broke.
    Broken(ModelError),
    /// A required extension failed.
    Refused(CallFailure),
}

/// Everything one attempt works with.
pub(crate) struct Driver<'a> {
    pub(crate) hub: &'a Hub,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) inputs: &'a Inputs,
    pub(crate) rules: &'a mut rules::RuleSession,
    pub(crate) attempt: &'a mut Attempt,
    /// `None`: nothing is shown before the answer is complete.
    pub(crate) segments: Option<&'a mut Segments>,
    /// The reasoning on its way to the user.
    pub(crate) reasoning: Reasoning,
    /// What the answer begins with; its text is in `attempt` already.
    pub(crate) beginning: &'a mut Beginning,
    pub(crate) metrics: &'a mut Metrics,
    /// Notified of the matches of one byte at once, before the attempt continues; must not wait.
    pub(crate) notify: &'a mut (dyn FnMut(&[RuleMatch], &Judgement) + Send),
    /// The start of the attempt, from which the core's time counts.
    pub(crate) since: Instant,
    /// When the request was sent.
    pub(crate) asked: Instant,
    /// How long the first chunk of the answer took; `None` before it.
    pub(crate) first_chunk: &'a mut Option<Duration>,
    /// When the request has to be over.
    pub(crate) deadline: Deadline,
}

/// What a stream of deltas is continued with.
enum Next {
    /// The next delta; `None`: the stream has ended.
    Delta(Option<Result<Delta, ModelError>>),
    /// The user stops the answer, for these inputs.
    Interrupt(Claim),
    /// The time of the request is over.
    OutOfTime,
    /// Held bytes have waited for as long as they may.
    Due,
}

/// What stops an answer on behalf of the user. Polling for it at each delta costs as much as everything else that a turn does with the delta.
struct Interrupts<'a, I> {
    inputs: &'a Inputs,
    /// How often there was an interrupt when it was polled last.
    seen: Option<u64>,
    next: Pin<&'a mut I>,
}

impl<I: Future<Output = Claim>> Interrupts<'_, I> {
    /// Polls if there can be something new.
    fn poll_new(&mut self, cx: &mut task::Context<'_>) -> Poll<Claim> {
        let times = Some(self.inputs.times_interrupted());
        if self.seen == times {
            return Poll::Pending;
        }
        self.seen = times;
        self.next.as_mut().poll(cx)
    }
}

impl Driver<'_> {
    /// Runs the stream to its end, to a verdict, or to its break, and drops it. `effects` are those of the attempt's start.
    pub(crate) async fn run(&mut self, stream: Box<dyn ModelStream>, mut effects: Vec<Effect>) -> End {
        let end = match self.drive(stream, &mut effects).await {
            Ok(end) => end,
            Err(failure) => End::Refused(failure),
        };
        let since = self.since;
        let now = move || since.elapsed();
        self.attempt.close(&mut Context { rules: self.rules, now: &now, effects: &mut effects });
        match self.perform(&mut effects).await {
            Ok(()) => end,
            Err(failure) => End::Refused(failure),
        }
    }

    async fn drive(&mut self, mut stream: Box<dyn ModelStream>, effects: &mut Vec<Effect>) -> Result<End, CallFailure> {
        let since = self.since;
        let now = move || since.elapsed();
        self.perform(effects).await?;
        let mut interrupts = Interrupts { inputs: self.inputs, seen: None, next: pin!(self.inputs.interrupting()) };
        loop {
            let delta = match self.next(&mut *stream, &mut interrupts).await {
                Next::Delta(Some(Ok(delta))) => delta,
                Next::Delta(Some(Err(error))) => return Ok(End::Broken(error)),
                Next::Delta(None) => return Ok(End::Broken(unfinished())),
                Next::Interrupt(claim) => return Ok(End::Halted(claim)),
                Next::OutOfTime => return Ok(End::OutOfTime),
                Next::Due => {
                    self.attempt.tick(now(), effects);
                    self.perform(effects).await?;
                    continue;
                }
            };
            self.first_chunk.get_or_insert_with(|| self.asked.elapsed());
            self.reasoning.watch(&delta);
            let over = self.attempt.delta(delta, &mut Context { rules: self.rules, now: &now, effects });
            if over {
                // This is the abort: it comes before anything that could wait.
                drop(stream);
                self.perform(effects).await?;
                if let Some(Ending::Stopped(stopped)) = self.attempt.take_ending() {
                    return Ok(End::Interrupted(stopped));
                }
                let rest = self.reasoning.flush().await?;
                self.show_reasoning(rest);
                return Ok(End::Complete);
            }
            if !self.show_at_once(effects) {
                self.perform(effects).await?;
            }
            while self.reasoning.is_due() {
                let rest = self.reasoning.flush().await?;
                self.show_reasoning(rest);
            }
        }
    }

    async fn next<I>(&mut self, stream: &mut dyn ModelStream, interrupts: &mut Interrupts<'_, I>) -> Next
    where
        I: Future<Output = Claim>,
    {
        let deadline = &mut self.deadline;
        let next = poll_fn(|cx| {
            // A stream that is always ready must not keep a cancelled turn, which is dropped by whoever waits for the token, or the
            // other tasks of its thread, from going on.
            if self.cancel.is_cancelled() {
                return Poll::Pending;
            }
            let budget = ready!(poll_proceed(cx));
            if let Poll::Ready(claim) = interrupts.poll_new(cx) {
                return Poll::Ready(Next::Interrupt(claim));
            }
            if deadline.poll_seldom(cx).is_ready() {
                return Poll::Ready(Next::OutOfTime);
            }
            match stream.poll_next(cx) {
                Poll::Ready(delta) => {
                    budget.made_progress();
                    Poll::Ready(Next::Delta(delta))
                }
                Poll::Pending if deadline.poll(cx).is_ready() => Poll::Ready(Next::OutOfTime),
                Poll::Pending => interrupts.next.as_mut().poll(cx).map(Next::Interrupt),
            }
        });
        match self.attempt.deadline() {
            None => next.await,
            Some(deadline) => tokio::time::timeout_at(self.since + deadline, next).await.unwrap_or(Next::Due),
        }
    }

    /// What most deltas come to: text that no extension gets, shown without a future. Returns whether that was all there is to do.
    fn show_at_once(&mut self, effects: &mut Vec<Effect>) -> bool {
        let [Effect::ShowText(text)] = effects.as_mut_slice() else { return effects.is_empty() };
        match &self.segments {
            Some(segments) if !segments.is_idle() => return false,
            Some(_) => shown(self.hub, &mut self.attempt.answer, std::mem::take(text)),
            None => {}
        }
        effects.clear();
        true
    }

    async fn perform(&mut self, effects: &mut Vec<Effect>) -> Result<(), CallFailure> {
        for effect in effects.drain(..) {
            match effect {
                Effect::ShowText(text) => {
                    let Some(segments) = &mut self.segments else { continue };
                    let text = if segments.is_idle() { text } else { segments.push(&text).await? };
                    shown(self.hub, &mut self.attempt.answer, text);
                }
                Effect::ShowThinking(text) => {
                    let seen = self.reasoning.push(text).await?;
                    seen.into_iter().for_each(|seen| self.show_reasoning(seen));
                }
                Effect::Fired { matches, judgement } => self.fired(&matches, &judgement),
                Effect::Report(event) => self.hub.emit(*event),
                Effect::Held { rules, report } => {
                    self.metrics.held(&rules);
                    self.hub.emit(*report);
                }
                Effect::Restarted(void) => {
                    let kept = self.beginning.shown().len() as u64;
                    let cut = void.cut_events("the provider restarted its answer", kept, (Retained::Nothing, false));
                    cut.for_each(|event| self.hub.emit(event));
                    self.attempt.answer.begin_shown(self.beginning.shown(), self.beginning.earlier_bytes());
                    self.reasoning.restart();
                    if let Some(segments) = &mut self.segments {
                        **segments = self.beginning.segments(segments.handlers(), true).await?;
                    }
                }
            }
        }
        Ok(())
    }

    fn show_reasoning(&mut self, Seen { block, text }: Seen) {
        if !text.is_empty() {
            self.attempt.answer.reasoned = true;
            self.attempt.answer.saw_thinking(block, &text);
            self.hub.emit(EventKind::CognitionReasoningDelta { text });
        }
    }

    fn fired(&mut self, matches: &[RuleMatch], judgement: &Judgement) {
        found::count_matches(self.metrics, matches, judgement);
        found::emit_matches(self.hub, matches, judgement);
        (self.notify)(matches, judgement);
    }
}

/// Shows text to the user.
pub(crate) fn shown(hub: &Hub, answer: &mut Answer, text: String) {
    if !text.is_empty() {
        show(hub, answer, text, false);
    }
}

/// Shows the last text of an answer that is complete, which can be empty. Of an answer without any text nothing is shown.
pub(crate) fn shown_last(hub: &Hub, answer: &mut Answer, text: String) {
    if !text.is_empty() || !answer.shown.is_empty() {
        show(hub, answer, text, true);
    }
}

fn show(hub: &Hub, answer: &mut Answer, text: String, is_final: bool) {
    answer.shown.push_str(&text);
    let index = answer.pieces;
    answer.pieces += 1;
    hub.emit(EventKind::CognitionOutDelta { text, index, is_final });
}

fn unfinished() -> ModelError {
    ModelError::new(ErrorClass::Transient, "the model's stream ended before its answer was complete")
}
