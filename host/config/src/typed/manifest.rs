//! `plugin.toml` as typed.

use std::collections::BTreeMap;

use flow::{Position, SettingKind};
use schemars::JsonSchema;
use serde::Deserialize;

use super::operator::ValueFile;
use crate::BuildKind;

/// The manifest of a Tidegate plugin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "plugin.toml")]
pub(crate) struct ManifestFile {
    /// The plugin's id: 1 to 64 letters, digits and hyphens.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9-]+$"))]
    pub(crate) id: String,
    /// The plugin's version, such as `0.1.0`.
    pub(crate) version: String,
    /// The version of the contract it is made for: `0.1`.
    pub(crate) api: String,
    /// What it does, in one sentence.
    #[schemars(length(min = 1))]
    pub(crate) description: String,
    /// Its licence, such as `Apache-2.0 OR MIT`.
    #[serde(default)]
    pub(crate) license: Option<String>,
    /// Who made it.
    #[serde(default)]
    pub(crate) authors: Vec<String>,
    /// Where its source is.
    #[serde(default)]
    pub(crate) repository: Option<String>,
    /// The WebAssembly component; a plugin may be rules and prompts alone.
    #[serde(default)]
    pub(crate) component: Option<ComponentFile>,
    /// How the component is built from the plugin's folder.
    #[serde(default)]
    pub(crate) build: Option<BuildFile>,
    /// What happens when one of its callbacks did not do its work, for those that register nothing else.
    #[serde(default)]
    pub(crate) on_failure: Option<OnFailureWord>,
    /// Powers it asks for, each with why it needs it.
    #[serde(default)]
    pub(crate) capabilities: CapabilitiesFile,
    /// Limits it asks for; the operator's are the upper bound.
    #[serde(default)]
    pub(crate) limits: LimitsRequest,
    /// Settings that the operator may give it.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, SettingFile>,
    /// Rules that the plugin adds, under `[[rule]]`.
    #[serde(default)]
    pub(crate) rule: Vec<rules::RuleSpec>,
    /// Additions to the prompt; they need the capability `prompt`.
    #[serde(default)]
    pub(crate) prompt: Vec<AdditionFile>,
    /// Guidance on tools.
    #[serde(default)]
    pub(crate) tools: GuidanceFile,
}

/// The WebAssembly component.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ComponentFile {
    /// The component's file, relative to the manifest and inside its folder.
    #[schemars(length(min = 1))]
    pub(crate) path: String,
}

/// How the component is built.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BuildFile {
    /// The language it is written in.
    pub(crate) kind: BuildKind,
}

/// What happens when a callback did not do its work: it failed, was skipped, or returned something that cannot be used.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnFailureWord {
    /// The chain continues with the value that the callback was given.
    Skip,
    /// Nothing that was not checked is shown (`on_plain_text`, `on_tag`, a rewriting `on_llm_output`) or sent
    /// (`on_input_messages`).
    Withhold,
}

impl OnFailureWord {
    /// Whether callbacks fail closed.
    pub(crate) fn closed(self) -> bool {
        matches!(self, Self::Withhold)
    }
}

/// Powers, each with why the plugin needs it; the operator reads this before granting. `log`, `settings`, `clock` and `random`
/// are always granted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CapabilitiesFile {
    /// Why it keeps state.
    #[schemars(length(min = 1))]
    pub(crate) state: Option<String>,
    /// Why it sees facts about the session.
    #[schemars(length(min = 1))]
    pub(crate) session: Option<String>,
    /// Why it sees the messages of the conversation.
    #[schemars(length(min = 1))]
    pub(crate) history: Option<String>,
    /// Why it sees which tools are offered.
    #[schemars(length(min = 1))]
    pub(crate) tools: Option<String>,
    /// Why it adds to the prompt.
    #[schemars(length(min = 1))]
    pub(crate) prompt: Option<String>,
}

/// Limits of one plugin.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsRequest {
    /// Milliseconds of its own time for one call of `on_input_messages`, `on_llm_output` or `ttsr_triggered`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) callback_ms: Option<u64>,
    /// Milliseconds of its own time for one call of `on_plain_text` or `on_tag`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) text_ms: Option<u64>,
    /// Milliseconds of its own time for all calls of one turn together.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) turn_ms: Option<u64>,
    /// MiB of memory of one instance.
    #[schemars(range(min = 1, max = 4_096))]
    pub(crate) memory_mib: Option<u64>,
    /// KiB that one call may give back.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub(crate) output_kib: Option<u64>,
    /// Seconds for which a value of the power `state` is kept since it was last read or written, where the plugin sets no time.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub(crate) state_ttl_s: Option<u64>,
}

/// A setting of the plugin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingFile {
    /// What kind of value it has.
    #[serde(rename = "type")]
    pub(crate) kind: SettingKind,
    /// Its value where the operator gives none; without a default the operator has to give one.
    #[serde(default)]
    pub(crate) default: Option<ValueFile>,
    /// What it does.
    #[schemars(length(min = 1))]
    pub(crate) description: String,
}

/// Text added to the prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdditionFile {
    /// Where it goes.
    pub(crate) position: Position,
    /// The text, as the model sees it.
    #[schemars(length(min = 1))]
    pub(crate) content: String,
}

/// Guidance on tools: it orders and advises, and never forbids.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GuidanceFile {
    /// Tools to prefer; they are listed first.
    pub(crate) preferred_tools: Vec<String>,
    /// Tools to avoid; they are listed last.
    pub(crate) avoided_tools: Vec<String>,
    /// The order in which tools are best used.
    pub(crate) tool_order: Vec<String>,
}

impl GuidanceFile {
    pub(crate) fn is_empty(&self) -> bool {
        self.preferred_tools.is_empty() && self.avoided_tools.is_empty() && self.tool_order.is_empty()
    }
}
