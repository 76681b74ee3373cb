//! The messages of a front end's user, and where each is.

use flow::{InputId, InputWay};
use serde::{Deserialize, Serialize};

use crate::command::{Outgoing, OutgoingId};
use crate::list::Shared;
use crate::message::Changed;
use crate::text::Str;

/// The most receipts that are kept; the oldest goes first.
const RECEIPTS: usize = 64;

/// What [`MessageSteering::submit`](super::MessageSteering::submit) does while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SteeringMode {
    /// Give the message to the running turn.
    #[default]
    Steer,
    /// Queue the message.
    Queue,
}

/// What is sent from the queue at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlushMode {
    /// One message for each turn.
    #[default]
    Sequential,
    /// All messages, as one input.
    Batched,
}

/// Settings of a [`MessageSteering`](super::MessageSteering).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SteeringOptions {
    /// Begins the ids of messages. Front ends of one session need different names, also those of other processes: a session takes an id
    /// once.
    pub name: String,
    /// What `submit` does while a turn runs.
    pub mode: SteeringMode,
    /// What is sent from the queue at once.
    pub flush_mode: FlushMode,
    /// Whether a turn that completes sends from the queue.
    pub auto_flush: bool,
    /// Whether the queue is the session's: every front end sees it, it outlives this one, and the session sends from it.
    pub session_queue: bool,
}

impl Default for SteeringOptions {
    fn default() -> Self {
        let (mode, flush_mode) = (SteeringMode::default(), FlushMode::default());
        Self { name: "user".to_owned(), mode, flush_mode, auto_flush: true, session_queue: false }
    }
}

impl SteeringOptions {
    /// Sets what the ids of messages begin with.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets what `submit` does while a turn runs.
    #[must_use]
    pub fn mode(mut self, mode: SteeringMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets what is sent from the queue at once.
    #[must_use]
    pub fn flush_mode(mut self, mode: FlushMode) -> Self {
        self.flush_mode = mode;
        self
    }

    /// Queues messages in the session instead of in the front end. It decides then what is sent when: `flush_mode` and `auto_flush` have no
    /// effect.
    #[must_use]
    pub fn session_queue(mut self) -> Self {
        self.session_queue = true;
        self
    }

    /// Sets whether a turn that completes sends from the queue.
    #[must_use]
    pub fn auto_flush(mut self, auto_flush: bool) -> Self {
        self.auto_flush = auto_flush;
        self
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "receipt", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Receipt {
    /// It waits in the front end.
    Queued,
    /// The driver was told to hand it over, and the session has not delivered it.
    Sent,
    /// It is in the conversation.
    Delivered {
        /// The turn, from 1.
        turn: u32,
        /// The step of the turn; 0: before the first.
        step: u32,
        /// The number of the event.
        seq: u64,
    },
    /// The user removed it before it was delivered.
    Removed,
    /// The user has it back.
    Returned,
}

/// How a message was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// As the input of a turn.
    Prompt,
    /// To the running turn.
    Steer,
    /// After the running attempt was aborted.
    Interrupt,
    /// When the session is idle.
    Queue,
}

/// A message that was handed over and is not delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Sent {
    /// The message as it was handed over.
    pub message: Outgoing,
    /// How it was handed over.
    pub way: Way,
    /// The text that the session was asked to replace it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Str>,
}

/// A message does not wait any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message {} does not wait any more: it was delivered, removed or returned", .0.as_str())]
pub struct NotWaiting(pub OutgoingId);

/// What the events say about turns, for every front end of a session the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SteeringProgress {
    /// A turn runs.
    pub executing: bool,
    /// The number of the next event.
    pub next_seq: u64,
    /// The inputs that wait in the session, oldest first, whichever front end has sent them.
    pub waiting: Shared<Vec<Waiting>>,
}

/// An input that waits in the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Waiting {
    /// Names it. A message of this front end has the id here that it has in receipts.
    pub id: OutgoingId,
    /// How it is going to be delivered.
    pub way: Way,
    /// Its text as it is now.
    pub text: Str,
}

/// The messages of a front end's user at one moment. A clone takes constant time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteeringState {
    pub(super) queued: Shared<Vec<Outgoing>>,
    pub(super) sent: Shared<Vec<Sent>>,
    /// Queued messages that were handed over once: the session may still deliver them.
    pub(super) returned: Shared<Vec<OutgoingId>>,
    pub(super) receipts: Shared<Vec<(OutgoingId, Receipt)>>,
    pub(super) mode: SteeringMode,
    pub(super) progress: SteeringProgress,
}

impl SteeringProgress {
    /// An input waits in the session, or waits in another way than before.
    pub(super) fn wait(&mut self, id: &InputId, way: InputWay, text: String) -> Changed {
        let way = match way {
            InputWay::Queue => Way::Queue,
            InputWay::Steer => Way::Steer,
            InputWay::Interrupt => Way::Interrupt,
            // Ways of later versions wait, too.
            _ => Way::Prompt,
        };
        let input = Waiting { id: OutgoingId::new(id.as_str()), way, text: Str::from(text) };
        let waiting = self.waiting.make_mut();
        match waiting.iter_mut().find(|known| known.id == *id) {
            Some(known) if *known == input => return Changed::No,
            Some(known) => *known = input,
            None => waiting.push(input),
        }
        Changed::Yes
    }

    pub(super) fn edit(&mut self, id: &InputId, text: &str) -> Changed {
        let Some(index) = self.waiting.iter().position(|known| known.id == *id) else { return Changed::No };
        let known = &mut self.waiting.make_mut()[index];
        let changed = &*known.text != text;
        known.text = text.into();
        changed.into()
    }

    /// An input does not wait any more.
    pub(super) fn end(&mut self, id: &InputId) -> Changed {
        let Some(index) = self.waiting.iter().position(|known| known.id == *id) else { return Changed::No };
        self.waiting.make_mut().remove(index);
        Changed::Yes
    }
}

impl SteeringState {
    /// Messages that wait in the front end, in order.
    pub fn queued(&self) -> &[Outgoing] {
        &self.queued
    }

    /// Messages that were handed over and are not delivered, in order.
    pub fn sent(&self) -> &[Sent] {
        &self.sent
    }

    /// The inputs that wait in the session, oldest first, whichever front end has sent them, as the events say.
    pub fn waiting(&self) -> &[Waiting] {
        &self.progress.waiting
    }

    /// Whether a turn runs, as the events say.
    pub fn is_executing(&self) -> bool {
        self.progress.executing
    }

    /// Whether a turn runs, or was asked for.
    pub fn is_busy(&self) -> bool {
        self.progress.executing || self.sent.iter().any(|sent| matches!(sent.way, Way::Prompt | Way::Queue))
    }

    /// What `submit` does while a turn runs.
    pub fn mode(&self) -> SteeringMode {
        self.mode
    }

    /// What the events say about turns, to continue from in another front end.
    pub fn progress(&self) -> SteeringProgress {
        self.progress.clone()
    }

    /// Where a message is. Of those that do not wait any more the last 64 are known.
    pub fn receipt(&self, id: &OutgoingId) -> Option<Receipt> {
        let queued = || self.queued.iter().any(|message| message.id == *id).then_some(Receipt::Queued);
        let sent = || self.sent.iter().any(|sent| sent.message.id == *id).then_some(Receipt::Sent);
        let settled = || self.receipts.iter().rev().find(|(one, _)| one == id).map(|(_, receipt)| *receipt);
        queued().or_else(sent).or_else(settled)
    }

    /// Whether a message was sent and not delivered, or another front end's waits in the session.
    pub(super) fn waits_in_session(&self, id: &OutgoingId) -> bool {
        self.sent().iter().any(|sent| sent.message.id == *id) || self.waiting().iter().any(|input| input.id == *id)
    }

    pub(super) fn queued_mut(&mut self, id: &OutgoingId) -> Option<&mut Outgoing> {
        self.queued.make_mut().iter_mut().find(|message| message.id == *id)
    }

    pub(super) fn sent_mut(&mut self, id: &OutgoingId) -> Option<&mut Sent> {
        self.sent.make_mut().iter_mut().find(|sent| sent.message.id == *id)
    }

    pub(super) fn take_sent(&mut self, is: impl Fn(&Sent) -> bool) -> Option<Sent> {
        let index = self.sent.iter().position(is)?;
        Some(self.sent.make_mut().remove(index))
    }

    /// Takes a message out of the queue, with a receipt.
    pub(super) fn unqueue(&mut self, id: &OutgoingId, receipt: Receipt) -> Option<Outgoing> {
        let index = self.queued.iter().position(|message| message.id == *id)?;
        self.keep_receipt(id.clone(), receipt);
        self.returned.make_mut().retain(|one| one != id);
        Some(self.queued.make_mut().remove(index))
    }

    /// Takes the first of such queued messages that was handed over once.
    pub(super) fn take_returned(&mut self, is: impl Fn(&Outgoing) -> bool) -> Option<OutgoingId> {
        let returned = |id: &OutgoingId| self.returned.contains(id);
        let index = self.queued.iter().position(|message| is(message) && returned(&message.id))?;
        let id = self.queued.make_mut().remove(index).id;
        self.returned.make_mut().retain(|one| *one != id);
        Some(id)
    }

    /// Puts messages that were handed over at the front of the queue.
    pub(super) fn requeue(&mut self, which: impl Fn(&Sent) -> bool) -> Changed {
        let (back, rest): (Vec<Sent>, Vec<Sent>) = self.sent.iter().cloned().partition(which);
        if back.is_empty() {
            return Changed::No;
        }
        *self.sent.make_mut() = rest;
        self.returned.make_mut().extend(back.iter().map(|sent| sent.message.id.clone()));
        let messages = back.into_iter().map(|Sent { message, edited, .. }| match edited {
            Some(text) => Outgoing { text, ..message },
            None => message,
        });
        self.queued.make_mut().splice(..0, messages);
        Changed::Yes
    }

    pub(super) fn keep_receipt(&mut self, id: OutgoingId, receipt: Receipt) {
        let receipts = self.receipts.make_mut();
        if receipts.len() == RECEIPTS {
            receipts.remove(0);
        }
        receipts.push((id, receipt));
    }
}
