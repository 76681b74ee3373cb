//! The operator's file as used: plain values, defaults filled in, paths resolved.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flow::{CallbackKind, KeptText, KeySource, PermissionMode, Power, ProviderKind, SettingValue};
use toml::Spanned;

use crate::compaction::CompactionSettings;
use crate::document::{Document, steps};
use crate::gateway::GatewaySettings;
use crate::manifest::setting_value;
use crate::mask;
use crate::operator_layers::{self, Layer, LayerKind};
use crate::rule_folders::RuleFolders;
use crate::serve::ServeSettings;
use crate::state::{StateSettings, check_state};
use crate::terminal::TerminalSettings;
use crate::transcript::TranscriptSettings;
use crate::turn::TurnSettings;
use crate::typed::{
    self, LimitsFile, LimitsRequest, OnFailureWord, OperatorFile, PluginFile, PriorityFile, ProviderFile,
};
use crate::{Code, Diagnostic, Diagnostics, LimitRequests, Location, OnTimeout, PermissionRule, SourceFile};

/// All that an operator decides. `Operator::default()` is what holds without a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// The files it was read from, the lowest layer first; none for the defaults.
    pub layers: Vec<Layer>,
    /// Files that would be layers if they were there: a host that follows its files looks for them.
    pub absent: Vec<PathBuf>,
    /// Which model answers, and how it is reached.
    pub provider: Provider,
    /// The operator's system prompt.
    pub system: Option<String>,
    /// Plugins that are switched on, in order of registration.
    pub plugins: Vec<PluginEntry>,
    /// Plugins that are switched off: they are not loaded. One that a running host has loaded before keeps its state.
    pub disabled: Vec<PluginEntry>,
    /// Stream rules; the names in `disabled_rules` are as typed.
    pub rules: rules::RuleSettings,
    /// Where rule files are, in addition to those of plugins and the built-in ones.
    pub rule_folders: RuleFolders,
    /// Which built-in tools the model is offered, and what each may do.
    pub tools: ToolSettings,
    /// The most that any plugin may take.
    pub limits: PluginLimits,
    /// The most instances of all plugins at once; `None`: the program decides. It counts for an engine, and so for all hosts that share one.
    pub instances: Option<u32>,
    /// Where the state of plugins is kept.
    pub state: StateSettings,
    /// Whether sessions are recorded, and where.
    pub transcript: TranscriptSettings,
    /// When the older part of a conversation is summarised.
    pub compaction: CompactionSettings,
    /// The limits of a turn.
    pub turn: TurnSettings,
    /// How answers are shown at a terminal.
    pub terminal: TerminalSettings,
    /// The server between agents and their models.
    pub gateway: GatewaySettings,
    /// The server for front ends.
    pub serve: ServeSettings,
}

/// The place that shows the file at `path` to be an operator's file: its beginning where it is named `tidegate.toml`, in others the first key
/// that no manifest has. A `plugin.toml` is none, and neither is a file with another name and an `id`: a manifest with a misplaced key has that.
pub fn operator_file(path: &Path) -> Option<Location> {
    let is_named = |name| path.file_name().is_some_and(|own| own == name);
    if is_named(crate::MANIFEST_FILE) {
        return None;
    }
    let source = crate::read(path, "").ok()?;
    let tree = Document::tree(&source);
    if is_named(crate::OPERATOR_FILE) {
        // Where secrets cannot be told from the rest, nothing of it is shown.
        let shown = tree.map_or_else(|_| SourceFile::new(path, ""), |root| mask::masked(&source, &root, false));
        return Some(Location::new(&shown, 0..0));
    }
    let root = tree.ok()?;
    let table = root.get_ref();
    let own = |key: &&Spanned<Cow<'_, str>>| OPERATOR_ONLY.contains(&key.get_ref().as_ref());
    let key = table.keys().filter(own).min_by_key(|key| key.span().start).filter(|_| !table.contains_key("id"))?;
    Some(Location::new(&mask::masked(&source, &root, false), key.span()))
}

/// The tables of an operator's file that a plugin's manifest does not have.
const OPERATOR_ONLY: [&str; 11] = [
    "provider",
    "errors",
    "plugin",
    "rules",
    "state",
    "transcript",
    "compaction",
    "turn",
    "terminal",
    "gateway",
    "serve",
];

/// Which model answers, and how it is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The wire format; `None`: not chosen yet.
    pub kind: Option<ProviderKind>,
    /// The model's name.
    pub model: Option<String>,
    /// Further models that front ends offer.
    pub models: Vec<String>,
    /// Where the provider is; `None` = the provider's own address.
    pub base_url: Option<String>,
    /// Where the key is.
    pub key: KeySource,
    /// Whether the key and the headers are sent to another machine over plain `http`.
    pub allow_plaintext_key: bool,
    /// The most tokens of an answer; `None` = the provider's default.
    pub max_tokens: Option<u32>,
    /// How long a connection may take to come about.
    pub connect_timeout: Duration,
    /// The idle timeout of an answer.
    pub idle_timeout: Duration,
    /// How long an answer may go without content while the server keeps its connection alive.
    pub content_timeout: Duration,
    /// How long a request may take, with all retries.
    pub request_timeout: Duration,
    /// Whether the model supports prefill; `None` = known by its name.
    pub prefill: Option<bool>,
    /// Tokens for reasoning (Anthropic's format).
    pub thinking_budget: Option<u32>,
    /// How hard the model reasons (OpenAI's formats).
    pub effort: Option<String>,
    /// Headers of every request.
    pub headers: BTreeMap<String, String>,
    /// The recording to replay; there is one exactly where `kind` is [`ProviderKind::Recording`].
    pub recording: Option<PathBuf>,
}

/// One plugin that is switched on.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginEntry {
    /// The folder that holds its `plugin.toml`.
    pub folder: PathBuf,
    /// Powers it is given.
    pub grants: Vec<Power>,
    /// Its failure refuses the turn.
    pub required: bool,
    /// The policy of the machine requires it.
    pub by_policy: bool,
    /// The SHA-256 that its component must have, as lower-case hexadecimal digits.
    pub sha256: Option<String>,
    /// The files that somebody decided about when they trusted the workspace that names it; `None`: it is named elsewhere.
    pub trusted: Option<TrustedFiles>,
    /// Whether its callbacks fail closed (true) or are skipped (false), instead of what it registers.
    pub fails_closed: Option<bool>,
    /// What is kept of what its callbacks change, instead of what it registers.
    pub keep: Option<KeptText>,
    /// Its own words are in what is reported of it, also where it guards.
    pub full_diagnostics: bool,
    /// Priorities instead of those it registers (0 to 100).
    pub priorities: BTreeMap<CallbackKind, u8>,
    /// Limits instead of those it asks for; not clipped.
    pub limits: LimitRequests,
    /// Values for its settings, each with its place.
    pub settings: BTreeMap<String, (SettingValue, Option<Location>)>,
    /// The span of the entry; `None` if a flag created it.
    pub place: Option<Location>,
}

impl PluginEntry {
    /// A plugin as a flag names it: by its folder or its `plugin.toml`. Everything its manifest asks for must still be
    /// granted by the caller.
    pub fn of_path(path: &Path) -> Self {
        Self {
            folder: plugin_folder(path),
            grants: Vec::new(),
            required: false,
            by_policy: false,
            sha256: None,
            trusted: None,
            fails_closed: None,
            keep: None,
            full_diagnostics: false,
            priorities: BTreeMap::new(),
            limits: LimitRequests::default(),
            settings: BTreeMap::new(),
            place: None,
        }
    }
}

/// The files of a plugin, as SHA-256 digests in lower-case hexadecimal digits; `None`: there was none that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedFiles {
    /// Of its manifest.
    pub manifest: Option<String>,
    /// Of its component.
    pub component: Option<String>,
}

/// Which built-in tools the model is offered, and what each may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    /// Who may run what, sorted by key; what no entry is about follows the tool's own default.
    pub permissions: Vec<PermissionRule>,
    /// How long a command may run.
    pub shell_timeout: Duration,
    /// Bytes of a command's output that are kept.
    pub shell_output_bytes: usize,
    /// Variables that commands get in addition to those that builds need: names, and starts of names that end with `*`.
    pub shell_env: Vec<String>,
    /// How long a question about a call waits; `None`: without a limit.
    pub question_timeout: Option<Duration>,
    /// What becomes of a call whose question is not answered in time.
    pub on_question_timeout: OnTimeout,
}

/// What one plugin may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginLimits {
    /// One call of any other callback than `on_plain_text` and `on_tag`.
    pub callback: Duration,
    /// One call of `on_plain_text` or `on_tag`.
    pub text: Duration,
    /// All calls of callbacks of one turn, but for `on_tool_call` and `on_tool_result`.
    pub turn: Duration,
    /// One call of a tool.
    pub tool: Duration,
    /// Bytes of memory of one instance.
    pub memory_bytes: u64,
    /// Bytes that one call of a callback may give back.
    pub output_bytes: u64,
    /// Bytes of the result of one call of a tool.
    pub tool_output_bytes: u64,
    /// How long a value of the power `state` is kept unread, where the plugin sets no time.
    pub state_ttl: Duration,
    /// Bytes of all keys and values of the power `state` in a session.
    pub state_bytes: u64,
}

impl Default for Operator {
    fn default() -> Self {
        let typed = OperatorFile::default();
        Self {
            layers: Vec::new(),
            absent: Vec::new(),
            provider: Provider::of(typed.provider, Path::new("")),
            system: None,
            plugins: Vec::new(),
            disabled: Vec::new(),
            rules: typed.rules.settings,
            rule_folders: RuleFolders::default(),
            tools: ToolSettings::of(&typed.tools, Vec::new()),
            limits: PluginLimits::of(&typed.limits),
            instances: typed.limits.instances,
            state: StateSettings::default(),
            transcript: TranscriptSettings::of(&typed.transcript, Path::new("")),
            compaction: CompactionSettings::of(&typed.compaction),
            turn: TurnSettings::of(&typed.turn),
            terminal: TerminalSettings::of(&typed.terminal),
            gateway: GatewaySettings::default(),
            serve: ServeSettings::default(),
        }
    }
}

impl Operator {
    /// Reads the operator's file.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong; all that is wrong is reported together.
    pub fn load(file: &Path) -> Result<Self, Diagnostics> {
        Self::of_source(&crate::read(file, "check the path; without a file, the defaults are used")?)
    }

    /// Reads an operator's file whose text is there already.
    ///
    /// # Errors
    /// As [`Operator::load`].
    pub fn of_source(source: &Arc<SourceFile>) -> Result<Self, Diagnostics> {
        Self::of_layers(&[Layer { kind: LayerKind::Named, source: Arc::clone(source) }])
    }

    /// Reads operator's files whose texts are there already, the lowest layer first. Without any of them, the defaults are used.
    ///
    /// # Errors
    /// As [`Operator::load`], for each of the files; or they contradict each other.
    pub fn of_layers(layers: &[Layer]) -> Result<Self, Diagnostics> {
        let (mut documents, mut found) = (Vec::new(), Vec::new());
        for layer in layers {
            match Document::read::<OperatorFile>(&layer.source) {
                Ok((document, _)) => documents.push(document),
                Err(problems) => found.extend(problems.0),
            }
        }
        if !found.is_empty() {
            return Err(Diagnostics(found));
        }
        if documents.is_empty() {
            return Ok(Self::default());
        }
        let mut document = Document::stacked(documents, operator_layers::put);
        let typed = document.decode()?;
        Ok(Self { layers: layers.to_vec(), ..Self::of_document(&mut document, typed)? })
    }

    fn of_document(document: &mut Document<'_>, typed: OperatorFile) -> Result<Self, Diagnostics> {
        check_provider(document, &typed.provider);
        check_state(document, &typed);
        TurnSettings::check(document, &typed.turn);
        let system = system_prompt(document, &typed.prompt);
        let permissions = permissions(document, &typed.tools.permission);
        check_shell(document, &typed.tools.shell.env);
        let rule_folders = RuleFolders::read(document, &typed.rules);
        let gateway = GatewaySettings::read(document, &typed.gateway);
        let serve = ServeSettings::read(document, &typed.serve);
        let state = StateSettings::read(document, &typed.state);
        let entries = typed.plugin.iter().enumerate();
        let plugins = entries.map(|(index, plugin)| (plugin.enabled, plugin_entry(document, index, plugin)));
        let (on, off): (Vec<_>, Vec<_>) = plugins.partition(|(enabled, _)| *enabled);
        let entries = |of: Vec<(bool, PluginEntry)>| of.into_iter().map(|(_, entry)| entry).collect();
        if !document.found.is_empty() {
            return Err(Diagnostics(std::mem::take(&mut document.found)));
        }
        let folder = |table: &str, key: &str| document.folder(&steps![table, key]);
        Ok(Self {
            layers: Vec::new(),
            absent: Vec::new(),
            provider: Provider::of(typed.provider, folder("provider", "recording")),
            system,
            plugins: entries(on),
            disabled: entries(off),
            rules: typed.rules.settings,
            rule_folders,
            tools: ToolSettings::of(&typed.tools, permissions),
            limits: PluginLimits::of(&typed.limits),
            instances: typed.limits.instances,
            state,
            transcript: TranscriptSettings::of(&typed.transcript, folder("transcript", "folder")),
            compaction: CompactionSettings::of(&typed.compaction),
            turn: TurnSettings::of(&typed.turn),
            terminal: TerminalSettings::of(&typed.terminal),
            gateway,
            serve,
        })
    }
}

fn check_provider(document: &mut Document<'_>, typed: &ProviderFile) {
    let replays = matches!(typed.kind, Some(ProviderKind::Recording));
    if replays && typed.recording.is_none() {
        let help = "add `recording = \"PATH\"`, the file that `--record` wrote";
        document.error(
            Code::ConfigRecording,
            &steps!["provider", "kind"],
            "`kind = \"recording\"` needs a `recording`",
            help,
        );
    }
    if !replays && typed.recording.is_some() {
        let help = "set `kind = \"recording\"` to replay it, or remove the key";
        let message = "`recording` requires `kind = \"recording\"`";
        document.error(Code::ConfigRecording, &steps!["provider", "recording"], message, help);
    }
    for (name, value) in &typed.headers {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        let own = ["accept-encoding", "authorization", "content-length", "content-type", "host", "x-api-key"];
        let problem = if name.is_empty() || !name.bytes().all(token) {
            format!("`{name}` is not the name of a header")
        } else if own.contains(&name.to_ascii_lowercase().as_str()) {
            format!("the header `{name}` is set by the program")
        } else if !value.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte)) {
            format!("the value of the header `{name}` has characters that a header cannot contain")
        } else {
            continue;
        };
        let help = "names have letters, digits and hyphens, values printable ASCII; a key goes into the variable of `api_key_env`";
        document.error(Code::ConfigHeader, &steps!["provider", "headers", name.as_str()], problem, help);
    }
    if typed.api_key_env.as_ref().is_some_and(|name| KeySource::of_variable(name).is_err()) {
        let help = "letters, digits and `_`, such as `ANTHROPIC_API_KEY`. If this is a key itself, put it into a variable \
                    and remove it from this file";
        let message = "`api_key_env` is not the name of an environment variable";
        document.error(Code::ConfigInvalidVariable, &steps!["provider", "api_key_env"], message, help);
    }
    if let Some(why) = typed.base_url.as_deref().and_then(unusable_url) {
        let help = "write it as `http://HOST:PORT` or `https://HOST`";
        let message = format!("`base_url` {why}");
        document.error(Code::ConfigInvalidUrl, &steps!["provider", "base_url"], message, help);
    }
}

/// Why a string cannot be the base address of a provider. The provider itself checks what depends on its kind, such as the path.
pub(crate) fn unusable_url(url: &str) -> Option<&'static str> {
    let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
        return Some("is not an HTTP URL");
    };
    if url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some("contains white space or control characters");
    }
    if rest.contains(['?', '#']) {
        return Some("must not contain a query or a fragment");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        return Some("must not contain a user or a password; name the variable that contains the key instead");
    }
    // An IPv6 address is in brackets, and its colons do not start a port.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    if host.is_empty() {
        return Some("names no host");
    }
    port.is_some_and(|port| port.parse::<u16>().is_err()).then_some("has a port that is not a number up to 65535")
}

fn system_prompt(document: &mut Document<'_>, typed: &typed::PromptFile) -> Option<String> {
    let Some(file) = &typed.system_file else { return typed.system.clone() };
    if typed.system.is_some() {
        let help = "remove one of `system` and `system_file`";
        document.error(
            Code::ConfigDuplicate,
            &steps!["prompt", "system_file"],
            "the system prompt is given twice",
            help,
        );
        return None;
    }
    let at = steps!["prompt", "system_file"];
    match crate::text_of(&document.folder(&at).join(file)) {
        Ok(text) => Some(text),
        Err(cause) => {
            let help = "the path is relative to this file";
            document.error(Code::ConfigUnreadable, &at, format!("cannot read `{file}`: {cause}"), help);
            None
        }
    }
}

/// The entries of `[tools.permission]`.
pub(crate) fn permissions(
    document: &mut Document<'_>,
    typed: &BTreeMap<String, PermissionMode>,
) -> Vec<PermissionRule> {
    let mut rules = Vec::new();
    for (key, mode) in typed {
        let place = document.key_place(&steps!["tools", "permission", key.as_str()]);
        match PermissionRule::of_key(key, *mode) {
            Ok(rule) => rules.push(PermissionRule { place: Some(place), ..rule }),
            Err(bad) => {
                document
                    .found
                    .push(Diagnostic::error(Code::ConfigInvalidPermission, bad.message).at(place, "").help(bad.help));
            }
        }
    }
    rules
}

fn check_shell(document: &mut Document<'_>, env: &[String]) {
    for (index, entry) in env.iter().enumerate() {
        let name = entry.strip_suffix('*').unwrap_or(entry);
        if matches!(KeySource::of_variable(name), Ok(KeySource::Env(_))) {
            continue;
        }
        let help = "write the name of a variable, such as `DATABASE_HOST`, or the start of names and `*`, such as `CARGO_*`; \
                    the value comes from the environment";
        let message = "this is not the name of an environment variable";
        document.error(Code::ConfigInvalidVariable, &steps!["tools", "shell", "env", index], message, help);
    }
}

/// The entry of `[[plugin]]` with this index.
pub(crate) fn plugin_entry(document: &mut Document<'_>, index: usize, typed: &PluginFile) -> PluginEntry {
    let path = steps!["plugin", index, "path"];
    let mut settings = BTreeMap::new();
    for (key, value) in &typed.settings {
        let place = document.place(&steps!["plugin", index, "settings", key.as_str()]);
        // The schema has let pass only what is a setting.
        if let Some(value) = setting_value(&value.0) {
            settings.insert(key.clone(), (value, Some(place)));
        }
    }
    let mut grants = Vec::new();
    for (position, power) in typed.grants.iter().copied().enumerate() {
        if grants.contains(&power) {
            let message = format!("`{}` is granted twice", power.as_str());
            document.error(Code::ConfigDuplicate, &steps!["plugin", index, "grants", position], message, "remove one");
        }
        grants.push(power);
    }
    let sha256 = typed.sha256.as_ref().map(|digits| digits.to_ascii_lowercase());
    if sha256.as_ref().is_some_and(|digits| digits.len() != 64 || !digits.bytes().all(|one| one.is_ascii_hexdigit())) {
        let help = "write 64 hexadecimal digits; `tidegate plugin show FOLDER` prints them";
        let message = "`sha256` is not a SHA-256 digest";
        document.error(Code::ConfigInvalidDigest, &steps!["plugin", index, "sha256"], message, help);
    }
    PluginEntry {
        folder: plugin_folder(&document.folder(&path).join(&typed.path)),
        grants,
        required: typed.required,
        by_policy: false,
        sha256,
        trusted: None,
        fails_closed: typed.on_failure.map(OnFailureWord::closed),
        keep: typed.keep,
        full_diagnostics: typed.full_diagnostics,
        priorities: priorities(&typed.priority),
        limits: LimitRequests::of(&typed.limits),
        settings,
        place: Some(document.place(&path)),
    }
}

/// The folder of a plugin that is named by its folder or its manifest.
pub(crate) fn plugin_folder(path: &Path) -> PathBuf {
    match (path.file_name(), path.parent()) {
        (Some(name), Some(parent)) if name == crate::MANIFEST_FILE => parent.to_owned(),
        _ => path.to_owned(),
    }
}

fn priorities(typed: &PriorityFile) -> BTreeMap<CallbackKind, u8> {
    [
        (CallbackKind::InputMessages, typed.on_input_messages),
        (CallbackKind::PlainText, typed.on_plain_text),
        (CallbackKind::Tag, typed.on_tag),
        (CallbackKind::LlmOutput, typed.on_llm_output),
        (CallbackKind::TtsrTriggered, typed.ttsr_triggered),
        (CallbackKind::ToolCall, typed.on_tool_call),
        (CallbackKind::ToolResult, typed.on_tool_result),
    ]
    .into_iter()
    .filter_map(|(kind, priority)| Some((kind, priority?)))
    .collect()
}

impl Provider {
    fn of(typed: ProviderFile, folder: &Path) -> Self {
        let key = match typed.api_key_env {
            None => KeySource::Usual,
            Some(name) if name.is_empty() => KeySource::None,
            Some(name) => KeySource::Env(name),
        };
        Self {
            kind: typed.kind,
            model: typed.model,
            models: typed.models,
            base_url: typed.base_url,
            key,
            allow_plaintext_key: typed.allow_plaintext_key,
            max_tokens: typed.max_tokens,
            connect_timeout: Duration::from_millis(typed.connect_timeout_ms),
            idle_timeout: Duration::from_millis(typed.idle_timeout_ms),
            content_timeout: Duration::from_millis(typed.content_timeout_ms),
            request_timeout: Duration::from_millis(typed.request_timeout_ms),
            thinking_budget: typed.thinking_budget,
            effort: typed.effort,
            headers: typed.headers,
            prefill: typed.prefill,
            recording: typed.recording.map(|file| folder.join(file)),
        }
    }
}

impl ToolSettings {
    fn of(typed: &typed::ToolsFile, permissions: Vec<PermissionRule>) -> Self {
        let typed::ToolsFile { shell, question, .. } = typed;
        Self {
            permissions,
            shell_timeout: Duration::from_millis(shell.timeout_ms),
            shell_output_bytes: usize::try_from(shell.output_kib * 1024).unwrap_or(usize::MAX),
            shell_env: shell.env.clone(),
            question_timeout: question.timeout_ms.map(Duration::from_millis),
            on_question_timeout: question.on_timeout,
        }
    }
}

impl PluginLimits {
    fn of(typed: &LimitsFile) -> Self {
        Self {
            callback: Duration::from_millis(typed.callback_ms),
            text: Duration::from_millis(typed.text_ms),
            turn: Duration::from_millis(typed.turn_ms),
            tool: Duration::from_millis(typed.tool_ms),
            memory_bytes: typed.memory_mib << 20,
            output_bytes: typed.output_kib << 10,
            tool_output_bytes: typed.tool_output_kib << 10,
            state_ttl: Duration::from_secs(typed.state_ttl_s),
            state_bytes: typed.state_mib << 20,
        }
    }
}

impl LimitRequests {
    pub(crate) fn of(typed: &LimitsRequest) -> Self {
        Self {
            callback: typed.callback_ms.map(Duration::from_millis),
            text: typed.text_ms.map(Duration::from_millis),
            turn: typed.turn_ms.map(Duration::from_millis),
            tool: typed.tool_ms.map(Duration::from_millis),
            memory_bytes: typed.memory_mib.map(|mib| mib << 20),
            output_bytes: typed.output_kib.map(|kib| kib << 10),
            tool_output_bytes: typed.tool_output_kib.map(|kib| kib << 10),
            state_ttl: typed.state_ttl_s.map(Duration::from_secs),
            state_bytes: typed.state_mib.map(|mib| mib << 20),
        }
    }
}
