//! What follows a match that stops the answer: what is kept of it, the reminder, and the records of both.
//!
//! The stream is dropped by now. Until the reminder is in the conversation nothing has happened that a later turn could
//! see: a turn that is cancelled earlier leaves the rules unchanged, and no retry runs. The session is the turn's alone
//! while it runs, so neither another turn nor its end can come between.

use std::sync::Arc;
use std::time::Duration;

use flow::{Action, CallFailure, EventKind, ModelError, Retained, RuleMatch, RuleRecord};
use rules::ContextMode;

use super::{Phase, Stop, Turn, checkpoint};
use flow::ports::EventSink;
use guard::attempt::{Answer, Attempt, Kept, Stopped};
use guard::{Beginning, Prefilled};

/// What a reminder adds where the start of the answer is kept as a message of its own.
const KEPT: &str = "\n\nYour answer up to the violation has been kept. Continue from there without repeating it.";

/// What it adds where the model is sent the start of its answer to continue from.
const CONTINUES: &str = "\n\nYour answer up to the violation has been kept. Continue exactly where it ends.";

/// What it adds where something of the answer is kept and complete tool calls of it are not: no call runs before its answer
/// is accepted, so they have no results.
const CALLS_DROPPED: &str = "\n\nThe tool calls of that answer were not run. Make them again if they are still needed.";

/// The message to a model that turned out not to continue from the start of an answer.
const KEPT_AS_MESSAGE: &str = "The start of your answer has been kept. Continue from there without repeating it.";

/// The message to such a model where the user has seen nothing of the start: a continuation would be without it.
const LOST: &str = "Your partial answer was discarded. Start your answer again.";

/// What becomes of a stopped answer.
enum Left {
    Nothing,
    /// It remains in the conversation; the reminder describes it.
    Message(String, &'static str),
    /// The next attempt continues from here.
    Prefilled(Box<Prefilled>),
}

impl Left {
    /// What joins the conversation now. A text that the next attempt continues from joins it with that attempt.
    fn retained(&self) -> Retained {
        match self {
            Self::Message(text, _) if !text.trim().is_empty() => Retained::Start { bytes: text.len() as u64 },
            Self::Nothing | Self::Message(..) | Self::Prefilled(_) => Retained::Nothing,
        }
    }

    /// Bytes of the answer that are kept.
    fn kept(&self) -> u64 {
        let text = match self {
            Self::Nothing => "",
            Self::Message(text, _) => text,
            Self::Prefilled(prefilled) => prefilled.text(),
        };
        text.len() as u64
    }
}

/// Reminders that went to the model.
pub(super) struct Injection {
    /// The matches and their actions; the whole cost is attributed to the first match that stopped the answer.
    pub(super) found: Vec<(RuleMatch, Action)>,
    pub(super) discarded_bytes: u64,
    /// Their tokens, and whether those are a guess.
    pub(super) tokens: (u64, bool),
}

impl Injection {
    /// Reminders that stopped nothing.
    pub(super) fn of_call(found: Vec<RuleMatch>, action: Action) -> Self {
        let found = found.into_iter().map(|found| (found, action)).collect();
        Self { found, discarded_bytes: 0, tokens: (0, false) }
    }
}

impl Turn<'_> {
    /// A rule stopped the model: the reminder goes in and the next attempt follows.
    pub(super) async fn interrupt(&mut self, stopped: Stopped) -> Result<(), Stop> {
        let why = format!("stopped by rule {}", stopped.judgement.rules.join(", "));
        // From here on it is recorded, also where the turn is cancelled in the middle of this.
        self.phase = Phase::Stopped { answer: std::mem::take(&mut self.attempt).answer, why };
        let culprit = stopped.stopping().next().map_or_else(String::new, |found| found.rule.clone());
        if stopped.judgement.action == Action::Stop {
            self.emit_stopped(0, Retained::Nothing);
            return Err(Stop::Rule(culprit));
        }
        self.report.interrupts += 1;
        let left = self.leave(&stopped).await?;
        let answer = self.answer();
        let discarded_bytes = answer.bytes().saturating_sub(left.kept());
        let tokens = answer.tokens_of(discarded_bytes);
        let calls = left.kept() > 0 && !answer.calls().is_empty();
        self.session.metrics.discarded(&culprit, tokens.0, tokens.1);
        let delay = Duration::from_millis(self.session.rules.rules().settings().retry_delay_ms);
        self.session.parts.clock.sleep(delay).await;
        // Where there is nothing to wait for, the sleep does not notice.
        checkpoint(self.cancel).await;
        // Recorded here, where nothing can come between it and what it says: a turn that is cancelled earlier keeps nothing.
        self.emit_stopped(self.kept_bytes(&left), left.retained());
        self.spending.thrown_away_for(culprit);
        let matches: Vec<RuleMatch> = stopped.reminders().into_iter().map(|(found, _)| found).collect();
        self.session.rules.release(&stopped.unread());
        let found = stopped.injected();
        let mut reminder = self.session.rules.reminder(&matches);
        reminder.push_str(self.apply(left));
        reminder.push_str(if calls { CALLS_DROPPED } else { "" });
        self.inject(reminder, Injection { found, discarded_bytes, tokens });
        Ok(())
    }

    /// What the context mode leaves of the stopped answer.
    async fn leave(&mut self, stopped: &Stopped) -> Result<Left, CallFailure> {
        let kept = self.answer().kept(stopped);
        match stopped.judgement.context {
            ContextMode::Keep => Ok(Left::Message(kept.text, "")),
            // Callbacks process again what is kept of the answer: what they write then is part of the attempt that continues it.
            ContextMode::Rewind => {
                self.discard_attempt();
                self.session.caller.extensions().begin_attempt();
                self.rewind(kept).await
            }
            ContextMode::Discard => {
                self.discard_attempt();
                Ok(Left::Nothing)
            }
        }
    }

    /// Keeps the start of the answer: the model continues from it, or the prompt states it.
    async fn rewind(&mut self, kept: Kept) -> Result<Left, CallFailure> {
        let Kept { text, released, decided } = kept;
        let caller = Arc::clone(&self.session.caller);
        let (live, keeps_shown) = (!caller.has_rewriter(), caller.keeping().answer);
        if text.trim().is_empty() {
            return Ok(Left::Nothing);
        }
        // Callbacks have not had the end of what was shown whole, so that it is not kept. A model that continued in the middle of a unit
        // would have the rest of it checked without its start: its next answer is a message of its own.
        if self.session.goes_on() && !keeps_shown {
            // Providers reject trailing white space, and models continue from it badly.
            let text = text.trim_end().to_owned();
            let prefilled = Prefilled::new(text, (released, decided), &caller, live).await?;
            return Ok(Left::Prefilled(Box::new(prefilled)));
        }
        if !live {
            // The user saw nothing of it: a continuation would lack its start.
            return Ok(Left::Nothing);
        }
        let text = text[..decided].to_owned();
        if text.trim().is_empty() {
            return Ok(Left::Nothing);
        }
        let shown = self.show_kept(&text).await?;
        let text = if keeps_shown { shown[self.beginning.earlier_bytes()..].to_owned() } else { text };
        self.beginning = Beginning::Kept { shown };
        Ok(Left::Message(text, KEPT))
    }

    /// Bytes of what was shown that are kept.
    fn kept_bytes(&self, left: &Left) -> u64 {
        let bytes = match left {
            Left::Prefilled(prefilled) => prefilled.shown().len(),
            Left::Nothing | Left::Message(..) => self.beginning.earlier_bytes(),
        };
        bytes as u64
    }

    /// The answer that was stopped, or that of the attempt under way.
    fn answer(&self) -> &Answer {
        if let Phase::Stopped { answer, .. } = &self.phase { answer } else { &self.attempt.answer }
    }

    /// What the user keeps of the answer, as [`Beginning::show_kept`].
    async fn show_kept(&mut self, text: &str) -> Result<String, CallFailure> {
        let answer =
            if let Phase::Stopped { answer, .. } = &mut self.phase { answer } else { &mut self.attempt.answer };
        self.beginning.show_kept(&self.session.caller, answer, text).await
    }

    /// Adds what is kept of a stopped answer to the conversation; returns the text about it for the reminder.
    fn apply(&mut self, left: Left) -> &'static str {
        if let Beginning::Prefilled(_) = self.beginning {
            self.beginning = Beginning::None;
        }
        match left {
            Left::Nothing => {
                self.discard_attempt();
                ""
            }
            Left::Message(text, note) => match Answer::partial_message(text) {
                Some(message) => {
                    self.accept_attempt();
                    self.session.remember(message);
                    note
                }
                None => {
                    self.discard_attempt();
                    ""
                }
            },
            Left::Prefilled(prefilled) => {
                self.beginning = Beginning::Prefilled(prefilled);
                CONTINUES
            }
        }
    }

    /// Emits the events of an answer that did not complete, as [`Answer::cut_events`].
    pub(super) fn emit_cut(&self, answer: &Answer, error: &str, kept_bytes: u64, retained: (Retained, bool)) {
        answer.cut_events(error, kept_bytes, retained).for_each(|event| self.session.handles.hub.emit(event));
    }

    /// Emits the record of a stopped answer, once. `kept_bytes` of what was shown are kept.
    pub(super) fn emit_stopped(&mut self, kept_bytes: u64, retained: Retained) {
        if let Phase::Stopped { answer, why } = std::mem::take(&mut self.phase) {
            self.emit_cut(&answer, &why, kept_bytes, (retained, false));
        }
    }

    /// Whether an attempt failed because the model does not accept the start of its answer.
    pub(super) fn rejects_prefill(&self, error: &ModelError) -> bool {
        let answer = &self.attempt.answer;
        error.status == Some(400) && self.beginning.prefill().is_some() && answer.is_unseen()
    }

    /// The model rejected a kept start: the prompt states it, now and for the rest of the session.
    pub(super) async fn state_beginning(&mut self, error: &ModelError) -> Result<(), Stop> {
        self.session.never_goes_on();
        // Callbacks process the start once more.
        self.discard_attempt();
        let message = format!(
            "the model rejected the start of an answer to continue from ({error}); the prompt states what was kept instead"
        );
        self.session.handles.hub.emit(EventKind::Notice { message });
        let text = match &self.beginning {
            Beginning::Prefilled(prefilled) => prefilled.decided_text().to_owned(),
            Beginning::None | Beginning::Kept { .. } => String::new(),
        };
        if self.session.caller.has_rewriter() {
            self.beginning = Beginning::None;
            (self.attempt, self.phase) = (Attempt::default(), Phase::Between);
            self.session.inform("answer-discarded", LOST.to_owned());
            return Ok(());
        }
        let shown = self.show_kept(&text).await?;
        self.beginning = Beginning::Kept { shown };
        (self.attempt, self.phase) = (Attempt::default(), Phase::Between);
        if let Some(message) = Answer::partial_message(text) {
            self.session.add_message(message);
            self.session.inform("answer-kept", KEPT_AS_MESSAGE.to_owned());
        }
        Ok(())
    }

    /// The reminder is in the conversation from here on, and its rules are used up.
    pub(super) fn inject(&mut self, reminder: String, injection: Injection) {
        self.session.inform("ttsr-injection", reminder);
        self.mark_injected(injection);
    }

    /// Reminders went to the model: counts, stores and reports that.
    pub(super) fn mark_injected(&mut self, injection: Injection) {
        let Injection { found, discarded_bytes, tokens } = injection;
        let mut cost = Some(tokens);
        let mut records: Vec<RuleRecord> = Vec::new();
        for (RuleMatch { rule, stream, evidence }, action) in found {
            if records.iter().any(|known| known.rule == rule) {
                continue;
            }
            let Some(kept) = self.session.rules.injected(std::slice::from_ref(&rule)).pop() else { continue };
            self.session.metrics.reminded(&rule);
            let stops = action == Action::Interrupt;
            let (tokens_discarded, tokens_estimated) = cost.take_if(|_| stops).unwrap_or_default();
            let (hash, turn) = (kept.hash, kept.turn);
            records.push(RuleRecord { rule, hash, turn, stream, evidence, action, tokens_discarded, tokens_estimated });
        }
        for record in &records {
            self.session.keep_record(record);
        }
        let rules = records.iter().map(|record| record.rule.clone()).collect();
        self.session.handles.hub.emit(EventKind::TtsrInjection { rules, discarded_bytes, records });
    }
}
