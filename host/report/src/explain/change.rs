//! The types of an explanation, and who can have made a change.

use record::{Author, Evidence};
use serde::Serialize;

use crate::diff::{Chunk, diff};
use crate::report::{Log, What};

/// What changed in a turn, and who changed it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// The session's id.
    pub session: String,
    /// The number of the turn.
    pub turn: u32,
    /// How the turn ended; `None`: the transcript ends before.
    pub status: Option<String>,
    /// The changes, in the order in which they happened.
    pub changes: Vec<Change>,
    /// What the records do not say, in whole sentences.
    pub notes: Vec<String>,
}

/// A change of a text, or its cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The step in the turn; 0: before the first.
    pub step: u32,
    /// The attempt in the step; 0: it is about none.
    pub attempt: u32,
    /// What happened to the text.
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
    /// The arguments of a tool call became others.
    ArgumentsChanged,
    /// The result of a tool became another.
    ResultChanged,
    /// A reminder precedes the result of a tool in what the model reads.
    ToolReminder,
    /// A tool call was not made because of a rule.
    ToolBlocked,
    /// Older messages were replaced by a summary.
    Compacted,
    /// Parts of the conversation were left out of what the model reads.
    LeftOut,
    /// The conversation was replaced.
    HistoryReplaced,
}

/// Who changed something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum By {
    /// This extension, in a callback.
    Extension {
        /// The id of the extension.
        id: String,
    },
    /// The manifest of this extension.
    Manifest {
        /// The extension's id.
        id: String,
    },
    /// These rules, and the host on their behalf.
    Rules {
        /// The names of the rules.
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
    /// The id of the extension.
    pub extension: String,
    /// The callback's name.
    pub callback: String,
    /// How many of its calls changed something, or failed so that a marker replaced what they did not check.
    pub changed: u64,
}

impl Change {
    pub(super) fn new((step, attempt): (u32, u32), kind: ChangeKind, by: By) -> Self {
        let (reason, diff) = (String::new(), Vec::new());
        Self { step, attempt, kind, by, reason, evidence: None, before: None, after: None, diff }
    }

    pub(super) fn because(mut self, reason: &str) -> Self {
        reason.clone_into(&mut self.reason);
        self
    }

    pub(super) fn texts(mut self, before: Option<&str>, after: Option<&str>) -> Self {
        if let (Some(before), Some(after)) = (before, after) {
            self.diff = diff(before, after);
        }
        (self.before, self.after) = (before.map(str::to_owned), after.map(str::to_owned));
        self
    }
}

impl By {
    pub(super) fn author(author: &Author) -> Self {
        match author {
            Author::Extension(id) => Self::Extension { id: id.clone() },
            Author::Addition { extension_id, .. } => Self::Manifest { id: extension_id.clone() },
            Author::User | Author::Model | Author::Host => Self::Host,
        }
    }

    /// The one that it must have been, or all that it can have been: the extensions whose callbacks changed something, or did not check
    /// text that was therefore replaced.
    pub(super) fn candidates(log: &Log, callbacks: &[&str], complete: bool) -> Self {
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
