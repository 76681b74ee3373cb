//! What a front end shows: messages with their blocks and tool calls. All of it is JSON too, for front ends in other languages.

use flow::{CallId, Message, Part, PlanEntry, TurnStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::OutgoingId;
use crate::list::List;
use crate::text::{Str, Text};

/// The most bytes of a [`ToolEntry::summary`].
const SUMMARY: usize = 120;

/// Names one message of a log. The same events give the same ids, live, from a transcript and after a reconnect.
///
/// `in-7` is the input with the event number 7, `2.1` the answer of the first step of turn 2, `2.1.1` the one after it in the same step
/// (where a rule stopped an answer and kept it), `h-9.0` the first message of the history that event 9 put in place, `2.1/2` the second that a
/// [transform](crate::LogOptions::transform) has made of `2.1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct MessageId(Str);

impl MessageId {
    /// An id of the front end's own, for messages that it puts into a log.
    pub fn new(id: impl Into<String>) -> Self {
        Self(Str::from(id.into()))
    }

    /// The id of a message of the history that an event put in place.
    pub(crate) fn of_history(seq: u64, number: usize) -> Self {
        Self::new(format!("h-{seq}.{number}"))
    }

    pub(crate) fn is_of_history(&self) -> bool {
        self.0.starts_with("h-")
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The author of a message, as a front end shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Author {
    /// Input of the person or program.
    User,
    /// An answer of the model, or of an extension in its place.
    #[default]
    Assistant,
    /// A message of the host that is not hidden.
    Host,
}

/// One message of a log. Two versions of it share what is the same in both, so that comparing them costs little.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ChatMessage {
    /// Stays the same for the life of the message.
    pub id: MessageId,
    /// Who wrote it.
    pub author: Author,
    /// The turn of the thread, from 1; 0: before the first.
    pub turn: u32,
    /// The step of the turn, from 1; 0: before the first.
    pub step: u32,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Text and reasoning in the order in which they were shown.
    pub blocks: List<Block>,
    /// The images of an input.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub images: List<ChatImage>,
    /// Tool calls, in the model's order.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub calls: List<ToolEntry>,
    /// No text follows. Tool calls of a complete message can still run.
    pub complete: bool,
    /// Of a message that did not come to its end: why. What was shown of it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<Str>,
    /// Of an input: the id that it was handed over with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<OutgoingId>,
    /// Input that arrived while the turn ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub steered: bool,
    /// The extension that answered in the model's place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<Str>,
    /// What extensions noted about the answer.
    #[serde(skip_serializing_if = "List::is_empty")]
    pub notes: List<Note>,
}

impl ChatMessage {
    /// A complete message of one block of text, such as one of an earlier session.
    pub fn new(id: MessageId, author: Author, text: &str) -> Self {
        let blocks = List::from_iter(Some(Block::new(BlockKind::Text, text)).filter(|block| !block.text.is_empty()));
        let blocks = blocks.iter().cloned().map(|block| Block { complete: true, ..block }).collect();
        Self { id, author, blocks, complete: true, ..Self::default() }
    }

    /// The text that is valid: without reasoning, and without what is void. Takes time in the length of the text.
    pub fn text(&self) -> String {
        let valid = self.blocks.iter().filter(|block| block.is_text());
        valid.flat_map(|block| block.text.chunks()).collect()
    }
}

/// What a block contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockKind {
    /// Text of the answer, or of the input.
    #[default]
    Text,
    /// The model's reasoning, as far as it is shown.
    Reasoning,
}

/// A contiguous part of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct Block {
    /// What it contains.
    pub kind: BlockKind,
    /// What was shown of it.
    pub text: Text,
    /// Nothing is added to it any more.
    pub complete: bool,
    /// The cause, where it was shown and does not count any more: a rule stopped the answer, or the request was repeated. A front end
    /// removes it or strikes it through; the valid text continues after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub void: Option<Str>,
}

impl Block {
    /// A block of text that can still grow, such as a part of one that a front end splits.
    pub fn new(kind: BlockKind, text: &str) -> Self {
        Self { kind, text: Text::from(text), ..Self::default() }
    }

    /// Whether more of this kind is added to it.
    pub(crate) fn continues(&self, kind: BlockKind) -> bool {
        self.kind == kind && self.void.is_none() && !self.complete
    }

    /// Whether it is valid text, not reasoning.
    pub(crate) fn is_text(&self) -> bool {
        self.kind == BlockKind::Text && self.void.is_none()
    }
}

/// An image that the user has sent. Its data are shared with the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ChatImage {
    /// Its media type, such as `image/png`.
    pub media_type: Str,
    /// Its file in base64.
    pub data: Str,
}

impl ChatImage {
    /// The images of a message, in order.
    pub(crate) fn of(message: &Message) -> List<Self> {
        let image = |part: &Part| match part {
            Part::Image(image) => {
                Some(Self { media_type: image.media_type().into(), data: image.shared_base64().into() })
            }
            Part::Text(_) | Part::Thinking { .. } | Part::ToolCall(_) | Part::ToolResult(_) => None,
        };
        message.parts.iter().filter_map(image).collect()
    }
}

/// Where a tool call is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolStatus {
    /// The model asks for it.
    #[default]
    Proposed,
    /// A person is asked about it.
    Asking,
    /// It runs now, with all permission that it needs.
    Running,
    /// It ran, and its result is no error.
    Done,
    /// It ran and failed.
    Failed,
    /// It did not run: it was denied, or refused.
    NotRun,
    /// Its turn ended before its result.
    Cancelled,
}

impl ToolStatus {
    /// Whether nothing happens to the call any more.
    pub fn is_final(self) -> bool {
        match self {
            Self::Proposed | Self::Asking | Self::Running => false,
            Self::Done | Self::Failed | Self::NotRun | Self::Cancelled => true,
        }
    }
}

/// A tool call of a message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct ToolEntry {
    /// The call's id, unique within its message and not in a thread.
    pub call: Str,
    /// The tool's name.
    pub tool: Str,
    /// The arguments as the model wrote them. From records of calls that were never listed by their answer, the same JSON value.
    pub arguments: Str,
    /// Where the call is.
    pub status: ToolStatus,
    /// One line: the last progress of a running tool, or the first line of the result, at most 120 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Str>,
    /// How much is done, from 0 to 100, where the tool knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<f64>,
    /// What the tool gave, or why it failed or did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Str>,
    /// The change that it made, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Str>,
    /// How long it ran, in milliseconds; absent where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How long a person was waited for, in milliseconds; absent where nobody was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// When it started, in milliseconds since 1970-01-01 UTC: while it runs, and where it was cancelled then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
}

impl ToolEntry {
    pub(crate) fn new(call: &CallId, tool: &str, arguments: &str) -> Self {
        Self { call: call.as_str().into(), tool: tool.into(), arguments: arguments.into(), ..Self::default() }
    }

    /// The first line of a text that is not blank, cut after 120 bytes.
    pub(crate) fn summarise(&mut self, text: &str) {
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        self.summary = line.map(|line| line[..line.floor_char_boundary(SUMMARY)].into());
    }
}

/// What an extension noted about an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Note {
    /// The extension's id.
    pub extension: Str,
    /// The key, chosen by the extension.
    pub key: Str,
    /// The value, any JSON.
    pub value: Value,
}

impl Note {
    pub(crate) fn new(extension: &str, key: &str, value: Value) -> Self {
        Self { extension: extension.into(), key: key.into(), value }
    }
}

/// The thread of a child agent. Its events change nothing of its parent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ChildThread {
    /// The child's thread id.
    pub id: Str,
    /// The agent's name.
    pub agent: Str,
}

impl ChildThread {
    /// The thread `id` of an agent.
    pub fn new(id: &str, agent: &str) -> Self {
        Self { id: id.into(), agent: agent.into() }
    }
}

/// An entry of the plan that the model has shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PlanItem {
    /// What is to be done, in the words of the model.
    pub content: Str,
    /// `pending`, `in_progress` or `completed`.
    pub status: Str,
}

impl PlanItem {
    pub(crate) fn of(entry: &PlanEntry) -> Self {
        Self { content: entry.content.as_str().into(), status: entry.status.as_str().into() }
    }
}

/// Why the last turn did not complete. A cancelled turn is no error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TurnError {
    /// `rejected`, `stopped_by_rule`, `failed`, `step_limit`, `no_progress` or `suspended`.
    pub status: Str,
    /// The error in one sentence, for the person.
    pub message: Str,
}

impl TurnError {
    pub(crate) fn of(status: &TurnStatus) -> Option<Self> {
        let message = match status {
            TurnStatus::Completed | TurnStatus::Cancelled => return None,
            TurnStatus::Rejected { by, reason } => format!("extension `{by}` rejected the input: {reason}"),
            TurnStatus::StoppedByRule { rule } => format!("rule `{rule}` stopped the turn"),
            TurnStatus::Failed { message, .. }
            | TurnStatus::NoProgress { message }
            | TurnStatus::Suspended { message, .. } => message.clone(),
            TurnStatus::StepLimit { steps } => format!("the turn reached its limit of {steps} steps"),
        };
        Some(Self { status: status.as_str().into(), message: message.into() })
    }
}

/// Whether a call changed the state that a front end shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a front end draws again where the state has changed"]
pub enum Changed {
    /// Nothing that is shown has changed.
    No,
    /// The state has changed: take a new one.
    Yes,
}

impl Changed {
    /// Whether the state has changed.
    pub fn is_yes(self) -> bool {
        self == Self::Yes
    }

    /// Whether this or `other` changed the state.
    pub fn or(self, other: Self) -> Self {
        if self.is_yes() { self } else { other }
    }
}

impl From<bool> for Changed {
    fn from(changed: bool) -> Self {
        if changed { Self::Yes } else { Self::No }
    }
}
