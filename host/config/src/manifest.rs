//! A plugin's manifest as used: checked ids and versions, paths resolved, settings with their types.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flow::{DEFAULT_PRIORITY, KeptText, PluginId, Power, PromptAddition, SettingKind, SettingValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::document::{Document, steps};
use crate::events::declared;
use crate::rule::ManifestRules;
use crate::typed::{EventFile, ManifestFile, OnFailureWord, SettingFile};
use crate::{Code, Diagnostic, Diagnostics, Location, SourceFile, addition, prompt_text, rule};

/// The versions of the contract that a manifest may name.
pub const SUPPORTED_API: [&str; 1] = ["0.1"];

/// A plugin as its author describes it.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// The file it was read from.
    pub source: Arc<SourceFile>,
    /// The folder of that file.
    pub folder: PathBuf,
    /// The plugin's id, unique among the loaded plugins.
    pub id: PluginId,
    /// Its version: `MAJOR.MINOR.PATCH`, with `-PRE` and `+BUILD` where given.
    pub version: String,
    /// The contract it is made for, one of [`SUPPORTED_API`].
    pub api: String,
    /// What it does.
    pub description: String,
    /// The licence as an SPDX expression; it is not checked.
    pub license: Option<String>,
    /// Who made it.
    pub authors: Vec<String>,
    /// Where its source is.
    pub repository: Option<String>,
    /// The component's file; `None` for a plugin of rules and prompts alone. The file need not be there yet where
    /// `build` says how it is made.
    pub component: Option<PathBuf>,
    /// How the component is built from `folder`.
    pub build: Option<BuildKind>,
    /// The format of what it keeps in `state`, from 1.
    pub state_version: u32,
    /// Where that is declared, unless it is 1.
    pub state_version_place: Option<Location>,
    /// Whether callbacks for which its component registers nothing else fail closed (true) or are skipped (false).
    pub fails_closed: Option<bool>,
    /// What is kept of what callbacks change for which its component registers nothing else.
    pub keep: Option<KeptText>,
    /// The powers it asks for, each with why.
    pub capabilities: BTreeMap<Power, String>,
    /// The limits it asks for.
    pub limits: LimitRequests,
    /// The event types that it emits, by the name without its id.
    pub events: BTreeMap<String, EventDecl>,
    /// The declared settings by key, with their kinds and defaults.
    pub settings: BTreeMap<String, SettingDecl>,
    /// Its stream rules, in order; refused ones are left out, and `findings` say why.
    pub rules: Vec<rules::Rule>,
    /// Its additions to the prompt, in the order of their declaration.
    pub prompts: Vec<PromptAddition>,
    /// Its guidance on tools.
    pub guidance: ToolGuidance,
    /// What is wrong with its rules. It costs the rule, or one condition of it, and not the plugin; show it.
    pub findings: Vec<Diagnostic>,
    /// The errors among `findings` that are about a rule with `required = true`: the host must not run without it.
    pub unmet: Vec<Diagnostic>,
}

/// The language that a plugin is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BuildKind {
    /// Rust: the folder contains a `Cargo.toml`.
    Rust,
}

/// Limits that are asked for; `None` = no wish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitRequests {
    /// One call of any other callback than `on_plain_text` and `on_tag`.
    pub callback: Option<Duration>,
    /// One call of `on_plain_text` or `on_tag`.
    pub text: Option<Duration>,
    /// All calls of callbacks of one turn, but for `on_tool_call` and `on_tool_result`.
    pub turn: Option<Duration>,
    /// One call of a tool.
    pub tool: Option<Duration>,
    /// Bytes of memory of one instance.
    pub memory_bytes: Option<u64>,
    /// Bytes that one call may give back.
    pub output_bytes: Option<u64>,
    /// Bytes of the result of one call of a tool.
    pub tool_output_bytes: Option<u64>,
    /// How long a value of the power `state` is kept unread, where the plugin sets no time.
    pub state_ttl: Option<Duration>,
    /// Bytes of all keys and values of the power `state` in a session.
    pub state_bytes: Option<u64>,
}

/// A setting that the operator may give.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingDecl {
    /// What kind of value it has.
    pub kind: SettingKind,
    /// Its value where the operator gives none; `None`: the operator has to.
    pub default: Option<SettingValue>,
    /// What it does.
    pub description: String,
    /// Where it is declared.
    pub place: Location,
}

/// An event type that a plugin emits.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDecl {
    /// What an event of the type reports.
    pub description: String,
    /// The JSON Schema of the payload.
    pub payload_schema: Value,
}

/// Guidance on tools: it orders and advises, and never forbids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolGuidance {
    /// Decides where plugins disagree: 0 to 100, the higher one counts.
    pub priority: u8,
    /// Tools that are listed first in the prompt, in this order.
    pub preferred: Vec<String>,
    /// Tools that are listed last in the prompt.
    pub avoided: Vec<String>,
    /// The order in which tools are best used.
    pub order: Vec<String>,
}

impl Default for ToolGuidance {
    fn default() -> Self {
        let none = Vec::new;
        Self { priority: DEFAULT_PRIORITY, preferred: none(), avoided: none(), order: none() }
    }
}

impl ToolGuidance {
    /// The tools that it names, some of them possibly twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.preferred.iter().chain(&self.avoided).chain(&self.order).map(String::as_str)
    }
}

impl EventDecl {
    fn of(EventFile { description, payload_schema }: EventFile) -> Self {
        Self { description, payload_schema: Value::Object(payload_schema) }
    }
}

impl Manifest {
    /// Reads a manifest, named by its file or by its folder.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong; all that is wrong is reported together.
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        let file = if path.is_dir() { path.join(crate::MANIFEST_FILE) } else { path.to_owned() };
        Self::of_source(&crate::read(&file, "a plugin is a folder with a `plugin.toml`")?)
    }

    /// Reads a manifest whose text is there already.
    ///
    /// # Errors
    /// As [`Manifest::load`].
    pub fn of_source(source: &Arc<SourceFile>) -> Result<Self, Diagnostics> {
        let (mut document, typed, left_out) = Document::read_apart::<ManifestFile>(source, "rule")?;
        let id = typed.id.parse::<PluginId>();
        if let Err(error) = &id {
            document.error(Code::ManifestInvalidId, &steps!["id"], error.to_string(), "for example `redact-secrets`");
        }
        if id.as_ref().is_ok_and(|id| *id == PluginId::host()) {
            let message = format!("`{}` is the id of the host itself", PluginId::host());
            document.error(Code::ManifestInvalidId, &steps!["id"], message, "give the plugin another id");
        }
        check_identity(&mut document, &typed, left_out.is_empty());
        check_tools(&mut document, &typed);
        declared::check_manifest(&mut document, &typed.events);
        let component = component(&mut document, &typed, source.folder());
        let settings = settings(&mut document, &typed.settings);
        let Ok(id) = id else { return Err(Diagnostics(document.found)) };
        let prompts = addition::additions(&mut document, &id, &typed);
        let ManifestRules { rules, findings, unmet } = rule::rules(&mut document, &id, &typed, left_out);
        prompt_text::check_size(&mut document, &typed, &prompts, &rules);
        if !document.found.is_empty() {
            document.found.extend(findings);
            return Err(Diagnostics(document.found));
        }
        let state_version_place = (typed.state_version > 1).then(|| document.key_place(&steps!["state_version"]));
        let plain = Self::plain(source, typed, id);
        Ok(Self { component, settings, rules, prompts, findings, unmet, state_version_place, ..plain })
    }

    /// What needs no further check.
    fn plain(source: &Arc<SourceFile>, typed: ManifestFile, id: PluginId) -> Self {
        let asked = [
            (Power::State, typed.capabilities.state),
            (Power::Session, typed.capabilities.session),
            (Power::History, typed.capabilities.history),
            (Power::Tools, typed.capabilities.tools),
            (Power::Prompt, typed.capabilities.prompt),
            (Power::ProvideTools, typed.capabilities.provide_tools),
        ];
        Self {
            source: Arc::clone(source),
            folder: source.folder().to_owned(),
            version: typed.version,
            api: typed.api,
            description: typed.description,
            license: typed.license,
            authors: typed.authors,
            repository: typed.repository,
            component: None,
            build: typed.build.map(|build| build.kind),
            state_version: typed.state_version,
            state_version_place: None,
            fails_closed: typed.on_failure.map(OnFailureWord::closed),
            keep: typed.keep,
            capabilities: asked.into_iter().filter_map(|(power, why)| Some((power, why?))).collect(),
            limits: LimitRequests::of(&typed.limits),
            events: typed.events.into_iter().map(|(name, event)| (name, EventDecl::of(event))).collect(),
            settings: BTreeMap::new(),
            rules: Vec::new(),
            findings: Vec::new(),
            unmet: Vec::new(),
            prompts: Vec::new(),
            guidance: ToolGuidance {
                priority: typed.tools.priority,
                preferred: typed.tools.preferred_tools,
                avoided: typed.tools.avoided_tools,
                order: typed.tools.tool_order,
            },
            id,
        }
    }
}

fn check_identity(document: &mut Document<'_>, typed: &ManifestFile, has_all_rules: bool) {
    if let Err(problem) = semver::Version::parse(&typed.version) {
        let message = format!("\"{}\" is not a version: {problem}", typed.version.escape_debug());
        document.error(
            Code::ManifestInvalidVersion,
            &steps!["version"],
            message,
            "write it as `MAJOR.MINOR.PATCH`, such as `0.1.0`",
        );
    }
    if !SUPPORTED_API.contains(&typed.api.as_str()) {
        let message = format!("this host does not support contract version \"{}\"", typed.api.escape_debug());
        let help = format!("it supports {}", SUPPORTED_API.map(|version| format!("\"{version}\"")).join(", "));
        document.error(Code::ManifestUnsupportedApi, &steps!["api"], message, help);
    }
    let empty = typed.component.is_none() && typed.build.is_none() && typed.rule.is_empty() && typed.prompt.is_empty();
    // Where something else is wrong, that is what has to be fixed first.
    if empty && has_all_rules && typed.tools.is_empty() && document.found.is_empty() {
        let help = "add `[component]`, `[[rule]]`, `[[prompt]]` or `[tools]`";
        document.error(Code::ManifestEmpty, &steps!["id"], "this plugin does nothing", help);
    }
    if !typed.prompt.is_empty() && typed.capabilities.prompt.is_none() {
        let help = "add `prompt = \"why\"` under `[capabilities]`: the operator has to grant it";
        document.error(
            Code::ManifestMissingCapability,
            &steps!["prompt", 0],
            "`[[prompt]]` needs the capability `prompt`",
            help,
        );
    }
}

fn check_tools(document: &mut Document<'_>, typed: &ManifestFile) {
    for (index, name) in typed.tools.avoided_tools.iter().enumerate() {
        if typed.tools.preferred_tools.contains(name) {
            let help = "remove it from one of the two lists";
            let at = steps!["tools", "avoided_tools", index];
            document.error(
                Code::ManifestConflictingGuidance,
                &at,
                format!("`{name}` is both preferred and avoided"),
                help,
            );
        }
    }
    let order = &typed.tools.tool_order;
    for (index, name) in order.iter().enumerate() {
        if order.iter().take(index).any(|earlier| earlier == name) {
            let at = steps!["tools", "tool_order", index];
            let message = format!("`{name}` is in the order twice");
            document.error(Code::ManifestConflictingGuidance, &at, message, "remove it from one of the two positions");
        }
    }
}

/// The component's file. It must be inside the plugin's folder: a manifest does not reach for other files.
fn component(document: &mut Document<'_>, typed: &ManifestFile, folder: &Path) -> Option<PathBuf> {
    let named = typed.component.as_ref().map(|component| component.path.as_str());
    let name = named.or(typed.build.as_ref().map(|_| "component.wasm"))?;
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(name).components().all(inside) {
        let help = "write a path relative to the manifest, without `..`";
        document.error(
            Code::ManifestComponentOutside,
            &steps!["component", "path"],
            "the component must be inside the plugin's folder",
            help,
        );
    }
    Some(folder.join(name))
}

fn settings(document: &mut Document<'_>, typed: &BTreeMap<String, SettingFile>) -> BTreeMap<String, SettingDecl> {
    let mut settings = BTreeMap::new();
    for (name, setting) in typed {
        let place = document.key_place(&steps!["settings", name.as_str()]);
        let kind = setting.kind;
        let default = setting.default.as_ref().and_then(|value| setting_value(&value.0));
        if let Some(default) = default.as_ref().filter(|default| default.kind() != kind) {
            let message =
                format!("the default of `{name}` is {}, its type is `{}`", default.kind().noun(), kind.as_str());
            let help = format!("write {}, or change `type`", kind.noun());
            document.error(Code::ManifestInvalidDefault, &steps!["settings", name.as_str(), "default"], message, help);
        }
        settings.insert(name.clone(), SettingDecl { kind, default, description: setting.description.clone(), place });
    }
    settings
}

/// The value of a setting as TOML wrote it; `None` where it is of none of the kinds.
pub(crate) fn setting_value(value: &toml::Value) -> Option<SettingValue> {
    match value {
        toml::Value::String(text) => Some(SettingValue::Text(text.clone())),
        toml::Value::Integer(number) => Some(SettingValue::Number(*number as f64)),
        toml::Value::Float(number) => Some(SettingValue::Number(*number)),
        toml::Value::Boolean(yes) => Some(SettingValue::Boolean(*yes)),
        toml::Value::Array(items) => {
            let items = items.iter().map(|item| item.as_str().map(str::to_owned));
            items.collect::<Option<_>>().map(SettingValue::Texts)
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}
