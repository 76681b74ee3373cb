//! A stream rule as typed in a manifest.

use schemars::JsonSchema;
use serde::Deserialize;

/// A stream rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleFile {
    /// The rule's name.
    #[schemars(length(min = 1))]
    pub(crate) name: String,
    /// What the model is told when the rule fires.
    #[schemars(length(min = 1))]
    pub(crate) body: String,
}
