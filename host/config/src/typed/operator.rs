//! `tidegate.toml` as typed.

use std::collections::BTreeMap;

use flow::{PermissionMode, Power, ProviderKind};
use schemars::JsonSchema;
use serde::Deserialize;

use super::manifest::{LimitsRequest, OnFailureWord};
use super::rules::RulesFile;

/// The operator's file of Tidegate.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "tidegate.toml")]
pub(crate) struct OperatorFile {
    /// Which model answers, and how it is reached.
    pub(crate) provider: ProviderFile,
    /// What the model is told before everything else.
    pub(crate) prompt: PromptFile,
    /// Plugins, in order of registration.
    pub(crate) plugin: Vec<PluginFile>,
    /// Stream rules: what happens when one matches, and where rule files are.
    pub(crate) rules: RulesFile,
    /// Built-in tools: who may run them, and how far they go.
    pub(crate) tools: ToolsFile,
    /// The most that any plugin may take; `[plugin.limits]` sets other limits for one plugin.
    pub(crate) limits: LimitsFile,
    /// How long a turn may go on.
    pub(crate) turn: TurnFile,
}

/// Which model answers, and how it is reached.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProviderFile {
    /// The wire format that is spoken.
    pub(crate) kind: Option<ProviderKind>,
    /// The model's name, as the provider knows it.
    pub(crate) model: Option<String>,
    /// Where the provider is, such as `http://127.0.0.1:8080`; the provider's own address where none is given.
    pub(crate) base_url: Option<String>,
    /// The environment variable that holds the key. `""`: no key is sent. The provider's usual one where none is named.
    pub(crate) api_key_env: Option<String>,
    /// The most tokens an answer may have.
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub(crate) max_tokens: Option<u32>,
    /// Milliseconds a connection may take to come about.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) connect_timeout_ms: u64,
    /// Milliseconds an answer may stand still before it counts as lost.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) idle_timeout_ms: u64,
    /// Whether the model can go on from a beginning of its answer, which is how `context_mode = "rewind"` continues best.
    /// Where it is not said, this is known by the model's name. Other formats than Anthropic's have no way to say it.
    pub(crate) prefill: Option<bool>,
    /// The recording to replay, relative to this file; only with `kind = "recording"`.
    pub(crate) recording: Option<String>,
}

impl Default for ProviderFile {
    fn default() -> Self {
        Self {
            kind: None,
            model: None,
            base_url: None,
            api_key_env: None,
            max_tokens: None,
            connect_timeout_ms: 10_000,
            idle_timeout_ms: 120_000,
            prefill: None,
            recording: None,
        }
    }
}

/// What the model is told before everything else.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PromptFile {
    /// The system prompt itself.
    pub(crate) system: Option<String>,
    /// A text file that holds the system prompt, relative to this file. Not together with `system`.
    pub(crate) system_file: Option<String>,
}

/// A `[[plugin]]` table: one plugin, its grants and its settings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginFile {
    /// The plugin's folder, or its `plugin.toml`, relative to this file.
    #[schemars(length(min = 1))]
    pub(crate) path: String,
    /// The powers it is given: all that its manifest asks for, or it is not loaded.
    #[serde(default)]
    pub(crate) grants: Vec<Power>,
    /// Whether it is loaded at all.
    #[serde(default = "yes")]
    pub(crate) enabled: bool,
    /// Its failure refuses the turn, instead of being skipped.
    #[serde(default)]
    pub(crate) required: bool,
    /// What happens when one of its callbacks did not do its work, instead of what it registers.
    #[serde(default)]
    pub(crate) on_failure: Option<OnFailureWord>,
    /// Priorities to use instead of those it registers: 0 to 100, higher runs first.
    #[serde(default)]
    pub(crate) priority: PriorityFile,
    /// Limits of this plugin, instead of what it asks for within `[limits]`.
    #[serde(default)]
    pub(crate) limits: LimitsRequest,
    /// Values of the settings that its manifest declares.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, ValueFile>,
}

fn yes() -> bool {
    true
}

/// Priorities per callback.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PriorityFile {
    /// Priority of `on_input_messages`, 0 to 100; higher runs first.
    #[schemars(range(max = 100))]
    pub(crate) on_input_messages: Option<u8>,
    /// Priority of `on_plain_text`, 0 to 100; higher runs first.
    #[schemars(range(max = 100))]
    pub(crate) on_plain_text: Option<u8>,
    /// Priority of `on_tag`, 0 to 100; higher runs first.
    #[schemars(range(max = 100))]
    pub(crate) on_tag: Option<u8>,
    /// Priority of `on_llm_output`, 0 to 100; higher runs first.
    #[schemars(range(max = 100))]
    pub(crate) on_llm_output: Option<u8>,
    /// Priority of `ttsr_triggered`, 0 to 100; higher runs first.
    #[schemars(range(max = 100))]
    pub(crate) ttsr_triggered: Option<u8>,
}

/// A setting's value: a text, a number, true or false, or a list of texts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ValueFile(pub(crate) toml::Value);

impl<'de> Deserialize<'de> for ValueFile {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        toml::Value::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for ValueFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                { "type": "string" },
                { "type": "number" },
                { "type": "boolean" },
                { "type": "array", "items": { "type": "string" } },
            ]
        })
    }
}

/// The table `[tools]`: permissions and limits of the built-in tools.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsFile {
    /// Who may run what. A key is a tool (`shell`), a tool and a pattern (`"shell(git status*)"`, `"write_file(docs/**)"`)
    /// or `"*"` for every tool. A pattern beats a tool, a tool beats `*`; of several patterns that fit, the strictest
    /// decides.
    pub(crate) permission: BTreeMap<String, PermissionMode>,
    /// The tool `shell`.
    pub(crate) shell: ShellFile,
}

/// The tool `shell`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ShellFile {
    /// Milliseconds a command may run.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) timeout_ms: u64,
    /// KiB of its output that are kept.
    #[schemars(range(min = 1, max = 16_384))]
    pub(crate) output_kib: u64,
}

impl Default for ShellFile {
    fn default() -> Self {
        Self { timeout_ms: 120_000, output_kib: 64 }
    }
}

/// The most that any plugin may take.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsFile {
    /// Milliseconds of its own time for one call of `on_input_messages`, `on_llm_output` or `ttsr_triggered`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) callback_ms: u64,
    /// Milliseconds of its own time for one call of `on_plain_text` or `on_tag`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) text_ms: u64,
    /// Milliseconds of its own time for all calls of one turn together.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) turn_ms: u64,
    /// MiB of memory of one instance.
    #[schemars(range(min = 1, max = 4_096))]
    pub(crate) memory_mib: u64,
    /// KiB that one call may give back.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub(crate) output_kib: u64,
    /// Seconds for which a value of the power `state` is kept since it was last read or written, where the plugin sets no time.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub(crate) state_ttl_s: u64,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self { callback_ms: 100, text_ms: 20, turn_ms: 2_000, memory_mib: 32, output_kib: 4_096, state_ttl_s: 3_600 }
    }
}

/// How long a turn may go on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TurnFile {
    /// The most steps (accepted answers) of one turn.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) max_steps: u32,
    /// How often a request that failed in passing is tried again.
    #[schemars(range(max = 100))]
    pub(crate) max_retries: u32,
}

impl Default for TurnFile {
    fn default() -> Self {
        Self { max_steps: 50, max_retries: 3 }
    }
}
