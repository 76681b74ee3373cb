//! Passes texts of the user through `on_input_messages`, once: the new ones with their request, and one by one those before an answer that
//! have no note.

use std::collections::{BTreeSet, HashMap};

use flow::{Message, Origin, Part as Content, Role};
use guard::input::{self, Input};

use super::{Stage, Stop, note};
use crate::conversation::{Author, Conversation, Message as Said, Part};
use crate::json::Node;
use crate::memory::{About, Note};

/// A text of the user.
#[derive(Clone, Debug)]
pub(super) struct Text<'b> {
    at: &'b Node,
    /// The number of its message, and of its block in the message.
    place: (usize, usize),
    text: String,
    /// How many equal texts precede it: a text can occur several times.
    number: String,
    /// How many messages of the model precede it.
    answers: usize,
}

/// The text that goes upstream in place of a text that was refused with its request.
const NOT_SENT: &str = "[Tidegate: this message was refused, and not sent.]";

impl<'b> Stage<'_, 'b> {
    /// Applies the notes about texts of the user, and passes those before the last answer that have none. Returns the new texts, and the
    /// places of texts that extensions have dropped.
    pub(super) async fn earlier_input(
        &mut self,
        conversation: &Conversation<'b>,
    ) -> Result<(Vec<Text<'b>>, BTreeSet<(usize, usize)>), Stop> {
        let first_new = conversation.first_new();
        let (mut unknown, mut removed) = (Vec::new(), BTreeSet::new());
        for one in self.texts(conversation) {
            match self.known(About::Input, &[&one.number, &one.text]) {
                Some(Note::Passes(false)) => drop(removed.insert(one.place)),
                Some(note) => self.apply(one.at, &note),
                None => unknown.push(one),
            }
        }
        let new = unknown.split_off(unknown.partition_point(|one| one.place.0 < first_new));
        for group in unknown.chunk_by(|one, other| one.answers == other.answers) {
            self.earlier(group, &mut removed).await?;
        }
        Ok((new, removed))
    }

    /// Passes texts before an answer that no callback has had, such as those of a refused request that the client repeats, or of a
    /// conversation that began elsewhere. Refused texts do not leave, and the request continues without them.
    async fn earlier(&mut self, texts: &[Text<'b>], removed: &mut BTreeSet<(usize, usize)>) -> Result<(), Stop> {
        let is_refused = |one: &Text<'_>| self.known(About::Refused, &[&one.number, &one.text]).is_some();
        let (refused, unknown): (Vec<Text<'b>>, Vec<Text<'b>>) = texts.iter().cloned().partition(is_refused);
        refused.iter().for_each(|one| self.apply(one.at, &Note::Text(NOT_SENT.to_owned())));
        let given = messages(&unknown);
        if given.is_empty() {
            return Ok(());
        }
        match input::run(self.caller, given.clone()).await? {
            Input::Ask(made) | Input::Reply { messages: made, .. } if !made.is_empty() => {
                self.becomes(&unknown, (&given, &made), removed);
            }
            _ => {
                self.note_refused(&unknown);
                unknown.iter().for_each(|one| self.apply(one.at, &Note::Text(NOT_SENT.to_owned())));
            }
        }
        Ok(())
    }

    /// Passes the texts behind the last answer.
    pub(super) async fn latest_input(
        &mut self,
        texts: &[Text<'b>],
        removed: &mut BTreeSet<(usize, usize)>,
    ) -> Result<(), Stop> {
        if texts.is_empty() {
            return Ok(());
        }
        let given = messages(texts);
        let refused = match input::run(self.caller, given.clone()).await {
            Ok(Input::Ask(made)) if !made.is_empty() => {
                self.becomes(texts, (&given, &made), removed);
                return Ok(());
            }
            Ok(Input::Reply { messages: made, text, .. }) => {
                self.becomes(texts, (&given, &made), removed);
                return Err(Stop::Reply(text));
            }
            Ok(Input::Ask(_)) => Stop::Refused("the extensions dropped the input".to_owned()),
            Ok(Input::Reject { by, reason }) => Stop::rejected(&by, &reason),
            Err(failure) => failure.into(),
        };
        // The client repeats them, followed by the refusal.
        self.note_refused(texts);
        Err(refused)
    }

    fn note_refused(&self, texts: &[Text<'b>]) {
        for one in texts {
            self.noted(About::Refused, &[&one.number, &one.text], Note::Passes(false));
        }
    }

    /// Adds notes for the new texts, and replaces the old ones.
    fn becomes(
        &mut self,
        texts: &[Text<'b>],
        (given, made): (&[Message], &[Message]),
        removed: &mut BTreeSet<(usize, usize)>,
    ) {
        for (one, note) in texts.iter().zip(spread(given, made)) {
            match self.noted(About::Input, &[&one.number, &one.text], note) {
                Note::Passes(false) => drop(removed.insert(one.place)),
                note => self.apply(one.at, &note),
            }
        }
    }

    fn texts(&self, conversation: &Conversation<'b>) -> Vec<Text<'b>> {
        let (mut texts, mut times, mut answers) = (Vec::new(), HashMap::<String, u32>::new(), 0);
        for (number, message) in conversation.messages.iter().enumerate() {
            answers += usize::from(message.author == Author::Model);
            if message.author != Author::User {
                continue;
            }
            for part in &message.parts {
                let Part::Text { at, block } = part else { continue };
                let text = self.doc.text(at).unwrap_or_default();
                let times = times.entry(text.clone()).or_default();
                texts.push(Text { at, place: (number, *block), text, number: times.to_string(), answers });
                *times += 1;
            }
        }
        texts
    }

    /// Replaces a removed message by a text of the host if it is the only one between two answers, or before the first one: answers must
    /// have the same numbers in the request that leaves.
    fn keep_apart(&mut self, conversation: &Conversation<'b>, gone: &mut BTreeSet<usize>) {
        let mut is_apart = false;
        for (number, message) in conversation.messages.iter().enumerate() {
            match message.author {
                Author::Nobody => {}
                Author::Model => is_apart = false,
                _ if !gone.contains(&number) => is_apart = true,
                _ => {
                    let rest = conversation.messages[number + 1..].iter().enumerate();
                    let mut kept =
                        rest.filter(|(at, one)| one.author != Author::Nobody && !gone.contains(&(number + 1 + at)));
                    if is_apart || kept.next().is_none_or(|(_, next)| next.author != Author::Model) {
                        continue;
                    }
                    let text = message
                        .parts
                        .iter()
                        .find_map(|part| if let Part::Text { at, .. } = part { Some(*at) } else { None });
                    if let Some(at) = message.content.or(text) {
                        gone.remove(&number);
                        self.edits.text(&at.at, NOT_SENT);
                        is_apart = true;
                    }
                }
            }
        }
    }

    /// Removes texts that extensions have dropped, and messages without any text left.
    pub(super) fn remove(
        &mut self,
        conversation: &Conversation<'b>,
        removed: &BTreeSet<(usize, usize)>,
    ) -> Result<(), Stop> {
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
        self.keep_apart(conversation, &mut gone);
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

/// Returns the texts as messages, one for each message of the client.
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

/// Assigns the returned texts to the texts of the messages `given`. If the number of texts of a message has changed, its first text gets
/// all of them; so do messages that were added at the end.
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
