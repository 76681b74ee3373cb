//! One primitive that JavaScript uses, and what JavaScript has of its state.

use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};

use chat::{BlockKind, Changed, ChildThread, QuestionId};
use flow::{Event, EventKind, RunPosition};
use serde::Deserialize;
use serde_json::Value;

use crate::action::Action;
use crate::options::Options;
use crate::output::Output;
use crate::primitive::Primitive;
use crate::view::View;

/// A primitive, whose user is given each change of its state at once.
pub struct Instance {
    primitive: Primitive,
    asked: Arc<Mutex<Vec<QuestionId>>>,
}

/// What a delta has changed.
#[derive(Debug)]
pub enum Fed {
    /// It changed nothing.
    Nothing,
    /// Its text was added to the last block of the message with this index, and to the streaming text where the primitive has one; and nothing
    /// else.
    Added(usize),
    /// It changed something else.
    Other(Box<Output>),
}

#[derive(Deserialize)]
struct ChildLine {
    child: ChildThread,
    line: Value,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("state", &self.primitive.view()).finish_non_exhaustive()
    }
}

impl Instance {
    /// A primitive, of whose state nothing was given yet.
    pub fn new(options: &Options) -> Self {
        let asked: Arc<Mutex<Vec<QuestionId>>> = Arc::default();
        let shared = Arc::clone(&asked);
        let ask = move |question: &chat::Question| {
            shared.lock().unwrap_or_else(PoisonError::into_inner).push(question.id.clone());
        };
        Self { primitive: Primitive::new(options, ask), asked }
    }

    /// The whole state, as a change.
    pub fn start(&mut self) -> Output {
        self.output(Changed::Yes, &View::default())
    }

    /// Takes a line of the thread: a record, or a line of the shown stream.
    pub fn event(&mut self, line: &str) -> Output {
        self.line(line, |line, own| {
            let event = read(value(line)?)?;
            Ok(event.map_or(Changed::No, |event| own.process(&event)))
        })
    }

    /// Takes `{"child", "line"}`: a line of the thread of a child.
    pub fn child(&mut self, line: &str) -> Output {
        self.line(line, |line, own| {
            let ChildLine { child, line } = value(line)?;
            Ok(read(line)?.map_or(Changed::No, |event| own.process_child(&child, &event)))
        })
    }

    fn line(&mut self, line: &str, take: impl FnOnce(&str, &mut Primitive) -> Result<Changed, String>) -> Output {
        let before = self.primitive.view();
        match take(line, &mut self.primitive) {
            Ok(changed) => self.output(changed, &before),
            Err(error) => Output { error: Some(error), ..Output::default() },
        }
    }

    /// Takes a delta, which by far the most events are, without a line.
    pub fn delta(&mut self, kind: BlockKind, seq: u64, at_ms: u64, place: RunPosition, text: &str) -> Fed {
        let added = self.primitive.adds_to(place, kind).filter(|_| !text.is_empty());
        let event = match kind {
            BlockKind::Reasoning => EventKind::CognitionReasoningDelta { text: text.to_owned() },
            _ => EventKind::CognitionOutDelta { text: text.to_owned(), index: 0, is_final: false },
        };
        let event = Event::new(seq, at_ms, place, event);
        match added {
            Some(index) if self.primitive.process(&event).is_yes() => Fed::Added(index),
            Some(_) => Fed::Nothing,
            None => {
                let before = self.primitive.view();
                let changed = self.primitive.process(&event);
                Fed::of(self.output(changed, &before))
            }
        }
    }

    /// Does something. An action that is refused changes nothing.
    pub fn act(&mut self, action: &str) -> Output {
        let before = self.primitive.view();
        let acted = value::<Action>(action).and_then(|action| self.primitive.act(action));
        match acted {
            Ok((changed, result)) => Output { result, ..self.output(changed, &before) },
            Err(error) => Output { error: Some(error), ..self.output(Changed::No, &before) },
        }
    }

    /// What changed since `before`. JavaScript is given every change, so that this is what it lacks.
    fn output(&mut self, changed: Changed, before: &View) -> Output {
        let mut output =
            Output { changed: changed.is_yes(), commands: self.primitive.take_commands(), ..Output::default() };
        if output.changed {
            output.change = self.primitive.view().change_since(before);
        }
        output.asked = take(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        output
    }
}

impl Fed {
    fn of(output: Output) -> Self {
        if output.is_empty() { Self::Nothing } else { Self::Other(Box::new(output)) }
    }
}

/// Reads JSON in two steps, so that there is code for each type once.
pub(crate) fn value<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, String> {
    let value: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    T::deserialize(value).map_err(|error| error.to_string())
}

fn read(line: Value) -> Result<Option<Event>, String> {
    record::read_event(line).map_err(|error| error.to_string())
}

impl Output {
    /// The output as JSON; `None`: there is nothing to report.
    pub fn json(&self) -> Option<Vec<u8>> {
        // Keys are strings, and numbers are finite.
        (!self.is_empty()).then(|| serde_json::to_vec(self).unwrap_or_default())
    }
}
