//! A whole chat: one subscription that drives each primitive once per event.

mod options;
mod state;

use std::fmt;
use std::sync::Arc;

use flow::{Event, EventKind, RunPosition};

use crate::attachments::{Attachment, AttachmentError, Attachments};
use crate::command::{Answer, Command, Outgoing, OutgoingId};
use crate::confirmations::{AnswerError, ToolConfirmations};
use crate::limit::PendingLimit;
use crate::log::MessageLog;
use crate::message::{BlockKind, Changed, ChildThread, MessageId, PlanItem, TurnError};
use crate::question::QuestionId;
use crate::steering::{MessageSteering, NotWaiting, Receipt, Sent, SteeringMode, Way};
use crate::streaming::StreamingText;
use crate::turns::Turns;

pub use options::{ChatMode, ChatOptions, EventHook, ModeDeriver, ModeInput, default_mode};
pub use state::{ChatState, LastSubmitted, SavedChat};

/// A chat with one session: messages, questions, the user's messages, and the mode.
///
/// Give it each event once with [`ChatSession::process`], draw where it answers [`Changed::Yes`], and carry out
/// [`ChatSession::take_commands`] after each call.
pub struct ChatSession<M = ChatMode> {
    log: MessageLog,
    confirmations: ToolConfirmations,
    steering: MessageSteering,
    streaming: StreamingText,
    attachments: Attachments,
    derive_mode: ModeDeriver<M>,
    on_event: Option<EventHook>,
    error: Option<TurnError>,
    limit: Option<PendingLimit>,
    turns: Turns,
    plan: Arc<Vec<PlanItem>>,
    last_submitted: Option<LastSubmitted>,
    next_seq: u64,
}

impl Default for ChatSession {
    fn default() -> Self {
        Self::new(ChatOptions::default())
    }
}

impl<M> fmt::Debug for ChatSession<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatSession").field("next_seq", &self.next_seq).finish_non_exhaustive()
    }
}

impl<M> ChatSession<M> {
    /// A chat in which nothing has happened.
    pub fn new(options: ChatOptions<M>) -> Self {
        let ChatOptions { log, steering, policy, derive_mode, on_event, attachments } = options;
        let confirmations = match policy {
            Some(policy) => ToolConfirmations::with_policy(move |question| policy(question)),
            None => ToolConfirmations::default(),
        };
        Self {
            log: MessageLog::new(log),
            confirmations,
            steering: MessageSteering::new(steering),
            streaming: StreamingText::default(),
            attachments,
            derive_mode,
            on_event,
            error: None,
            limit: None,
            turns: Turns::default(),
            plan: Arc::default(),
            last_submitted: None,
            next_seq: 0,
        }
    }

    /// Takes the next event of the session's thread: each primitive takes it once, in a fixed order. The answer is the one notification
    /// about it. An event that was taken already changes nothing.
    pub fn process(&mut self, event: &Event) -> Changed {
        if event.seq < self.next_seq {
            return Changed::No;
        }
        // First: where it fails, the event is not taken.
        self.hook(None, event);
        self.next_seq = event.seq.saturating_add(1);
        let was_interrupted = self.is_interrupted();
        let steering = self.steering.process(event);
        let confirmations = self.confirmations.process(event);
        let streaming = self.streaming.process(event);
        let log = self.log.process(event);
        self.turns.process(event);
        let limit = PendingLimit::process(&mut self.limit, event);
        let (error, plan) = (self.take_error(event), self.take_plan(event));
        let submitted = self.forget_submitted();
        let interrupted = Changed::from(was_interrupted != self.is_interrupted());
        steering.or(confirmations).or(streaming).or(log).or(limit).or(error).or(plan).or(submitted).or(interrupted)
    }

    /// Returns whether the last turn has no end, and does not run.
    fn is_interrupted(&self) -> bool {
        !self.steering.state().is_executing() && self.turns.has_no_end()
    }

    /// As [`MessageLog::adds_to`], where the delta is added to the streaming text, too, and changes nothing else of the chat.
    pub fn adds_to(&self, place: RunPosition, kind: BlockKind) -> Option<usize> {
        let alone = self.last_submitted.is_none() && self.streaming.adds(place);
        self.log.adds_to(place, kind).filter(|_| alone)
    }

    /// Takes the next event of a child of the thread: its messages and its questions. Nothing else of the session changes.
    pub fn process_child(&mut self, child: &ChildThread, event: &Event) -> Changed {
        self.hook(Some(child), event);
        self.confirmations.process_child(child, event).or(self.log.process_child(child, event))
    }

    fn hook(&self, child: Option<&ChildThread>, event: &Event) {
        if let Some(hook) = &self.on_event {
            hook(child, event);
        }
    }

    /// Continues a child of the thread from what a chat of its own has learnt ([`ChatSession::save`]): its messages and its questions, in the
    /// place of events that this chat did not get.
    pub fn restore_child(&mut self, child: &ChildThread, saved: &SavedChat) -> Changed {
        let questions = self.confirmations.restore_child(child, &saved.confirmations);
        questions.or(self.log.restore_child(child, &saved.log))
    }

    /// Takes a snapshot. It shares everything with the session.
    pub fn snapshot(&self) -> ChatState<M> {
        let input = ModeInput {
            executing: self.steering.state().is_executing(),
            confirming: self.confirmations.state().pending().next().is_some(),
            failed: self.error.is_some(),
        };
        ChatState {
            messages: self.log.snapshot(),
            mode: (self.derive_mode)(input),
            questions: self.confirmations.snapshot(),
            steering: self.steering.snapshot(),
            streaming: self.streaming.clone(),
            last_submitted: self.last_submitted.clone(),
            error: self.error.clone(),
            limit: self.limit.clone(),
            interrupted: self.is_interrupted(),
            plan: Arc::clone(&self.plan),
            attachments: Arc::clone(self.attachments.list()),
        }
    }

    /// What the driver is to do, in order. It is given once.
    pub fn take_commands(&mut self) -> Vec<Command> {
        let mut commands = self.confirmations.take_commands();
        commands.extend(self.steering.take_commands());
        commands
    }

    /// What this chat has learnt from events, for a front end that reconnects.
    pub fn save(&self) -> SavedChat {
        SavedChat {
            log: self.log.state().clone(),
            confirmations: self.confirmations.snapshot(),
            progress: self.steering.state().progress(),
            streaming: self.streaming.clone(),
            error: self.error.clone(),
            limit: self.limit.clone(),
            turns: self.turns.clone(),
            plan: self.plan.to_vec(),
            next_seq: self.next_seq,
        }
    }

    /// Continues from what another chat has learnt, in the place of events that were missed. The user's messages, the attachments and the
    /// settings stay; messages that were delivered meanwhile have their receipts. What this one knows of children of the thread stays, where
    /// the other chat was given none of their events; their questions go where no turn runs any more.
    pub fn restore(&mut self, saved: SavedChat) -> Changed {
        let (missed, was_interrupted) = (self.next_seq, self.is_interrupted());
        let SavedChat { log, confirmations, progress, streaming, error, limit, turns, plan, next_seq } = saved;
        let confirming = self.confirmations.restore_while(&confirmations, progress.executing);
        let changed = self.log.restore(log).or(confirming);
        let changed = changed.or(self.steering.restore(progress));
        let same = self.streaming == streaming && self.error == error && self.limit == limit && *self.plan == plan;
        (self.streaming, self.error, self.next_seq) = (streaming, error, next_seq);
        (self.limit, self.turns) = (limit, turns);
        self.plan = Arc::new(plan);
        let delivered = self.deliver_since(missed);
        let submitted = self.forget_submitted();
        let same = same && was_interrupted == self.is_interrupted();
        changed.or(Changed::from(!same)).or(delivered).or(submitted)
    }

    /// Where the session continues: the number of the first event that is not taken.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Sends a message, or steers or queues it, with the attachments.
    pub fn submit(&mut self, text: &str) -> OutgoingId {
        let attachments = self.attachments.take();
        let id = self.steering.submit(text, attachments);
        self.submitted(id, text)
    }

    /// Sends a message to the running turn, or as the start of one, with the attachments.
    pub fn steer(&mut self, text: &str) -> OutgoingId {
        let attachments = self.attachments.take();
        let id = self.steering.steer(text, attachments);
        self.submitted(id, text)
    }

    /// Aborts what the model is writing and gives it a message, with the attachments.
    pub fn interrupt(&mut self, text: &str) -> OutgoingId {
        let attachments = self.attachments.take();
        let id = self.steering.interrupt(text, attachments);
        self.submitted(id, text)
    }

    /// Queues a message. The attachments stay.
    pub fn queue(&mut self, text: &str) -> OutgoingId {
        self.steering.queue(text)
    }

    /// Sends from the queue now.
    pub fn flush(&mut self) -> Changed {
        self.steering.flush()
    }

    /// Replaces the text of a message that waits.
    ///
    /// # Errors
    /// It does not wait any more.
    pub fn edit(&mut self, id: &OutgoingId, text: &str) -> Result<(), NotWaiting> {
        self.steering.edit(id, text)?;
        if let Some(last) = self.last_submitted.as_mut().filter(|last| last.id == *id) {
            last.text = text.into();
        }
        Ok(())
    }

    /// Removes a message that waits.
    ///
    /// # Errors
    /// It does not wait any more.
    pub fn remove(&mut self, id: &OutgoingId) -> Result<(), NotWaiting> {
        self.steering.remove(id)?;
        let _changed = self.forget_submitted();
        Ok(())
    }

    /// Removes a queued message and returns it. One that waits in the session is asked for; see [`MessageSteering::take_back`].
    pub fn take_back(&mut self, id: &OutgoingId) -> Option<Outgoing> {
        let message = self.steering.take_back(id)?;
        let _changed = self.forget_submitted();
        Some(message)
    }

    /// Removes all queued messages. See [`MessageSteering::clear`].
    pub fn clear_queue(&mut self) -> Changed {
        self.steering.clear().or(self.forget_submitted())
    }

    /// Sets whether `submit` steers or queues while a turn runs.
    pub fn set_mode(&mut self, mode: SteeringMode) -> Changed {
        self.steering.set_mode(mode)
    }

    /// The driver reports what became of a message. See [`MessageSteering::acknowledge`].
    pub fn acknowledge(&mut self, id: &OutgoingId, receipt: Receipt) -> Changed {
        self.steering.acknowledge(id, receipt).or(self.forget_submitted())
    }

    /// Answers a question.
    ///
    /// # Errors
    /// The question is not open, or this front end has answered it.
    pub fn respond(&mut self, id: &QuestionId, answer: Answer) -> Result<(), AnswerError> {
        self.confirmations.respond(id, answer)
    }

    /// The driver reports that an answer was refused or not delivered. See [`ToolConfirmations::answer_failed`].
    pub fn answer_failed(&mut self, id: &QuestionId, why: &str) -> Changed {
        self.confirmations.answer_failed(id, why)
    }

    /// A policy outside the chat has failed to decide about a question. See [`ToolConfirmations::policy_failed`].
    pub fn policy_failed(&mut self, id: &QuestionId, why: &str) -> Changed {
        self.confirmations.policy_failed(id, why)
    }

    /// Attaches something to the next message.
    ///
    /// # Errors
    /// There are too many already, or its type is not allowed.
    pub fn attach(&mut self, attachment: Attachment) -> Result<(), AttachmentError> {
        self.attachments.add(attachment)
    }

    /// Removes the attachment at `index`, from 0.
    pub fn detach(&mut self, index: usize) -> Changed {
        self.attachments.remove(index)
    }

    /// Removes all messages and the queue, also that of the session where the options say that it is used.
    pub fn clear(&mut self) -> Changed {
        let submitted = Changed::from(self.last_submitted.take().is_some());
        self.log.clear().or(self.steering.clear()).or(submitted)
    }

    fn submitted(&mut self, id: OutgoingId, text: &str) -> OutgoingId {
        // What is queued is shown there, in the front end or in the session.
        let is_queued = |sent: &Sent| sent.message.id == id && sent.way == Way::Queue;
        let state = self.steering.state();
        if state.receipt(&id) == Some(Receipt::Sent) && !state.sent().iter().any(is_queued) {
            self.last_submitted = Some(LastSubmitted { id: id.clone(), text: text.into() });
        }
        id
    }

    /// What was submitted last is not shown as such where the log shows it, or where it does not wait any more.
    fn forget_submitted(&mut self) -> Changed {
        let Some(last) = &self.last_submitted else { return Changed::No };
        let gone = match self.steering.state().receipt(&last.id) {
            Some(Receipt::Sent) => false,
            Some(Receipt::Delivered { seq, .. }) => self.log.has_passed(&MessageId::new(format!("in-{seq}"))),
            Some(Receipt::Queued | Receipt::Removed | Receipt::Returned) | None => true,
        };
        if gone {
            self.last_submitted = None;
        }
        gone.into()
    }

    fn take_error(&mut self, event: &Event) -> Changed {
        let error = match &event.kind {
            EventKind::TurnStart => None,
            EventKind::TurnFinish { status } => TurnError::of(status),
            _ => return Changed::No,
        };
        let changed = self.error != error;
        self.error = error;
        changed.into()
    }

    fn take_plan(&mut self, event: &Event) -> Changed {
        let EventKind::PlanUpdated { entries } = &event.kind else { return Changed::No };
        let plan: Vec<PlanItem> = entries.iter().map(PlanItem::of).collect();
        let changed = *self.plan != plan;
        self.plan = Arc::new(plan);
        changed.into()
    }

    /// The user's messages among those that joined the log from the event `seq` on.
    fn deliver_since(&mut self, seq: u64) -> Changed {
        let mut changed = Changed::No;
        for (number, message) in self.log.inputs_since(seq) {
            let place = RunPosition { turn: message.turn, step: message.step, attempt: 0 };
            changed = changed.or(match &message.input {
                Some(id) => self.steering.delivered_as(&id.into(), place, number),
                None => self.steering.delivered(&message.text(), place, number),
            });
        }
        changed
    }
}
