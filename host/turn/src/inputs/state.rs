//! What waits, as data: the list of entries and the steps that change it.

use std::collections::VecDeque;
use std::sync::Arc;

use flow::{EventKind, InputId, InputWay, Message, Part, Receipt, Withdrawal};

use super::receipts::Receipts;
use super::{FlushMode, NotWaiting, Ticket};
use crate::events::Hub;
use flow::ports::EventSink;

/// An input that waits.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WaitingInput {
    /// Its id, as in events.
    pub id: InputId,
    /// How it is going to be delivered.
    pub way: InputWay,
    /// The message as it is now.
    pub message: Arc<Message>,
    /// A turn is delivering it: it cannot be edited or withdrawn, and it waits again if the turn ends before.
    pub is_taken: bool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// What waits, oldest first.
    pub(super) entries: VecDeque<Entry>,
    pub(super) receipts: Receipts,
    pub(super) closed: bool,
    /// Those that were reported as delivered and wait again, until that is reported.
    pub(super) again: Vec<InputId>,
    tickets: Ticket,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: InputId,
    pub(super) way: InputWay,
    pub(super) message: Arc<Message>,
    pub(super) ticket: Ticket,
    /// It belongs to a claim.
    pub(super) taken: bool,
    /// An event has reported that it waits in this way.
    pub(super) announced: bool,
    /// Nothing takes it on its own.
    pub(super) held: bool,
}

impl Entry {
    /// Whether the running turn takes it on its own.
    pub(super) fn joins_turn(&self) -> bool {
        self.way.joins_turn() && !self.held
    }
}

impl State {
    pub(super) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        self.tickets
    }

    /// The id of an input that was given, or a new one.
    pub(super) fn name(&mut self, given: Option<InputId>) -> InputId {
        given.unwrap_or_else(|| {
            loop {
                let id = self.receipts.next_id();
                if self.receipt(&id).is_none() {
                    return id;
                }
            }
        })
    }

    pub(super) fn add(&mut self, inputs: Vec<(Option<InputId>, Message)>, way: InputWay) -> (Ticket, Vec<InputId>) {
        let ticket = self.ticket();
        let mut ids = Vec::with_capacity(inputs.len());
        for (given, message) in inputs {
            let id = self.name(given);
            let is_new = match self.receipt(&id) {
                None => true,
                Some(Receipt::Returned) => {
                    self.receipts.forget(&id);
                    true
                }
                Some(Receipt::Queued | Receipt::Delivered { .. } | Receipt::Removed) => false,
            };
            if is_new {
                let (id, message) = (id.clone(), Arc::new(message));
                self.entries.push_back(Entry { id, way, message, ticket, taken: false, announced: false, held: false });
            }
            ids.push(id);
        }
        (ticket, ids)
    }

    /// Reports what waits and was not reported.
    pub(super) fn announce(&mut self, hub: &Hub) {
        for entry in self.entries.iter_mut().filter(|entry| !entry.announced && !entry.taken) {
            entry.announced = true;
            let (id, message) = (entry.id.clone(), Arc::clone(&entry.message));
            hub.emit(EventKind::InputQueued { id, way: entry.way, message });
        }
    }

    pub(super) fn waiting(&self) -> Vec<WaitingInput> {
        let waiting = self.entries.iter().filter(|entry| entry.announced);
        let waiting = waiting.map(|entry| {
            let (id, message) = (entry.id.clone(), Arc::clone(&entry.message));
            WaitingInput { id, way: entry.way, message, is_taken: entry.taken }
        });
        waiting.collect()
    }

    pub(super) fn receipt(&self, id: &InputId) -> Option<Receipt> {
        let waits = self.entries.iter().any(|entry| entry.id == *id);
        if waits { Some(Receipt::Queued) } else { self.receipts.get(id) }
    }

    /// The entry of an input that can be changed.
    pub(super) fn find(&mut self, id: &InputId) -> Result<&mut Entry, NotWaiting> {
        let receipt = self.receipt(id);
        let closed = self.closed;
        let entry = self.entries.iter_mut().find(|entry| entry.id == *id && !entry.taken && !closed);
        entry.ok_or_else(|| NotWaiting { id: id.clone(), receipt })
    }

    pub(super) fn ids(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<InputId> {
        self.entries.iter().filter(|entry| wanted(entry)).map(|entry| entry.id.clone()).collect()
    }

    /// The inputs of the queue that start a turn together.
    pub(super) fn queued(&self, mode: FlushMode) -> Vec<InputId> {
        let mut ids = self.ids(|entry| entry.way == InputWay::Queue && !entry.taken && !entry.held);
        if mode == FlushMode::Sequential {
            ids.truncate(1);
        }
        ids
    }

    pub(super) fn oldest(&self, wanted: impl Fn(InputWay) -> bool) -> Option<Ticket> {
        let is_free = |entry: &&Entry| !entry.taken && !entry.held;
        self.entries.iter().filter(is_free).find(|entry| wanted(entry.way)).map(|entry| entry.ticket)
    }

    /// Claims entries; returns their ids and messages.
    pub(super) fn take(&mut self, wanted: impl Fn(&Entry) -> bool) -> Vec<(InputId, Arc<Message>)> {
        let taken = self.entries.iter_mut().filter(|entry| !entry.taken && wanted(entry));
        let taken = taken.map(|entry| {
            entry.taken = true;
            (entry.id.clone(), Arc::clone(&entry.message))
        });
        taken.collect()
    }

    /// Removes an entry, and reports it.
    pub(super) fn withdraw(&mut self, id: &InputId, receipt: Withdrawal, hub: &Hub) -> Option<Arc<Message>> {
        let entry = self.remove(id, receipt.into())?;
        hub.emit(EventKind::InputWithdrawn { id: entry.id, receipt });
        Some(entry.message)
    }

    /// Removes an entry, whatever its state.
    pub(super) fn remove(&mut self, id: &InputId, receipt: Receipt) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.id == *id)?;
        self.receipts.keep_first(id, receipt);
        self.entries.remove(at)
    }
}

/// The message with `text` in the place of its text; what is not text stays.
pub(crate) fn with_text(message: &Message, text: &str) -> Message {
    let is_text = |part: &Part| matches!(part, Part::Text(_));
    let at = message.parts.iter().position(is_text).unwrap_or(0);
    let mut parts: Vec<Part> = message.parts.iter().filter(|part| !is_text(part)).cloned().collect();
    parts.insert(at.min(parts.len()), Part::Text(text.to_owned()));
    Message { parts, ..message.clone() }
}
