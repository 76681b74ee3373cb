//! Inputs that a turn delivers.

use std::sync::Arc;

use flow::{EventKind, InputId, InputWay, Message, Receipt, Withdrawal};

use super::Inputs;

/// Inputs that belong to a turn: nobody else can take, edit or withdraw them. Dropped before they are delivered, it leaves them as they were,
/// except that those of a prompt are given back: their caller learns that the turn did not run.
#[must_use = "dropping it leaves the inputs undelivered"]
pub struct Claim {
    inputs: Inputs,
    taken: Vec<(InputId, Arc<Message>)>,
}

/// How a delivery is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The inputs start the turn: `input_received`.
    Start,
    /// They join it: `steering_message`.
    Joining,
}

impl Claim {
    pub(super) fn new(inputs: &Inputs, taken: Vec<(InputId, Arc<Message>)>) -> Option<Self> {
        (!taken.is_empty()).then(|| Self { inputs: inputs.clone(), taken })
    }

    /// The ids of the inputs, in order.
    pub fn ids(&self) -> Vec<InputId> {
        self.taken.iter().map(|(id, _)| id.clone()).collect()
    }

    /// The messages, in order.
    pub(crate) fn messages(&self) -> Vec<Message> {
        self.taken.iter().map(|(_, message)| Message::clone(message)).collect()
    }

    /// Takes the inputs of another claim as well.
    pub(crate) fn join(&mut self, mut other: Self) {
        self.taken.append(&mut other.taken);
    }

    /// The inputs are delivered: that is reported, and their receipts say so.
    pub(crate) fn deliver(mut self, delivery: Delivery) {
        let mut state = self.inputs.lock();
        let hub = &self.inputs.0.hub;
        for (id, message) in self.taken.drain(..) {
            let (own, role, text) = (Some(id.clone()), message.role, message.plain_text());
            let hidden = message.hidden;
            let (seq, place) = hub.emit_at(match delivery {
                Delivery::Start => EventKind::InputReceived { id: own, message },
                Delivery::Joining => EventKind::SteeringMessage { id: own, role, text, hidden },
            });
            state.remove(&id, Receipt::Delivered { place, seq });
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let mut state = self.inputs.lock();
        let hub = &self.inputs.0.hub;
        let mut interrupts = false;
        for (id, _) in self.taken.drain(..) {
            let Some(entry) = state.entries.iter_mut().find(|entry| entry.id == id) else { continue };
            entry.taken = false;
            interrupts |= entry.way == InputWay::Interrupt;
            if entry.way == InputWay::Prompt {
                state.withdraw(&id, Withdrawal::Returned, hub);
            }
        }
        drop(state);
        if interrupts {
            self.inputs.0.interrupt();
        }
    }
}

impl std::fmt::Debug for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.taken.iter().map(|(id, _)| id)).finish()
    }
}
