//! What a conversation remembers from one request to the next, so that what was changed once is changed in the same way ever after: clients send
//! what they have, and the caches of providers keep hitting only where the same bytes come again.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use wire::Wire;

use crate::conversation::{Author, Conversation, Part};
use crate::json::{Doc, Edits, Node};

/// The memory of a conversation: notes by the digest of what they are about. A note never gets another value, so that two memories of one
/// conversation are merged by having the notes of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Memory(BTreeMap<String, Note>);

/// What is known about a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Note {
    /// This goes upstream in its place.
    Text(String),
    /// It goes upstream as it is, or not at all.
    Passes(bool),
}

/// What a note is about; a part of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum About {
    /// The answer that a reminder follows.
    Reminder,
    /// The id of a response that the client has: the one that its server knows.
    Response,
    /// A text of the user: what extensions made of it.
    Input,
    /// A text of the user that was refused with its request.
    Refused,
    /// A text of a tool's result: the same.
    Result,
    /// Any other text of a request: the same.
    Text,
    /// A text that the client was shown: what the model wrote.
    Answer,
    /// The same of reasoning.
    Thinking,
    /// The same of the arguments of a call.
    Call,
}

impl About {
    fn as_str(self) -> &'static str {
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
        }
    }
}

/// The answers of a request, each with what it is found again by.
struct Answer {
    key: String,
    /// The number of its last message.
    last: usize,
}

impl Memory {
    /// Takes the notes of another memory of the same conversation.
    pub fn merge(&mut self, other: Self) {
        for (key, note) in other.0 {
            self.0.entry(key).or_insert(note);
        }
    }

    pub(crate) fn get(&self, about: About, parts: &[&str]) -> Option<&Note> {
        self.0.get(&key(about, parts))
    }

    /// Adds a note. One that is there remains.
    pub(crate) fn note(&mut self, about: About, parts: &[&str], note: Note) {
        self.0.entry(key(about, parts)).or_insert(note);
    }

    /// The body of a request with the reminders of earlier answers, each behind the answer that it follows. Where there is none, it is the
    /// same.
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
        let kinds = [About::Reminder, About::Response].map(About::as_str);
        self.0.keys().any(|key| kinds.iter().any(|kind| key.starts_with(kind)))
    }

    /// Whether nothing was noted yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts the reminders of earlier answers into a request, and the id of the response that it follows as its server knows it.
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
        if let (Some(node), Some(Note::Text(known))) = (before, self.get(About::Response, &[&id])) {
            edits.text(&node.at, known);
        }
        let Some(conversation) = conversation else { return };
        if let Some(Note::Text(words)) = self.get(About::Reminder, &["response", &id]) {
            conversation.remind(None, words, edits);
        }
        for answer in answers(doc, conversation) {
            if let Some(Note::Text(words)) = self.0.get(&answer.key) {
                conversation.remind(Some(answer.last), words, edits);
            }
        }
    }

    /// Notes what the model is reminded of after the answer to a request, of which the client has these calls, this text and this id.
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

/// What the client has of an answer.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    pub(crate) calls: Vec<String>,
    pub(crate) text: &'a str,
    /// The id by which a later request continues it without repeating it.
    pub(crate) id: Option<&'a str>,
}

/// What an answer is found again by: its last call, whose id is unique, else its place and its text, which can be said again.
fn identity(call: Option<&str>, text: &str, number: usize) -> Option<Vec<String>> {
    if let Some(call) = call.filter(|call| !call.is_empty()) {
        return Some(vec!["call".to_owned(), call.to_owned()]);
    }
    // Clients trim what they receive, and join its blocks.
    let text: String = text.split_whitespace().collect();
    (!text.is_empty()).then(|| vec!["text".to_owned(), number.to_string(), text])
}

/// The answers of the model, of which each can be several messages in a row.
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

fn key(about: About, parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part.as_bytes());
    }
    let digest = digest.finalize();
    let short: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{}:{short}", about.as_str())
}
