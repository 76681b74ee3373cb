//! Compaction: when the conversation fills the context of the model, or a request was refused for its size, the conversation becomes
//! smaller, as often as a turn needs it.
//!
//! First the middle of results that the model has read, and images of earlier turns, are left out; then the model summarises the older
//! part; then, where the next request would not fit otherwise, the oldest messages are left out, and at last whatever can be. The
//! messages that stay are the same ones, so that a provider's cache keeps their prefix until the conversation has grown again, the
//! transcript keeps all of it, and rules whose reminders are gone may fire again. Where the user interrupts a summary, the model reads
//! the message first, and the step after that begins with a summary.

mod asking;
mod summary;

use flow::{CompactionCause, CompactionMethod, ErrorClass, EventKind, LeftOut, ModelError, Usage, grouped};

pub(super) use self::summary::Summary;
pub(crate) use self::summary::{is_summary, summary_message};
use super::{Stop, Turn};
use crate::context::{Capacity, Conversation, Estimate, Reduction};
use flow::ports::EventSink;

/// Why the conversation becomes smaller, and how small.
#[derive(Clone, Copy)]
pub(super) struct Need {
    pub(super) cause: CompactionCause,
    pub(super) capacity: Capacity,
    /// How many tokens the next prompt is to have at most.
    pub(super) aim: u64,
}

impl Turn<'_> {
    /// Makes the conversation smaller if the next request fills the context to the configured share. Where the user interrupts the summary,
    /// the inputs are in `halted`.
    ///
    /// # Errors
    /// The transcript cannot be written, a limit would be exceeded, or the next request cannot fit.
    pub(super) async fn compact(&mut self) -> Result<(), Stop> {
        let Some(capacity) = self.session.capacity() else { return Ok(()) };
        let used = self.session.next_prompt();
        // What did not help is tried again when there is noticeably more.
        let is_stuck = self.session.thread.compaction_failed.is_some_and(|failed| used < failed + failed / 20);
        if used < capacity.trigger || (is_stuck && used <= capacity.prompt) {
            return Ok(());
        }
        let need = Need { cause: CompactionCause::Context, capacity, aim: capacity.aim };
        self.make_smaller(need).await?;
        if self.halted.is_none() && self.session.next_prompt() > capacity.most() {
            return Err(Stop::Model(self.too_large(capacity)));
        }
        Ok(())
    }

    /// Makes the conversation smaller. Whether it is small enough then is for the caller to see.
    pub(super) async fn make_smaller(&mut self, need: Need) -> Result<(), Stop> {
        self.shorten_results(need);
        if self.session.next_prompt() > need.aim && self.summary.is_possible() {
            self.summarise_older(need).await?;
            if self.halted.is_some() {
                return Ok(());
            }
        }
        let most = if need.cause == CompactionCause::Overflow { need.aim } else { need.capacity.prompt };
        if self.session.next_prompt() > most {
            self.reduce(CompactionMethod::Drop, need, |conversation, enough| conversation.drop_oldest(true, enough));
        }
        if self.session.next_prompt() > need.capacity.prompt {
            self.reduce(CompactionMethod::Shorten, need, |conversation, enough| conversation.shorten_all(enough));
        }
        if self.session.next_prompt() > need.capacity.prompt {
            self.reduce(CompactionMethod::Drop, need, |conversation, enough| conversation.drop_oldest(false, enough));
        }
        let used = self.session.next_prompt();
        self.session.thread.compaction_failed = Some(used).filter(|used| *used >= need.capacity.trigger);
        Ok(())
    }

    /// Leaves out the middle of results that the model has read, and of those it has not read where they can never fit.
    fn shorten_results(&mut self, need: Need) {
        self.reduce(CompactionMethod::Shorten, need, |conversation, enough| conversation.shorten_old(enough));
        // What the model reads next has at most half of the capacity: a summary is of no use where it has more.
        let half = Need { aim: need.capacity.prompt / 2, ..need };
        let unread = |turn: &Self| turn.session.next_prompt().saturating_sub(turn.session.read_prompt());
        if self.session.next_prompt() > need.aim && unread(self) > half.aim {
            let read = self.session.read_prompt();
            let need = Need { aim: half.aim.saturating_add(read), ..need };
            self.reduce(CompactionMethod::Shorten, need, |conversation, enough| conversation.shorten_last(enough));
        }
    }

    /// Leaves out what `find` finds in the conversation until the next prompt has as many tokens as it may have.
    fn reduce(
        &mut self,
        method: CompactionMethod,
        need: Need,
        find: impl Fn(&Conversation<'_>, &dyn Fn(Estimate) -> bool) -> Reduction,
    ) {
        let request = self.session.request_estimate();
        let (messages, turns) = self.session.handles.history.with_turns();
        let gauge = self.session.thread.gauge.clone();
        let conversation = Conversation { model: &*self.session.parts.model, messages: &messages, turns: &turns };
        let found = find(&conversation, &|freed| gauge.tokens(request.minus(freed)) <= need.aim);
        if found.left_out.is_empty() || found.freed == Estimate::default() {
            return;
        }
        let used = gauge.tokens(request);
        if let Err(what) = self.session.handles.history.reduce(&found.left_out) {
            let message = format!("the conversation was not made smaller: it has no such part ({what})");
            return self.session.handles.hub.emit(EventKind::Notice { message });
        }
        self.session.thread.context = None;
        self.emit_start(method, need, used);
        let kept = self.session.handles.history.messages().len() as u64;
        self.emit_end(found.left_out, kept);
        self.session.rearm_gone();
    }

    pub(super) fn emit_start(&self, method: CompactionMethod, need: Need, used_tokens: u64) {
        let context_tokens = need.capacity.context;
        let ratio = used_tokens as f64 / context_tokens.max(1) as f64;
        let cause = need.cause;
        self.session.handles.hub.emit(EventKind::ContextCompactionStart {
            cause,
            method,
            used_tokens,
            ratio,
            context_tokens,
        });
    }

    fn emit_end(&self, left_out: Vec<LeftOut>, kept: u64) {
        self.session.handles.hub.emit(EventKind::ContextCompactionEnd {
            summary: None,
            prune_before_turn: 0,
            kept,
            left_out,
            used_tokens: self.session.next_prompt(),
            error: None,
            usage: Usage::default(),
            spend: None,
            charged: self.session.handles.budget.charged(),
        });
    }

    /// The error of a turn whose next request cannot fit, whatever is left out of the conversation.
    pub(super) fn too_large(&self, capacity: Capacity) -> ModelError {
        let (used, frame) = (self.session.next_prompt(), self.session.frame_tokens());
        let message = format!(
            "the next request does not fit the context of the model, and there is nothing more to leave out of the conversation: it has about {} \
             tokens, {} of them the system prompt and the tools; the model takes {}, with the answer. Start another session, or use a model \
             with a larger context",
            grouped(used),
            grouped(frame),
            grouped(capacity.context),
        );
        ModelError::new(ErrorClass::ContextOverflow, message)
    }
}
