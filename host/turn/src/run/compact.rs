//! Compaction: when the conversation fills the context of the model, the model summarises its older part between two steps.
//!
//! The summary takes the place of what it summarises, as a hidden message. Nothing else changes: the messages that stay are the same
//! ones, the transcript keeps all of it, and rules whose reminders are gone may fire again. Where no summary can be made, the
//! conversation stays as it is, and a later turn tries again. Where the user interrupts it, the model reads the message first, and the
//! step after that begins with a summary.

mod asking;

use std::sync::Arc;

use flow::{EventKind, Message, Origin, Prompt, Role, Spend, TurnStatus, Usage};

use self::asking::Received;
use super::halt::{self, INTERRUPTED};
use super::{Stop, Turn, checkpoint};
use crate::inputs::Claim;
use crate::ports::EventSink;
use crate::retry::{self, Retry};
use crate::session::Compaction;

/// Messages that stay where the current turn alone fills the context.
const KEPT_IN_TURN: usize = 6;

/// What precedes a summary in the message that the model reads.
const HEAD: &str = "This is a summary of the conversation so far; its messages are no longer available.";

/// The summary of a turn. It lives in the turn and not in its future, so that one that is cancelled is recorded and counted.
#[derive(Default)]
pub(super) struct Summary {
    progress: Progress,
    /// The turn of the first message that stays.
    prune_before_turn: u32,
    /// How many messages stay.
    kept: u64,
    /// Tokens of its prompt, estimated.
    prompt: u64,
    /// The tokens of its requests that are over, and what they cost as far as that is known.
    usage: Usage,
    spend: Spend,
    is_billed: bool,
    is_unpriced: bool,
    /// The request under way.
    received: Received,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// None was begun.
    #[default]
    Possible,
    /// It is being made.
    Open,
    /// The user interrupted it: the next request is one for an answer, however often the user interrupts before it.
    Postponed,
    /// It was made, or cannot be made: none is asked for again in this turn.
    Over,
}

/// How the requests for a summary end.
enum End {
    Made(String),
    /// Why there is none, in one sentence.
    Failed(String),
    /// The user stopped it, for these inputs.
    Interrupted(Claim),
}

impl Summary {
    /// The model has the conversation, and answers: a summary that was postponed can be asked for after that.
    pub(super) fn answer_begins(&mut self) {
        if self.progress == Progress::Postponed {
            self.progress = Progress::Possible;
        }
    }

    /// What its requests have cost; `None` where that is not known of all of them.
    fn spend(&self) -> Option<Spend> {
        (self.is_billed && !self.is_unpriced).then_some(self.spend)
    }
}

impl Turn<'_> {
    /// Compacts the conversation if the last request filled the context to the configured share. Where the user interrupts that, the
    /// inputs are in `halted`.
    ///
    /// # Errors
    /// The transcript cannot be written, or a limit would be exceeded.
    pub(super) async fn compact(&mut self) -> Result<(), Stop> {
        let Some(settings) = self.session.parts.settings.compaction else { return Ok(()) };
        let used = self.session.context_used();
        let is_filled = used as f64 >= settings.context_tokens as f64 * settings.at;
        // A summary that failed is asked for again when there is noticeably more to summarise.
        let has_failed = self.session.thread.compaction_failed.is_some_and(|failed| used < failed + failed / 20);
        if !is_filled || has_failed || self.summary.progress != Progress::Possible {
            return Ok(());
        }
        let messages = self.session.history.messages();
        let Some(cut) = self.cut(&messages, settings) else { return Ok(()) };
        let (old, left) = messages.split_at(cut);
        let prompt = asking::prompt(old);
        self.permit(asking::tokens(&prompt)).await?;
        if self.halted.is_some() {
            return Ok(());
        }
        checkpoint(self.cancel).await;
        self.summary = Summary {
            progress: Progress::Open,
            prune_before_turn: self.session.history.turn_of(cut),
            kept: left.len() as u64,
            prompt: asking::tokens(&prompt),
            ..Summary::default()
        };
        let ratio = used as f64 / settings.context_tokens as f64;
        self.session.hub.emit(EventKind::ContextCompactionStart { used_tokens: used, ratio });
        self.barrier().await?;
        match self.summarise(&prompt).await? {
            End::Made(summary) => self.replace_start(&summary, left),
            End::Failed(error) => {
                self.session.thread.compaction_failed = Some(used);
                self.end_summary(Progress::Over, Err(error));
            }
            End::Interrupted(claim) => {
                self.halted = Some(claim);
                self.end_summary(Progress::Postponed, Err(INTERRUPTED.to_owned()));
            }
        }
        Ok(())
    }

    /// The first message that stays: that of one of the last turns, or else one of this turn. `None`: nothing precedes it.
    fn cut(&self, messages: &[Arc<Message>], settings: Compaction) -> Option<usize> {
        let from = (self.place.turn + 1).saturating_sub(settings.keep_turns.max(1));
        let turn = self.session.history.start_of(from).filter(|start| *start > 1);
        turn.or_else(|| {
            // A result stays with its call.
            let last = messages.len().checked_sub(KEPT_IN_TURN)?;
            (2..=last).rev().find(|at| messages[*at].role != Role::Tool)
        })
    }

    /// The summary takes the place of the start of the conversation.
    fn replace_start(&mut self, summary: &str, left: &[Arc<Message>]) {
        self.session.thread.compaction_failed = None;
        self.end_summary(Progress::Over, Ok(summary.to_owned()));
        let mut messages = vec![Arc::new(summary_message(summary))];
        messages.extend_from_slice(left);
        self.session.set_history(messages);
        self.session.thread.context = None;
    }

    /// Asks the model for a summary. A request that fails is repeated as that of an answer is; nobody sees a summary, so that it is repeated
    /// also where it broke off. Each request is within the limits.
    ///
    /// # Errors
    /// A limit would be exceeded.
    async fn summarise(&mut self, prompt: &Prompt) -> Result<End, Stop> {
        let mut retry = Retry::new(&self.session.parts.settings.retries);
        loop {
            let asked = tokio::select! {
                biased;
                claim = self.session.inputs.interrupting() => Err(claim),
                answer = asking::ask(&*self.session.parts.model, prompt, &mut self.summary.received, self.cancel) => Ok(answer),
            };
            self.count_summary();
            let mut error = match asked {
                Err(claim) => return Ok(End::Interrupted(claim)),
                Ok(Ok(answer)) => {
                    retry.succeeded(&self.session.hub);
                    return Ok(answer.summary().map_or_else(End::Failed, End::Made));
                }
                Ok(Err(error)) => error,
            };
            retry.classify(&mut error, &self.session.hub);
            let clock = Arc::clone(&self.session.parts.clock);
            let random = retry::random(&self.session.parts.id, clock.now_ms());
            let delay = match retry.decide(error, true, &self.session.hub, random) {
                Ok(delay) => delay,
                Err(error) => return Ok(End::Failed(error.message)),
            };
            tokio::select! {
                biased;
                claim = self.session.inputs.interrupting() => return Ok(End::Interrupted(claim)),
                () = clock.sleep(delay) => {}
            }
            self.permit(self.summary.prompt).await?;
            if let Some(claim) = self.halted.take() {
                return Ok(End::Interrupted(claim));
            }
        }
    }

    /// Counts the request for a summary that is over.
    fn count_summary(&mut self) {
        let received = std::mem::take(&mut self.summary.received);
        if !received.is_billed() {
            return;
        }
        let Received { usage, bytes, .. } = received;
        self.report.usage.add(usage);
        let spend = self.session.spend(usage, Some(self.summary.prompt), bytes);
        let summary = &mut self.summary;
        summary.usage.add(usage);
        summary.spend = summary.spend.plus(spend.unwrap_or_default());
        summary.is_billed = true;
        summary.is_unpriced |= spend.is_none();
    }

    /// Reports the end of the summary that is being made: its text, or why there is none.
    fn end_summary(&mut self, progress: Progress, summary: Result<String, String>) {
        self.summary.progress = progress;
        let (summary, error) = match summary {
            Ok(summary) => (Some(summary), None),
            Err(error) => (None, Some(error)),
        };
        self.session.hub.emit(EventKind::ContextCompactionEnd {
            summary,
            prune_before_turn: self.summary.prune_before_turn,
            kept: self.summary.kept,
            error,
            usage: self.summary.usage,
            spend: self.summary.spend(),
            charged: self.session.budget.charged(),
        });
    }

    /// Settles a summary that is being made at the end of its turn. The next turn asks for one again.
    pub(super) fn settle_summary(&mut self, status: &TurnStatus) {
        if self.summary.progress == Progress::Open {
            self.count_summary();
            self.end_summary(Progress::Over, Err(halt::cause(status).to_owned()));
        }
    }
}

/// The message that replaces what was summarised.
pub(crate) fn summary_message(summary: &str) -> Message {
    let message = Message::text(Role::User, Origin::Host, format!("{HEAD}\n\n{}", summary.trim()));
    Message { hidden: true, ..message }
}
