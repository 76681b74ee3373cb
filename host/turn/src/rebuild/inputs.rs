//! What waits, and what became of other inputs, by the records of a thread.

use std::sync::Arc;

use flow::{InputId, InputWay, Receipt, Role, RunPosition, Withdrawal};

use record::{Body, InputEdited, InputQueued, InputWithdrawn, MessagePayload, Record};

use super::Resumed;
use crate::inputs::{WaitingInput, with_text};

/// The inputs that were delivered last, together, until a record shows that the turn has gone on with them. Extensions can have made more or
/// fewer messages of them, so they are in the conversation all together or not at all.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivering {
    inputs: Vec<WaitingInput>,
    /// How many messages the conversation had before.
    before: usize,
    /// A message of theirs has joined the conversation.
    have_joined: bool,
}

impl Delivering {
    /// The process ended here: the inputs wait again, and extensions get them once more. What was made of them leaves the conversation.
    pub(super) fn undo(&mut self, resumed: &mut Resumed) {
        let Self { inputs, before, .. } = std::mem::take(self);
        if inputs.is_empty() {
            return;
        }
        resumed.history.truncate(before);
        resumed.history_turns.truncate(before);
        resumed.receipts.retain(|(id, _)| !inputs.iter().any(|input| input.id == *id));
        resumed.waiting.retain(|known| !inputs.iter().any(|input| input.id == known.id));
        resumed.waiting_again = inputs.iter().map(|input| input.id.clone()).collect();
        resumed.waiting.splice(..0, inputs);
    }

    fn has(&self, id: &str) -> bool {
        self.inputs.iter().any(|input| input.id.as_str() == id)
    }

    fn add(&mut self, input: WaitingInput, resumed: &Resumed) {
        if self.have_joined || self.has(input.id.as_str()) {
            *self = Self::default();
        }
        if self.inputs.is_empty() {
            self.before = resumed.history.len();
        }
        self.inputs.push(input);
    }
}

/// Takes the next record of the thread.
///
/// # Errors
/// The key of the record whose value is not known.
pub(super) fn take(record: &Record, resumed: &mut Resumed, delivering: &mut Delivering) -> Result<(), &'static str> {
    if let Body::InputQueued(InputQueued { id, .. })
    | Body::InputEdited(InputEdited { id, .. })
    | Body::InputWithdrawn(InputWithdrawn { id, .. }) = &record.body
        && delivering.has(id)
    {
        // Another process has it.
        delivering.undo(resumed);
    }
    match &record.body {
        Body::InputQueued(queued) => wait(queued, resumed)?,
        Body::InputEdited(edited) => {
            if let Some(input) = resumed.waiting.iter_mut().find(|input| input.id.as_str() == edited.id) {
                input.message = Arc::new(with_text(&input.message, &edited.text));
            }
        }
        Body::InputWithdrawn(withdrawn) => {
            let receipt = Withdrawal::from_word(&withdrawn.receipt).ok_or("receipt")?;
            end(&withdrawn.id, receipt.into(), resumed);
        }
        Body::InputReceived(message) | Body::SteeringMessage(message) => {
            let place = RunPosition { turn: record.turn, step: record.step, attempt: record.attempt };
            let receipt = Receipt::Delivered { place, seq: record.event.unwrap_or(record.seq) };
            if let Some(id) = &message.id {
                let waited = resumed.waiting.iter().find(|input| input.id.as_str() == id).cloned();
                let input = match waited {
                    Some(waited) => waited,
                    None => input(id, InputWay::Queue, message)?,
                };
                delivering.add(input, resumed);
                end(id, receipt, resumed);
            }
        }
        Body::CognitionIn(message) => delivering.have_joined |= message.role != Role::System.as_str(),
        // The turn goes on with them, or has ended. A process that has them again says so before it begins a turn.
        Body::StepStart(_)
        | Body::CognitionOut(_)
        | Body::ContextCompactionStart(_)
        | Body::LimitEscalationRequested(_)
        | Body::HistoryReplaced(_)
        | Body::TurnFinish(_)
        | Body::ThreadResumed(_)
        | Body::TurnStart(_) => *delivering = Delivering::default(),
        // Whatever else is reported meanwhile.
        _ => {}
    }
    Ok(())
}

/// An input as its record has it.
fn input(id: &str, way: InputWay, from: &MessagePayload) -> Result<WaitingInput, &'static str> {
    let message = from.message()?;
    Ok(WaitingInput { id: InputId::new(id), way, message: Arc::new(message), is_taken: false })
}

fn wait(queued: &InputQueued, resumed: &mut Resumed) -> Result<(), &'static str> {
    let way = match InputWay::from_word(&queued.way).ok_or("way")? {
        InputWay::Prompt => InputWay::Queue,
        way => way,
    };
    let input = input(&queued.id, way, &queued.message())?;
    let id = known(&queued.id, resumed);
    // It was returned before, and is handed over again.
    resumed.receipts.retain(|(known, _)| *known != id);
    resumed.waiting_again.retain(|known| *known != id);
    match resumed.waiting.iter_mut().find(|known| known.id == id) {
        Some(known) => *known = input,
        None => resumed.waiting.push(input),
    }
    Ok(())
}

fn end(id: &str, receipt: Receipt, resumed: &mut Resumed) {
    let id = known(id, resumed);
    resumed.waiting_again.retain(|known| *known != id);
    resumed.waiting.retain(|input| input.id != id);
    resumed.receipts.retain(|(known, _)| *known != id);
    resumed.receipts.push((id, receipt));
}

/// The id of an input; those that the session has made are counted.
fn known(id: &str, resumed: &mut Resumed) -> InputId {
    let number = id.strip_prefix("input-").and_then(|number| number.parse().ok());
    resumed.made_inputs = resumed.made_inputs.max(number.unwrap_or(0));
    InputId::new(id)
}
