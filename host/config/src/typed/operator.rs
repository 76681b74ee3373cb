//! `tidegate.toml` as typed.

use std::collections::BTreeMap;

use flow::{PermissionMode, Power, ProviderKind, StateBackend, TranscriptBackend};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::manifest::{LimitsRequest, OnFailureWord};
use super::rules::RulesFile;
use super::{ApprovalFile, CatalogueFile, ErrorsFile, GatewayFile, PriceFile, ServeFile, SessionLimitsFile};

/// The operator's file of Tidegate.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "tidegate.toml")]
pub(crate) struct OperatorFile {
    /// The model and its provider.
    pub(crate) provider: ProviderFile,
    /// The system prompt.
    pub(crate) prompt: PromptFile,
    /// The plugins, in order of registration.
    pub(crate) plugin: Vec<PluginFile>,
    /// Stream rules: what happens on a match, and which rule files are read.
    pub(crate) rules: RulesFile,
    /// Tools: permissions, and limits of the built-in ones.
    pub(crate) tools: ToolsFile,
    /// Limits: those of every plugin, unless `[plugin.limits]` sets others for one, and in `limits.session` those of sessions.
    pub(crate) limits: LimitsFile,
    /// Errors of a model: which class each has, and how each class is retried.
    #[schemars(with = "ErrorsFile")]
    // `crate::errors` reads it, together with the layers below.
    pub(crate) errors: IgnoredAny,
    /// Thread events: how they are recorded, and types of your own.
    #[schemars(with = "CatalogueFile")]
    // `crate::events` reads it, together with the layers below.
    pub(crate) events: IgnoredAny,
    /// The state of plugins: where it is kept, and for how long.
    pub(crate) state: StateFile,
    /// Transcripts: whether sessions are recorded, where, and for how long.
    pub(crate) transcript: TranscriptFile,
    /// Compaction: when the model summarises the older part of a conversation.
    pub(crate) compaction: CompactionFile,
    /// The limits of a turn.
    pub(crate) turn: TurnFile,
    /// How `tidegate chat`, and `tidegate run` at a terminal, show what the model writes.
    pub(crate) terminal: TerminalFile,
    /// The gateway, `tidegate gateway`: an HTTP server between agents and the models that they use.
    pub(crate) gateway: GatewayFile,
    /// The server for front ends, `tidegate serve`: sessions over HTTP.
    pub(crate) serve: ServeFile,
}

/// The model and its provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProviderFile {
    /// The wire format of the provider.
    pub(crate) kind: Option<ProviderKind>,
    /// The model's name at the provider.
    pub(crate) model: Option<String>,
    /// Further models of the provider that front ends offer, such as an editor's list of models.
    pub(crate) models: Vec<String>,
    /// The base URL, such as `http://127.0.0.1:8080`. Default: the vendor's.
    pub(crate) base_url: Option<String>,
    /// The environment variable that contains the API key. `""` sends no key. Default: the vendor's usual variable, and no key with `base_url`.
    pub(crate) api_key_env: Option<String>,
    /// Whether the key and `headers` are sent to another machine over plain `http`, where everyone on the way can read them. Without it,
    /// a `base_url` with `http://` takes them only on this machine.
    pub(crate) allow_plaintext_key: bool,
    /// Maximum number of tokens of an answer.
    #[schemars(range(min = 1, max = 4_294_967_295_u64))]
    pub(crate) max_tokens: Option<u32>,
    /// Time limit for establishing a connection, in milliseconds.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) connect_timeout_ms: u64,
    /// Time in milliseconds without a received byte after which the answer fails.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) idle_timeout_ms: u64,
    /// Time in milliseconds without content after which the answer fails, although the server keeps the connection alive with pings or
    /// comments, as it does while the model thinks.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) content_timeout_ms: u64,
    /// Time limit for a request in milliseconds, from its first attempt to the end of its answer, with all retries and the waits between
    /// them.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) request_timeout_ms: u64,
    /// Whether the model can continue a partial answer (prefill), which `context_mode = "rewind"` prefers.
    /// Default: derived from the model's name. Only Anthropic's format supports it.
    pub(crate) prefill: Option<bool>,
    /// Tokens that the model may use for reasoning before it answers; Anthropic's format only.
    #[schemars(range(min = 1_024, max = 4_294_967_295_u64))]
    pub(crate) thinking_budget: Option<u32>,
    /// How hard the model reasons, in the provider's words, such as `low`, `medium` or `high`; OpenAI's formats only.
    #[schemars(length(min = 1))]
    pub(crate) effort: Option<String>,
    /// Headers that are sent with every request, by name. The key does not belong here: `api_key_env` names its variable.
    pub(crate) headers: BTreeMap<String, String>,
    /// The recording to replay, relative to this file; only with `kind = "recording"`.
    pub(crate) recording: Option<String>,
}

impl Default for ProviderFile {
    fn default() -> Self {
        Self {
            kind: None,
            model: None,
            models: Vec::new(),
            base_url: None,
            api_key_env: None,
            allow_plaintext_key: false,
            max_tokens: None,
            thinking_budget: None,
            effort: None,
            headers: BTreeMap::new(),
            connect_timeout_ms: 10_000,
            idle_timeout_ms: 120_000,
            content_timeout_ms: 600_000,
            request_timeout_ms: 3_600_000,
            prefill: None,
            recording: None,
        }
    }
}

/// The system prompt.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PromptFile {
    /// The text of the system prompt.
    pub(crate) system: Option<String>,
    /// A text file that contains the system prompt, relative to this file. Excludes `system`.
    pub(crate) system_file: Option<String>,
}

/// A `[[plugin]]` table: one plugin, its grants and its settings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PluginFile {
    /// The plugin's folder, or its `plugin.toml`, relative to this file.
    #[schemars(length(min = 1))]
    pub(crate) path: String,
    /// The granted powers. A plugin is loaded only if all powers that its manifest requests are granted.
    #[serde(default)]
    pub(crate) grants: Vec<Power>,
    /// Whether the plugin is loaded.
    #[serde(default = "yes")]
    pub(crate) enabled: bool,
    /// Whether a failure of a callback of the plugin rejects the turn. By default, a failing callback is skipped. The failure of
    /// a tool that the plugin provides is the result of the call, and never rejects the turn.
    #[serde(default)]
    pub(crate) required: bool,
    /// Overrides the failure policy that the plugin's callbacks register.
    #[serde(default)]
    pub(crate) on_failure: Option<OnFailureWord>,
    /// Overrides which text a session keeps of what the plugin's callbacks change: answers, reasoning, calls of tools and their results. `shown`: the
    /// conversation, events, transcripts and exports have what the user saw, and the original is in no file.
    #[serde(default)]
    pub(crate) keep: Option<flow::KeptText>,
    /// Whether the plugin's own words are in what is reported of it, although it guards: messages of panics and errors, its log, and the keys of
    /// its state can have the text that it withholds. They are on the screen, in events and in transcripts.
    #[serde(default)]
    pub(crate) full_diagnostics: bool,
    /// Overrides the priorities that the plugin registers: 0 to 100, higher runs first.
    #[serde(default)]
    pub(crate) priority: PriorityFile,
    /// Overrides the limits of this plugin; may exceed those of `[limits]`.
    #[serde(default)]
    pub(crate) limits: LimitsRequest,
    /// The SHA-256 of the plugin's component, in 64 hexadecimal digits: another component is not loaded. `tidegate plugin show` prints it.
    #[serde(default)]
    pub(crate) sha256: Option<String>,
    /// Values of the settings that the plugin's manifest declares.
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
    /// Priority of `on_tool_call`, 0 to 100; higher runs first.
    #[schemars(range(max = 100))]
    pub(crate) on_tool_call: Option<u8>,
    /// Priority of `on_tool_result`, 0 to 100; higher runs first.
    #[schemars(range(max = 100))]
    pub(crate) on_tool_result: Option<u8>,
}

/// A setting's value: a string, a number, a boolean, or a list of strings.
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

/// The table `[tools]`: permissions of tools, and limits of the built-in ones.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsFile {
    /// Permissions: `allow`, `ask` or `deny`. A key is a tool (`shell`), a tool with a pattern (`"shell(git status*)"`,
    /// `"write_file(docs/**)"`) or `"*"` for every tool. A pattern takes precedence over a tool, a tool over `*`; if
    /// several patterns match, the strictest applies. A pattern of `shell` is held against each command of a line. Only built-in tools
    /// take patterns. A tool that a plugin provides is `ask` unless its name or `"*"` says otherwise.
    pub(crate) permission: BTreeMap<String, PermissionMode>,
    /// The tool `shell`.
    pub(crate) shell: ShellFile,
    /// Questions about calls of tools whose permission is `ask`.
    pub(crate) question: QuestionFile,
}

/// Questions about calls of tools whose permission is `ask`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct QuestionFile {
    /// Milliseconds that a question waits for an answer. Without it, it waits until it is answered or its turn is cancelled.
    #[schemars(range(min = 1, max = 604_800_000))]
    pub(crate) timeout_ms: Option<u64>,
    /// What becomes of a call whose question is not answered in time.
    pub(crate) on_timeout: OnTimeout,
}

/// What becomes of a call whose question is not answered in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnTimeout {
    /// It does not run.
    #[default]
    Deny,
    /// It runs, unless a person has to be asked about each such call, as about the paths that other programs execute or trust.
    Allow,
}

/// The tool `shell`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ShellFile {
    /// Time limit of a command, in milliseconds.
    #[schemars(range(min = 1, max = 86_400_000))]
    pub(crate) timeout_ms: u64,
    /// Maximum output of a command that is kept, in KiB.
    #[schemars(range(min = 1, max = 16_384))]
    pub(crate) output_kib: u64,
    /// Environment variables that commands get in addition to the short list of those that builds need: names, or starts of names that
    /// end with `*`, such as `CARGO_*`. A pattern does not pass what looks like a secret, a whole name does.
    pub(crate) env: Vec<String>,
}

impl Default for ShellFile {
    fn default() -> Self {
        Self { timeout_ms: 120_000, output_kib: 64, env: Vec::new() }
    }
}

/// The limits of every plugin.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsFile {
    /// Milliseconds of the guest's own time for one call of any other callback than `on_plain_text` and `on_tag`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) callback_ms: u64,
    /// Milliseconds of the guest's own time for one call of `on_plain_text` or `on_tag`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) text_ms: u64,
    /// Milliseconds of the guest's own time for all calls of callbacks of one turn together, but for `on_tool_call` and
    /// `on_tool_result`, whose number the model decides.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub(crate) turn_ms: u64,
    /// Milliseconds of the guest's own time for one call of a tool that a plugin provides. It is not part of `turn_ms`.
    #[schemars(range(min = 1, max = 600_000))]
    pub(crate) tool_ms: u64,
    /// Maximum memory of one instance, in MiB.
    #[schemars(range(min = 1, max = 4_096))]
    pub(crate) memory_mib: u64,
    /// Maximum size of the result of one call of a callback, in KiB.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub(crate) output_kib: u64,
    /// Maximum size of the result of one call of a tool that a plugin provides, in KiB. It goes into the conversation.
    #[schemars(range(min = 1, max = 16_384))]
    pub(crate) tool_output_kib: u64,
    /// Default lifetime of a value of the power `state`, in seconds since it was last read or written.
    #[schemars(range(min = 1, max = 31_536_000))]
    pub(crate) state_ttl_s: u64,
    /// Maximum size of what one plugin keeps with the power `state` in a session, keys and values together, in MiB. Beyond it, its least recently used keys are removed.
    #[schemars(range(min = 1, max = 4_096))]
    pub(crate) state_mib: u64,
    /// Maximum number of instances of all plugins in the process. A plugin has one in each session that used it within the last minute.
    /// Where all are taken, calls get those of idle sessions, or wait. Default: 1,024 for `tidegate acp`, 128 for programs with one
    /// session, and as the program decides where the host is embedded.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) instances: Option<u32>,
    /// What a session may take, over all its turns and processes. Before a request that would exceed a limit, the session waits for an
    /// approval.
    #[schemars(with = "SessionLimitsFile")]
    // `crate::thread_limits` reads it, together with the layers below.
    pub(crate) session: IgnoredAny,
    /// How a higher limit of a session is approved.
    #[schemars(with = "ApprovalFile")]
    // `crate::thread_limits` reads it, together with the layers below.
    pub(crate) approval: IgnoredAny,
    /// What tokens cost.
    #[schemars(with = "Vec<PriceFile>")]
    // `crate::thread_limits` reads it, together with the layers below.
    pub(crate) price: IgnoredAny,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self {
            callback_ms: 100,
            text_ms: 20,
            turn_ms: 2_000,
            tool_ms: 30_000,
            memory_mib: 32,
            output_kib: 4_096,
            tool_output_kib: 64,
            state_ttl_s: 3_600,
            state_mib: 10,
            instances: None,
            session: IgnoredAny,
            approval: IgnoredAny,
            price: IgnoredAny,
        }
    }
}

/// The state of plugins: where it is kept, and for how long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct StateFile {
    /// Where it is kept. `memory` loses it when the program ends. Default: `disk` for sessions that are recorded
    /// and for those of `tidegate run --session`, else `memory`.
    pub(crate) backend: Option<StateBackend>,
    /// The folder of `backend = "disk"`, relative to this file. Default: `tidegate/state` in the user's state folder.
    #[schemars(length(min = 1))]
    pub(crate) folder: Option<String>,
    /// The environment variable that contains the URL of `backend = "redis"`, such as `redis://127.0.0.1:6379`, or
    /// `rediss://cache.example:6380` for TLS, `redis+sentinel://HOST,HOST/PRIMARY` for Sentinels, or `redis+cluster://HOST,HOST` for a
    /// Cluster. Default: `TIDEGATE_REDIS_URL`.
    #[schemars(length(min = 1))]
    pub(crate) url_env: Option<String>,
    /// The user of `backend = "redis"` for access control lists, unless the URL contains it.
    #[schemars(length(min = 1))]
    pub(crate) user: Option<String>,
    /// The password of `backend = "redis"`, as `env:NAME`, unless the URL contains it.
    pub(crate) password: Option<String>,
    /// A file in PEM with the certificates against which that of the Redis server is checked, relative to this file, for
    /// `rediss://`. Default: those of the machine.
    #[schemars(length(min = 1))]
    pub(crate) ca: Option<String>,
    /// A file in PEM with the certificate that the Redis server gets from this client, relative to this file, for `rediss://`.
    #[schemars(length(min = 1))]
    pub(crate) certificate: Option<String>,
    /// A file in PEM with the private key of `certificate`, relative to this file.
    #[schemars(length(min = 1))]
    pub(crate) certificate_key: Option<String>,
    /// Whether the password of `backend = "redis"` is sent to another machine without encryption (`redis://`).
    pub(crate) allow_plaintext_password: bool,
    /// How many seconds a host that has died keeps its sessions with `backend = "redis"`: another host can continue them after that. It is also how
    /// long a host can be without the server before another one takes over. Default: 30.
    #[schemars(range(min = 2, max = 600))]
    pub(crate) lease_s: Option<u32>,
    /// How long the state of a session is kept after its last turn, in hours.
    #[schemars(range(min = 1, max = 87_600))]
    pub(crate) session_ttl_h: u32,
    /// Maximum size of the state of all plugins of one session, in MiB.
    #[schemars(range(min = 1, max = 4_096))]
    pub(crate) session_mib: u32,
    /// How many days the state of a plugin that is not configured any more is kept in a session, from the first turn without it; 0: it is
    /// deleted by that turn. A plugin that is disabled keeps its state.
    #[schemars(range(max = 3_650))]
    pub(crate) absent_days: u32,
}

impl Default for StateFile {
    fn default() -> Self {
        Self {
            backend: None,
            folder: None,
            url_env: None,
            user: None,
            password: None,
            ca: None,
            certificate: None,
            certificate_key: None,
            allow_plaintext_password: false,
            lease_s: None,
            session_ttl_h: 720,
            session_mib: 64,
            absent_days: 7,
        }
    }
}

/// Transcripts: whether sessions are recorded, where, and for how long.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TranscriptFile {
    /// Whether sessions are recorded, which `tidegate run --continue` needs. Default: `true` for `tidegate run`, `chat` and
    /// `acp`, `false` for embedders.
    pub(crate) enabled: Option<bool>,
    /// Where the records are kept. `redis` requires `backend = "redis"` under `[state]`, and is on the same server: each host of it can continue
    /// the sessions.
    pub(crate) backend: TranscriptBackend,
    /// The folder of all transcripts, relative to this file. Default: `tidegate/sessions` in the user's state folder.
    #[schemars(length(min = 1))]
    pub(crate) folder: Option<String>,
    /// How many days a session is kept after its last record; 0 keeps it until `tidegate session rm`. `tidegate run`,
    /// `chat`, `acp` and `guard` remove older ones when they end, 100 at most. In a workspace's file, it is for sessions of the workspace.
    #[schemars(range(max = 36_500))]
    pub(crate) keep_days: u32,
}

impl Default for TranscriptFile {
    fn default() -> Self {
        Self { enabled: None, backend: TranscriptBackend::Disk, folder: None, keep_days: 30 }
    }
}

/// Compaction: when the conversation becomes smaller for the model, before a request that would fill its context.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CompactionFile {
    /// Whether conversations become smaller. Without it, a request that exceeds the model's context ends the turn with the provider's error.
    pub(crate) enabled: bool,
    /// How many tokens the model takes, prompt and answer together. Default: derived from the model's name; that of an unknown model is
    /// learnt when it refuses a request.
    #[schemars(range(min = 1_000, max = 1_000_000_000))]
    pub(crate) context_tokens: Option<u64>,
    /// The share of the context, in percent, at which the conversation becomes smaller: the oldest results and images are shortened, and where
    /// that is not enough, the model summarises. Where the prompt would leave its answer less than `max_tokens`, it does so earlier.
    #[schemars(range(min = 10, max = 100))]
    pub(crate) at_percent: u32,
    /// How many of the last turns are not summarised, the current one included.
    #[schemars(range(min = 1, max = 1_000))]
    pub(crate) keep_turns: u32,
}

impl Default for CompactionFile {
    fn default() -> Self {
        Self { enabled: true, context_tokens: None, at_percent: 80, keep_turns: 2 }
    }
}

/// The limits of a turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TurnFile {
    /// Maximum number of steps (accepted answers) of one turn.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) max_steps: u32,
    /// How often in a row the model can make the same call with the same result. Then it reads that, and if it goes on, the turn ends as
    /// `no_progress`. 0: any number of times.
    #[schemars(range(max = 10_000))]
    pub(crate) max_repeats: u32,
    /// Maximum number of retries of a request, for all classes of errors that are retried. Without it, each class has its own
    /// `max_retries`, in `errors.toml`: 3 by default.
    #[schemars(range(max = 100))]
    pub(crate) max_retries: Option<u32>,
}

impl Default for TurnFile {
    fn default() -> Self {
        Self { max_steps: 50, max_repeats: 8, max_retries: None }
    }
}

/// The terminal: how answers are shown there.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TerminalFile {
    /// Whether the Markdown of answers is rendered. Without it, the text is shown as the model has written it; `Ctrl+O` in a chat changes it.
    pub(crate) markdown: bool,
}

impl Default for TerminalFile {
    fn default() -> Self {
        Self { markdown: true }
    }
}
