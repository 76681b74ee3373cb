//! A whole chat: one subscription that drives each primitive once per event.

use std::fmt;
use std::sync::Arc;

use flow::{Event, EventKind, RunPosition};
use serde::{Deserialize, Serialize, Serializer};

use crate::attachments::{Attachment, AttachmentError, Attachments};
use crate::command::{Answer, Command, Outgoing, OutgoingId};
use crate::confirmations::{AnswerError, ConfirmationPolicy, ConfirmationsState, Policy, ToolConfirmations};
use crate::log::{LogOptions, LogSnapshot, LogState, MessageLog};
use crate::message::{Changed, ChildThread, MessageId, TurnError};
use crate::question::{Question, QuestionId};
use crate::steering::{
    MessageSteering, NotWaiting, Receipt, SteeringMode, SteeringOptions, SteeringProgress, SteeringState,
};
use crate::streaming::StreamingText;
use crate::text::Str;

/// What a chat is doing, unless a front end derives modes of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChatMode {
    /// No turn runs, and nobody is asked.
    #[default]
    Idle,
    /// A turn runs.
    Streaming,
    /// A person is asked about a tool call.
    ConfirmingTool,
}

/// What a mode is derived from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModeInput {
    /// A turn runs.
    pub executing: bool,
    /// A question waits for the person.
    pub confirming: bool,
    /// The last turn did not complete.
    pub failed: bool,
}

/// Questions come before a running turn, and that before idle.
pub fn default_mode(input: ModeInput) -> ChatMode {
    match input {
        ModeInput { confirming: true, .. } => ChatMode::ConfirmingTool,
        ModeInput { executing: true, .. } => ChatMode::Streaming,
        ModeInput { .. } => ChatMode::Idle,
    }
}

/// Derives a front end's mode.
pub type ModeDeriver<M> = Arc<dyn Fn(ModeInput) -> M + Send + Sync>;

/// Settings of a [`ChatSession`].
#[derive(Clone)]
#[non_exhaustive]
pub struct ChatOptions<M = ChatMode> {
    /// What is shown of messages, and when.
    pub log: LogOptions,
    /// What is sent when.
    pub steering: SteeringOptions,
    /// Decides about questions before they are shown; without it all are shown.
    pub policy: Option<ConfirmationPolicy>,
    /// Derives the mode.
    pub derive_mode: ModeDeriver<M>,
    /// What the user is allowed to attach.
    pub attachments: Attachments,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self::with_mode(default_mode)
    }
}

impl<M> ChatOptions<M> {
    /// The default settings, with modes of the front end's own.
    pub fn with_mode(derive_mode: impl Fn(ModeInput) -> M + Send + Sync + 'static) -> Self {
        Self {
            log: LogOptions::default(),
            steering: SteeringOptions::default(),
            policy: None,
            derive_mode: Arc::new(derive_mode),
            attachments: Attachments::default(),
        }
    }

    /// Sets what is shown of messages, and when.
    #[must_use]
    pub fn log(mut self, log: LogOptions) -> Self {
        self.log = log;
        self
    }

    /// Sets what is sent when.
    #[must_use]
    pub fn steering(mut self, steering: SteeringOptions) -> Self {
        self.steering = steering;
        self
    }

    /// Sets what decides about questions before they are shown.
    #[must_use]
    pub fn policy(mut self, policy: impl Fn(&Question) -> Policy + Send + Sync + 'static) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Sets what the user is allowed to attach.
    #[must_use]
    pub fn attachments(mut self, attachments: Attachments) -> Self {
        self.attachments = attachments;
        self
    }
}

impl<M> fmt::Debug for ChatOptions<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatOptions").field("log", &self.log).field("steering", &self.steering).finish_non_exhaustive()
    }
}

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
    error: Option<TurnError>,
    last_submitted: Option<LastSubmitted>,
    next_seq: u64,
}

/// The message that was sent last, until it is in the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LastSubmitted {
    /// The id in receipts.
    pub id: OutgoingId,
    /// What the user wrote.
    pub text: Str,
}

/// What a front end shows at one moment. A clone shares everything.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ChatState<M = ChatMode> {
    /// The visible messages.
    pub messages: LogSnapshot,
    /// What the chat is doing.
    pub mode: M,
    /// The questions that are not resolved.
    #[serde(serialize_with = "questions")]
    pub questions: ConfirmationsState,
    /// The user's messages that wait or are on their way, and whether a turn runs.
    #[serde(serialize_with = "waiting")]
    pub steering: SteeringState,
    /// The text of the current answer.
    #[serde(serialize_with = "streamed")]
    pub streaming: StreamingText,
    /// The message that was sent last, until it is in the log. What waits in the queue is there.
    pub last_submitted: Option<LastSubmitted>,
    /// Why the last turn did not complete.
    pub error: Option<TurnError>,
    /// The attachments of the next message.
    #[serde(serialize_with = "attached")]
    pub attachments: Arc<Vec<Attachment>>,
}

/// What a chat has learnt from events, and nothing of its front end: what a front end that reconnects is sent if it has missed too much.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedChat {
    log: LogState,
    confirmations: ConfirmationsState,
    progress: SteeringProgress,
    streaming: StreamingText,
    error: Option<TurnError>,
    next_seq: u64,
}

impl SavedChat {
    /// The number of the first event that is not in it.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }
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
        let ChatOptions { log, steering, policy, derive_mode, attachments } = options;
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
            error: None,
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
        self.next_seq = event.seq.saturating_add(1);
        let steering = self.steering.process(event);
        let confirmations = self.confirmations.process(event);
        let streaming = self.streaming.process(event);
        let log = self.log.process(event);
        let error = self.take_error(event);
        let submitted = self.forget_submitted();
        steering.or(confirmations).or(streaming).or(log).or(error).or(submitted)
    }

    /// Takes the next event of a child of the thread: its messages and its questions. Nothing else of the session changes.
    pub fn process_child(&mut self, child: &ChildThread, event: &Event) -> Changed {
        self.confirmations.process_child(child, event).or(self.log.process_child(child, event))
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
            next_seq: self.next_seq,
        }
    }

    /// Continues from what another chat has learnt, in the place of events that were missed. The user's messages, the attachments and the
    /// settings stay; messages that were delivered meanwhile have their receipts.
    pub fn restore(&mut self, saved: SavedChat) -> Changed {
        let missed = self.next_seq;
        let SavedChat { log, confirmations, progress, streaming, error, next_seq } = saved;
        let changed = self.log.restore(log).or(self.confirmations.restore(&confirmations));
        let changed = changed.or(self.steering.restore(progress));
        let same = self.streaming == streaming && self.error == error;
        (self.streaming, self.error, self.next_seq) = (streaming, error, next_seq);
        let delivered = self.deliver_since(missed);
        let submitted = self.forget_submitted();
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

    /// Removes a queued message and returns it.
    pub fn take_back(&mut self, id: &OutgoingId) -> Option<Outgoing> {
        let message = self.steering.take_back(id)?;
        let _changed = self.forget_submitted();
        Some(message)
    }

    /// Removes all queued messages.
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

    /// Removes all messages and the queue.
    pub fn clear(&mut self) -> Changed {
        let submitted = Changed::from(self.last_submitted.take().is_some());
        self.log.clear().or(self.steering.clear()).or(submitted)
    }

    fn submitted(&mut self, id: OutgoingId, text: &str) -> OutgoingId {
        // What is queued is shown there.
        if self.steering.state().receipt(&id) == Some(Receipt::Sent) {
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

    /// The user's messages among those that joined the log from the event `seq` on.
    fn deliver_since(&mut self, seq: u64) -> Changed {
        let mut changed = Changed::No;
        for (number, message) in self.log.inputs_since(seq) {
            let place = RunPosition { turn: message.turn, step: message.step, attempt: 0 };
            changed = changed.or(self.steering.delivered(&message.text(), place, number));
        }
        changed
    }
}

fn questions<S: Serializer>(state: &ConfirmationsState, to: S) -> Result<S::Ok, S::Error> {
    state.questions().serialize(to)
}

fn attached<S: Serializer>(attachments: &Arc<Vec<Attachment>>, to: S) -> Result<S::Ok, S::Error> {
    attachments.as_slice().serialize(to)
}

fn waiting<S: Serializer>(state: &SteeringState, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Waiting<'s> {
        executing: bool,
        mode: SteeringMode,
        queued: &'s [Outgoing],
        sent: &'s [crate::steering::Sent],
    }
    let (queued, sent) = (state.queued(), state.sent());
    Waiting { executing: state.is_executing(), mode: state.mode(), queued, sent }.serialize(to)
}

fn streamed<S: Serializer>(state: &StreamingText, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Streamed<'s> {
        active: bool,
        text: &'s crate::Text,
        reasoning: &'s crate::Text,
    }
    Streamed { active: state.is_active(), text: state.text(), reasoning: state.reasoning() }.serialize(to)
}
