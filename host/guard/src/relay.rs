//! Relays one attempt from a model to a reader: gives its deltas to the attempt core, and performs what the core decides. It does not
//! read the model's stream, and knows no clock: a loop does.

use std::sync::Arc;
use std::time::Duration;

use flow::{CallFailure, Delta, EventKind, Retained, RuleMatch};
use rules::{Judgement, RuleSession};

use crate::attempt::{Attempt, Context, Effect, Ending, Stopped};
use crate::beginning::Beginning;
use crate::chain::{Caller, Events};
use crate::found;
use crate::reasoning::{Reasoning, Seen};
use crate::segments::Segments;
use crate::shown::shown;

/// Is notified at once of what the rules of an attempt have done, before the attempt continues. It must not wait.
pub trait Watcher: Send {
    /// Rules have fired at one byte.
    fn fired(&mut self, matches: &[RuleMatch], judgement: &Judgement);

    /// Bytes of a stream were held back for these rules.
    fn held(&mut self, rules: &[String]);
}

/// What a relay works with.
#[expect(missing_debug_implementations, reason = "it lends functions")]
pub struct RelayParts<'a> {
    /// The extensions that change what the reader gets, and where events are emitted.
    pub caller: &'a Arc<Caller>,
    pub rules: &'a mut RuleSession,
    pub attempt: &'a mut Attempt,
    /// The text on its way to the reader; `None`: nothing is shown before the answer is complete.
    pub segments: Option<&'a mut Segments>,
    /// What the answer begins with; its text is in `attempt` already.
    pub beginning: &'a mut Beginning,
    pub watcher: &'a mut dyn Watcher,
    /// The time since some fixed point, as [`Context::now`].
    pub now: &'a (dyn Fn() -> Duration + Send + Sync),
}

/// One attempt on its way from a model to a reader. Each failure is that of a `required` extension.
pub struct Relay<'a> {
    parts: RelayParts<'a>,
    events: &'a dyn Events,
    /// The reasoning on its way to the reader.
    reasoning: Reasoning,
    /// What is to be done, in order.
    effects: Vec<Effect>,
}

impl std::fmt::Debug for Relay<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relay").field("attempt", &self.parts.attempt).finish_non_exhaustive()
    }
}

impl<'a> Relay<'a> {
    /// A relay at the start of an attempt, whose first effects are to be performed.
    pub fn new(parts: RelayParts<'a>, effects: Vec<Effect>) -> Self {
        let (events, reasoning) = (&*parts.caller.events, Reasoning::new(Arc::clone(parts.caller)));
        Self { parts, events, reasoning, effects }
    }

    /// When bytes have been held back for as long as they may be, as [`Attempt::deadline`].
    pub fn deadline(&self) -> Option<Duration> {
        self.parts.attempt.deadline()
    }

    /// Takes the next delta. Returns whether the attempt is over: then the model's stream is to be dropped before anything that could wait,
    /// and [`Relay::end`] follows. Else what is shown of it: [`Relay::show_at_once`], or [`Relay::show`].
    pub fn delta(&mut self, delta: Delta) -> bool {
        self.reasoning.watch(&delta);
        let RelayParts { attempt, rules, now, .. } = &mut self.parts;
        attempt.delta(delta, &mut Context { rules, now: *now, effects: &mut self.effects })
    }

    /// What most deltas come to: text that no extension gets, shown without a future. Returns whether that was all there is to do.
    pub fn show_at_once(&mut self) -> bool {
        let is_all = match self.effects.as_mut_slice() {
            [] => true,
            [Effect::ShowText(text)] => {
                match &self.parts.segments {
                    Some(segments) if !segments.is_idle() => return false,
                    Some(_) => shown(self.events, &mut self.parts.attempt.answer, std::mem::take(text)),
                    None => {}
                }
                self.effects.clear();
                true
            }
            _ => false,
        };
        is_all && !self.reasoning.is_due()
    }

    /// Shows what a delta has released.
    pub async fn show(&mut self) -> Result<(), CallFailure> {
        self.perform().await?;
        while self.reasoning.is_due() {
            self.flush_reasoning().await?;
        }
        Ok(())
    }

    /// The deadline of held bytes is over: releases them.
    pub async fn release(&mut self) -> Result<(), CallFailure> {
        let now = (self.parts.now)();
        self.parts.attempt.tick(now, &mut self.effects);
        self.perform().await
    }

    /// The attempt is over. Returns what stopped it; `None`: the answer is complete and passed the gate.
    pub async fn end(&mut self) -> Result<Option<Stopped>, CallFailure> {
        self.perform().await?;
        if let Some(Ending::Stopped(stopped)) = self.parts.attempt.take_ending() {
            return Ok(Some(stopped));
        }
        self.flush_reasoning().await?;
        Ok(None)
    }

    /// Nothing more is received, whether the attempt is over or not: reports what was held back.
    pub async fn close(&mut self) -> Result<(), CallFailure> {
        let RelayParts { attempt, rules, now, .. } = &mut self.parts;
        attempt.close(&mut Context { rules, now: *now, effects: &mut self.effects });
        self.perform().await
    }

    /// Performs what the core has decided so far: before the first delta, what is to be done at the start of the attempt.
    pub async fn perform(&mut self) -> Result<(), CallFailure> {
        // It keeps its capacity.
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::ShowText(text) => {
                    let Some(segments) = &mut self.parts.segments else { continue };
                    let text = if segments.is_idle() { text } else { segments.push(&text).await? };
                    shown(self.events, &mut self.parts.attempt.answer, text);
                }
                Effect::ShowThinking(text) => {
                    let seen = self.reasoning.push(text).await?;
                    seen.into_iter().for_each(|seen| self.show_reasoning(seen));
                }
                Effect::Fired { matches, judgement } => {
                    found::emit_matches(self.events, &matches, &judgement);
                    self.parts.watcher.fired(&matches, &judgement);
                }
                Effect::Report(event) => self.events.emit(*event),
                Effect::Held { rules, report } => {
                    self.parts.watcher.held(&rules);
                    self.events.emit(*report);
                }
                Effect::Restarted(void) => {
                    let beginning = &mut *self.parts.beginning;
                    let kept = beginning.shown().len() as u64;
                    let cut = void.cut_events("the provider restarted its answer", kept, (Retained::Nothing, false));
                    cut.for_each(|event| self.events.emit(event));
                    self.parts.attempt.answer.begin_shown(beginning.shown(), beginning.earlier_bytes());
                    self.reasoning.restart();
                    if let Some(segments) = &mut self.parts.segments {
                        **segments = beginning.segments(segments.handlers(), true).await?;
                    }
                }
            }
        }
        self.effects = effects;
        Ok(())
    }

    async fn flush_reasoning(&mut self) -> Result<(), CallFailure> {
        let rest = self.reasoning.flush().await?;
        self.show_reasoning(rest);
        Ok(())
    }

    fn show_reasoning(&mut self, Seen { block, text }: Seen) {
        if !text.is_empty() {
            let answer = &mut self.parts.attempt.answer;
            answer.reasoned = true;
            answer.saw_thinking(block, &text);
            self.events.emit(EventKind::CognitionReasoningDelta { text });
        }
    }
}
