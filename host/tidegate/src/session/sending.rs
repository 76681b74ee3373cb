//! What a front end sends to a session: prompts, messages that join the running turn or wait for its end, and changes of those that wait.

use flow::{InputId, InputWay, Message, Receipt, Withdrawal};
use turn::{CancellationToken, NotWaiting, WaitingInput};

use super::runner::{Job, Start};
use super::{Input, NewInput, Session, WhenBusy, lock};
use crate::session::turn_handle::Turn;

/// Why a prompt without messages fails.
const NO_MESSAGES: &str = "the input has no messages: the model was not asked. Pass at least one message.";

impl Session {
    /// Asks the model. The turn starts at once, or when the turns before it are done, the queued inputs that were handed over before included;
    /// until then its messages are among [`Session::waiting`]. One without messages fails, and no turn runs. A prompt runs whether or not its
    /// events are read. Dropping the returned [`Turn`] cancels it, [`Turn::detach`] lets it run on.
    pub fn prompt(&self, input: impl Into<Input>) -> Turn {
        let (inputs, cancel) = (input.into().into_parts(), CancellationToken::new());
        let failed = |ids, why: &str| {
            let (job, turn) = Job::with_handle(0, Start::Prompt, CancellationToken::new(), ids);
            job.failed(why);
            turn
        };
        if inputs.is_empty() {
            return failed(Vec::new(), NO_MESSAGES);
        }
        let mut state = lock(&self.0.state);
        if state.closed {
            let ids = self.0.inputs.refuse(inputs);
            return Job::with_handle(0, Start::Continue, cancel, ids).1;
        }
        if state.idle.is_none() {
            let (ticket, ids) = self.0.inputs.wait(inputs, InputWay::Prompt);
            let (job, turn) = Job::with_handle(ticket, Start::Prompt, cancel, ids);
            state.waiting.push_back(job);
            return turn;
        }
        let (ids, claim) = self.0.inputs.start(inputs, InputWay::Prompt);
        let Some(claim) = claim else {
            return failed(ids, "the session has taken an input with this id before");
        };
        let (job, turn) = Job::with_handle(0, Start::Claimed(claim), cancel, ids);
        self.begin(state, job);
        turn
    }

    /// Continues the conversation without an input: after it was suspended, cancelled or interrupted, or with an approval of another
    /// process. Calls that the end of a process interrupted run first: questions about them are asked again, under their ids. Where the last
    /// answer is complete, the oldest message that waits is delivered; where none does, the turn fails.
    pub fn resume(&self) -> Turn {
        let (job, turn) =
            Job::with_handle(self.0.inputs.ticket(), Start::Continue, CancellationToken::new(), Vec::new());
        let mut state = lock(&self.0.state);
        if state.closed {
            drop(job);
        } else if state.idle.is_some() {
            self.begin(state, job);
        } else {
            state.waiting.push_back(job);
        }
        turn
    }

    /// Hands a message over for a turn of its own, which starts when the session is idle: at once, or when the turn before it has
    /// completed. Nothing that is queued is sent after a turn that was cancelled or has failed: it waits until a turn completes or
    /// [`Session::flush`] sends it, and a message that is queued then waits behind it. Its events reach [`Session::subscribe`]rs.
    /// A closed session takes no message: its receipt is [`Receipt::Returned`].
    pub fn queue(&self, input: impl Into<NewInput>) -> InputId {
        self.hand_over(input.into(), InputWay::Queue, true).0
    }

    /// Hands a message to the running turn. It joins the conversation before the next request to the model, after the results of
    /// all tool calls. Where no turn runs, or the running one completes before that, the message starts a turn of its own, whose
    /// events reach [`Session::subscribe`]rs. A turn that is cancelled or fails before extensions have processed the message leaves it
    /// for the next turn. A closed session takes no message: its receipt is [`Receipt::Returned`].
    pub fn steer(&self, input: impl Into<NewInput>) -> InputId {
        self.steer_or_start(input).0
    }

    /// Hands a message over as [`Session::steer`] does, and returns its id and whether it has started a turn. If not, a turn ran at that
    /// moment, or the session is closed; [`Session::receipt`] says which turn has delivered the message in the end.
    pub fn steer_or_start(&self, input: impl Into<NewInput>) -> (InputId, bool) {
        self.hand_over(input.into(), InputWay::Steer, false)
    }

    /// Hands a message to the running turn as [`Session::steer`] does.
    ///
    /// # Errors
    /// No turn runs: the message, which the session has not taken.
    pub fn steer_running(&self, input: impl Into<NewInput>) -> Result<InputId, NewInput> {
        let state = lock(&self.0.state);
        if state.closed || state.idle.is_some() {
            return Err(input.into());
        }
        let (_, ids) = self.0.inputs.wait(vec![input.into().into_parts()], InputWay::Steer);
        Ok(ids.into_iter().next().unwrap_or_else(|| self.0.inputs.new_id()))
    }

    /// Hands a message to the running turn as [`Session::steer`] does, and stops for it what the turn is doing: the answer under way is
    /// aborted, and its text stays in the conversation, marked as partial; a call that runs is stopped, and those that have not begun do not
    /// run. The message joins the conversation then, with the steering messages before it, and the turn continues.
    pub fn interrupt(&self, input: impl Into<NewInput>) -> InputId {
        self.hand_over(input.into(), InputWay::Interrupt, false).0
    }

    /// Starts a turn with a message if none runs, also where queued inputs wait; else it joins the running turn or is queued.
    pub fn submit(&self, input: impl Into<NewInput>, busy: WhenBusy) -> InputId {
        let way = match busy {
            WhenBusy::Steer => InputWay::Steer,
            WhenBusy::Queue => InputWay::Queue,
        };
        self.hand_over(input.into(), way, false).0
    }

    /// Sends from the queue now: the oldest input, or all of them, as [`SessionOptions::flush_mode`](crate::SessionOptions::flush_mode)
    /// says. They join the running turn; where none runs, they start one. Returns their ids.
    pub fn flush(&self) -> Vec<InputId> {
        let state = lock(&self.0.state);
        if state.closed {
            return Vec::new();
        }
        self.0.inputs.release();
        if state.idle.is_none() {
            return self.0.inputs.steer_queued(self.0.flush_mode);
        }
        let Some(claim) = self.0.inputs.claim_queued(self.0.flush_mode) else { return Vec::new() };
        let ids = claim.ids();
        self.begin(state, Job::without_handle(claim));
        ids
    }

    /// The inputs that wait, in the order in which they were handed over, with those of prompts that wait and those that a turn is
    /// delivering. A session that another process continues has them, too; prompts are queued inputs there.
    pub fn waiting(&self) -> Vec<WaitingInput> {
        self.0.inputs.waiting()
    }

    /// Replaces the text of an input that waits. What is not text of its message stays.
    ///
    /// # Errors
    /// It does not wait any more; the error says what became of it.
    pub fn edit(&self, id: &InputId, text: &str) -> Result<(), NotWaiting> {
        self.0.inputs.edit(id, text)
    }

    /// Removes an input that waits: it is not going to be delivered. A prompt of which nothing is left does not run.
    ///
    /// # Errors
    /// It does not wait any more; the error says what became of it.
    pub fn remove(&self, id: &InputId) -> Result<(), NotWaiting> {
        self.0.inputs.withdraw(id, Withdrawal::Removed).map(drop)
    }

    /// Takes an input that waits back, such as to an input line: it is not going to be delivered.
    ///
    /// # Errors
    /// It does not wait any more; the error says what became of it.
    pub fn take_back(&self, id: &InputId) -> Result<Message, NotWaiting> {
        let message = self.0.inputs.withdraw(id, Withdrawal::Returned)?;
        Ok(Message::clone(&message))
    }

    /// What became of an input. `None`: the session had none with this id, or has forgotten it; the last 4096 receipts are kept.
    pub fn receipt(&self, id: &InputId) -> Option<Receipt> {
        self.0.inputs.receipt(id)
    }

    /// Hands one input over. `behind`: it waits behind what is queued already, also where no turn runs. Returns its id, and whether it has
    /// started a turn.
    fn hand_over(&self, input: NewInput, way: InputWay, behind: bool) -> (InputId, bool) {
        let (id, message) = input.into_parts();
        // The id is needed whatever becomes of the message.
        let id = id.unwrap_or_else(|| self.0.inputs.new_id());
        let inputs = vec![(Some(id.clone()), message)];
        let state = lock(&self.0.state);
        if state.closed {
            self.0.inputs.refuse(inputs);
        } else if state.idle.is_none() || (behind && self.0.inputs.oldest_queued().is_some()) {
            self.0.inputs.wait(inputs, way);
        } else {
            // Nothing runs that could be interrupted.
            let way = if way == InputWay::Interrupt { InputWay::Steer } else { way };
            if let (_, Some(claim)) = self.0.inputs.start(inputs, way) {
                self.begin(state, Job::without_handle(claim));
                return (id, true);
            }
        }
        (id, false)
    }
}
