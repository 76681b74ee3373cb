//! The variables of conditions: a closed list.

use flow::RetryPolicy;

use super::Value;
use crate::Operator;

/// A variable that a condition can name.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// The name as a condition has it.
    pub name: &'static str,
    /// The type of its values.
    pub kind: VariableKind,
    /// What its value is, for the reference page.
    pub about: &'static str,
}

/// The type of a variable's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableKind {
    /// `true` or `false`.
    Bool,
    /// An integer or decimal number.
    Number,
    /// A string, compared byte by byte.
    String,
}

impl VariableKind {
    /// The type with its article, for messages.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
        }
    }
}

/// All variables, in the order of the reference page.
pub const VARIABLES: [Variable; 6] = [
    Variable {
        name: "provider_config.stream.enabled",
        kind: VariableKind::Bool,
        about: "Whether answers of the model stream. `true` with every provider of this version.",
    },
    Variable {
        name: "provider_config.reasoning.returned",
        kind: VariableKind::Bool,
        about: "Whether the provider accepts a history only with the reasoning that it signed, so that reasoning must be kept.",
    },
    Variable {
        name: "provider_config.kind",
        kind: VariableKind::String,
        about: "The wire format, `provider.kind` of `tidegate.toml`; `''` where an embedder supplies the model.",
    },
    Variable {
        name: "provider_config.model",
        kind: VariableKind::String,
        about: "The model's name, `provider.model` of `tidegate.toml`; `''` where none is set.",
    },
    Variable { name: "turn.max_steps", kind: VariableKind::Number, about: "`turn.max_steps` of `tidegate.toml`." },
    Variable {
        name: "turn.max_retries",
        kind: VariableKind::Number,
        about: "`turn.max_retries` of `tidegate.toml`; 3 where it is not set.",
    },
];

/// The configuration of a session, as conditions see it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Variables {
    /// `provider_config.stream.enabled`. Default: true.
    pub stream_enabled: bool,
    /// `provider_config.reasoning.returned`. Default: true, since reasoning that is kept needlessly does no harm.
    pub reasoning_returned: bool,
    /// The value of `provider_config.kind`.
    pub kind: String,
    /// The value of `provider_config.model`.
    pub model: String,
    /// The value of `turn.max_steps`.
    pub max_steps: u32,
    /// The value of `turn.max_retries`.
    pub max_retries: u32,
}

impl Default for Variables {
    fn default() -> Self {
        Self::of(&Operator::default())
    }
}

impl Variables {
    /// The values that the operator's settings give; the others have their defaults.
    pub fn of(operator: &Operator) -> Self {
        Self {
            stream_enabled: true,
            reasoning_returned: true,
            kind: operator.provider.kind.map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
            model: operator.provider.model.clone().unwrap_or_default(),
            max_steps: operator.turn.max_steps,
            max_retries: operator.turn.max_retries.unwrap_or(RetryPolicy::default().max_retries),
        }
    }

    /// The value of a variable of [`VARIABLES`]; a test goes through all of them.
    pub(super) fn value(&self, name: &str) -> Value {
        match name {
            "provider_config.stream.enabled" => Value::Bool(self.stream_enabled),
            "provider_config.reasoning.returned" => Value::Bool(self.reasoning_returned),
            "provider_config.kind" => Value::String(self.kind.clone()),
            "turn.max_steps" => Value::Number(self.max_steps.into()),
            "turn.max_retries" => Value::Number(self.max_retries.into()),
            _ => Value::String(self.model.clone()),
        }
    }
}
