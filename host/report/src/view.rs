//! What a report says about each entry, as a label and blocks of text; Markdown and HTML write the same.

mod answer;
mod extension;
mod lines;
mod model;
mod rules;
mod tool;

use std::borrow::Cow;
use std::ops::Range;

pub(crate) use self::lines::{callbacks, step_line, turn_line};
use crate::diff::Chunk;
use crate::figures::of;
use crate::report::{Entry, What};

/// What is said about an entry. Its strings contain names and texts of others: who writes them out escapes all.
#[derive(Debug)]
pub(crate) struct View<'r> {
    /// What it is about, as the name of a class.
    pub(crate) kind: Kind,
    /// What is said about it, in one line.
    pub(crate) label: String,
    pub(crate) blocks: Vec<Block<'r>>,
}

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Input,
    Answer,
    Stopped,
    Tool,
    Failed,
    Rule,
    Host,
    Note,
}

/// A text of several lines.
#[derive(Debug)]
pub(crate) struct Block<'r> {
    /// What the text is; empty where the label says it.
    pub(crate) title: &'static str,
    pub(crate) text: Cow<'r, str>,
    /// It is of interest only to who asks for it.
    pub(crate) folded: bool,
    /// Parts to highlight, as byte ranges in order.
    pub(crate) marks: &'r [Range<usize>],
    /// A comparison to show instead, where the form allows it; `text` has the same in words.
    pub(crate) diff: Vec<Chunk>,
}

impl<'r> Block<'r> {
    pub(crate) fn new(title: &'static str, text: impl Into<Cow<'r, str>>) -> Self {
        Self { title, text: text.into(), folded: false, marks: &[], diff: Vec::new() }
    }

    pub(crate) fn folded(self) -> Self {
        Self { folded: true, ..self }
    }
}

impl<'r> View<'r> {
    fn new(kind: Kind, label: impl Into<String>) -> Self {
        Self { kind, label: label.into(), blocks: Vec::new() }
    }

    fn with(mut self, block: Block<'r>) -> Self {
        self.blocks.push(block);
        self
    }

    /// Adds a block, unless its text is empty.
    fn text(self, title: &'static str, text: &'r str) -> Self {
        if text.is_empty() { self } else { self.with(Block::new(title, text)) }
    }
}

/// Returns what is said about an entry; `None`: nothing, because another entry says it.
pub(crate) fn view(entry: &Entry) -> Option<View<'_>> {
    Some(match &entry.what {
        What::Input(input) => View::new(Kind::Input, "Input").text("", &input.text),
        What::Steering(input) => View::new(Kind::Input, "Input while the turn was running").text("", &input.text),
        What::Sent(sent) => return model::sent(sent),
        What::Message(message) => model::message(message),
        What::Reasoning(reasoning) => answer::reasoning(reasoning),
        What::Answer(answer) => answer::view(answer),
        What::Tool(call) => tool::view(call),
        What::Rule(fired) => rules::fired(fired),
        What::Held(held) => rules::held(held),
        What::HoldReleased(released) => rules::released(released),
        What::Injection(injection) => rules::injection(injection),
        What::Rearmed(rearmed) => View::new(Kind::Rule, format!("Rules act again: {}", rearmed.rules.join(", "))),
        What::Error(error) => model::error(error),
        What::Retry(retry) => model::retry(retry),
        What::Retried(retried) => model::retried(retried),
        What::CallbackProblem(report) => extension::callback(report),
        What::ToolProblem(report) => extension::tool(report),
        What::Withheld(withheld) => extension::withheld(withheld),
        What::Breaker(breaker) => extension::breaker(breaker),
        What::Prompt(prompt) => extension::prompt(prompt),
        What::CompactionStart(start) => model::compaction_start(start),
        What::CompactionEnd(end) => model::compaction_end(end),
        What::HistoryReplaced(messages) => {
            View::new(Kind::Host, format!("The conversation was replaced by {}", of(*messages, "message", "messages")))
        }
        What::Log(line) => {
            View::new(Kind::Note, format!("Log of {} ({})", line.extension_id, line.level)).text("", &line.message)
        }
        What::Notice(kind, text) => View::new(Kind::Note, format!("Note ({kind})")).text("", text),
    })
}
