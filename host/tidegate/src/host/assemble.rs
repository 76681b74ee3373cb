//! Converts the operator's settings to the configuration of each crate: one function per crate, no decisions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{OnTimeout, Operator, Policy, Provider, StatePlace};
use flow::ports::Tools;
use flow::{BlockOrigin, CallbackKind, KeySource, Power, ProviderKind, RetryTable, SystemBlock, ThreadMode, ToolSpec};
use providers::{HttpConfig, ProviderConfig, ReplayConfig, Secret};
use sandbox::{ComponentSource, PluginSource};
use wire::Wire;

use crate::HostError;
use crate::live_rules::rulebook;

/// What `providers` is given.
pub(crate) fn provider(
    from: &Provider,
    record: Option<&Path>,
    key: Option<&Secret>,
) -> Result<ProviderConfig, HostError> {
    let known = || ProviderKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ");
    let kind = from.kind.ok_or_else(|| HostError::NoProvider { known: known() })?;
    let Some(wire) = Wire::of(kind) else { return replay(from, record) };
    let model = from.model.clone().ok_or(HostError::NoModel)?;
    Ok(ProviderConfig::Http(HttpConfig {
        base_url: from.base_url.clone(),
        key: from.key.clone(),
        given_key: key.cloned().map(Box::new),
        max_tokens: from.max_tokens,
        thinking_budget: from.thinking_budget,
        effort: from.effort.clone(),
        headers: from.headers.clone().into_iter().collect(),
        allow_plaintext_key: from.allow_plaintext_key,
        connect_timeout: from.connect_timeout,
        idle_timeout: from.idle_timeout,
        content_timeout: from.content_timeout,
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

/// What `tools` is given: the operator's permissions, but those of `flags` where both are about the same.
pub(crate) fn tools(
    operator: &Operator,
    flags: &[config::PermissionRule],
    plugins: &[config::ConfiguredPlugin],
    policy: Option<&Policy>,
) -> tools::ToolSettings {
    let written = |rule: &config::PermissionRule| match &rule.place {
        Some(place) => format!("[tools.permission] in {}", place.file.path.display()),
        None => "the program that embeds the host".to_owned(),
    };
    let rule = |rule: &config::PermissionRule, origin: String| tools::PermissionRule {
        tool: rule.tool.clone(),
        pattern: rule.pattern.clone(),
        mode: rule.mode,
        origin,
    };
    let said = |one: &&config::PermissionRule| {
        !flags.iter().any(|flag| (&flag.tool, &flag.pattern) == (&one.tool, &one.pattern))
    };
    let kept = operator.tools.permissions.iter().filter(said);
    tools::ToolSettings {
        permissions: kept
            .map(|one| rule(one, written(one)))
            .chain(flags.iter().map(|one| rule(one, "--permission".to_owned())))
            .collect(),
        ceiling: policy.map(|policy| ceiling(policy).collect()).unwrap_or_default(),
        shell_timeout: operator.tools.shell_timeout,
        shell_output_bytes: operator.tools.shell_output_bytes,
        shell_env: operator.tools.shell_env.clone(),
        own_keys: own_keys(operator),
        guarded: guarded(operator, plugins),
    }
}

/// The permissions of the policy, each with its place.
fn ceiling(policy: &Policy) -> impl Iterator<Item = tools::PermissionRule> + '_ {
    policy.permissions.iter().map(|rule| {
        let line = rule.place.as_ref().map_or(1, flow::Location::line);
        tools::PermissionRule {
            tool: rule.tool.clone(),
            pattern: rule.pattern.clone(),
            mode: rule.mode,
            origin: format!("the policy of this machine, {}:{line}", policy.file.display()),
        }
    })
}

/// The variables that the operator names for keys of the host.
fn own_keys(operator: &Operator) -> Vec<String> {
    let key = match &operator.provider.key {
        KeySource::Env(name) => Some(name),
        KeySource::Usual | KeySource::None => None,
    };
    let (url, password) = match &operator.state.place {
        StatePlace::Redis(redis) => (Some(&redis.url_env), redis.password_env.as_ref()),
        StatePlace::Unset | StatePlace::Memory | StatePlace::Disk(_) => (None, None),
    };
    key.into_iter().chain(url).chain(password).cloned().collect()
}

/// The tools that a host offers to the model in this workspace, as the operator has set them up.
///
/// # Errors
/// The workspace is not a folder, or a permission is not valid.
pub fn tool_specs(operator: &Operator, workspace: &Path) -> Result<Vec<ToolSpec>, HostError> {
    let mut settings = tools(operator, &[], &[], None);
    rulebook::permission(&mut settings)?;
    Ok(tools::BuiltinTools::new(workspace, settings)?.specs())
}

/// Files and folders that this host trusts: the operator's files, rule folders, and what its plugins consist of.
fn guarded(operator: &Operator, plugins: &[config::ConfiguredPlugin]) -> Vec<tools::GuardedPath> {
    let guard = |path: &Path, reason: &str| tools::GuardedPath { path: path.to_owned(), reason: reason.to_owned() };
    let layers = operator.layers.iter();
    let files = layers.map(|layer| guard(&layer.source.path, "contains the permissions of this host"));
    let folders = operator.rule_folders.more.iter().map(|one| guard(&one.path, "contains stream rules of this host"));
    let plugins = plugins.iter().flat_map(|plugin| {
        let manifest = guard(&plugin.manifest.folder.join(config::MANIFEST_FILE), "is the manifest of a loaded plugin");
        let component = plugin.manifest.component.iter().map(|path| guard(path, "is the component of a loaded plugin"));
        // Its source is code that `plugin build --watch` turns into the component.
        let is_built = plugin.manifest.build.is_some();
        let source = is_built.then(|| guard(&plugin.manifest.folder, "contains the source of a loaded plugin"));
        std::iter::once(manifest).chain(component).chain(source)
    });
    files.chain(folders).chain(plugins).collect()
}

/// What `sandbox` is given for one plugin; `None` where the plugin has no component.
pub(crate) fn plugin(from: &config::ConfiguredPlugin) -> Option<PluginSource> {
    let component = from.manifest.component.clone()?;
    let limits = sandbox::GuestLimits {
        time: from.limits.callback,
        text_time: from.limits.text,
        turn_time: from.limits.turn,
        tool_time: from.limits.tool,
        memory_bytes: usize::try_from(from.limits.memory_bytes).unwrap_or(usize::MAX),
        returned_bytes: usize::try_from(from.limits.output_bytes).unwrap_or(usize::MAX),
        tool_bytes: usize::try_from(from.limits.tool_output_bytes).unwrap_or(usize::MAX),
        state_ttl: from.limits.state_ttl,
        state_total_bytes: from.limits.state_bytes,
        ..sandbox::GuestLimits::default()
    };
    let priorities: BTreeMap<CallbackKind, u8> =
        CallbackKind::ALL.into_iter().filter_map(|callback| Some((callback, from.priority(callback)?))).collect();
    Some(PluginSource {
        version: from.manifest.version.clone(),
        asked: from.manifest.capabilities.keys().copied().collect(),
        granted: from.entry.grants.iter().copied().collect(),
        settings: from.settings.clone(),
        limits,
        state_version: from.manifest.state_version,
        required: from.entry.required,
        // What was trusted without a component is loaded with none.
        sha256: from.entry.sha256.clone().or_else(|| {
            let trusted = from.entry.trusted.as_ref()?;
            Some(trusted.component.clone().unwrap_or_else(|| "none".to_owned()))
        }),
        priorities,
        fails_closed: from.manifest.fails_closed,
        operator_fails_closed: from.entry.fails_closed,
        keep: from.manifest.keep,
        operator_keep: from.entry.keep,
        full_diagnostics: from.entry.full_diagnostics,
        ..PluginSource::new(from.manifest.id.clone(), ComponentSource::File(component))
    })
}

/// Where compiled components are kept by default: the user's cache folder. `None` where the user has no home.
pub(crate) fn cache_dir() -> Option<PathBuf> {
    use etcetera::base_strategy::{BaseStrategy, Xdg};
    Xdg::new().ok().map(|base| base.cache_dir().join("tidegate").join("components"))
}

/// The program's folder for the user's state, by default `~/.local/state/tidegate`: sessions, what plugins keep, and what front ends do.
/// `None` where the user has no home.
pub fn state_folder() -> Option<PathBuf> {
    use etcetera::base_strategy::{BaseStrategy, Xdg};
    let base = Xdg::new().ok()?;
    Some(base.state_dir().unwrap_or_else(|| base.data_dir()).join("tidegate"))
}

/// The system prompt where the operator sets none.
pub(crate) const DEFAULT_SYSTEM: &str = "You are a careful assistant that works in the user's workspace with the tools \
you are given. Read before you change; change only what was asked; say plainly what you did and what you could not do. \
Messages in <system-interrupt> and <system-reminder> come from the host, which enforces the rules of this project.";

/// When conversations become smaller. Where the context of the model is not known: when a request was too large.
pub(crate) fn compaction(operator: &Operator, model: &str) -> Option<turn::Compaction> {
    let settings = operator.compaction;
    let at = f64::from(settings.at_percent) / 100.0;
    let context_tokens = context_tokens(operator, model);
    settings.enabled.then_some(turn::Compaction { context_tokens, at, keep_turns: settings.keep_turns })
}

/// The tokens that a model takes, where that is known.
pub(crate) fn context_tokens(operator: &Operator, model: &str) -> Option<u64> {
    operator.compaction.context_tokens.or_else(|| providers::context_tokens(model))
}

/// What a turn is given. What rules add to the system prompt comes from the rules, at the start of each turn.
pub(crate) fn turn(
    operator: &Operator,
    workspace: &Path,
    plugins: &[config::ConfiguredPlugin],
    guidance: Option<SystemBlock>,
    retries: Arc<RetryTable>,
) -> turn::SessionSettings {
    let additions = plugins.iter().filter(|plugin| plugin.may(Power::Prompt));
    let system = operator.system.clone().unwrap_or_else(|| DEFAULT_SYSTEM.to_owned());
    turn::SessionSettings {
        system: std::iter::once(SystemBlock::new(BlockOrigin::Host, system)).chain(guidance).collect(),
        additions: additions.flat_map(|plugin| plugin.manifest.prompts.iter().cloned()).collect(),
        max_tokens: operator.provider.max_tokens,
        max_steps: operator.turn.max_steps,
        max_repeats: operator.turn.max_repeats,
        retries,
        request_timeout: Some(operator.provider.request_timeout),
        // By the model of the session.
        compaction: None,
        price: None,
        live: true,
        questions: questions(operator),
        workspace: workspace.display().to_string(),
        // By the options of the session.
        agent: config::agents::MAIN.to_owned(),
        mode: ThreadMode::default(),
        inputs: serde_json::Map::new(),
    }
}

/// How long questions about tool calls wait.
fn questions(operator: &Operator) -> turn::QuestionSettings {
    let mut settings = turn::QuestionSettings::default();
    settings.timeout = operator.tools.question_timeout;
    settings.approve_on_timeout = match operator.tools.on_question_timeout {
        OnTimeout::Allow => true,
        OnTimeout::Deny => false,
    };
    settings
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use flow::ports::Tools as _;
    use flow::{CallId, Permission, ToolCall};

    use super::tools;

    #[test]
    fn what_plugins_consist_of_is_not_written_unasked() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let head = |id: &str| format!("id = \"{id}\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"d\"\n");
        write("built/plugin.toml", &format!("{}[build]\nkind = \"rust\"\n", head("built")));
        write("made/plugin.toml", &format!("{}[component]\npath = \"made.wasm\"\n", head("made")));
        write("made/made.wasm", "");
        let text = "[[plugin]]\npath = \"built\"\n[[plugin]]\npath = \"made\"\n[tools.permission]\n\"*\" = \"allow\"\n";
        write("tidegate.toml", text);
        let operator = config::Operator::load(&folder.path().join("tidegate.toml")).unwrap();
        let plugins = operator.load_plugins().unwrap();
        let tools = ::tools::BuiltinTools::new(folder.path(), tools(&operator, &[], &plugins, None)).unwrap();
        for (path, guarded) in [
            ("tidegate.toml", Some("contains the permissions")),
            ("built/plugin.toml", Some("is the manifest")),
            ("built/src/lib.rs", Some("contains the source of a loaded plugin")),
            ("built/new/file", Some("contains the source of a loaded plugin")),
            ("made/plugin.toml", Some("is the manifest")),
            ("made/made.wasm", Some("is the component")),
            ("made/notes.md", None),
            ("builtin/src/lib.rs", None),
        ] {
            let arguments = serde_json::json!({"path": path, "content": ""}).to_string();
            let call = ToolCall { id: CallId::new("c1"), name: "write_file".into(), arguments };
            match (tools.prepare(&call).permission(), guarded) {
                (Permission::Ask { reason }, Some(part)) => assert!(reason.contains(part), "{path}: {reason}"),
                (Permission::Allow, None) => {}
                (other, _) => panic!("{path}: {other:?}"),
            }
        }
    }
}
