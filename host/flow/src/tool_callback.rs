//! The callbacks around calls of tools: what they get, and what they answer.

use crate::{Annotation, RunPosition, ToolCall};

/// A call as `on_tool_call` gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedCall {
    /// The position in the run.
    pub at: RunPosition,
    /// The call. Its arguments are a JSON object, written without white space.
    pub call: ToolCall,
    /// A person has written the arguments.
    pub edited: bool,
}

/// Answer to `on_tool_call`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallAnswer {
    /// Keeps the call as it was given.
    Pass,
    /// This JSON object in the place of the arguments.
    Replace(String),
    /// The call does not run; no further extension is asked.
    Deny {
        /// For the model.
        reason: String,
        /// What is shown of the arguments in their place: a JSON object.
        shown: Option<String>,
    },
    /// Its answer is not valid (the reason); its input is passed on.
    Ignored(String),
}

/// What a result is for, that `on_tool_result` gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResultStage {
    /// The call has run.
    Done,
    /// A person is asked about the call, and would be shown the change that it makes.
    Preview,
}

/// A result as `on_tool_result` gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenResult {
    /// The position in the run.
    pub at: RunPosition,
    /// The call, with the arguments that run.
    pub call: ToolCall,
    /// What it is for.
    pub stage: ResultStage,
    /// Text blocks for the model.
    pub content: Vec<String>,
    /// A unified diff, for people.
    pub diff: Option<String>,
    /// The call failed.
    pub is_error: bool,
}

impl GivenResult {
    /// Bytes of what it has of the tool.
    pub fn bytes(&self) -> usize {
        self.content.iter().chain(&self.diff).map(String::len).sum()
    }
}

/// Answer to `on_tool_result`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultAnswer {
    /// The blocks and the diff from here on; `None` = no change.
    pub replace: Option<(Vec<String>, Option<String>)>,
    /// What the extension notes about the result.
    pub annotations: Vec<Annotation>,
    /// Why what it returned for the result cannot be used; `replace` is `None` then.
    pub unusable: Option<String>,
    /// Other invalid parts of its answer, each with its reason.
    pub ignored: Vec<String>,
}
