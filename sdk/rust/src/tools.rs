//! Power `tools`: which tools the model is offered. Name `tools` under `[capabilities]`, with the reason.

use crate::{Attribute, host};

/// A tool that the model is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The tool's name, as the model writes it.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments, as JSON text.
    pub parameters: String,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

impl ToolInfo {
    /// A tool with this JSON Schema of its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: parameters.into(),
            attributes: Vec::new(),
        }
    }
}

/// All tools of the session, in the order they are offered.
pub fn list() -> Vec<ToolInfo> {
    host::tools_list()
}
