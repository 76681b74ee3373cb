//! A question about a tool call, as a front end shows it.

use flow::Preview;
use serde::{Deserialize, Serialize};

use crate::command::{Answer, Command};
use crate::message::ChildThread;
use crate::text::Str;

/// Names a question, as the session does that answers it: [`flow::QuestionId`]. The id of a child's question begins with the
/// child's thread, which is how the session of its parent names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
#[serde(transparent)]
pub struct QuestionId(Str);

impl QuestionId {
    /// Wraps an id, such as one that a front end in another process has sent.
    pub fn new(id: impl Into<String>) -> Self {
        Self(Str::from(id.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&QuestionId> for flow::QuestionId {
    fn from(id: &QuestionId) -> Self {
        Self::new(id.as_str())
    }
}

/// A question about a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Question {
    /// What an answer names.
    pub id: QuestionId,
    /// The id of the call.
    pub call: Str,
    /// The tool's name.
    pub tool: Str,
    /// The arguments as the model wrote them.
    pub arguments: Str,
    /// Which setting asks.
    pub reason: Str,
    /// What the answer `always` would allow; absent where each such call is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Str>,
    /// When the question is answered by itself, in milliseconds since 1970-01-01 UTC; absent where it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// What the person is shown of the call. The strings are exact: a front end escapes what its surface would hide or act on.
    pub preview: PreviewState,
    /// The turn, from 1.
    pub turn: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// When it was asked, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The child agent whose call it is; absent for the session's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildThread>,
    /// The answer that this front end has sent, until the session reports that the question is resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Why the last answer was refused, or not delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Str>,
    /// Why the policy did not decide about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_error: Option<Str>,
}

impl Question {
    pub(crate) fn command(&self, answer: Answer) -> Command {
        Command::Answer { question: self.id.clone(), call: self.call.clone(), child: self.child.clone(), answer }
    }
}

/// What a person is shown of a call: [`Preview`], shared between states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Preview"))]
#[serde(default)]
#[non_exhaustive]
pub struct PreviewState {
    /// The decoded arguments, each whole.
    pub arguments: Vec<ArgumentState>,
    /// The change to a file as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<Str>,
    /// Facts that neither the arguments nor the diff show.
    pub notes: Vec<Str>,
}

/// One decoded argument.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Argument"))]
#[non_exhaustive]
pub struct ArgumentState {
    /// The argument's key.
    pub name: Str,
    /// A string as it is, anything else as JSON.
    pub value: Str,
}

impl PreviewState {
    pub(crate) fn of(preview: &Preview) -> Self {
        let argument = |one: &flow::Argument| ArgumentState { name: (&one.name).into(), value: (&one.value).into() };
        Self {
            arguments: preview.arguments.iter().map(argument).collect(),
            diff: preview.diff.as_ref().map(Into::into),
            notes: preview.notes.iter().map(Into::into).collect(),
        }
    }
}
