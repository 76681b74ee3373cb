//! What a report says about each entry, as a label and blocks of text; Markdown and HTML write the same.

mod answer;
mod extension;
mod lines;
mod model;
mod rules;
mod tool;

use std::borrow::Cow;
use std::ops::Range;

use record::Sentence;

pub(crate) use self::lines::{callbacks, step_line, turn_line};
use crate::diff::Chunk;
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

    /// The sentence of a record, with the words of others as a text.
    fn said(kind: Kind, sentence: Sentence<'r>) -> Self {
        let view = Self::new(kind, sentence.text);
        match sentence.detail {
            Some(detail) => view.with(Block::new("", detail)),
            None => view,
        }
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
        What::Message(message) => View::said(Kind::Host, message.sentence()),
        What::Reasoning(reasoning) => answer::reasoning(reasoning),
        What::Answer(answer) => answer::view(answer),
        What::Tool(call) => tool::view(call),
        What::Rule(fired) => rules::fired(fired),
        What::Held(held) => View::said(Kind::Rule, held.sentence()),
        What::HoldReleased(released) => View::said(Kind::Rule, released.sentence()),
        What::Injection(injection) => View::said(Kind::Rule, injection.sentence()),
        What::Rearmed(rearmed) => View::said(Kind::Rule, rearmed.sentence()),
        What::Error(error) => View::said(Kind::Failed, error.sentence()),
        What::Retry(retry) => View::said(Kind::Note, retry.sentence()),
        What::Retried(retried) => model::retried(retried),
        What::CallbackProblem(report) => View::said(Kind::Failed, report.sentence()),
        What::ToolProblem(report) => View::said(Kind::Failed, report.sentence()),
        What::Withheld(withheld) => View::said(Kind::Failed, withheld.sentence()),
        What::Breaker(breaker) => View::said(Kind::Note, breaker.sentence()),
        What::Prompt(prompt) => extension::prompt(prompt),
        What::CompactionStart(start) => View::said(Kind::Host, start.sentence()),
        What::CompactionEnd(end) => model::compaction_end(end),
        What::HistoryReplaced(replaced) => View::said(Kind::Host, replaced.sentence()),
        What::Log(line) => View::said(Kind::Note, line.sentence()),
        What::Notice(kind, text) => View::new(Kind::Note, format!("Note ({kind})")).text("", text),
    })
}
