//! What a report says about each entry, as a label and blocks of text; Markdown and HTML write the same.

mod answer;
mod lines;
mod tool;

use std::borrow::Cow;
use std::ops::Range;

use turn::transcript::{Author, MessagePayload};

pub(crate) use self::lines::{callbacks, step_line, turn_line};
use crate::diff::Chunk;
use crate::figures::{of, took_ms};
use crate::report::{Entry, Sent, What};

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
        What::Sent(sent) => return self::sent(sent),
        What::Message(message) => {
            let hidden = if message.hidden { "Hidden message" } else { "Message" };
            View::new(Kind::Host, format!("{hidden} to the model: {}", message.custom_type)).text("", &message.text)
        }
        What::Reasoning(reasoning) => {
            let state = if reasoning.record.was_interrupted { "Reasoning, interrupted" } else { "Reasoning" };
            let (folded, marks) = (reasoning.matches.is_empty(), reasoning.matches.as_slice());
            let text = Block::new(if folded { "reasoning" } else { "" }, reasoning.record.text.as_str());
            View::new(Kind::Note, state).with(Block { folded, marks, ..text })
        }
        What::Answer(answer) => answer::view(answer),
        What::Tool(call) => tool::view(call),
        What::Rule(fired) => answer::rule(fired),
        What::Held(held) => {
            let (rules, stream) = (held.rules.join(", "), &held.stream);
            let (bytes, took) = (of(held.bytes_max, "byte", "bytes"), took_ms(held.ms_max));
            let times = of(u64::from(held.holds), "time", "times");
            let label = format!(
                "Output held back: {stream}, for {rules}, {times}, at most {bytes} and {took}; {}",
                held.outcome
            );
            View::new(Kind::Rule, label)
        }
        What::HoldReleased(released) => {
            let bytes = of(released.bytes, "byte", "bytes");
            View::new(
                Kind::Rule,
                format!("Held output released: {bytes} of {}, limit {}", released.stream, released.bound),
            )
        }
        What::Injection(injection) => {
            let (rules, bytes) = (injection.rules.join(", "), of(injection.discarded_bytes, "byte", "bytes"));
            View::new(Kind::Rule, format!("Reminders of {rules} were sent; {bytes} of the answer were discarded"))
        }
        What::Rearmed(rearmed) => View::new(Kind::Rule, format!("Rules act again: {}", rearmed.rules.join(", "))),
        What::Error(error) => {
            let label = format!("The model failed: {} ({})", error.category, error.error_code);
            View::new(Kind::Failed, label).text("", error.metadata["message"].as_str().unwrap_or_default())
        }
        What::Retry(retry) => {
            let (number, most, delay) = (retry.retry, retry.max_retries, took_ms(retry.delay_ms));
            let asked = if retry.asked_by_provider { ", as the provider asked" } else { "" };
            View::new(Kind::Note, format!("Retry {number} of at most {most} after {delay}{asked}"))
        }
        What::Retried(retried) => {
            let retries = of(u64::from(retried.retry_count), "retry", "retries");
            let waited = took_ms(retried.total_delay_ms);
            View::new(Kind::Note, format!("Succeeded after {retries} and {waited}"))
                .text("first error", &retried.original_error)
        }
        What::CallbackProblem(report) => {
            let (id, callback, outcome) = (&report.extension_id, &report.callback, &report.outcome);
            let cause = report.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
            let view = View::new(Kind::Failed, format!("Extension {id}: {outcome} in {callback}{cause}"));
            view.text("", report.reason.as_deref().unwrap_or_default())
        }
        What::ToolProblem(report) => {
            let view = View::new(
                Kind::Failed,
                format!("Extension {}: {} in {}", report.extension_id, report.outcome, report.tool),
            );
            view.text("", report.reason.as_deref().unwrap_or_default())
        }
        What::Withheld(withheld) => {
            let (id, bytes) = (&withheld.extension_id, of(withheld.bytes, "byte", "bytes"));
            View::new(Kind::Failed, format!("Extension {id} did not check {bytes} in {}: withheld", withheld.callback))
                .text("", &withheld.reason)
        }
        What::Breaker(breaker) => {
            let (id, state, scope) = (&breaker.extension_id, &breaker.state, &breaker.scope);
            View::new(Kind::Note, format!("Circuit breaker of {id} ({scope}): {state}")).text("", &breaker.reason)
        }
        What::Prompt(prompt) => {
            let changed = if prompt.changed { ", changed" } else { "" };
            let view = View::new(Kind::Host, format!("Text of {} that the model reads{changed}", prompt.extension_id));
            prompt.texts.iter().fold(view, |view, one| view.with(Block::new("text", one.text.as_str()).folded()))
        }
        What::CompactionStart(start) => {
            let percent = (start.pressure_ratio * 100.0).round();
            let tokens = of(start.used_tokens, "token", "tokens");
            View::new(
                Kind::Host,
                format!("The conversation is summarised: {percent} % of the context are used, {tokens}"),
            )
        }
        What::CompactionEnd(end) => match (&end.summary, &end.error) {
            (Some(summary), _) => {
                let kept = of(end.kept_messages, "message", "messages");
                let label = format!("Messages before turn {} were summarised; {kept} remain", end.prune_before_turn);
                View::new(Kind::Host, label).with(Block::new("summary", summary.as_str()).folded())
            }
            (None, error) => View::new(Kind::Failed, "The conversation was not summarised")
                .text("", error.as_deref().unwrap_or_default()),
        },
        What::HistoryReplaced(messages) => {
            View::new(Kind::Host, format!("The conversation was replaced by {}", of(*messages, "message", "messages")))
        }
        What::Log(line) => {
            View::new(Kind::Note, format!("Log of {} ({})", line.extension_id, line.level)).text("", &line.message)
        }
        What::Notice(kind, text) => View::new(Kind::Note, format!("Note ({kind})")).text("", text),
    })
}

/// A message that joined the conversation; an unchanged input has been shown.
fn sent(sent: &Sent) -> Option<View<'_>> {
    let message = &sent.message;
    if sent.unchanged {
        return None;
    }
    let label = if message.role == "system" {
        "System prompt".to_owned()
    } else {
        format!("Sent to the model by {}", author(message))
    };
    let view = View::new(Kind::Host, label);
    let text = message.text.as_str();
    Some(view.with(if message.role == "system" { Block::new("text", text).folded() } else { Block::new("", text) }))
}

fn author(message: &MessagePayload) -> String {
    match &message.author {
        None | Some(Author::User) => "the user".to_owned(),
        Some(Author::Model) => "the model".to_owned(),
        Some(Author::Host) => "the host".to_owned(),
        Some(Author::Extension(id)) => format!("extension {id}"),
        Some(Author::Addition { extension_id, .. }) => format!("the manifest of {extension_id}"),
    }
}
