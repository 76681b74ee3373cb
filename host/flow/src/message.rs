//! What the conversation is made of.

use crate::image::{ESTIMATED_BYTES, Image};
use crate::{AdditionId, PluginId, ToolCall, ToolResult};

/// The author of a message, as every provider knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions to the model, not part of the conversation.
    System,
    /// The person (or program) that gives input.
    User,
    /// An answer of the model.
    Assistant,
    /// Results of tool calls.
    Tool,
}

impl Role {
    /// The role's word on every surface: `system`, `user`, `assistant`, `tool`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Who wrote a message, which is not the same as the role it is sent under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user's own words.
    User,
    /// The model's answer.
    Model,
    /// The host itself: reminders of stream rules, tool results.
    Host,
    /// A plugin, in a callback.
    Plugin(PluginId),
    /// A plugin's manifest: text that is added around the user's input. Such messages are hidden.
    Addition(AdditionId),
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Text of the author.
    Text(String),
    /// An image of the user's input. Sent under the user's role only.
    Image(Image),
    /// The model's reasoning. The signature is opaque and must go back to its provider byte for byte.
    Thinking {
        /// The words; may be empty where the provider hides them.
        text: String,
        /// Opaque data that the provider requires back with the text.
        signature: Option<String>,
        /// The provider gave `signature` instead of words.
        redacted: bool,
        /// What the user saw of it, where that is kept and not the words: these are for the provider alone, whose signature is about
        /// them.
        shown: Option<String>,
    },
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// The answer to a [`Part::ToolCall`].
    ToolResult(ToolResult),
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Under which role the model sees it.
    pub role: Role,
    /// Who wrote it.
    pub origin: Origin,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// Sent to the model, never shown to the user (reminders, prompt additions).
    pub hidden: bool,
}

impl Part {
    /// Reasoning as anybody but its provider gets it: the words, or what the user saw of them where that is kept. `None` for any other
    /// part.
    pub fn seen_thinking(&self) -> Option<&str> {
        match self {
            Self::Thinking { text, shown, .. } => Some(shown.as_deref().unwrap_or(text)),
            Self::Text(_) | Self::Image(_) | Self::ToolCall(_) | Self::ToolResult(_) => None,
        }
    }
}

impl Message {
    /// A message of one text part.
    pub fn text(role: Role, origin: Origin, text: impl Into<String>) -> Self {
        Self { role, origin, parts: vec![Part::Text(text.into())], hidden: false }
    }

    /// The user's own words.
    pub fn user(text: impl Into<String>) -> Self {
        Self::text(Role::User, Origin::User, text)
    }

    /// Whether it has nothing but [blank](crate::is_blank) text: the model would have nothing to answer.
    pub fn is_blank(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(text) if crate::is_blank(text)))
    }

    /// All text parts, joined without anything between them. Images, thinking and tools are left out.
    pub fn plain_text(&self) -> String {
        self.parts
            .iter()
            .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
            .collect()
    }

    /// The bytes of all its texts: what it is about as long as. An image counts as text of about as many tokens.
    pub fn bytes(&self) -> usize {
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Thinking { text, .. } => text.len(),
            Part::Image(_) => ESTIMATED_BYTES,
            Part::ToolCall(call) => call.name.len() + call.arguments.len(),
            Part::ToolResult(result) => result.content.iter().map(String::len).sum(),
        };
        self.parts.iter().map(part).sum()
    }

    /// The tool calls in it, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None })
    }
}
