//! Tools that an extension provides to the model. Name `provide-tools` under `[capabilities]`, with the reason.

use std::fmt::Display;

use serde::de::DeserializeOwned;

use crate::{Error, Result, ToolCall, host};

/// Provides tools to the model. The host asks a person before each call, unless the operator allows the tool.
///
/// ```
/// use serde::Deserialize;
/// use tidegate_sdk::prelude::*;
///
/// #[derive(Default)]
/// struct Dice;
///
/// #[derive(Deserialize)]
/// struct Roll {
///     sides: u8,
/// }
///
/// impl ToolProvider for Dice {
///     fn tools(&self) -> Vec<Tool> {
///         let parameters = r#"{
///             "type": "object",
///             "properties": {"sides": {"type": "integer", "minimum": 1, "maximum": 255}},
///             "required": ["sides"],
///             "additionalProperties": false
///         }"#;
///         vec![Tool::new("roll_dice", "Rolls a die and returns the number.", parameters).read_only()]
///     }
///
///     fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer> {
///         let Roll { sides } = call.read()?;
///         let mut random = [0; 1];
///         random::fill(&mut random);
///         Ok(ToolAnswer::text(random[0] % sides + 1))
///     }
/// }
/// tidegate_sdk::export!(Dice: ToolProvider);
/// # fn main() {}
/// ```
pub trait ToolProvider: Sized + 'static {
    /// Returns the tools, 1 to 64. Called when the plugin is loaded, any number of times: it must have no effect, and `state`
    /// refuses. The list can depend on settings, through the extension's fields, and on nothing else.
    fn tools(&self) -> Vec<Tool>;

    /// Does a call of one of the tools. The arguments conform to the tool's schema. It can take as long as the operator's limit
    /// `tool_ms` allows, by default 30 s; when the turn is cancelled, the instance ends in the middle of it.
    ///
    /// # Errors
    /// The extension cannot do its work: the operator sees the error, the model gets it as the result of its call, writes to
    /// state are undone. For what the model can correct, return [`ToolAnswer::Rejected`] or an [`Error::rejected`].
    fn call(&mut self, call: &ToolCall) -> Result<ToolAnswer>;
}

/// A tool as the model is offered it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name: 1 to 64 ASCII letters, digits, `_` and `-`. No other tool of the session has it.
    pub name: String,
    /// What it does and when to use it, for the model; at most 4 KiB.
    pub description: String,
    /// The JSON Schema of its arguments, an object, as JSON text of at most 64 KiB.
    pub parameters: String,
    /// Whether a call changes nothing. It is shown to the person who is asked.
    pub read_only: bool,
}

impl Tool {
    /// A tool with this JSON Schema of its arguments: a string, or a `serde_json::Value`.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: impl Display) -> Self {
        let (name, description, parameters) = (name.into(), description.into(), parameters.to_string());
        Self { name, description, parameters, read_only: false }
    }

    /// The same tool; a call of it changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        Self { read_only: true, ..self }
    }
}

/// What the model gets for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolAnswer {
    /// The call is done, with this result.
    Text(String),
    /// The call cannot be done as the model wrote it: what is wrong, and what to write instead. Writes to state are undone.
    Rejected(String),
}

impl ToolAnswer {
    /// The result of a call that is done: anything that can be shown as text.
    pub fn text(text: impl Display) -> Self {
        Self::Text(text.to_string())
    }

    /// The call cannot be done as the model wrote it: what is wrong, and what to write instead.
    pub fn rejected(reason: impl Display) -> Self {
        Self::Rejected(reason.to_string())
    }
}

impl ToolCall {
    /// Reads the arguments into a type that implements `Deserialize`.
    ///
    /// # Errors
    /// They are not a `T`. The model gets the error as the result of its call, because it can correct it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.arguments)
            .map_err(|error| Error::rejected(format_args!("the arguments of `{}` are not valid: {error}", self.name)))
    }
}

/// Shows a line about the running tool to whoever watches the session; the model does not get it. At most 1 KiB of it is kept, and
/// 256 lines of one call. Outside of [`ToolProvider::call`] it does nothing.
pub fn progress(line: impl Display) {
    host::progress(None, &line.to_string());
}

/// As [`progress`], with how much of the call is done, from 0 to 100; another number is left out. Front ends show it as a bar, and the
/// event catalogue can record milestones of it.
pub fn progress_at(percent: f64, line: impl Display) {
    host::progress(Some(percent), &line.to_string());
}
