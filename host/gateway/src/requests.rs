//! Stage: passes a client's request through the callbacks of extensions before it is sent.
//!
//! A client sends its whole conversation, as it has it, with every request. The text that a callback returned is a note of the [`Memory`]
//! and replaces the original in every later request; callbacks get only texts without a note. Only the bytes of replaced strings change.

mod beyond;
mod input;
mod results;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use flow::{CallFailure, CallbackKind, PluginId};
use guard::Caller;
use wire::Wire;

use crate::answer_notes;
use crate::conversation::{Call, Conversation, Given, Part};
use crate::json::{Doc, Edits, Node};
use crate::memory::{About, Memory, Note, place_of};
use crate::shown::{Show, Shown};

/// The outcome of preparing a request.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prepared {
    /// The request goes upstream with this body.
    Ask(Bytes),
    /// Nothing goes upstream: an extension gives this answer in the model's place.
    Reply(String),
    /// Nothing goes upstream because the request was refused.
    Refused {
        /// The text for the client.
        words: String,
        /// The text for the log: the extension and its callback, without any words of the extension.
        notice: String,
    },
}

/// The reason why a request does not go upstream.
#[derive(Debug)]
enum Stop {
    Reply(String),
    Refused(String),
    /// `cause` has the words of the extension; `notice` has none of them.
    Rejected {
        cause: String,
        notice: String,
    },
}

impl From<CallFailure> for Stop {
    fn from(failure: CallFailure) -> Self {
        let notice = format!("the extension `{}` is required and failed in `{}`", failure.plugin, failure.called);
        Self::Rejected {
            cause: format!("the extension `{}` is required and failed: {failure}", failure.plugin),
            notice,
        }
    }
}

impl Stop {
    fn rejected(by: &PluginId, reason: &str) -> Self {
        let notice = format!("the extension `{by}` rejected it in `{}`", CallbackKind::InputMessages.as_str());
        Self::Rejected { cause: format!("the extension `{by}` rejected it: {reason}"), notice }
    }

    fn unchecked(by: &PluginId, what: &str) -> Self {
        Self::Refused(format!("the extension `{by}` did not check {what}"))
    }
}

/// Passes a request through the callbacks, and inserts the reminders of the conversation. `show`: gets the conversation and the tools, for
/// plugins that have the power to read them.
pub async fn prepare(
    caller: &Caller,
    memory: &Mutex<Memory>,
    wire: Wire,
    body: &Bytes,
    show: Option<Show<'_>>,
) -> Prepared {
    lock(memory).begin();
    if !caller.gets_requests() {
        let recalled = recall(memory, wire, body, show);
        lock(memory).drop_unused();
        return Prepared::Ask(recalled.unwrap_or_else(|| body.clone()));
    }
    let Some((doc, root)) = Doc::read(body).filter(|(_, root)| root.is_object()) else {
        return match caller.guards_requests() {
            Some(by) => {
                let cause = format!("it is no JSON object, so that the extension `{by}` cannot check it");
                refused(&cause, &cause)
            }
            None => Prepared::Ask(body.clone()),
        };
    };
    let edits = Edits::default();
    let mut stage = Stage { caller, memory, wire, doc, show, edits, seen: BTreeSet::new(), without: 0..0 };
    let conversation = Conversation::of(wire, doc, &root);
    let ran = stage.run(&root, conversation.as_ref()).await;
    if ran.is_ok() {
        stage.shows(false);
        if conversation.is_some() {
            lock(memory).reminders(doc, &root, conversation.as_ref(), &mut stage.edits);
        }
    }
    lock(memory).drop_unused();
    let number = conversation.map_or(0, |conversation| conversation.answers().1);
    match ran {
        Ok(()) if stage.edits.is_empty() => Prepared::Ask(body.clone()),
        Ok(()) => Prepared::Ask(Bytes::from(stage.edits.apply(body))),
        Err(Stop::Reply(text)) => Prepared::Reply(text),
        Err(Stop::Refused(cause)) => noted(memory, number, refused(&cause, &cause)),
        Err(Stop::Rejected { cause, notice }) => noted(memory, number, refused(&cause, &notice)),
    }
}

/// Notes the refusal of a request. The reason of an extension can repeat the request: when the client sends the refusal back as an answer,
/// the model gets none of it.
fn noted(memory: &Mutex<Memory>, number: usize, refused: Prepared) -> Prepared {
    if let Prepared::Refused { words, .. } = &refused {
        let note = Note::Text("[Tidegate: this request was not sent.]".to_owned());
        lock(memory).note(About::Answer, &[&place_of(number, 0), words.trim()], note);
    }
    refused
}

fn refused(cause: &str, notice: &str) -> Prepared {
    let words = format!("[Tidegate: this request was not sent, because {cause}.]");
    Prepared::Refused { words, notice: format!("a request was not sent, because {notice}") }
}

/// Returns the body of a request whose texts no callback gets: with the originals of texts that were changed for the client, and with
/// reminders.
fn recall(memory: &Mutex<Memory>, wire: Wire, body: &Bytes, show: Option<Show<'_>>) -> Option<Bytes> {
    if lock(memory).is_empty() && show.is_none() {
        return None;
    }
    let read = Doc::read(body);
    let mut edits = Edits::default();
    let conversation = read.as_ref().and_then(|(doc, root)| Conversation::of(wire, *doc, root));
    if let (Some((doc, _)), Some(conversation)) = (&read, &conversation) {
        restore(&mut lock(memory), *doc, conversation, &mut edits, &mut BTreeSet::new());
    }
    if let Some(show) = show {
        show(Shown::of(wire, &edits.clone().apply(body), false));
    }
    let (doc, root) = read.as_ref()?;
    lock(memory).reminders(*doc, root, conversation.as_ref(), &mut edits);
    (!edits.is_empty()).then(|| Bytes::from(edits.apply(body)))
}

fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the originals of the texts of answers that were changed for the client. `seen` gets the places of texts with a note.
fn restore(
    memory: &mut Memory,
    doc: Doc<'_>,
    conversation: &Conversation<'_>,
    edits: &mut Edits,
    seen: &mut BTreeSet<usize>,
) {
    let mut times = HashMap::<(usize, &str, String), u32>::new();
    for (number, message) in conversation.answers().0 {
        for part in &message.parts {
            match part {
                Part::Text { at, .. } | Part::Thinking { at, .. } => {
                    let about = if matches!(part, Part::Thinking { .. }) { About::Thinking } else { About::Answer };
                    let text = doc.text(at).unwrap_or_default();
                    let times = times.entry((number, about.as_str(), text.trim().to_owned())).or_default();
                    let place = place_of(number, *times);
                    *times += 1;
                    let Some(note) = answer_notes::of_shown(about, &place, &text, memory) else { continue };
                    seen.insert(at.at.start);
                    if let Note::Text(original) = note {
                        edits.text(&at.at, &original);
                    }
                }
                Part::Call(call) => restore_call(memory, doc, call, edits, seen),
                Part::Result(_) => {}
            }
        }
    }
}

fn restore_call(memory: &mut Memory, doc: Doc<'_>, call: &Call<'_>, edits: &mut Edits, seen: &mut BTreeSet<usize>) {
    let Some(note) = memory.get(About::Call, &[&call.id, &canonical(&call.arguments(doc))]) else { return };
    match &call.given {
        Given::Value(at) | Given::Written(at) | Given::Input(at) => drop(seen.insert(at.at.start)),
        Given::Members(members) => seen.extend(members.iter().map(|(_, at)| at.at.start)),
    }
    if let Note::Text(original) = note {
        give(call, original, edits);
    }
}

/// Replaces the arguments of a call.
pub(crate) fn give(call: &Call<'_>, arguments: &str, edits: &mut Edits) {
    match &call.given {
        Given::Members(members) => {
            let given: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
            for (name, at) in members {
                edits.raw(at.at.clone(), given[*name].to_string());
            }
        }
        Given::Value(at) => edits.raw(at.at.clone(), arguments.to_owned()),
        Given::Written(at) => edits.text(&at.at, arguments),
        Given::Input(at) => {
            let given: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
            if let Some(input) = given["input"].as_str() {
                edits.text(&at.at, input);
            }
        }
    }
}

/// Returns arguments in canonical form for comparison, because clients parse and rewrite them.
pub(crate) fn canonical(arguments: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(arguments);
    value.map_or_else(
        |_| arguments.to_owned(),
        |mut value| {
            value.sort_all_objects();
            value.to_string()
        },
    )
}

/// A request on its way through the callbacks.
struct Stage<'a, 'b> {
    caller: &'a Caller,
    memory: &'a Mutex<Memory>,
    wire: Wire,
    doc: Doc<'b>,
    show: Option<Show<'a>>,
    edits: Edits,
    /// The places of strings that need no further work.
    seen: BTreeSet<usize>,
    /// The new part of the request, while only what precedes it is worked on; else empty.
    without: Range<usize>,
}

impl<'b> Stage<'_, 'b> {
    async fn run(&mut self, root: &'b Node, conversation: Option<&Conversation<'b>>) -> Result<(), Stop> {
        let calls = conversation.iter().flat_map(|one| &one.messages).flat_map(|one| &one.parts);
        let arguments = calls.flat_map(|part| match part {
            Part::Call(Call { given: Given::Written(at) | Given::Value(at), .. }) => vec![at.at.start],
            Part::Call(Call { given: Given::Members(members), .. }) => {
                members.iter().map(|(_, at)| at.at.start).collect()
            }
            _ => Vec::new(),
        });
        let arguments = arguments.collect();
        if let Some(conversation) = conversation {
            restore(&mut lock(self.memory), self.doc, conversation, &mut self.edits, &mut self.seen);
            for part in conversation.messages.iter().flat_map(|one| &one.parts) {
                // Its provider refuses any other text.
                if let Part::Thinking { at, is_signed: true } = part {
                    self.seen.insert(at.at.start);
                }
            }
            let new = conversation.first_new();
            self.results(conversation, ..new).await?;
            let (latest, mut removed) = self.earlier_input(conversation).await?;
            if self.show.is_some() {
                self.without = conversation.at_from(new);
                let done = self.beyond(root, &arguments).await;
                self.without = 0..0;
                done?;
                self.shows_past(conversation, &removed);
            }
            self.latest_input(&latest, &mut removed).await?;
            self.remove(conversation, &removed)?;
            self.results(conversation, new..).await?;
        }
        self.beyond(root, &arguments).await
    }

    /// Shows what precedes the new input, without the messages that extensions have dropped.
    fn shows_past(&mut self, conversation: &Conversation<'b>, removed: &BTreeSet<(usize, usize)>) {
        let edits = self.edits.clone();
        if self.remove(conversation, removed).is_ok() {
            self.shows(true);
        }
        self.edits = edits;
    }

    fn shows(&self, is_past: bool) {
        if let Some(show) = self.show {
            show(Shown::of(self.wire, &self.edits.clone().apply(self.doc.bytes), is_past));
        }
    }

    /// Applies a note to a string.
    fn apply(&mut self, at: &Node, note: &Note) {
        self.seen.insert(at.at.start);
        if let Note::Text(text) = note {
            self.edits.text(&at.at, text);
        }
    }

    /// Returns the note about a text, after adding `note` if there is none.
    fn noted(&self, about: About, parts: &[&str], note: Note) -> Note {
        let mut memory = lock(self.memory);
        memory.note(about, parts, note.clone());
        memory.get(about, parts).cloned().unwrap_or(note)
    }

    fn known(&self, about: About, parts: &[&str]) -> Option<Note> {
        lock(self.memory).get(about, parts).cloned()
    }
}

/// Returns the note that replaces a text by another one.
fn note(before: &str, after: String) -> Note {
    if before == after { Note::Passes(true) } else { Note::Text(after) }
}
