//! From what the operator decided to what each room is given. One function a room; nothing is decided here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use config::{KeySource, Operator, Power, Provider, ProviderKind, SettingValue};
use flow::{CallbackKind, ToolSpec};
use providers::{HttpConfig, ProviderConfig, ReplayConfig, Secret, Wire};
use sandbox::{ComponentSource, PluginSource, Setting};
use turn::ports::Tools;

use crate::{HostError, rulebook};

/// What `providers` is given.
pub(crate) fn provider(
    from: &Provider,
    record: Option<&Path>,
    key: Option<&Secret>,
) -> Result<ProviderConfig, HostError> {
    let known = || ProviderKind::ALL.map(ProviderKind::as_str).join(", ");
    let kind = from.kind.ok_or_else(|| HostError::NoProvider { known: known() })?;
    let wire = match kind {
        ProviderKind::Anthropic => Wire::Anthropic,
        ProviderKind::OpenaiChat => Wire::OpenAiChat,
        ProviderKind::OpenaiResponses => Wire::OpenAiResponses,
        ProviderKind::Recording => return replay(from, record),
    };
    let model = from.model.clone().ok_or(HostError::NoModel)?;
    Ok(ProviderConfig::Http(HttpConfig {
        base_url: from.base_url.clone(),
        key: match (key, &from.key) {
            (Some(key), _) => providers::KeySource::Given(Box::new(key.clone())),
            (None, KeySource::Usual) => providers::KeySource::Usual,
            (None, KeySource::Env(name)) => providers::KeySource::Env(name.clone()),
            (None, KeySource::None) => providers::KeySource::None,
        },
        max_tokens: from.max_tokens,
        connect_timeout: from.connect_timeout,
        idle_timeout: from.idle_timeout,
        prefill: from.prefill,
        record: record.map(Path::to_owned),
        ..HttpConfig::new(wire, model)
    }))
}

fn replay(from: &Provider, record: Option<&Path>) -> Result<ProviderConfig, HostError> {
    if record.is_some() {
        return Err(HostError::RecordsRecording);
    }
    let path = from.recording.clone().ok_or(HostError::NoRecording)?;
    Ok(ProviderConfig::Recording(ReplayConfig::new(path)))
}

/// What `tools` is given: the operator's permissions, but those of `flags` where both speak of the same.
pub(crate) fn tools(
    operator: &Operator,
    flags: &[config::PermissionRule],
    plugins: &[config::Plugin],
) -> tools::ToolSettings {
    let in_file = match &operator.source {
        Some(source) => format!("[tools.permission] in {}", source.path.display()),
        None => "the program that embeds the host".to_owned(),
    };
    let rule = |rule: &config::PermissionRule, origin: &str| tools::PermissionRule {
        tool: rule.tool.clone(),
        pattern: rule.pattern.clone(),
        mode: match rule.mode {
            config::PermissionMode::Allow => tools::PermissionMode::Allow,
            config::PermissionMode::Ask => tools::PermissionMode::Ask,
            config::PermissionMode::Deny => tools::PermissionMode::Deny,
        },
        origin: origin.to_owned(),
    };
    let said = |one: &&config::PermissionRule| {
        !flags.iter().any(|flag| (&flag.tool, &flag.pattern) == (&one.tool, &one.pattern))
    };
    let kept = operator.tools.permissions.iter().filter(said);
    // Commands of the model get no key of the provider's.
    let hidden_env = match &operator.provider.key {
        KeySource::Env(name) => vec![name.clone()],
        KeySource::Usual | KeySource::None => Vec::new(),
    };
    tools::ToolSettings {
        permissions: kept
            .map(|one| rule(one, &in_file))
            .chain(flags.iter().map(|one| rule(one, "--permission")))
            .collect(),
        shell_timeout: operator.tools.shell_timeout,
        shell_output_bytes: operator.tools.shell_output_bytes,
        hidden_env,
        guarded: guarded(operator, plugins),
    }
}

/// The tools that a host offers to the model in this workspace, as the operator has set them up.
///
/// # Errors
/// The workspace is no folder, or a permission is wrong.
pub fn tool_specs(operator: &Operator, workspace: &Path) -> Result<Vec<ToolSpec>, HostError> {
    let mut settings = tools(operator, &[], &[]);
    rulebook::permission(&mut settings)?;
    Ok(tools::BuiltinTools::new(workspace, settings)?.specs())
}

/// Files and folders that this host trusts: its own file, rule folders, and what its plugins consist of.
fn guarded(operator: &Operator, plugins: &[config::Plugin]) -> Vec<tools::GuardedPath> {
    let guard = |path: &Path, reason: &str| tools::GuardedPath { path: path.to_owned(), reason: reason.to_owned() };
    let file = operator.source.iter().map(|source| guard(&source.path, "holds the permissions of this host"));
    let folders = operator.rule_folders.more.iter().map(|one| guard(&one.path, "holds stream rules of this host"));
    let plugins = plugins.iter().flat_map(|plugin| {
        let manifest = guard(&plugin.manifest.folder.join(config::MANIFEST_FILE), "is the manifest of a loaded plugin");
        let component = plugin.manifest.component.iter().map(|path| guard(path, "is the component of a loaded plugin"));
        std::iter::once(manifest).chain(component)
    });
    file.chain(folders).chain(plugins).collect()
}

/// What `sandbox` is given for one plugin; `None` where the plugin has no component.
pub(crate) fn plugin(from: &config::Plugin) -> Option<PluginSource> {
    let component = from.manifest.component.clone()?;
    let powers = |wanted: &dyn Fn(&Power) -> bool| -> BTreeSet<sandbox::Power> {
        Power::ALL.iter().filter(|power| wanted(power)).filter_map(|power| guest_power(*power)).collect()
    };
    let limits = sandbox::Limits {
        time: from.limits.callback,
        text_time: from.limits.text,
        turn_time: from.limits.turn,
        memory_bytes: usize::try_from(from.limits.memory_bytes).unwrap_or(usize::MAX),
        returned_bytes: usize::try_from(from.limits.output_bytes).unwrap_or(usize::MAX),
        state_ttl: from.limits.state_ttl,
        ..sandbox::Limits::default()
    };
    let callbacks: [CallbackKind; 5] = CallbackKind::ALL;
    let priorities: BTreeMap<CallbackKind, u8> =
        callbacks.into_iter().filter_map(|callback| Some((callback, from.priority(callback)?))).collect();
    Some(PluginSource {
        version: from.manifest.version.clone(),
        asked: powers(&|power| from.manifest.capabilities.contains_key(power)),
        granted: powers(&|power| from.entry.grants.contains(power)),
        settings: from.settings.iter().map(|(name, value)| (name.clone(), setting(value))).collect(),
        limits,
        required: from.entry.required,
        priorities,
        fails_closed: from.manifest.fails_closed,
        operator_fails_closed: from.entry.fails_closed,
        ..PluginSource::new(from.manifest.id.clone(), ComponentSource::File(component))
    })
}

/// A power that a guest imports; adding to the prompt is the manifest's alone.
fn guest_power(power: Power) -> Option<sandbox::Power> {
    match power {
        Power::State => Some(sandbox::Power::State),
        Power::Session => Some(sandbox::Power::Session),
        Power::History => Some(sandbox::Power::History),
        Power::Tools => Some(sandbox::Power::Tools),
        Power::Prompt => None,
    }
}

fn setting(value: &SettingValue) -> Setting {
    match value {
        SettingValue::Text(text) => Setting::Text(text.clone()),
        SettingValue::Number(number) => Setting::Number(*number),
        SettingValue::Boolean(yes) => Setting::Boolean(*yes),
        SettingValue::Texts(texts) => Setting::Texts(texts.clone()),
    }
}

/// Where compiled components are kept by default: the user's cache folder. `None` where the user has no home.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    use etcetera::base_strategy::{BaseStrategy, Xdg};
    Xdg::new().ok().map(|base| base.cache_dir().join("tidegate").join("components"))
}

/// The system prompt where the operator sets none.
pub(crate) const DEFAULT_SYSTEM: &str = "You are a careful assistant that works in the user's workspace with the tools \
you are given. Read before you change; change only what was asked; say plainly what you did and what you could not do. \
Messages in <system-interrupt> and <system-reminder> come from the host, which enforces the rules of this project.";

/// What a turn is given. What rules add to the system prompt comes from the rules, at the start of each turn.
pub(crate) fn turn(
    operator: &Operator,
    workspace: &Path,
    plugins: &[config::Plugin],
    guidance: Option<String>,
) -> turn::Settings {
    let additions = plugins.iter().filter(|plugin| plugin.may(Power::Prompt));
    let system = operator.system.clone().unwrap_or_else(|| DEFAULT_SYSTEM.to_owned());
    turn::Settings {
        system: std::iter::once(system).chain(guidance).collect(),
        additions: additions.flat_map(|plugin| plugin.manifest.prompts.iter().cloned()).collect(),
        max_tokens: operator.provider.max_tokens,
        max_steps: operator.turn.max_steps,
        max_retries: operator.turn.max_retries,
        live: true,
        workspace: workspace.display().to_string(),
    }
}
