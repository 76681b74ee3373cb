//! The streams of an answer.

use crate::CallId;

/// The stream that a block of an answer belongs to: the text blocks of one answer are one stream, its thinking blocks
/// another, and each tool call is a stream of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// The answer's text, which the user reads.
    Text,
    /// The model's reasoning.
    Thinking,
    /// The arguments of one tool call. Deltas carry chunks of their JSON; rules are matched on the decoded values.
    Tool {
        /// The id of the call.
        call: CallId,
        /// The name of the tool that is called.
        name: String,
    },
}

impl StreamKind {
    /// Whether the stream is the arguments of a tool call.
    pub fn is_tool(&self) -> bool {
        matches!(self, Self::Tool { .. })
    }

    /// The word for the kind of stream in records and output: `text`, `thinking` or `tool`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::Tool { .. } => "tool",
        }
    }
}
