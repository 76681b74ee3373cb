//! `[[prompt]]` of a manifest as typed: text for the prompt, and its conditions.

use flow::Position;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// Text added to the prompt. Within a position, texts without conditions come first; then they are ordered by plugin id, and as
/// they are declared.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdditionFile {
    /// The position in the prompt.
    pub(crate) position: Position,
    /// The text, which the model receives verbatim.
    #[schemars(length(min = 1))]
    pub(crate) content: String,
    /// The conditions of the text, at least one; it is added where all of them pass. Without this table it is always added.
    #[serde(default)]
    pub(crate) when: Option<ConditionsFile>,
}

/// The conditions of a text. For the system prompt they are evaluated before each step, for the user's input when it joins the
/// conversation. A condition that cannot be evaluated does not pass, and is reported.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConditionsFile {
    /// A tag that opens in the last user input or in the last answer, outside of code and comments: a name such as `plan`, or
    /// the start of one such as `note-*`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) tag_present: Option<String>,
    /// A value in the state of this plugin; requires the capability `state`.
    #[serde(default)]
    pub(crate) state_value: Option<StateValueFile>,
    /// Facts of the session; all that are given must match.
    #[serde(default)]
    pub(crate) context_match: Option<ContextMatchFile>,
}

/// A value in the state of the plugin, with exactly one of `equals` and `exists`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StateValueFile {
    /// The key of the value.
    #[schemars(length(min = 1))]
    pub(crate) key: String,
    /// The condition passes if the value is this string, number or boolean: as JSON, which is what the SDK stores, or for a
    /// string also as plain bytes.
    #[serde(default)]
    pub(crate) equals: Option<ScalarFile>,
    /// The condition passes if there is a value (true), or if there is none (false).
    #[serde(default)]
    pub(crate) exists: Option<bool>,
}

/// Facts of the session. A glob without `/` is also tried on the part after the last `/`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextMatchFile {
    /// A glob on the name of the model, such as `claude-*`. Letter case does not count.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) model: Option<String>,
    /// A glob on the name of the agent; a session has the agent `main` unless it is given another.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) agent: Option<String>,
    /// A glob on the absolute path of the workspace, such as `/src/**` for folders below `/src`.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) workspace: Option<String>,
    /// The turn of the session since it was opened, from 1, or a range of turns: `"2.."`, `"..=5"`, `"2..=5"`.
    #[serde(default)]
    pub(crate) turn: Option<TurnFile>,
}

/// A string, a number or a boolean.
#[derive(Debug)]
pub(crate) struct ScalarFile(pub(crate) toml::Value);

/// The number of a turn, or a range.
#[derive(Debug)]
pub(crate) struct TurnFile(pub(crate) toml::Value);

impl<'de> Deserialize<'de> for ScalarFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        toml::Value::deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for TurnFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        toml::Value::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for ScalarFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "number" }, { "type": "boolean" }] })
    }
}

impl JsonSchema for TurnFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Turn".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "minLength": 1 }] })
    }
}
