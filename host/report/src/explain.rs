//! Which extension or rule changed which bytes of a turn, in order, with the original.

mod input;
mod output;
mod text;

use serde::Serialize;
use turn::transcript::{Author, Evidence};

use crate::diff::{Chunk, diff};
use crate::figures::of;
use crate::report::{Entry, Log, Report, Turn, What};

/// What changed in a turn, and who changed it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The session's id.
    pub session: String,
    /// The turn.
    pub turn: u32,
    /// How the turn ended; `None`: the transcript ends before.
    pub status: Option<String>,
    /// The changes, in the order in which they happened.
    pub changes: Vec<Change>,
    /// What the records do not say, in whole sentences.
    pub notes: Vec<String>,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The step in the turn; 0: before the first.
    pub step: u32,
    /// The attempt in the step; 0: it is about none.
    pub attempt: u32,
    /// What happened.
    pub kind: ChangeKind,
    /// Who changed it.
    pub by: By,
    /// Why or how, in one line; empty where the kind says it all.
    pub reason: String,
    /// What a rule matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The original; `None`: there was nothing before, or the records do not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What it became; `None`: nothing, or the records do not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The comparison of both, where both are recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<Chunk>,
}

/// What happened to a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// An input became another message.
    InputChanged,
    /// A message was added to the input.
    InputAdded,
    /// An input did not reach the model.
    InputRemoved,
    /// The input was rejected.
    InputRejected,
    /// Text was added to what the model reads.
    PromptText,
    /// A rule matched.
    RuleMatched,
    /// An answer was stopped, or did not come to its end.
    AnswerStopped,
    /// A hidden message was sent to the model.
    Reminder,
    /// The answer is not the model's own.
    Reply,
    /// `on_llm_output` replaced the text of an answer.
    Rewritten,
    /// The user saw another text than that of the answer.
    ShownChanged,
    /// Text was replaced by a marker because it was not checked.
    Withheld,
    /// A reminder precedes the result of a tool in what the model reads.
    ToolReminder,
    /// A tool call was not made because of a rule.
    ToolBlocked,
    /// Older messages were replaced by a summary.
    Compacted,
    /// The conversation was replaced.
    HistoryReplaced,
}

/// Who changed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum By {
    /// This extension.
    Extension {
        /// Its id.
        id: String,
    },
    /// The manifest of this extension.
    Manifest {
        /// The extension's id.
        id: String,
    },
    /// These rules.
    Rules {
        /// Their names.
        names: Vec<String>,
    },
    /// The host, an error of the model, or the program that embeds the host.
    Host,
    /// The records do not say which of these did; none: they name nobody.
    OneOf {
        /// The extensions whose callbacks changed something at this position.
        candidates: Vec<Candidate>,
    },
}

/// A callback that changed something at a position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Candidate {
    /// The extension.
    pub extension: String,
    /// The callback's name.
    pub callback: String,
    /// How many of its calls changed something, or failed so that a marker replaced what they did not check.
    pub changed: u64,
}

/// Explains a turn; `None`: the last. Returns `None` if the session has no such turn.
pub fn explain(report: &Report, turn: Option<u32>) -> Option<Explanation> {
    let turn = match turn {
        Some(number) => report.turns.iter().find(|turn| turn.number == number)?,
        None => report.turns.last()?,
    };
    let mut explained = Explained { turn, dropped: report.dropped > 0, changes: Vec::new(), notes: Vec::new() };
    explained.input();
    for (step, attempt, log) in turn.logs() {
        explained.log((step, attempt), log);
    }
    if report.dropped > 0 {
        let dropped = report.dropped;
        explained
            .notes
            .push(format!("{dropped} droppable events of the session were lost: reports of callbacks can be missing."));
    }
    Some(Explanation {
        session: report.session.clone(),
        turn: turn.number,
        status: turn.finish.as_ref().map(|finish| finish.status.clone()),
        changes: explained.changes,
        notes: explained.notes,
    })
}

/// The changes found so far.
struct Explained<'r> {
    turn: &'r Turn,
    dropped: bool,
    changes: Vec<Change>,
    notes: Vec<String>,
}

impl Explained<'_> {
    fn log(&mut self, place: (u32, u32), log: &Log) {
        for (at, entry) in log.entries.iter().enumerate() {
            self.entry(place, log, at, entry);
        }
    }

    fn entry(&mut self, place: (u32, u32), log: &Log, at: usize, entry: &Entry) {
        match &entry.what {
            What::Prompt(prompt) => {
                for text in &prompt.texts {
                    let change =
                        Change::new(place, ChangeKind::PromptText, By::Manifest { id: prompt.extension_id.clone() });
                    self.changes.push(change.because(&text.place).texts(None, Some(&text.text)));
                }
            }
            What::Sent(sent) if place.0 > 0 => self.joined(place, sent),
            What::Rule(fired) => {
                let again = if fired.again { ", reported only" } else { "" };
                let reason = format!("in {}: {}{again}", stream(fired), fired.action);
                let by = By::Rules { names: vec![fired.rule.clone()] };
                let mut change = Change::new(place, ChangeKind::RuleMatched, by).because(&reason);
                change.evidence = Some(fired.evidence.clone());
                self.changes.push(change);
            }
            What::Answer(answer) => self.answer(place, log, answer),
            What::Message(message) => {
                let next = log.entries[at..].iter().find_map(|entry| match &entry.what {
                    What::Injection(injection) => Some(injection.rules.clone()),
                    _ => None,
                });
                let rules = next.filter(|_| message.custom_type == "ttsr-injection");
                let by = rules.map_or(By::Host, |names| By::Rules { names });
                let change = Change::new(place, ChangeKind::Reminder, by).because(&message.custom_type);
                self.changes.push(change.texts(None, Some(&message.text)));
            }
            What::Tool(call) => self.tool(place, log, call),
            What::Withheld(withheld) => {
                let by = By::Extension { id: withheld.extension_id.clone() };
                let bytes = of(withheld.bytes, "byte", "bytes");
                let reason = format!("{bytes} in {}: {}", withheld.callback, withheld.reason);
                self.changes.push(Change::new(place, ChangeKind::Withheld, by).because(&reason));
            }
            What::CompactionEnd(end) => {
                let Some(summary) = &end.summary else { return };
                let reason = format!("messages before turn {} are summarised", end.prune_before_turn);
                let change = Change::new(place, ChangeKind::Compacted, By::Host).because(&reason);
                self.changes.push(change.texts(None, Some(summary)));
            }
            What::HistoryReplaced(messages) => {
                let reason = format!("by {}", of(*messages, "message", "messages"));
                self.changes.push(Change::new(place, ChangeKind::HistoryReplaced, By::Host).because(&reason));
            }
            _ => {}
        }
    }
}

/// Names what a rule watched.
fn stream(fired: &turn::transcript::RuleFired) -> String {
    match (fired.stream.as_str(), &fired.tool) {
        ("text", _) => "the answer".to_owned(),
        ("thinking", _) => "the reasoning".to_owned(),
        (_, Some(tool)) => format!("a call of {tool}"),
        (other, None) => other.to_owned(),
    }
}

impl Change {
    fn new((step, attempt): (u32, u32), kind: ChangeKind, by: By) -> Self {
        let (reason, diff) = (String::new(), Vec::new());
        Self { step, attempt, kind, by, reason, evidence: None, before: None, after: None, diff }
    }

    fn because(mut self, reason: &str) -> Self {
        reason.clone_into(&mut self.reason);
        self
    }

    fn texts(mut self, before: Option<&str>, after: Option<&str>) -> Self {
        if let (Some(before), Some(after)) = (before, after) {
            self.diff = diff(before, after);
        }
        (self.before, self.after) = (before.map(str::to_owned), after.map(str::to_owned));
        self
    }
}

impl By {
    fn author(author: &Author) -> Self {
        match author {
            Author::Extension(id) => Self::Extension { id: id.clone() },
            Author::Addition { extension_id, .. } => Self::Manifest { id: extension_id.clone() },
            Author::User | Author::Model | Author::Host => Self::Host,
        }
    }

    /// The one that it must have been, or all that it can have been: the extensions whose callbacks changed something, or did not check
    /// text that was therefore replaced.
    fn candidates(log: &Log, callbacks: &[&str], complete: bool) -> Self {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut add = |extension: &str, callback: &str, changed: u64| {
            let known = candidates.iter_mut().find(|one| one.extension == extension && one.callback == callback);
            match known {
                Some(known) => known.changed += changed,
                None => candidates.push(Candidate {
                    extension: extension.to_owned(),
                    callback: callback.to_owned(),
                    changed,
                }),
            }
        };
        for one in log.callbacks.iter().filter(|one| one.changed > 0 && callbacks.contains(&one.callback.as_str())) {
            add(&one.extension, &one.callback, one.changed);
        }
        for entry in &log.entries {
            if let What::Withheld(one) = &entry.what
                && callbacks.contains(&one.callback.as_str())
            {
                add(&one.extension_id, &one.callback, 1);
            }
        }
        match candidates.split_first() {
            Some((first, more)) if complete && more.iter().all(|other| other.extension == first.extension) => {
                Self::Extension { id: first.extension.clone() }
            }
            _ => Self::OneOf { candidates },
        }
    }
}
