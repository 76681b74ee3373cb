//! What is sent to a model in one attempt.

use std::sync::Arc;

use crate::{Message, PluginId, Position, ToolSpec};

/// One request to a model, before any provider turns it into its wire format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// Blocks of the system prompt, stable ones first, so that a provider's prompt cache keeps its prefix.
    pub system: Vec<String>,
    /// The conversation, oldest first. Shared: an attempt copies no history.
    pub messages: Vec<Arc<Message>>,
    /// Tools offered to the model, in the order to list them.
    pub tools: Vec<ToolSpec>,
    /// The most tokens the answer may have; none = the provider's own default.
    pub max_tokens: Option<u32>,
}

/// Text that a plugin's manifest adds to the prompt. Ordered by plugin id within a position, then as declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptAddition {
    /// Whose it is.
    pub plugin: PluginId,
    /// Where it goes.
    pub position: Position,
    /// The text, as declared.
    pub text: String,
}
