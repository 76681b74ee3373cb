//! The inputs of a session that wait: their one owner, from the moment they are handed over until they are delivered or withdrawn.
//!
//! Whatever happens to an input happens under one lock, its event included: an input is edited, removed or taken for delivery, and never
//! two of them. A turn *claims* inputs, has extensions process them, and then *delivers* them. A claim that is dropped before, because the
//! turn was cancelled or has failed, leaves them as they were.

mod claim;
mod held;
mod receipts;
mod state;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::{EventKind, InputId, InputWay, Message, Receipt, Withdrawal};
use tokio::sync::Notify;

pub use self::claim::Claim;
pub(crate) use self::claim::Delivery;
pub use self::receipts::RECEIPTS_KEPT;
pub use self::state::WaitingInput;
pub(crate) use self::state::with_text;
use self::state::{Entry, State};
use crate::events::Hub;
use crate::rebuild::Resumed;
use flow::ports::EventSink;

/// The inputs of a session that wait. A clone is the same inputs.
#[derive(Clone)]
pub struct Inputs(Arc<Shared>);

struct Shared {
    hub: Arc<Hub>,
    state: Mutex<State>,
    /// Notified when an input waits that interrupts.
    interrupts: Notify,
    /// How often that was, so that who is busy needs not poll.
    interrupted: AtomicU64,
}

impl Shared {
    /// An input waits that interrupts.
    fn interrupt(&self) {
        self.interrupts.notify_waiters();
        // Only now: who sees the new number finds the notification.
        self.interrupted.fetch_add(1, Ordering::Release);
    }
}

/// The input does not wait: it was delivered, is being delivered, was removed or returned, or there is none with this id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the input `{id}` does not wait: {}", why(*receipt))]
#[non_exhaustive]
pub struct NotWaiting {
    /// The id that was asked for.
    pub id: InputId,
    /// What became of it; `None`: it is not known. [`Receipt::Queued`]: a turn is delivering it, and it waits again if the turn ends before.
    pub receipt: Option<Receipt>,
}

/// The text of an input was not replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputEditError {
    /// It does not wait.
    #[error(transparent)]
    NotWaiting(#[from] NotWaiting),
    /// Nothing would be left of its message. It stays as it is.
    #[error("the new text of the input `{id}` is blank, and it has nothing else: give it a text, or remove it")]
    Blank {
        /// The id that was asked for.
        id: InputId,
    },
}

fn why(receipt: Option<Receipt>) -> String {
    match receipt {
        None => "the session has no input with this id, or has forgotten it".to_owned(),
        Some(Receipt::Queued) => "it is being delivered".to_owned(),
        Some(Receipt::Delivered { place, .. }) => format!("it was delivered in turn {}", place.turn),
        Some(Receipt::Removed) => "it was removed".to_owned(),
        Some(Receipt::Returned) => "it was given back".to_owned(),
    }
}

/// How many inputs a turn is started with from the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlushMode {
    /// One input for each turn.
    #[default]
    Sequential,
    /// All queued inputs at once, as one input of several messages.
    Batched,
}

/// Orders what starts turns: the lower is older. Inputs that were handed over together have the same.
pub type Ticket = u64;

impl Inputs {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self(Arc::new(Shared {
            hub,
            state: Mutex::default(),
            interrupts: Notify::new(),
            interrupted: AtomicU64::new(0),
        }))
    }

    /// Puts inputs at the end of those that wait. One whose id is known already is not taken a second time. Returns their ids.
    pub fn wait(&self, inputs: Vec<(Option<InputId>, Message)>, way: InputWay) -> (Ticket, Vec<InputId>) {
        let mut state = self.lock();
        let (ticket, ids) = state.add(inputs, way);
        state.announce(&self.0.hub);
        drop(state);
        if way == InputWay::Interrupt {
            self.0.interrupt();
        }
        (ticket, ids)
    }

    /// Claims inputs for a turn that starts at once. Those of a prompt never wait; any other is reported as one that waits first, so that it is
    /// not lost where the process ends before it is delivered. `None`: their ids are known already.
    pub fn start(&self, inputs: Vec<(Option<InputId>, Message)>, way: InputWay) -> (Vec<InputId>, Option<Claim>) {
        let mut state = self.lock();
        let (ticket, ids) = state.add(inputs, way);
        if way != InputWay::Prompt {
            state.announce(&self.0.hub);
        }
        // What a turn before has left undelivered goes with an input that joins turns.
        let taken = state.take(|entry| entry.ticket == ticket || (way.joins_turn() && entry.joins_turn()));
        drop(state);
        (ids, Claim::new(self, taken))
    }

    /// Marks inputs as returned that the session does not take, because it is closed. No event reports it.
    pub fn refuse(&self, inputs: Vec<(Option<InputId>, Message)>) -> Vec<InputId> {
        let mut state = self.lock();
        let ids: Vec<InputId> = inputs.into_iter().map(|(id, _)| state.name(id)).collect();
        ids.iter().for_each(|id| state.receipts.keep_first(id, Receipt::Returned));
        ids
    }

    /// A new id for an input.
    pub fn new_id(&self) -> InputId {
        self.lock().name(None)
    }

    /// A number for something else that starts a turn, in the order of the inputs.
    pub fn ticket(&self) -> Ticket {
        self.lock().ticket()
    }

    /// The inputs that wait, in the order in which they were handed over, those that a turn is delivering included.
    pub fn waiting(&self) -> Vec<WaitingInput> {
        self.lock().waiting()
    }

    /// What became of an input. `None`: there is none with this id, or it was forgotten: the last 4096 are known.
    pub fn receipt(&self, id: &InputId) -> Option<Receipt> {
        self.lock().receipt(id)
    }

    /// Replaces the text of an input that waits. What is not text of its message stays.
    ///
    /// # Errors
    /// It does not wait, or nothing would be left of it.
    pub fn edit(&self, id: &InputId, text: &str) -> Result<(), InputEditError> {
        let mut state = self.lock();
        let entry = state.find(id)?;
        let edited = with_text(&entry.message, text);
        if edited.is_blank() {
            return Err(InputEditError::Blank { id: id.clone() });
        }
        entry.message = Arc::new(edited);
        let (text, hidden) = (text.to_owned(), entry.message.hidden);
        self.0.hub.emit(EventKind::InputEdited { id: id.clone(), text, hidden });
        Ok(())
    }

    /// Withdraws an input that waits, and returns its message.
    ///
    /// # Errors
    /// It does not wait.
    pub fn withdraw(&self, id: &InputId, receipt: Withdrawal) -> Result<Arc<Message>, NotWaiting> {
        let mut state = self.lock();
        state.find(id)?;
        let message = state.withdraw(id, receipt, &self.0.hub);
        message.ok_or_else(|| NotWaiting { id: id.clone(), receipt: None })
    }

    /// Gives the inputs of a prompt back to its caller: it is not going to run. Those that a turn is delivering stay.
    pub fn give_back(&self, ticket: Ticket) {
        let mut state = self.lock();
        for id in state.ids(|entry| entry.ticket == ticket && !entry.taken) {
            state.withdraw(&id, Withdrawal::Returned, &self.0.hub);
        }
    }

    /// Delivers inputs of the queue to the running turn instead: the oldest, or all of them. Returns their ids.
    pub fn steer_queued(&self, mode: FlushMode) -> Vec<InputId> {
        let mut state = self.lock();
        let ids = state.queued(mode);
        for id in &ids {
            if let Ok(entry) = state.find(id) {
                (entry.way, entry.announced) = (InputWay::Steer, false);
            }
        }
        state.announce(&self.0.hub);
        ids
    }

    /// The oldest input of the queue, as what starts a turn.
    pub fn oldest_queued(&self) -> Option<Ticket> {
        self.lock().oldest(|way| way == InputWay::Queue)
    }

    /// Claims inputs of the queue for a turn: the oldest, or all of them.
    pub fn claim_queued(&self, mode: FlushMode) -> Option<Claim> {
        let mut state = self.lock();
        let ids = state.queued(mode);
        let taken = state.take(|entry| ids.contains(&entry.id));
        drop(state);
        Claim::new(self, taken)
    }

    /// Claims the inputs of a prompt that waited. `None`: all of them were removed.
    pub fn claim_prompt(&self, ticket: Ticket) -> Option<Claim> {
        let taken = self.lock().take(|entry| entry.ticket == ticket && entry.way == InputWay::Prompt);
        Claim::new(self, taken)
    }

    /// Claims the inputs that join the running turn.
    pub fn claim_steering(&self) -> Option<Claim> {
        let taken = self.lock().take(Entry::joins_turn);
        Claim::new(self, taken)
    }

    /// Claims the inputs that join the running turn as soon as one of them interrupts. It is cancel-safe.
    pub(crate) async fn interrupting(&self) -> Claim {
        self.interrupted(Self::claim_interrupt).await
    }

    /// How often an input was handed over that interrupts. While it is the same, [`Inputs::interrupting`] that was polled is not ready.
    pub(crate) fn times_interrupted(&self) -> u64 {
        self.0.interrupted.load(Ordering::Acquire)
    }

    /// Waits until an input interrupts, without claiming it.
    pub(crate) async fn interrupt_waits(&self) {
        self.interrupted(|inputs| inputs.lock().oldest(|way| way == InputWay::Interrupt)).await;
    }

    /// What `look` finds, as soon as it finds something. It looks whenever an input interrupts.
    async fn interrupted<T>(&self, look: impl Fn(&Self) -> Option<T>) -> T {
        loop {
            // Registered before the look, so that nothing is missed between the two.
            let mut notified = std::pin::pin!(self.0.interrupts.notified());
            notified.as_mut().enable();
            if let Some(found) = look(self) {
                return found;
            }
            notified.await;
        }
    }

    fn claim_interrupt(&self) -> Option<Claim> {
        let mut state = self.lock();
        state.oldest(|way| way == InputWay::Interrupt)?;
        let taken = state.take(Entry::joins_turn);
        drop(state);
        Claim::new(self, taken)
    }

    /// No input is taken any more, and none is edited or withdrawn: what waits is left for another process.
    pub fn close(&self) {
        self.lock().closed = true;
    }

    /// Puts the inputs of an earlier process in place, with what became of the others.
    pub(crate) fn restore(&self, resumed: &Resumed) {
        let mut state = self.lock();
        state.receipts.continue_after(resumed.made_inputs);
        for (id, receipt) in &resumed.receipts {
            state.receipts.keep_first(id, *receipt);
        }
        for WaitingInput { id, way, message, .. } in resumed.waiting.clone() {
            let ticket = state.ticket();
            state.entries.push_back(Entry { id, way, message, ticket, taken: false, announced: true, held: false });
        }
        state.again.clone_from(&resumed.waiting_again);
    }

    /// Reports the inputs that an earlier process has reported as delivered, and that wait again. The next turn does that too: call it as
    /// soon as somebody follows the events.
    pub fn report_again(&self) {
        let mut state = self.lock();
        for id in std::mem::take(&mut state.again) {
            if let Some(entry) = state.entries.iter().find(|entry| entry.id == id) {
                let (way, message) = (entry.way, Arc::clone(&entry.message));
                self.0.hub.emit(EventKind::InputQueued { id, way, message });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The data are valid after every statement, so a panic elsewhere does not matter.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs").field("waiting", &self.waiting().len()).finish_non_exhaustive()
    }
}
