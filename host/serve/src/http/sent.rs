//! The messages that front ends have handed over: an id names one message, however often it is sent.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;

use axum::http::StatusCode;
use chat::{Attachment, Command, Outgoing, OutgoingId};
use tidegate::input::RECEIPTS_KEPT;
use tidegate::message::Image;

use super::bodies::check_id;
use super::problem::Problem;

/// The content of messages by their ids, as digests. The oldest go first; those from before the session was opened are not known.
#[derive(Debug, Default)]
pub(super) struct SentMessages {
    digests: HashMap<OutgoingId, u64>,
    order: VecDeque<OutgoingId>,
    digest: RandomState,
}

impl SentMessages {
    /// Checks that no message has the id of another one: of the same command, or of those before for which `counts` returns true.
    ///
    /// # Errors
    /// A message has the id of another one.
    pub(super) fn check(&self, messages: &[Outgoing], counts: impl Fn(&Outgoing) -> bool) -> Result<(), Problem> {
        let mut own = HashMap::new();
        for message in messages {
            let digest = self.digest(message);
            let other = self.digests.get(&message.id).filter(|before| **before != digest && counts(message));
            if other.is_some() || own.insert(&message.id, digest).is_some_and(|before| before != digest) {
                let id = message.id.as_str();
                let why = format!(
                    "the id `{id}` is that of another message, with other content: give each message an id of its own, and \
                     change one that waits with `edit`"
                );
                return Err(Problem::new(StatusCode::CONFLICT, "id_in_use", why));
            }
        }
        Ok(())
    }

    /// Remembers messages that the session has taken.
    pub(super) fn note(&mut self, messages: &[Outgoing]) {
        for message in messages {
            let digest = self.digest(message);
            if self.digests.insert(message.id.clone(), digest).is_none() {
                self.order.push_back(message.id.clone());
            }
        }
        while self.order.len() > RECEIPTS_KEPT {
            if let Some(oldest) = self.order.pop_front() {
                self.digests.remove(&oldest);
            }
        }
    }

    fn digest(&self, message: &Outgoing) -> u64 {
        let attached = message.attachments.iter().map(|one| (&*one.name, &*one.media_type, &*one.source));
        self.digest.hash_one((&*message.text, attached.collect::<Vec<_>>()))
    }
}

/// Checks a message of a client.
///
/// # Errors
/// It is blank, its id is invalid, or an attachment is neither an address nor an image that models accept.
pub(super) fn check_message(message: &Outgoing) -> Result<(), Problem> {
    if chat::is_blank(&message.text) && message.attachments.is_empty() {
        let why = format!("the message `{}` is blank: give it a text or an attachment", message.id.as_str());
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_message", why));
    }
    check_content(message)
}

/// Checks a message whose text can be blank, because the session has its attachments.
///
/// # Errors
/// Its id is invalid, or an attachment is neither an address nor an image that models accept.
pub(super) fn check_content(message: &Outgoing) -> Result<(), Problem> {
    check_id(message.id.as_str())?;
    let refused = |why| Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_message", why));
    for Attachment { name, media_type, source, .. } in message.attachments.iter().filter(|one| !one.is_address()) {
        if let Err(error) = Image::new(media_type, &**source) {
            return refused(format!(
                "the attachment `{name}` is no image that can be sent: {error}. Attach images in base64, or the address of a \
                 file, and put text into the text of the message"
            ));
        }
    }
    Ok(())
}

/// The messages that a command hands over.
pub(super) fn messages_of(command: &Command) -> &[Outgoing] {
    match command {
        Command::Prompt { messages } => messages,
        Command::Steer { message } | Command::Interrupt { message } | Command::Queue { message } => {
            std::slice::from_ref(message)
        }
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, text: &str) -> Outgoing {
        Outgoing::new(OutgoingId::new(id), text, Vec::new())
    }

    #[test]
    fn an_id_is_that_of_one_message() {
        let mut sent = SentMessages::default();
        sent.note(&[message("a", "one")]);
        let file = Attachment::new("n", "image/png", "AA==");
        let with_file = Outgoing::new(OutgoingId::new("a"), "one", vec![file]);
        for (messages, is_known, expected) in [
            (vec![message("a", "one")], true, true),
            (vec![message("a", "two")], true, false),
            (vec![with_file], true, false),
            // The session has given it back, or never had it.
            (vec![message("a", "two")], false, true),
            (vec![message("b", "one")], true, true),
            (vec![message("b", "one"), message("b", "one")], false, true),
            (vec![message("b", "one"), message("c", "x"), message("b", "two")], false, false),
            (vec![message("b", "one"), message("a", "two")], true, false),
        ] {
            assert_eq!(sent.check(&messages, |_| is_known).is_ok(), expected, "{messages:?}, {is_known}");
        }
    }

    #[test]
    fn a_message_has_a_text_or_an_attachment_that_can_be_sent() {
        let file = |name, media_type, source| vec![Attachment::new(name, media_type, source)];
        for (text, attachments, expected) in [
            ("Hello", Vec::new(), ""),
            ("", file("dot.png", "image/png", "iVBORw=="), ""),
            ("", file("b.pdf", "application/pdf", "https://example.com/b.pdf"), ""),
            ("", Vec::new(), "the message `m` is blank: give it a text or an attachment"),
            (" \n\u{3000}", Vec::new(), "is blank"),
            ("\u{200b}\u{feff}", Vec::new(), "is blank"),
            (
                "x",
                file("a.txt", "text/plain", "SGVsbG8="),
                "the attachment `a.txt` is no image that can be sent: an image of the type",
            ),
            ("x", file("a.txt", "text/plain", "SGVsbG8="), "put text into the text of the message"),
            ("x", file("dot.png", "image/png", "SGVsbG8="), "no image of the type image/png"),
            ("x", file("dot.png", "image/png", "?"), "not base64"),
        ] {
            let message = Outgoing::new(OutgoingId::new("m"), text, attachments);
            let found = check_message(&message).err();
            let why = found.as_ref().map_or("", Problem::detail);
            assert!(found.is_some() != expected.is_empty() && why.contains(expected), "{message:?}: {why}");
        }
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut sent = SentMessages::default();
        for number in 0..RECEIPTS_KEPT + 5 {
            sent.note(&[message(&number.to_string(), "one")]);
        }
        assert_eq!((sent.digests.len(), sent.order.len()), (RECEIPTS_KEPT, RECEIPTS_KEPT));
        assert!(sent.check(&[message("4", "two")], |_| true).is_ok());
        assert!(sent.check(&[message("5", "two")], |_| true).is_err());
    }
}
