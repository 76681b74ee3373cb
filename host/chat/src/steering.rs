//! Messages of the user that wait, or are on their way: what is sent when, and what became of it.

mod state;

use flow::{Event, EventKind, InputId, RunPosition, TurnStatus, Withdrawal};

use crate::attachments::Attachment;
use crate::command::{Command, Outgoing, OutgoingId};
use crate::message::Changed;
use crate::text::Str;

pub use state::{
    FlushMode, NotWaiting, Receipt, Sent, SteeringMode, SteeringOptions, SteeringProgress, SteeringState, Waiting, Way,
};

/// The messages of this front end's user, from the moment they are written until they are in the conversation.
///
/// The queue is the front end's: a message in it can be edited and removed until it is sent. What was sent can be too, as long as the session
/// has not delivered it; the session decides, and the receipt says which it was.
#[derive(Clone, Debug, Default)]
pub struct MessageSteering {
    state: SteeringState,
    options: SteeringOptions,
    /// Messages that were made so far.
    made: u64,
    commands: Vec<Command>,
}

impl MessageSteering {
    /// Nothing is queued.
    pub fn new(options: SteeringOptions) -> Self {
        let state = SteeringState { mode: options.mode, ..SteeringState::default() };
        Self { state, options, ..Self::default() }
    }

    /// Takes a snapshot, in constant time.
    pub fn snapshot(&self) -> SteeringState {
        self.state.clone()
    }

    /// The messages as they are.
    pub fn state(&self) -> &SteeringState {
        &self.state
    }

    /// What the driver is to do, in order. It is given once.
    pub fn take_commands(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.commands)
    }

    /// Sends a message if nothing runs and nothing was sent that starts a turn. Else it is given to the running turn, or queued, as the
    /// mode says.
    pub fn submit(&mut self, text: &str, attachments: Vec<Attachment>) -> OutgoingId {
        if self.state.is_busy() && self.state.mode == SteeringMode::Queue {
            let message = self.message(text, attachments);
            return if self.options.session_queue {
                self.send(vec![message], Way::Queue)
            } else {
                self.enqueue(message)
            };
        }
        self.steer(text, attachments)
    }

    /// Sends a message now, whatever the mode: to the running turn, or as the start of one.
    pub fn steer(&mut self, text: &str, attachments: Vec<Attachment>) -> OutgoingId {
        let message = self.message(text, attachments);
        let way = if self.state.is_busy() { Way::Steer } else { Way::Prompt };
        self.send(vec![message], way)
    }

    /// Puts a message at the end of the queue, whatever the mode. It is sent after a turn that completes, or by
    /// [`MessageSteering::flush`].
    pub fn queue(&mut self, text: &str) -> OutgoingId {
        let message = self.message(text, Vec::new());
        if self.options.session_queue { self.send(vec![message], Way::Queue) } else { self.enqueue(message) }
    }

    /// Aborts what the model is writing, and gives it the message then. Where nothing runs it is sent as it is.
    pub fn interrupt(&mut self, text: &str, attachments: Vec<Attachment>) -> OutgoingId {
        let message = self.message(text, attachments);
        let way = if self.state.is_busy() { Way::Interrupt } else { Way::Prompt };
        self.send(vec![message], way)
    }

    /// Sends from the queue now: the first message or all of them, as the flush mode says.
    pub fn flush(&mut self) -> Changed {
        if self.options.session_queue {
            self.commands.push(Command::Flush);
            return Changed::No;
        }
        let queued = self.state.queued.make_mut();
        let messages: Vec<Outgoing> = match self.options.flush_mode {
            FlushMode::Sequential => queued.drain(..queued.len().min(1)).collect(),
            FlushMode::Batched => std::mem::take(queued),
        };
        if messages.is_empty() {
            return Changed::No;
        }
        if self.state.is_busy() {
            messages.into_iter().for_each(|message| drop(self.send(vec![message], Way::Steer)));
        } else {
            self.send(messages, Way::Prompt);
        }
        Changed::Yes
    }

    /// Replaces the text of a message, or of any that waits in the session. If it was sent, the session is asked to, and the receipt or the log says which text it took.
    ///
    /// # Errors
    /// It does not wait any more.
    pub fn edit(&mut self, id: &OutgoingId, text: &str) -> Result<(), NotWaiting> {
        if let Some(message) = self.state.queued_mut(id) {
            message.text = text.into();
            return Ok(());
        }
        let others = || Outgoing { id: id.clone(), text: text.into(), attachments: Vec::new() };
        let is_others = self.state.waiting().iter().any(|input| input.id == *id);
        let message = match self.state.sent_mut(id) {
            Some(sent) => {
                sent.edited = Some(text.into());
                Outgoing { text: text.into(), ..sent.message.clone() }
            }
            None if is_others => others(),
            None => return Err(NotWaiting(id.clone())),
        };
        self.commands.push(Command::Edit { message });
        Ok(())
    }

    /// Removes a message, or any that waits in the session. If it was sent, the session is asked to, and [`MessageSteering::acknowledge`] reports whether it was in time.
    ///
    /// # Errors
    /// It does not wait any more.
    pub fn remove(&mut self, id: &OutgoingId) -> Result<(), NotWaiting> {
        if self.state.unqueue(id, Receipt::Removed).is_some() {
            return Ok(());
        }
        if !self.state.waits_in_session(id) {
            return Err(NotWaiting(id.clone()));
        }
        self.commands.push(Command::Remove { id: id.clone() });
        Ok(())
    }

    /// Removes a queued message and returns it, such as to the input line. A message that was sent, or any other that waits in the session, is
    /// asked for with [`Command::TakeBack`]: `None` is returned, and the driver gets the message if it is in time.
    pub fn take_back(&mut self, id: &OutgoingId) -> Option<Outgoing> {
        let queued = self.state.unqueue(id, Receipt::Returned);
        if queued.is_none() && self.state.waits_in_session(id) {
            self.commands.push(Command::TakeBack { id: id.clone() });
        }
        queued
    }

    /// Removes all queued messages; with [`SteeringOptions::session_queue`] the session is asked to. What was sent for the running turn is not
    /// affected.
    pub fn clear(&mut self) -> Changed {
        if self.options.session_queue {
            let queued = self.state.waiting().iter().filter(|input| input.way == Way::Queue);
            self.commands.extend(queued.map(|input| Command::Remove { id: input.id.clone() }));
        }
        let ids: Vec<OutgoingId> = self.state.queued.iter().map(|message| message.id.clone()).collect();
        ids.iter().for_each(|id| drop(self.state.unqueue(id, Receipt::Removed)));
        Changed::from(!ids.is_empty())
    }

    /// Sets whether [`MessageSteering::submit`] steers or queues while a turn runs.
    pub fn set_mode(&mut self, mode: SteeringMode) -> Changed {
        Changed::from(std::mem::replace(&mut self.state.mode, mode) != mode)
    }

    /// The driver reports what became of a message that it handed over: what the session says, or [`Receipt::Queued`] where it could not
    /// be handed over, which puts it at the front of the queue. No effect where the message does not wait any more: the first
    /// receipt is the one that counts.
    pub fn acknowledge(&mut self, id: &OutgoingId, receipt: Receipt) -> Changed {
        match receipt {
            Receipt::Sent => Changed::No,
            Receipt::Queued => self.state.requeue(|sent| sent.message.id == *id),
            Receipt::Delivered { .. } | Receipt::Removed | Receipt::Returned => {
                let sent = self.state.take_sent(|sent| sent.message.id == *id);
                let known = sent.is_some() || self.state.unqueue(id, receipt).is_some();
                if sent.is_some() {
                    self.state.keep_receipt(id.clone(), receipt);
                }
                known.into()
            }
        }
    }

    /// Takes the next event of the session's thread. Events of children are none of it.
    pub fn process(&mut self, event: &Event) -> Changed {
        if event.seq < self.state.progress.next_seq {
            return Changed::No;
        }
        self.state.progress.next_seq = event.seq.saturating_add(1);
        match &event.kind {
            EventKind::TurnStart => self.set_executing(true),
            EventKind::InputReceived { id: Some(id), .. } | EventKind::SteeringMessage { id: Some(id), .. } => {
                self.state.progress.end(id).or(self.delivered_as(id, event.place, event.seq))
            }
            EventKind::InputReceived { message, .. } => self.delivered(&message.plain_text(), event.place, event.seq),
            EventKind::SteeringMessage { text, .. } => self.delivered(text, event.place, event.seq),
            EventKind::InputQueued { id, way, message } => self.state.progress.wait(id, *way, message.plain_text()),
            EventKind::InputEdited { id, text, .. } => self.edited(id, text),
            EventKind::InputWithdrawn { id, receipt } => self.withdrawn(id, *receipt),
            EventKind::TurnFinish { status } => self.turn_finished(status),
            EventKind::ThreadResumed { .. }
            | EventKind::ThreadCompleted { .. }
            | EventKind::ThreadError { .. }
            | EventKind::ThreadCancelled { .. } => self.set_executing(false),
            _ => Changed::No,
        }
    }

    /// Continues where another front end's state is, by events that this one has missed; the messages are this one's own.
    pub fn restore(&mut self, progress: SteeringProgress) -> Changed {
        let before = std::mem::replace(&mut self.state.progress, progress);
        let progress = &self.state.progress;
        Changed::from(before.executing != progress.executing || before.waiting != progress.waiting)
    }

    /// The input with this id is in the conversation.
    pub fn delivered_as(&mut self, id: &InputId, place: RunPosition, seq: u64) -> Changed {
        let sent = self.state.take_sent(|sent| sent.message.id == *id).map(|sent| sent.message.id);
        let own = sent.or_else(|| self.state.take_returned(|message| message.id == *id));
        let Some(own) = own else { return Changed::No };
        self.state.keep_receipt(own, Receipt::Delivered { turn: place.turn, step: place.step, seq });
        Changed::Yes
    }

    /// Another front end, or this one, has replaced the text of an input that waits in the session.
    fn edited(&mut self, id: &InputId, text: &str) -> Changed {
        let changed = self.state.progress.edit(id, text);
        let own = OutgoingId::new(id.as_str());
        if !self.state.sent().iter().any(|sent| sent.message.id == own) {
            return changed;
        }
        let Some(sent) = self.state.sent_mut(&own) else { return changed };
        sent.message.text = text.into();
        // Of two edits on their way, the later one is still to come.
        if sent.edited.as_deref() == Some(text) {
            sent.edited = None;
        }
        Changed::Yes
    }

    /// An input is not going to be delivered. A prompt that was given back because the turn before it was cancelled returns to the queue.
    fn withdrawn(&mut self, id: &InputId, receipt: Withdrawal) -> Changed {
        let changed = self.state.progress.end(id);
        let own = OutgoingId::new(id.as_str());
        let given_back = |sent: &Sent| sent.message.id == own && sent.way == Way::Prompt;
        changed.or(match receipt {
            Withdrawal::Returned if self.state.sent().iter().any(given_back) => self.state.requeue(given_back),
            Withdrawal::Returned => self.acknowledge(&own, Receipt::Returned),
            Withdrawal::Removed => self.acknowledge(&own, Receipt::Removed),
        })
    }

    /// A message is in the conversation whose event has no id, as in records of earlier versions: the first that was sent with this text.
    ///
    /// A message of another front end with the same text is taken for this one's, which is then in the conversation a second time.
    pub fn delivered(&mut self, text: &str, place: RunPosition, seq: u64) -> Changed {
        let receipt = Receipt::Delivered { turn: place.turn, step: place.step, seq };
        let is = |sent: &Sent| &*sent.message.text == text || sent.edited.as_deref() == Some(text);
        let id = match self.state.take_sent(is) {
            Some(sent) => sent.message.id,
            None => match self.state.take_returned(|message| &*message.text == text) {
                Some(id) => id,
                None => return Changed::No,
            },
        };
        self.state.keep_receipt(id, receipt);
        Changed::Yes
    }

    fn turn_finished(&mut self, status: &TurnStatus) -> Changed {
        let changed = self.set_executing(false);
        match status {
            TurnStatus::Completed if self.flushes() => changed.or(self.flush()),
            // Who cancels a turn cancels the prompts that wait for it.
            TurnStatus::Cancelled => changed.or(self.state.requeue(|sent| sent.way == Way::Prompt)),
            _ => changed,
        }
    }

    fn flushes(&self) -> bool {
        self.options.auto_flush && !self.options.session_queue && self.state.sent.is_empty()
    }

    fn set_executing(&mut self, executing: bool) -> Changed {
        Changed::from(std::mem::replace(&mut self.state.progress.executing, executing) != executing)
    }

    fn message(&mut self, text: &str, attachments: Vec<Attachment>) -> Outgoing {
        self.made += 1;
        let id = OutgoingId(Str::from(format!("{}-{}", self.options.name, self.made)));
        Outgoing { id, text: text.into(), attachments }
    }

    fn enqueue(&mut self, message: Outgoing) -> OutgoingId {
        let id = message.id.clone();
        self.state.queued.make_mut().push(message);
        id
    }

    /// Sends messages; returns the id of the first.
    fn send(&mut self, messages: Vec<Outgoing>, way: Way) -> OutgoingId {
        let sent = messages.iter().map(|message| Sent { message: message.clone(), way, edited: None });
        self.state.sent.make_mut().extend(sent);
        let first = messages.first().map(|message| message.id.clone()).unwrap_or_default();
        match way {
            Way::Prompt => self.commands.push(Command::Prompt { messages }),
            Way::Steer => {
                self.commands.extend(messages.into_iter().map(|message| Command::Steer { message }));
            }
            Way::Queue => {
                self.commands.extend(messages.into_iter().map(|message| Command::Queue { message }));
            }
            Way::Interrupt => {
                self.commands.extend(messages.into_iter().map(|message| Command::Interrupt { message }));
            }
        }
        first
    }
}
