//! What the user has said since the last answer goes through `on_input_messages`.

use std::collections::{BTreeSet, HashMap};

use flow::{Message, Origin, Part as Content, Role};
use guard::input::{self, Input};

use super::{Stage, Stop, note};
use crate::conversation::{Author, Conversation, Message as Said, Part};
use crate::json::Node;
use crate::memory::{About, Note};

/// A text of the user.
#[derive(Clone, Debug)]
struct Text<'b> {
    at: &'b Node,
    /// The number of its message, and that of its block in it.
    place: (usize, usize),
    text: String,
    /// How many of the texts before it are the same: it can be said again.
    number: String,
}

impl<'b> Stage<'_, 'b> {
    pub(super) async fn input(&mut self, conversation: &Conversation<'b>) -> Result<(), Stop> {
        let first_new = conversation.first_new();
        let (mut new, mut removed) = (Vec::new(), BTreeSet::new());
        for one in self.texts(conversation) {
            match self.known(About::Input, &[&one.number, &one.text]) {
                Some(Note::Passes(false)) => drop(removed.insert(one.place)),
                Some(note) => self.apply(one.at, &note),
                None if one.place.0 >= first_new => new.push(one),
                // What no note is about is history.
                None => {}
            }
        }
        let given = messages(&new);
        if !given.is_empty() {
            let (made, stop) = match input::run(self.caller, given.clone()).await? {
                Input::Ask(made) => (made, None),
                Input::Reply { messages, text, .. } => (messages, Some(Stop::Reply(text))),
                Input::Reject { by, reason } => {
                    return Err(Stop::rejected(&by, &reason));
                }
            };
            if made.is_empty() {
                return Err(Stop::Refused("the extensions dropped the input".to_owned()));
            }
            for (one, note) in new.iter().zip(spread(&given, &made)) {
                match self.noted(About::Input, &[&one.number, &one.text], note) {
                    Note::Passes(false) => drop(removed.insert(one.place)),
                    note => self.apply(one.at, &note),
                }
            }
            if let Some(stop) = stop {
                return Err(stop);
            }
        }
        self.remove(conversation, &removed)
    }

    fn texts(&self, conversation: &Conversation<'b>) -> Vec<Text<'b>> {
        let (mut texts, mut times) = (Vec::new(), HashMap::<String, u32>::new());
        for (number, message) in conversation.messages.iter().enumerate() {
            if message.author != Author::User {
                continue;
            }
            for part in &message.parts {
                let Part::Text { at, block } = part else { continue };
                let text = self.doc.text(at).unwrap_or_default();
                let times = times.entry(text.clone()).or_default();
                texts.push(Text { at, place: (number, *block), text, number: times.to_string() });
                *times += 1;
            }
        }
        texts
    }

    /// Removes texts that extensions have dropped, and messages of which nothing is left.
    fn remove(&mut self, conversation: &Conversation<'b>, removed: &BTreeSet<(usize, usize)>) -> Result<(), Stop> {
        let mut gone = BTreeSet::new();
        for (number, message) in conversation.messages.iter().enumerate() {
            let blocks: BTreeSet<usize> =
                removed.iter().filter(|(of, _)| *of == number).map(|(_, block)| *block).collect();
            if blocks.is_empty() {
                continue;
            }
            let Said { content, .. } = message;
            match content {
                Some(list) if blocks.len() < list.items().len() => self.edits.remove(list, &blocks),
                _ => drop(gone.insert(number)),
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        match conversation.list() {
            Some(list) if gone.len() < list.items().len() => self.edits.remove(list, &gone),
            _ => return Err(Stop::Refused("the extensions dropped the input".to_owned())),
        }
        Ok(())
    }
}

/// The texts as messages, one for each message of the client.
fn messages(texts: &[Text<'_>]) -> Vec<Message> {
    let same = |one: &Text<'_>, other: &Text<'_>| one.place.0 == other.place.0;
    let message = |texts: &[Text<'_>]| Message {
        role: Role::User,
        origin: Origin::User,
        parts: texts.iter().map(|one| Content::Text(one.text.clone())).collect(),
        hidden: false,
    };
    texts.chunk_by(same).map(message).collect()
}

/// What becomes of each text of the messages `given`. Where the texts of a message are other ones in number, all of what it has become is in the
/// place of its first; so are messages that were added behind the last.
fn spread(given: &[Message], made: &[Message]) -> Vec<Note> {
    let mut notes = Vec::new();
    for (number, before) in given.iter().enumerate() {
        let is_last = number + 1 == given.len();
        let after: &[Message] = match made.get(number..) {
            Some(rest) if is_last => rest,
            Some([first, ..]) => std::slice::from_ref(first),
            _ => &[],
        };
        let (before, after) = (texts(before), after.iter().flat_map(texts).collect::<Vec<_>>());
        if before.len() == after.len() {
            notes.extend(before.iter().zip(after).map(|(before, after)| note(before, after.to_owned())));
            continue;
        }
        let first = if after.is_empty() { Note::Passes(false) } else { Note::Text(after.join("\n\n")) };
        notes.push(first);
        notes.extend(before.iter().skip(1).map(|_| Note::Passes(false)));
    }
    notes
}

fn texts(message: &Message) -> Vec<&str> {
    message
        .parts
        .iter()
        .filter_map(|part| if let Content::Text(text) = part { Some(text.as_str()) } else { None })
        .collect()
}
