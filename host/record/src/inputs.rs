//! Messages that somebody has written, and inputs that wait, as records have them.

use flow::{InputId, InputWay, Message, Origin, Part, Role};

use super::{Author, InputQueued, MessagePayload, PartRecord, role};

/// The payload of a message that somebody has written.
pub(crate) fn message_payload(message: &Message) -> MessagePayload {
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
pub(crate) fn queued(id: &InputId, way: InputWay, message: &Message) -> InputQueued {
    let MessagePayload { text, role, hidden, author, parts, id: _ } = message_payload(message);
    let (id, way) = (id.as_str().to_owned(), way.as_str().to_owned());
    InputQueued { id, way, text, role, hidden, author, parts }
}

impl InputQueued {
    /// The message that waits.
    pub fn message(&self) -> MessagePayload {
        let Self { id, way: _, text, role, hidden, author, parts } = self.clone();
        MessagePayload { text, role, hidden, author, parts, id: Some(id) }
    }
}

impl MessagePayload {
    /// The message. The error is the key that is wrong.
    ///
    /// # Errors
    /// As [`MessageRecord::message`](super::MessageRecord::message).
    pub fn message(&self) -> Result<Message, &'static str> {
        let mut message = Message::text(role(&self.role)?, Origin::User, self.text.clone());
        message.origin = self.author.as_ref().map_or(Ok(Origin::User), Author::origin)?;
        message.hidden = self.hidden;
        if let Some(parts) = &self.parts {
            message.parts = parts.iter().map(PartRecord::part).collect::<Result<_, _>>()?;
        }
        Ok(message)
    }
}
