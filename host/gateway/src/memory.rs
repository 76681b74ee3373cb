//! The memory of a conversation between requests, so that a change is repeated in the same way in every later request: clients send the
//! conversation as they have it, and the caches of providers only hit if the same bytes come again.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use wire::Wire;

use crate::conversation::{Author, Conversation, Part};
use crate::digest::{digest, short};
use crate::json::{Doc, Edits, Node};

/// The maximum number of bytes of notes about texts that the latest request does not have, such as those before a compaction.
const MOST_BYTES: usize = 4 << 20;

/// The memory of a conversation: notes by the digest of their subject. A note never changes its value, so that two memories of one
/// conversation are merged by taking the notes of both. The exception is an answer that was written twice: the note with the model's text
/// that the client was not shown is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Memory {
    notes: BTreeMap<String, Note>,
    /// The keys of the notes that the latest request used.
    #[serde(skip)]
    used: BTreeSet<String>,
}

/// The note about a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Note {
    /// This text goes upstream in its place.
    Text(String),
    /// Whether it goes upstream unchanged, or not at all.
    Passes(bool),
}

/// The subject of a note; a part of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    /// The answer that a reminder follows.
    Reminder,
    /// The id of a response as the client has it: its note is the id that the server knows.
    Response,
    /// A text of the user: its note is the text that extensions made of it.
    Input,
    /// A text of the user that was refused with its request.
    Refused,
    /// A text of a tool's result, as for [`About::Input`].
    Result,
    /// Any other text of a request, as for [`About::Input`].
    Text,
    /// A text that the client was shown: its note is the text of the model.
    Answer,
    /// Reasoning that the client was shown, as for [`About::Answer`].
    Thinking,
    /// The arguments of a call that the client was shown, as for [`About::Answer`].
    Call,
    /// An addition to the prompt, in a turn or around an input: its note is whether it is there, or the digest of its text.
    Addition,
    /// The digest of the text of an addition: its note is the text.
    Added,
}

impl About {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Reminder => "reminder",
            Self::Response => "response",
            Self::Input => "input",
            Self::Refused => "refused",
            Self::Result => "result",
            Self::Text => "text",
            Self::Answer => "answer",
            Self::Thinking => "thinking",
            Self::Call => "call",
            Self::Addition => "addition",
            Self::Added => "added",
        }
    }
}

/// An answer of a request, with the key by which it is found again.
struct Answer {
    key: String,
    /// The number of its last message.
    last: usize,
}

impl Memory {
    /// Adds the notes of another memory of the same conversation, the later one.
    pub fn merge(&mut self, other: Self) {
        let later: BTreeSet<String> = other.notes.keys().cloned().collect();
        other.notes.into_iter().for_each(|(key, note)| self.insert(key, note));
        self.shorten(&later);
    }

    fn insert(&mut self, key: String, note: Note) {
        let is_answer = [About::Answer, About::Thinking].iter().any(|about| is_about(&key, *about));
        match self.notes.get_mut(&key) {
            Some(known) if is_answer && matches!(known, Note::Passes(_)) => *known = note,
            Some(_) => {}
            None => drop(self.notes.insert(key, note)),
        }
    }

    /// Begins to read a request: [`Memory::drop_unused`] keeps the notes that are used from here on.
    pub(crate) fn begin(&mut self) {
        self.used.clear();
    }

    /// Drops notes that the request did not use, if they are many.
    pub(crate) fn drop_unused(&mut self) {
        let used = std::mem::take(&mut self.used);
        self.shorten(&used);
    }

    fn shorten(&mut self, kept: &BTreeSet<String>) {
        let bytes =
            |(key, note): (&String, &Note)| key.len() + if let Note::Text(text) = note { text.len() } else { 4 };
        if self.notes.iter().map(bytes).sum::<usize>() > MOST_BYTES {
            let stays = [About::Reminder, About::Response, About::Addition, About::Added];
            let stays = |key: &str| stays.iter().any(|about| is_about(key, *about));
            self.notes.retain(|key, _| stays(key) || kept.contains(key));
        }
    }

    pub(crate) fn get(&mut self, about: About, parts: &[&str]) -> Option<&Note> {
        let key = key(about, parts);
        let note = self.notes.get(&key)?;
        self.used.insert(key);
        Some(note)
    }

    /// Adds a note. An existing note remains unchanged.
    pub(crate) fn note(&mut self, about: About, parts: &[&str], note: Note) {
        self.insert(key(about, parts), note);
    }

    /// Returns the body of a request with the reminders of earlier answers, each behind its answer. Without reminders, the body is
    /// unchanged.
    pub fn remind(&self, wire: Wire, body: Bytes) -> Bytes {
        self.with_reminders(wire, &body).unwrap_or(body)
    }

    fn with_reminders(&self, wire: Wire, body: &Bytes) -> Option<Bytes> {
        if !self.has_reminders() {
            return None;
        }
        let (doc, root) = Doc::read(body)?;
        let conversation = Conversation::of(wire, doc, &root);
        let mut edits = Edits::default();
        self.reminders(doc, &root, conversation.as_ref(), &mut edits);
        (!edits.is_empty()).then(|| Bytes::from(edits.apply(body)))
    }

    fn has_reminders(&self) -> bool {
        self.notes.keys().any(|key| is_about(key, About::Reminder) || is_about(key, About::Response))
    }

    /// Returns whether nothing was noted yet.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Inserts the reminders of earlier answers into a request, and replaces the id of the previous response by the one that its server
    /// knows.
    pub(crate) fn reminders(
        &self,
        doc: Doc<'_>,
        root: &Node,
        conversation: Option<&Conversation<'_>>,
        edits: &mut Edits,
    ) {
        if !self.has_reminders() {
            return;
        }
        let before = root.get("previous_response_id").filter(|node| node.is_string());
        let id = before.and_then(|node| doc.text(node)).unwrap_or_default();
        if let (Some(node), Some(Note::Text(known))) = (before, self.notes.get(&key(About::Response, &[&id]))) {
            edits.text(&node.at, known);
        }
        let Some(conversation) = conversation else { return };
        if let Some(Note::Text(words)) = self.notes.get(&key(About::Reminder, &["response", &id])) {
            conversation.remind(None, words, edits);
        }
        for answer in answers(doc, conversation) {
            if let Some(Note::Text(words)) = self.notes.get(&answer.key) {
                conversation.remind(Some(answer.last), words, edits);
            }
        }
    }

    /// Adds the reminder after the answer to a request, of which the client has these calls, this text and this id.
    pub(crate) fn note_reminder(&mut self, wire: Wire, body: &[u8], said: &Said<'_>, words: &str) {
        let note = Note::Text(words.to_owned());
        if let Some(id) = said.id {
            self.note(About::Reminder, &["response", id], note.clone());
        }
        let Some((doc, root)) = Doc::read(body) else { return };
        let Some(conversation) = Conversation::of(wire, doc, &root) else { return };
        let number = answers(doc, &conversation).len();
        if let Some(parts) = identity(said.calls.last().map(String::as_str), said.text, number) {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            self.note(About::Reminder, &parts, note);
        }
    }
}

/// The parts of an answer that the client has.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) calls: Vec<String>,
    pub(crate) text: &'a str,
    /// The id by which a later request continues it without repeating it.
    pub(crate) id: Option<&'a str>,
}

/// Returns the key of an answer: its last call, whose id is unique, else its position and its text, because a text can occur twice.
fn identity(call: Option<&str>, text: &str, number: usize) -> Option<Vec<String>> {
    if let Some(call) = call.filter(|call| !call.is_empty()) {
        return Some(vec!["call".to_owned(), call.to_owned()]);
    }
    // Clients trim what they receive, and join its blocks.
    let text: String = text.split_whitespace().collect();
    (!text.is_empty()).then(|| vec!["text".to_owned(), number.to_string(), text])
}

/// Returns the answers of the model, of which each can be several messages in a row.
fn answers(doc: Doc<'_>, conversation: &Conversation<'_>) -> Vec<Answer> {
    let (mut all, mut from) = (Vec::new(), 0);
    let mut number = 0;
    let messages = &conversation.messages;
    while let Some(first) = messages[from..].iter().position(|one| one.author == Author::Model).map(|at| from + at) {
        let last = messages[first..]
            .iter()
            .position(|one| !matches!(one.author, Author::Model | Author::Nobody))
            .map_or(messages.len(), |at| first + at);
        let (mut call, mut text) = (None, String::new());
        for part in messages[first..last].iter().flat_map(|one| &one.parts) {
            match part {
                Part::Text { at, .. } => text.push_str(&doc.text(at).unwrap_or_default()),
                Part::Call(one) => call = Some(one.id.clone()),
                Part::Thinking { .. } | Part::Result(_) => {}
            }
        }
        let parts = identity(call.as_deref(), &text, number);
        let key = parts.map(|parts| key(About::Reminder, &parts.iter().map(String::as_str).collect::<Vec<_>>()));
        all.push(Answer { key: key.unwrap_or_default(), last: last - 1 });
        (from, number) = (last, number + 1);
    }
    all
}

/// Returns the key of the place of a block: the number of its answer, and its number among the blocks with the same text.
pub(crate) fn place_of(answer: usize, times: u32) -> String {
    format!("{answer}.{times}")
}

/// Returns the number of the answer to a request.
pub(crate) fn next_answer(wire: Wire, body: &[u8]) -> usize {
    let Some((doc, root)) = Doc::read(body) else { return 0 };
    Conversation::of(wire, doc, &root).map_or(0, |conversation| conversation.answers().1)
}

fn is_about(key: &str, about: About) -> bool {
    key.strip_prefix(about.as_str()).is_some_and(|rest| rest.starts_with(':'))
}

fn key(about: About, parts: &[&str]) -> String {
    let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    format!("{}:{}", about.as_str(), short(&digest(&parts)))
}
