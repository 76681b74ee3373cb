//! Changes of answers and of results of tools.

use record::{Author, CognitionOut};

use super::{By, Change, ChangeKind, Explained};
use crate::figures::of;
use crate::report::{Answer, Log, ToolCall, What};

/// The callbacks that change what the user sees without a record of the bytes.
const UNITS: [&str; 2] = ["on_plain_text", "on_tag"];
/// The callback that changes arguments of calls.
const CALLS: [&str; 1] = ["on_tool_call"];
/// The callback that changes results.
const RESULTS: [&str; 1] = ["on_tool_result"];

impl Explained<'_> {
    pub(super) fn answer(&mut self, place: (u32, u32), log: &Log, answer: &Answer) {
        let record = &answer.record;
        if let author @ (Author::Extension(_) | Author::Addition { .. }) = &record.author {
            let change = Change::new(place, ChangeKind::Reply, By::author(author));
            self.changes.push(change.texts(None, Some(&record.text)));
        }
        let mut last = record.text.as_str();
        for rewrite in record.rewrites.iter().flatten() {
            let by = By::Extension { id: rewrite.extension_id.clone() };
            let change = Change::new(place, ChangeKind::Rewritten, by);
            self.changes.push(change.texts(Some(last), Some(&rewrite.text)));
            last = &rewrite.text;
        }
        self.shown(place, log, answer, last);
        for block in record.blocks.iter().flatten().filter(|block| block.shown.is_some()) {
            let change = Change::new(place, ChangeKind::ArgumentsChanged, By::candidates(log, &CALLS, !self.dropped));
            let tool = block.tool.as_deref().unwrap_or_default();
            self.changes.push(change.because(tool).texts(block.arguments.as_deref(), block.shown.as_deref()));
        }
        if record.is_partial {
            self.stopped(place, log, answer);
        }
    }

    /// The user saw another text, or callbacks changed something of which no record has the bytes.
    fn shown(&mut self, place: (u32, u32), log: &Log, answer: &Answer, last: &str) {
        let by = By::candidates(log, &UNITS, !self.dropped);
        if answer.record.shown.is_some() && answer.shown() != last {
            let change = Change::new(place, ChangeKind::ShownChanged, by);
            self.changes.push(change.texts(Some(last), Some(answer.shown())));
            return;
        }
        let ids = match by {
            By::Extension { id } => id,
            By::OneOf { candidates } if !candidates.is_empty() => {
                candidates.iter().map(|one| one.extension.as_str()).collect::<Vec<_>>().join(", ")
            }
            _ => return,
        };
        let (step, attempt) = place;
        let changed = format!("Callbacks of {ids} changed text in step {step}, attempt {attempt}");
        self.notes.push(if answer.record.keep.is_some() {
            format!("{changed}: the session keeps what the user saw, and the original is in no record.")
        } else {
            format!(
                "{changed}, and the user saw the answer as it is: they changed the reasoning, of which transcripts contain one text \
                 only, or text that was not shown."
            )
        });
    }

    fn stopped(&mut self, place: (u32, u32), log: &Log, answer: &Answer) {
        let record = &answer.record;
        let interrupts = log.entries.iter().filter_map(|entry| match &entry.what {
            What::Rule(fired) if fired.action == "interrupt" && !fired.again => Some(fired.rule.clone()),
            _ => None,
        });
        let names: Vec<String> = interrupts.collect();
        let by = if names.is_empty() { By::Host } else { By::Rules { names } };
        let mut reason = record.error.clone().unwrap_or_default();
        let calls = record.blocks.iter().flatten().filter_map(|block| block.tool.as_ref());
        calls.for_each(|tool| reason.push_str(&format!("; the call of {tool} was not made")));
        let change = Change::new(place, ChangeKind::AnswerStopped, by);
        self.changes.push(if record.text.is_empty() {
            change.because(&reason)
        } else {
            reason.push_str(&format!("; {} had been shown", of(record.shown_bytes.unwrap_or(0), "byte", "bytes")));
            change.because(&reason).texts(Some(&record.text), Some(remains(record, answer.shown())))
        });
    }

    pub(super) fn tool(&mut self, place: (u32, u32), log: &Log, call: &ToolCall) {
        let Some(result) = &call.result else { return };
        let fired = log.entries.iter().filter_map(|entry| match &entry.what {
            What::Rule(fired) if fired.call_id.as_ref() == Some(&call.call_id) => Some(fired),
            _ => None,
        });
        let mut names: Vec<String> = Vec::new();
        for fired in fired {
            if !names.contains(&fired.rule) {
                names.push(fired.rule.clone());
            }
        }
        if result.original.is_some() {
            let change = Change::new(place, ChangeKind::ResultChanged, By::candidates(log, &RESULTS, !self.dropped));
            self.changes.push(change.because(&call.tool).texts(result.original.as_deref(), Some(&result.output)));
        }
        if let Some(reminder) = &result.reminder {
            let by = if names.is_empty() { By::Host } else { By::Rules { names } };
            let change = Change::new(place, ChangeKind::ToolReminder, by).because(&call.tool);
            self.changes.push(change.texts(None, Some(reminder)));
        } else if let (false, Some(error), false) = (call.started, &result.error, names.is_empty()) {
            let change = Change::new(place, ChangeKind::ToolBlocked, By::Rules { names }).because(&call.tool);
            self.changes.push(change.texts(None, Some(error)));
        }
    }
}

/// What remains of an answer that did not come to its end: in the conversation, or for the attempt that continues it.
fn remains<'a>(record: &'a CognitionOut, shown: &'a str) -> &'a str {
    let start = |text: &'a str, bytes: Option<u64>| {
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        bytes.and_then(|bytes| text.get(..bytes)).unwrap_or_default()
    };
    match record.retained.as_str() {
        "answer" | "marked" => &record.text,
        "start" => start(&record.text, record.retained_bytes),
        _ => start(shown, record.kept_bytes),
    }
}
