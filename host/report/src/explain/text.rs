//! An explanation as a person reads it: a numbered list of changes, each with the original and the comparison.

use std::fmt::Write;

use super::{By, Change, ChangeKind, Explanation};
use crate::diff::Chunk;
use crate::figures::of;
use crate::visible;

/// Bytes of a text that are printed; the JSON form has all.
const MOST: usize = 2000;

/// Characters of unchanged text that are printed next to a change.
const CONTEXT: usize = 40;

impl Explanation {
    /// Returns the explanation as text, with what is invisible written out. Lines of quoted texts begin with a bar.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let status = self.status.as_deref().unwrap_or("not finished");
        let session = visible::line(&self.session);
        push(&mut out, format_args!("session {session}, turn {}: {}\n", self.turn, visible::line(status)));
        if self.changes.is_empty() && self.notes.is_empty() {
            out.push_str("\nNo extension and no rule changed anything.\n");
        }
        for (number, change) in (1..).zip(&self.changes) {
            change.write(number, &mut out);
        }
        for note in &self.notes {
            push(&mut out, format_args!("\nnote: {}\n", visible::line(note)));
        }
        out
    }
}

impl Change {
    fn write(&self, number: usize, out: &mut String) {
        let place = match (self.step, self.attempt) {
            (0, _) => "input".to_owned(),
            (step, 0) => format!("step {step}"),
            (step, attempt) => format!("step {step}, attempt {attempt}"),
        };
        let reason = if self.reason.is_empty() { String::new() } else { format!(" ({})", visible::line(&self.reason)) };
        let sentence = match (self.kind, &self.by) {
            // An error of the model, or the user.
            (ChangeKind::AnswerStopped, By::Host) => "the answer broke off".to_owned(),
            (kind, by) => format!("{} {}", by.words(), kind.words()),
        };
        push(out, format_args!("\n{number}. {place}: {sentence}{reason}\n"));
        if let By::OneOf { candidates } = &self.by {
            for one in candidates {
                let (extension, callback) = (visible::line(&one.extension), visible::line(&one.callback));
                let calls = of(one.changed, "call", "calls");
                push(out, format_args!("   - {extension} in {callback}: {calls} changed something\n"));
            }
        }
        if let Some(evidence) = &self.evidence {
            let (start, end, line) = (evidence.start, evidence.end, evidence.line);
            let field = evidence.field.as_deref().map(|field| format!(" of `{}`", visible::line(field)));
            let field = field.unwrap_or_default();
            push(out, format_args!("   matched bytes {start} to {end}{field}, line {line}:\n"));
            quote(&evidence.text, out);
        }
        let quoted = |title: &str, whole: &str, text: &str, out: &mut String| {
            push(out, format_args!("   {title} {}:\n", of(whole.len() as u64, "byte", "bytes")));
            quote(text, out);
        };
        if let Some(before) = &self.before {
            quoted("original,", before, before, out);
        }
        match (&self.before, &self.after) {
            (Some(before), Some(after)) if before == after => out.push_str("   all of it remains\n"),
            (Some(_), Some(after)) => quoted("change, to", after, &marked(&self.diff), out),
            (None, Some(after)) => quoted("text,", after, after, out),
            (_, None) => {}
        }
    }
}

impl By {
    /// The subject of a sentence.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Extension { id } => format!("extension `{}`", visible::line(id)),
            Self::Manifest { id } => format!("the manifest of `{}`", visible::line(id)),
            Self::Rules { names } => {
                let names: Vec<String> = names.iter().map(|name| format!("`{}`", visible::line(name))).collect();
                format!("{} {}", if names.len() == 1 { "rule" } else { "rules" }, names.join(", "))
            }
            Self::Host => "the host".to_owned(),
            Self::OneOf { candidates } if candidates.is_empty() => "somebody whom the records do not name".to_owned(),
            Self::OneOf { .. } => "one or more of the extensions below (the records do not say which)".to_owned(),
        }
    }
}

impl ChangeKind {
    /// The predicate of a sentence.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::InputChanged => "changed the input",
            Self::InputAdded => "added a message",
            Self::InputRemoved => "removed the input",
            Self::InputRejected => "rejected the input",
            Self::PromptText => "adds text that the model reads",
            Self::RuleMatched => "matched",
            Self::AnswerStopped => "stopped the answer",
            Self::Reminder => "sent a hidden message to the model",
            Self::Reply => "replied in the model's place",
            Self::Rewritten => "rewrote the answer",
            Self::ShownChanged => "changed what the user saw",
            Self::Withheld => "did not check text, which was withheld",
            Self::ArgumentsChanged => "changed the arguments of a tool call",
            Self::ResultChanged => "changed the result of a tool",
            Self::ToolReminder => "put a reminder before the result of a tool",
            Self::ToolBlocked => "blocked a tool call",
            Self::Compacted => "summarised older messages",
            Self::LeftOut => "left parts of the conversation out for the model",
            Self::HistoryReplaced => "replaced the conversation",
        }
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _written = out.write_fmt(text);
}

/// A text of others: each line begins with a bar, so that none can look like one of ours.
fn quote(text: &str, out: &mut String) {
    let end = (0..=text.len().min(MOST)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    for line in visible::lines(&text[..end]).split('\n') {
        push(out, format_args!("   │ {line}\n"));
    }
    if end < text.len() {
        push(out, format_args!("   … and {} bytes more\n", text.len() - end));
    }
}

/// A comparison with `[-removed-]` and `{+added+}`; of what is the same only what is next to a change.
fn marked(chunks: &[Chunk]) -> String {
    let mut out = String::new();
    for (at, chunk) in chunks.iter().enumerate() {
        match chunk {
            Chunk::Same(text) => context(text, at > 0, at + 1 < chunks.len(), &mut out),
            Chunk::Removed(text) => push(&mut out, format_args!("[-{text}-]")),
            Chunk::Added(text) => push(&mut out, format_args!("{{+{text}+}}")),
        }
    }
    out
}

/// Unchanged text: its start after a change, its end before one.
fn context(text: &str, after: bool, before: bool, out: &mut String) {
    let position = |mut chars: std::iter::Skip<std::str::CharIndices<'_>>| chars.next().map(|(at, _)| at);
    let start = position(text.char_indices().skip(if after { CONTEXT } else { 0 }));
    let length = text.chars().count();
    let end = position(text.char_indices().skip(if before { length.saturating_sub(CONTEXT) } else { length }));
    let end = end.unwrap_or(text.len());
    match start {
        Some(start) if start < end => {
            out.push_str(&text[..start]);
            out.push('…');
            out.push_str(&text[end..]);
        }
        _ => out.push_str(text),
    }
}
