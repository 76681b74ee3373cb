//! The messages that wait for a session: adding, changing and taking them back.

use flow::{InputId, InputWay, Message, Receipt, Withdrawal};
use turn::{InputEditError, NotWaiting, WaitingInput};

use super::runner::Job;
use super::{NewInput, Session, lock};

/// The messages that wait for a [`Session`], in the order in which they were handed over, and what became of those that do not wait any
/// more. All front ends of a session see the same.
///
/// A change is atomic with respect to delivery: a message is either changed or delivered as it was, and the error says which.
#[derive(Clone, Copy, Debug)]
pub struct Inbox<'a>(&'a Session);

impl<'a> Inbox<'a> {
    pub(super) fn of(session: &'a Session) -> Self {
        Self(session)
    }

    /// Adds a message behind those that are queued. It has a turn of its own, which starts when the session is idle: at once, or when the
    /// turn before it has completed. Nothing that is queued is sent after a turn that was cancelled or has failed: it waits until a turn
    /// completes or [`Inbox::flush`] sends it. [`Session::send`] starts a turn then. A blank message is not taken, as with [`Session::send`].
    pub fn queue(self, input: impl Into<NewInput>) -> InputId {
        self.0.hand_over(input.into(), InputWay::Queue, true).id
    }

    /// Adds a message that joins the running turn, as [`WhenBusy::Steer`](crate::input::WhenBusy::Steer) does.
    ///
    /// # Errors
    /// No turn runs, or the message is blank: the message, which the session has not taken.
    pub fn join_turn(self, input: impl Into<NewInput>) -> Result<InputId, NewInput> {
        let shared = &self.0.0;
        let input = input.into();
        let state = lock(&shared.state);
        if state.closed || state.idle.is_some() || input.message.is_blank() {
            return Err(input);
        }
        let (_, ids) = shared.handles.inputs.wait(vec![input.into_parts()], InputWay::Steer);
        Ok(ids.into_iter().next().unwrap_or_else(|| shared.handles.inputs.new_id()))
    }

    /// Sends from the queue now: the oldest input, or all of them, as [`SessionOptions::flush_mode`](crate::SessionOptions::flush_mode)
    /// says. They join the running turn; where none runs, they start one. Returns their ids.
    pub fn flush(self) -> Vec<InputId> {
        let shared = &self.0.0;
        let state = lock(&shared.state);
        if state.closed {
            return Vec::new();
        }
        shared.handles.inputs.release();
        if state.idle.is_none() {
            return shared.handles.inputs.steer_queued(shared.flush_mode);
        }
        let Some(claim) = shared.handles.inputs.claim_queued(shared.flush_mode) else { return Vec::new() };
        let ids = claim.ids();
        self.0.begin(state, Job::without_handle(claim));
        ids
    }

    /// The inputs that wait, with those of prompts that wait and those that a turn is delivering. A session that another process continues has
    /// them, too; prompts are queued inputs there.
    pub fn waiting(self) -> Vec<WaitingInput> {
        self.0.0.handles.inputs.waiting()
    }

    /// Replaces the text of an input that waits. What is not text of its message stays.
    ///
    /// # Errors
    /// It does not wait any more; the error has its receipt. Or the text is blank, and the message has nothing else: it stays as it is.
    pub fn edit(self, id: &InputId, text: &str) -> Result<(), InputEditError> {
        self.0.0.handles.inputs.edit(id, text)
    }

    /// Removes an input that waits: it is not going to be delivered. A prompt of which nothing is left does not run.
    ///
    /// # Errors
    /// It does not wait any more; the error says what became of it.
    pub fn remove(self, id: &InputId) -> Result<(), NotWaiting> {
        self.0.0.handles.inputs.withdraw(id, Withdrawal::Removed).map(drop)
    }

    /// Takes an input that waits back, such as to an input line: it is not going to be delivered.
    ///
    /// # Errors
    /// It does not wait any more; the error says what became of it.
    pub fn take_back(self, id: &InputId) -> Result<Message, NotWaiting> {
        let message = self.0.0.handles.inputs.withdraw(id, Withdrawal::Returned)?;
        Ok(Message::clone(&message))
    }

    /// What became of an input. `None`: the session had none with this id, or has forgotten it; the last 4096 receipts are kept.
    pub fn receipt(self, id: &InputId) -> Option<Receipt> {
        self.0.0.handles.inputs.receipt(id)
    }
}
