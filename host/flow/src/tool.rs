//! Tools: what they are called with, what they answer, who may run them.

use crate::CallId;

/// The definition of a tool for the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name, unique among the tools of a session.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments (an object).
    pub parameters: serde_json::Value,
}

/// A call that the model made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// Pairs it with its result.
    pub id: CallId,
    /// The tool's name, as the model wrote it.
    pub name: String,
    /// The arguments exactly as the model wrote them: JSON text, `{}` where it wrote nothing.
    pub arguments: String,
}

/// What goes back to the model for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call it answers.
    pub call: CallId,
    /// Text blocks. Reminders of stream rules come before the tool's own, which are never altered.
    pub content: Vec<String>,
    /// The call failed; `content` contains the reason.
    pub is_error: bool,
}

/// What a tool gave, before it becomes a [`ToolResult`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// For the model.
    pub content: String,
    /// Human-readable: a unified diff of the change, if there is one.
    pub diff: Option<String>,
    /// The tool failed; `content` contains the reason and the remedy.
    pub is_error: bool,
}

/// May this call run?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Permission {
    /// The call runs without a question.
    Allow,
    /// Somebody must be asked first.
    Ask {
        /// Which setting asks, for the person: `shell is set to ask`.
        reason: String,
    },
    /// No; the reason goes to the model.
    Deny {
        /// The reason, with the setting.
        reason: String,
    },
}

impl Permission {
    /// The one that permits less; of two that permit as much, this one.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let rank = |permission: &Self| match permission {
            Self::Allow => 0,
            Self::Ask { .. } => 1,
            Self::Deny { .. } => 2,
        };
        if rank(&other) > rank(&self) { other } else { self }
    }
}
