//! What a front end sends to a session: prompts, and messages that join the running turn or wait for its end.

use flow::InputWay;
use turn::CancellationToken;

use super::runner::{Job, Start};
use super::{Inbox, Input, NewInput, Sent, Session, WhenBusy, lock};
use crate::session::turn_handle::Turn;

/// Why a prompt without messages fails.
const NO_MESSAGES: &str = "the input has no messages: the model was not asked. Pass at least one message.";
/// The reason why a prompt with blank messages alone fails: providers refuse empty messages.
const BLANK: &str = "the input is blank: the model was not asked. Pass text or an image.";

impl Session {
    /// Asks the model. The turn starts at once, or when the turns before it are done, the queued inputs that were handed over before included;
    /// until then its messages are among [waiting](crate::input::Inbox::waiting). One without messages, or with blank ones alone, fails, and no turn runs. A prompt runs whether or not its
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
        if inputs.iter().all(|(_, message)| message.is_blank()) {
            return failed(Vec::new(), BLANK);
        }
        let mut state = lock(&self.0.state);
        if state.closed {
            let ids = self.0.handles.inputs.refuse(inputs);
            return Job::with_handle(0, Start::Continue, cancel, ids).1;
        }
        if state.idle.is_none() {
            let (ticket, ids) = self.0.handles.inputs.wait(inputs, InputWay::Prompt);
            let (job, turn) = Job::with_handle(ticket, Start::Prompt, cancel, ids);
            state.waiting.push_back(job);
            return turn;
        }
        let (ids, claim) = self.0.handles.inputs.start(inputs, InputWay::Prompt);
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
            Job::with_handle(self.0.handles.inputs.ticket(), Start::Continue, CancellationToken::new(), Vec::new());
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

    /// Sends a message: it starts a turn where none runs, and otherwise does what `busy` says. Its events reach
    /// [`Session::subscribe`]rs; for the events of one turn alone, see [`Session::prompt`].
    ///
    /// ```no_run
    /// # fn send(session: &tidegate::Session) {
    /// use tidegate::input::WhenBusy;
    ///
    /// session.send("Only in this file, please", WhenBusy::Steer);
    /// session.send("And then the tests", WhenBusy::Queue);
    /// session.send("Stop, that is the wrong branch", WhenBusy::Interrupt);
    /// # }
    /// ```
    ///
    /// A turn that is cancelled or fails before extensions have processed a message leaves it for the next turn. A closed session takes no
    /// message, and no session takes a blank one: its receipt is [`Receipt::Returned`](crate::input::Receipt::Returned).
    pub fn send(&self, input: impl Into<NewInput>, busy: WhenBusy) -> Sent {
        let way = match busy {
            WhenBusy::Steer => InputWay::Steer,
            WhenBusy::Queue => InputWay::Queue,
            WhenBusy::Interrupt => InputWay::Interrupt,
        };
        self.hand_over(input.into(), way, false)
    }

    /// The messages that wait, and what became of those that do not.
    pub fn inbox(&self) -> Inbox<'_> {
        Inbox::of(self)
    }

    /// Hands one input over. `behind`: it waits behind what is queued already, also where no turn runs.
    pub(super) fn hand_over(&self, input: NewInput, way: InputWay, behind: bool) -> Sent {
        let (id, message) = input.into_parts();
        // The id is needed whatever becomes of the message.
        let id = id.unwrap_or_else(|| self.0.handles.inputs.new_id());
        let is_blank = message.is_blank();
        let inputs = vec![(Some(id.clone()), message)];
        let state = lock(&self.0.state);
        if state.closed {
            self.0.handles.inputs.refuse(inputs);
        } else if is_blank {
            // With the id of another message, that one keeps its receipt.
            if self.0.handles.inputs.receipt(&id).is_none() {
                self.0.handles.inputs.refuse(inputs);
            }
        } else if state.idle.is_none() || (behind && self.0.handles.inputs.oldest_queued().is_some()) {
            self.0.handles.inputs.wait(inputs, way);
        } else {
            // Nothing runs that could be interrupted.
            let way = if way == InputWay::Interrupt { InputWay::Steer } else { way };
            if let (_, Some(claim)) = self.0.handles.inputs.start(inputs, way) {
                self.begin(state, Job::without_handle(claim));
                return Sent { id, started: true };
            }
        }
        Sent { id, started: false }
    }
}
