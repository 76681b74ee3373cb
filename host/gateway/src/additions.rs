//! Stage: inserts the text that plugins add to the prompt into a request, behind the callbacks.
//!
//! The bytes of an earlier request come again in every later one of its conversation: text without conditions follows from the plugins
//! alone, and what conditions have decided is a note of the [`Memory`]. Text around the instructions is decided once for each turn, text
//! around an input once for this input.

mod places;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use flow::Position;
use guard::Caller;
use guard::additions::{Addition, Facts, Texts};
use wire::Wire;

use crate::conversation::{Author, Conversation, Part};
use crate::digest::{digest, short};
use crate::json::{Doc, Edits};
use crate::memory::{About, Memory, Note};
use crate::tools;

/// Returns the guidance on tools for a request that offers tools of these names.
pub type Guide = Arc<dyn Fn(&[String]) -> Option<String> + Send + Sync>;

/// The text that a conversation adds to its requests, and what its conditions are evaluated against.
#[derive(Clone)]
pub struct Given {
    /// The additions, in their order.
    pub additions: Arc<[Addition]>,
    /// The guidance of plugins on tools; `None`: they have none.
    pub guide: Option<Guide>,
    /// The name of the agent.
    pub agent: String,
    /// The folder of the workspace.
    pub workspace: String,
    /// The number of the turn, from 1.
    pub turn: u32,
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").field("additions", &self.additions).field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// A request with the text that plugins add to it.
#[derive(Debug)]
pub struct Added {
    /// The body that goes upstream: the same bytes where nothing is added.
    pub body: Bytes,
    /// Notices for the user: additions that are left out because a condition cannot be evaluated, and text without a place.
    pub notices: Vec<String>,
}

/// An input of the user: the messages between two answers, without results of calls.
#[derive(Debug)]
struct Input {
    /// The numbers of its first and last message with text.
    first: usize,
    last: usize,
    /// How many equal inputs precede it, because an input can occur several times, and the answer that the request continues by its id.
    number: String,
    texts: Vec<String>,
    /// No answer follows it.
    is_new: bool,
}

impl Input {
    /// Returns the parts by which a note about it is found.
    fn key(&self) -> [String; 2] {
        [self.number.clone(), self.texts.join("\n")]
    }
}

/// Inserts additions and guidance into the body of a request for `model`.
pub fn add(given: &Given, caller: &Caller, memory: &Mutex<Memory>, (wire, model): (Wire, &str), body: &Bytes) -> Added {
    let unchanged = || Added { body: body.clone(), notices: Vec::new() };
    if given.additions.is_empty() && given.guide.is_none() {
        return unchanged();
    }
    let Some((doc, root)) = Doc::read(body) else { return unchanged() };
    let Some(conversation) = Conversation::of(wire, doc, &root) else { return unchanged() };
    // A request that continues an answer by its id has none of the earlier inputs.
    let previous = doc.text_of(&root, "previous_response_id").unwrap_or_default();
    let inputs = inputs(doc, &conversation, &previous);
    let texts =
        Texts::new(inputs.last().map(|input| input.texts.clone()).unwrap_or_default(), answer(doc, &conversation));
    let Given { agent, workspace, turn, .. } = given;
    let facts = Facts { model, agent, workspace, turn: *turn, texts, state: caller };
    let memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
    let mut stage = Stage { given, facts, memory, notices: Vec::new() };
    let mut edits = Edits::default();
    let before = stage.instructions(Position::SystemPrefix, inputs.last());
    let guidance = given.guide.as_ref().and_then(|guide| guide(&tools::names(doc, &root)));
    let after: Vec<String> =
        guidance.into_iter().chain(stage.instructions(Position::SystemSuffix, inputs.last())).collect();
    if !places::instructions((wire, doc, &root), &conversation, (&before, &after), &mut edits) {
        stage
            .notices
            .push("what plugins add to the instructions is left out: the request has no text there".to_owned());
    }
    for input in &inputs {
        let (before, after) = (stage.around(Position::UserPrefix, input), stage.around(Position::UserSuffix, input));
        places::around(wire, &conversation, (input.first, input.last), (&before, &after), &mut edits);
    }
    let body = if edits.is_empty() { body.clone() } else { Bytes::from(edits.apply(body)) };
    Added { body, notices: stage.notices }
}

struct Stage<'a> {
    given: &'a Given,
    facts: Facts<'a>,
    memory: MutexGuard<'a, Memory>,
    notices: Vec<String>,
}

impl Stage<'_> {
    /// Returns the texts at a position of the instructions, in the turn that this input began.
    fn instructions(&mut self, position: Position, turn: Option<&Input>) -> Vec<String> {
        let additions = Arc::clone(&self.given.additions);
        let of_position = additions.iter().filter(|one| one.position == position);
        of_position.filter(|one| self.is_given(one, turn)).map(|one| one.text.clone()).collect()
    }

    /// Returns whether the instructions have an addition. What was decided in the turn stays.
    fn is_given(&mut self, one: &Addition, turn: Option<&Input>) -> bool {
        if !one.is_conditional() {
            return true;
        }
        let Some([number, text]) = turn.map(Input::key) else { return self.passes(one) };
        let (index, model) = (one.id.index.to_string(), self.facts.model.to_owned());
        let key = [one.position.as_str(), one.id.plugin.as_str(), &index, &model, &number, &text];
        if let Some(Note::Passes(passes)) = self.memory.get(About::Addition, &key) {
            return *passes;
        }
        let passes = self.passes(one);
        self.memory.note(About::Addition, &key, Note::Passes(passes));
        passes
    }

    /// Returns the texts at a position around an input. They stay as they were when the input was sent first. Around an earlier input
    /// without a note is what does not depend on conditions.
    fn around(&mut self, position: Position, input: &Input) -> Vec<String> {
        let additions = Arc::clone(&self.given.additions);
        let of_position = additions.iter().filter(|one| one.position == position);
        of_position.filter_map(|one| self.of_input(one, input)).collect()
    }

    fn of_input(&mut self, one: &Addition, input: &Input) -> Option<String> {
        let (index, [number, text]) = (one.id.index.to_string(), input.key());
        let key = [one.position.as_str(), one.id.plugin.as_str(), &index, &number, &text];
        match self.memory.get(About::Addition, &key) {
            Some(Note::Text(digest)) => {
                let digest = digest.clone();
                let known = self.memory.get(About::Added, &[&digest]);
                return Some(if let Some(Note::Text(text)) = known { text.clone() } else { one.text.clone() });
            }
            Some(Note::Passes(_)) => return None,
            None if !input.is_new && one.is_conditional() => return None,
            None => {}
        }
        let passes = !one.is_conditional() || self.passes(one);
        let digest = short(&digest(&[one.text.as_bytes()]));
        let note = if passes { Note::Text(digest.clone()) } else { Note::Passes(false) };
        self.memory.note(About::Addition, &key, note);
        if passes {
            self.memory.note(About::Added, &[&digest], Note::Text(one.text.clone()));
        }
        passes.then(|| one.text.clone())
    }

    fn passes(&mut self, one: &Addition) -> bool {
        let passes = one.passes(&self.facts);
        passes.unwrap_or_else(|why| {
            self.notices.push(why);
            false
        })
    }
}

/// Returns the inputs of the user. Messages next to results of calls continue a turn.
fn inputs(doc: Doc<'_>, conversation: &Conversation<'_>, previous: &str) -> Vec<Input> {
    let (mut inputs, mut times) = (Vec::new(), HashMap::<Vec<String>, u32>::new());
    let (messages, first_new) = (&conversation.messages, conversation.first_new());
    let mut from = 0;
    for run in messages.split(|one| one.author == Author::Model) {
        let start = from;
        from += run.len() + 1;
        let is_result = |part: &Part<'_>| matches!(part, Part::Result(_));
        if run.iter().any(|one| one.author == Author::Tool || one.parts.iter().any(is_result)) {
            continue;
        }
        let (mut place, mut texts) = (None, Vec::new());
        for (number, message) in run.iter().enumerate().filter(|(_, one)| one.author == Author::User) {
            let before = texts.len();
            texts.extend(message.parts.iter().filter_map(|part| match part {
                Part::Text { at, .. } => doc.text(at),
                _ => None,
            }));
            if texts.len() > before {
                let first = place.map_or(start + number, |(first, _)| first);
                place = Some((first, start + number));
            }
        }
        let Some((first, last)) = place else { continue };
        let times = times.entry(texts.clone()).or_default();
        inputs.push(Input { first, last, number: format!("{times}{previous}"), texts, is_new: start >= first_new });
        *times += 1;
    }
    inputs
}

/// Returns the last answer with text.
fn answer(doc: Doc<'_>, conversation: &Conversation<'_>) -> Option<String> {
    let answers = conversation.messages.iter().rev().filter(|one| one.author == Author::Model);
    let text = |one: &crate::conversation::Message<'_>| -> String {
        let texts =
            one.parts.iter().filter_map(|part| if let Part::Text { at, .. } = part { doc.text(at) } else { None });
        texts.collect()
    };
    answers.map(text).find(|text| !text.trim().is_empty())
}
