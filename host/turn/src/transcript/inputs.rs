//! Records of messages and inputs, and what waits and what became of the rest, rebuilt from them.

use std::sync::Arc;

use flow::{InputId, InputWay, Message, Origin, Part, Receipt, Role, RunPosition, Withdrawal};

use super::message::role;
use super::{Author, Body, InputQueued, MessagePayload, PartRecord, Record, Resumed};
use crate::inputs::{WaitingInput, with_text};

/// Takes the next record of the thread. Records of other types change nothing.
///
/// # Errors
/// The key of the record whose value is not known.
pub(super) fn take(record: &Record, resumed: &mut Resumed) -> Result<(), &'static str> {
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
            message.id.iter().for_each(|id| end(id, receipt, resumed));
        }
        _ => {}
    }
    Ok(())
}

fn wait(queued: &InputQueued, resumed: &mut Resumed) -> Result<(), &'static str> {
    let way = match InputWay::from_word(&queued.way).ok_or("way")? {
        InputWay::Prompt => InputWay::Queue,
        way => way,
    };
    let mut message = Message::text(role(&queued.role)?, Origin::User, queued.text.clone());
    message.origin = queued.author.as_ref().map_or(Ok(Origin::User), Author::origin)?;
    message.hidden = queued.hidden;
    if let Some(parts) = &queued.parts {
        message.parts = parts.iter().map(PartRecord::part).collect::<Result<_, _>>()?;
    }
    let id = known(&queued.id, resumed);
    let input = WaitingInput { id: id.clone(), way, message: Arc::new(message), is_taken: false };
    match resumed.waiting.iter_mut().find(|known| known.id == id) {
        Some(known) => *known = input,
        None => resumed.waiting.push(input),
    }
    Ok(())
}

fn end(id: &str, receipt: Receipt, resumed: &mut Resumed) {
    let id = known(id, resumed);
    resumed.waiting.retain(|input| input.id != id);
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
