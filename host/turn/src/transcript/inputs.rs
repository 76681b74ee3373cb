//! Records of messages and inputs, and what waits and what became of the rest, rebuilt from them.

use std::sync::Arc;

use flow::{InputId, InputWay, Message, Origin, Part, Receipt, Role, RunPosition, Withdrawal};

use super::message::role;
use super::{Author, Body, InputEdited, InputQueued, InputWithdrawn, MessagePayload, PartRecord, Record, Resumed};
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
    let mut message = Message::text(role(&from.role)?, Origin::User, from.text.clone());
    message.origin = from.author.as_ref().map_or(Ok(Origin::User), Author::origin)?;
    message.hidden = from.hidden;
    if let Some(parts) = &from.parts {
        message.parts = parts.iter().map(PartRecord::part).collect::<Result<_, _>>()?;
    }
    Ok(WaitingInput { id: InputId::new(id), way, message: Arc::new(message), is_taken: false })
}

fn wait(queued: &InputQueued, resumed: &mut Resumed) -> Result<(), &'static str> {
    let way = match InputWay::from_word(&queued.way).ok_or("way")? {
        InputWay::Prompt => InputWay::Queue,
        way => way,
    };
    let InputQueued { id, way: _, text, role, hidden, author, parts } = queued.clone();
    let input = input(&queued.id, way, &MessagePayload { text, role, hidden, author, parts, id: Some(id) })?;
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

/// The payload of a message that somebody has written.
pub(super) fn message_payload(message: &Message) -> MessagePayload {
    let texts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
        .collect();
    let plain = message.parts.len() == 1 && texts.len() == 1;
    MessagePayload {
        text: texts.join(if message.role == Role::System { "\n\n" } else { "" }),
        role: message.role.as_str().to_owned(),
        hidden: message.hidden,
        author: (message.origin != Origin::User).then(|| Author::of(&message.origin)),
        parts: (!plain).then(|| message.parts.iter().map(PartRecord::of).collect()),
        id: None,
    }
}

/// The payload of an input that waits.
pub(super) fn queued(id: &InputId, way: InputWay, message: &Message) -> InputQueued {
    let MessagePayload { text, role, hidden, author, parts, id: _ } = message_payload(message);
    let (id, way) = (id.as_str().to_owned(), way.as_str().to_owned());
    InputQueued { id, way, text, role, hidden, author, parts }
}
