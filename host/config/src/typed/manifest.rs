//! `plugin.toml` as typed.

use std::collections::BTreeMap;

use flow::{DEFAULT_PRIORITY, SettingKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::addition::AdditionFile;
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
    /// The version of the contract that the plugin is built for: `0.1`.
    pub(crate) api: String,
    /// What the plugin does, in one sentence.
    #[schemars(length(min = 1))]
    pub(crate) description: String,
    /// The version of the format of what the plugin keeps in `state`, from 1. Raise it when the format changes: the component's
    /// `migration` is then called where an older version wrote the state of a session.
    #[serde(default = "first_state_version")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(crate) state_version: u32,
    /// The license as an SPDX expression, such as `Apache-2.0 OR MIT`.
    #[serde(default)]
    pub(crate) license: Option<String>,
    /// The authors, each as `Name <address>` or as a name.
    #[serde(default)]
    pub(crate) authors: Vec<String>,
    /// The URL of the source repository.
    #[serde(default)]
    pub(crate) repository: Option<String>,
    /// The WebAssembly component. A plugin without one consists of rules, prompt additions or tool guidance.
    #[serde(default)]
    pub(crate) component: Option<ComponentFile>,
    /// How the component is built from the plugin's folder.
    #[serde(default)]
    pub(crate) build: Option<BuildFile>,
    /// The failure policy of callbacks that do not register one themselves.
    #[serde(default)]
    pub(crate) on_failure: Option<OnFailureWord>,
    /// Which text a session keeps of what the plugin's callbacks change (answers, reasoning, calls of tools and their results), where they
    /// do not register it themselves. Default: `original`.
    #[serde(default)]
    pub(crate) keep: Option<flow::KeptText>,
    /// The powers that the plugin requests, each with the reason.
    #[serde(default)]
    pub(crate) capabilities: CapabilitiesFile,
    /// The limits that the plugin requests; the operator's limits are the upper bound.
    #[serde(default)]
    pub(crate) limits: LimitsRequest,
    /// The settings that the operator can set.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, SettingFile>,
    /// The event types that the plugin emits, each under `[events.NAME]`. Their events are named `ID.NAME`.
    #[serde(default)]
    pub(crate) events: BTreeMap<String, EventFile>,
    /// The rules that the plugin adds, each under `[[rule]]`.
    #[serde(default)]
    pub(crate) rule: Vec<rules::RuleSpec>,
    /// Additions to the prompt; they require the capability `prompt`. The text that a plugin adds to the prompt, that of its rules
    /// included, has at most 64 KiB.
    #[serde(default)]
    pub(crate) prompt: Vec<AdditionFile>,
    /// Guidance to the model on the use of tools.
    #[serde(default)]
    pub(crate) tools: GuidanceFile,
}

fn first_state_version() -> u32 {
    1
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
    /// The language of the source.
    pub(crate) kind: BuildKind,
}

/// The policy for a callback that failed, was skipped, or returned an invalid result.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnFailureWord {
    /// The chain continues with the value that the callback received.
    Skip,
    /// Content that was not checked is not shown (`on_plain_text`, `on_tag`, a rewriting `on_llm_output`, `on_tool_result`), not
    /// sent to the model (`on_input_messages`, `on_tool_result`), and a call of a tool does not run (`on_tool_call`).
    Withhold,
}

impl OnFailureWord {
    /// Whether callbacks fail closed.
    pub(crate) fn closed(self) -> bool {
        matches!(self, Self::Withhold)
    }
}

/// Powers, each with the reason why the plugin needs it, which the operator reads before granting. `log`, `events`, `settings`,
/// `clock` and `random` are always granted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CapabilitiesFile {
    /// Why the plugin stores state that outlives a callback.
    #[schemars(length(min = 1))]
    pub(crate) state: Option<String>,
    /// Why the plugin reads facts about the session (id, model, workspace, position).
    #[schemars(length(min = 1))]
    pub(crate) session: Option<String>,
    /// Why the plugin reads the messages of the conversation.
    #[schemars(length(min = 1))]
    pub(crate) history: Option<String>,
    /// Why the plugin reads which tools are offered to the model.
    #[schemars(length(min = 1))]
    pub(crate) tools: Option<String>,
    /// Why the plugin adds text to the prompt.
    #[schemars(length(min = 1))]
    pub(crate) prompt: Option<String>,
    /// Why the plugin provides tools to the model: its component exports `tool-provider`.
    #[serde(rename = "provide-tools")]
    #[schemars(length(min = 1))]
    pub(crate) provide_tools: Option<String>,
}

/// Limits of one plugin.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsRequest {
    /// Milliseconds of the guest's own time for one call of any other callback than `on_plain_text` and `on_tag`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) callback_ms: Option<u64>,
    /// Milliseconds of the guest's own time for one call of `on_plain_text` or `on_tag`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) text_ms: Option<u64>,
    /// Milliseconds of the guest's own time for all calls of callbacks of one turn together, but for `on_tool_call` and
    /// `on_tool_result`, whose number the model decides.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) turn_ms: Option<u64>,
    /// Milliseconds of the guest's own time for one call of a tool that the plugin provides. It is not part of `turn_ms`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) tool_ms: Option<u64>,
    /// Maximum memory of one instance, in MiB.
    #[schemars(range(min = 1, max = 4_096))]
    pub(crate) memory_mib: Option<u64>,
    /// Maximum size of the result of one call of a callback, in KiB.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub(crate) output_kib: Option<u64>,
    /// Maximum size of the result of one call of a tool that the plugin provides, in KiB. It goes into the conversation.
    #[schemars(range(min = 1, max = 16_384))]
    pub(crate) tool_output_kib: Option<u64>,
    /// Default lifetime of a value of the power `state`, in seconds since it was last read or written.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub(crate) state_ttl_s: Option<u64>,
    /// Maximum size of what the plugin keeps with the power `state` in a session, keys and values together, in MiB. Beyond it, its least recently used keys are removed.
    #[schemars(range(min = 1, max = 4_096))]
    pub(crate) state_mib: Option<u64>,
}

/// A setting of the plugin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingFile {
    /// The type of the value.
    #[serde(rename = "type")]
    pub(crate) kind: SettingKind,
    /// The value if the operator sets none. Without a default, the operator must set a value.
    #[serde(default)]
    pub(crate) default: Option<ValueFile>,
    /// What the setting does.
    #[schemars(length(min = 1))]
    pub(crate) description: String,
}

/// An event type that the plugin emits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventFile {
    /// What an event of the type reports, in one sentence.
    #[schemars(length(min = 1))]
    pub(crate) description: String,
    /// The JSON Schema of the payload, which is an object. It cannot refer to other schemas.
    pub(crate) payload_schema: Map<String, Value>,
}

/// Guidance on tools: an order and advice for the model. It never forbids a tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GuidanceFile {
    /// The priority of the guidance, 0 to 100: where plugins disagree on a tool, the guidance of the higher one is used.
    #[schemars(range(max = 100))]
    pub(crate) priority: u8,
    /// Tools to prefer; they are listed first.
    pub(crate) preferred_tools: Vec<String>,
    /// Tools to avoid; they are listed last.
    pub(crate) avoided_tools: Vec<String>,
    /// The recommended order in which to use tools. Calls of one message that do not depend on each other run in this order.
    pub(crate) tool_order: Vec<String>,
}

impl Default for GuidanceFile {
    fn default() -> Self {
        let none = Vec::new;
        Self { priority: DEFAULT_PRIORITY, preferred_tools: none(), avoided_tools: none(), tool_order: none() }
    }
}

impl GuidanceFile {
    pub(crate) fn is_empty(&self) -> bool {
        self.preferred_tools.is_empty() && self.avoided_tools.is_empty() && self.tool_order.is_empty()
    }
}
