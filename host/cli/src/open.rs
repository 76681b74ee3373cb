//! Builds the operator's settings from the operator's files and the flags, which take precedence.

use std::path::Path;
use std::sync::Once;

use tidegate::config::{LayerKind, OPERATOR_FILE, OperatorFiles, SETTINGS_VARIABLE};
use tidegate::diagnostic::DiagnosticCode;
use tidegate::model::{KeySource, ProviderKind};
use tidegate::plugin::{PluginEntry, Power, SettingValue};
use tidegate::tool::PermissionRule;
use tidegate::trust::{SettingsReader, WorkspaceSettings};
use tidegate::{Operator, environment};

use crate::args::{Common, ProviderArgs};
use crate::exit::Failure;
use crate::screen::clean::flat;
use crate::{say, session, state, trust};

/// The program has one session, and each plugin one instance in it (the doctor another): more would only make it start
/// later.
pub(crate) const MAX_INSTANCES: u32 = 128;

/// The operator's files that the arguments mean, and the settings of the environment.
pub(crate) fn files(common: &Common) -> OperatorFiles {
    OperatorFiles::new().named(common.config.clone()).environment(environment::variable(SETTINGS_VARIABLE).as_deref())
}

/// Reads the operator's files of workspaces, and which of them are trusted.
pub(crate) fn reader(common: &Common) -> SettingsReader {
    SettingsReader::new().files(files(common)).take_all(common.trust_workspace)
}

/// Reads the settings for a command that runs nothing for the model, and applies the flags that all commands accept. The file of a workspace
/// that is not trusted is left out, which is noted.
pub(crate) fn operator(common: &Common) -> Result<Operator, Failure> {
    of_settings(common, &reader(common).read(&common.workspace)?)
}

/// As [`operator`], of settings that were read already.
pub(crate) fn of_settings(common: &Common, settings: &WorkspaceSettings) -> Result<Operator, Failure> {
    trust::note(settings);
    note_other_file(common, settings);
    with_flags(common, settings.operator().clone())
}

/// The settings under the policy of the machine, for commands that open no host: a host is under it by itself.
pub(crate) fn under_policy(mut operator: Operator) -> Result<Operator, Failure> {
    if let Some(policy) = tidegate::config::machine_policy()? {
        let _replaced = policy.put_above(&mut operator);
    }
    Ok(operator)
}

/// As [`operator`], without notes, for a workspace that the user may not be in.
pub(crate) fn operator_quietly(common: &Common) -> Result<Operator, Failure> {
    with_flags(common, reader(common).read(&common.workspace)?.operator().clone())
}

/// Where the workspace has no operator's file: says that a folder above has one.
pub(crate) fn note_other_file(common: &Common, settings: &WorkspaceSettings) {
    if settings.files().layers.iter().all(|layer| matches!(layer.kind, LayerKind::User | LayerKind::Environment)) {
        note_file_above(&common.workspace);
    }
}

/// Says, once, that a folder above in the same repository has an operator's file, which is not used: whoever works in a folder of a project
/// may expect that it is.
fn note_file_above(workspace: &Path) {
    static NOTED: Once = Once::new();
    let Ok(here) = workspace.canonicalize() else { return };
    let Some(root) = here.ancestors().find(|folder| folder.join(".git").exists()) else { return };
    let mut above = here.ancestors().skip(1).take_while(|folder| folder.starts_with(root));
    if let Some(folder) = above.find(|folder| folder.join(OPERATOR_FILE).exists()) {
        let (folder, here) = (flat(&folder.display().to_string()), flat(&here.display().to_string()));
        NOTED.call_once(|| {
            say::note(format_args!(
                "note: {folder}/{OPERATOR_FILE} is not used, because the workspace is {here}; give `--workspace {folder}` to work in that folder"
            ));
        });
    }
}

/// Applies the flags that all commands accept.
pub(crate) fn with_flags(common: &Common, mut operator: Operator) -> Result<Operator, Failure> {
    operator.plugins.extend(plugins(common)?);
    common.set.iter().try_for_each(|text| set(&mut operator.plugins, text))?;
    Ok(operator)
}

/// The plugins that `--plugin` names, with what `--grant` grants.
pub(crate) fn plugins(common: &Common) -> Result<Vec<PluginEntry>, Failure> {
    let grants = &common.grant;
    if common.plugin.is_empty() && !grants.is_empty() {
        return Err(Failure::setup("--grant applies to plugins given with --plugin, but no --plugin was given"));
    }
    let (mut plugins, mut unasked) = (Vec::new(), grants.clone());
    for path in &common.plugin {
        let mut entry = PluginEntry::of_path(path);
        // Only the powers that the manifest requests: a grant on the command line applies to all plugins given there.
        // A manifest that cannot be read is reported when the plugin is loaded.
        match tidegate::plugin::Manifest::load(&entry.folder.join(tidegate::plugin::MANIFEST_FILE)) {
            Ok(manifest) => {
                let asks = |power: &Power| manifest.capabilities.contains_key(power);
                entry.grants = grants.iter().copied().filter(asks).collect();
                unasked.retain(|power| !asks(power));
            }
            Err(_) => unasked.clear(),
        }
        plugins.push(entry);
    }
    if let Some(power) = unasked.first() {
        let power = power.as_str();
        return Err(Failure::setup(format_args!(
            "--grant {power}: no plugin given with --plugin requests `{power}` under `[capabilities]` of its plugin.toml"
        )));
    }
    Ok(plugins)
}

/// Applies `--set PLUGIN.KEY=VALUE`.
fn set(plugins: &mut [PluginEntry], text: &str) -> Result<(), Failure> {
    let malformed = || Failure::setup("--set expects PLUGIN.KEY=VALUE, for example `--set notes.limit=5`");
    let (name, value) = text.split_once('=').ok_or_else(malformed)?;
    let (id, key) = name.split_once('.').ok_or_else(malformed)?;
    let mut ids = Vec::new();
    for entry in plugins {
        // A manifest that cannot be read is reported when the plugin is loaded.
        let Ok(manifest) = tidegate::plugin::Manifest::load(&entry.folder.join(tidegate::plugin::MANIFEST_FILE)) else {
            continue;
        };
        if manifest.id.as_str() != id {
            ids.push(format!("`{}`", manifest.id));
            continue;
        }
        let Some(declared) = manifest.settings.get(key) else {
            let known: Vec<String> = manifest.settings.keys().map(|key| format!("`{key}`")).collect();
            let known =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
            let failure = Failure::setup(format_args!("--set: plugin `{id}` has no setting `{key}`; {known}"));
            return Err(failure.coded(Some(DiagnosticCode::PluginUnknownSetting)));
        };
        let value = SettingValue::parse(declared.kind, value).ok_or_else(|| {
            let kind = declared.kind.noun();
            Failure::setup(format_args!("--set: `{key}` of plugin `{id}` must be {kind}; {}", declared.description))
                .coded(Some(DiagnosticCode::PluginSettingType))
        })?;
        entry.settings.insert(key.to_owned(), (value, None));
        return Ok(());
    }
    let known = if ids.is_empty() {
        "no plugins are configured".to_owned()
    } else {
        format!("the plugins are {}", ids.join(", "))
    };
    Err(Failure::setup(format_args!("--set: no plugin `{id}` is loaded; {known}")))
}

/// The settings of sessions. They are recorded, and what plugins keep in them is found again when they continue, unless the operator or
/// `no_transcript` decides otherwise. `is_named`: the user has given the session an id, under which the state of plugins is kept in any case.
pub(crate) fn session_settings(
    common: &Common,
    operator: Operator,
    provider: &ProviderArgs,
    no_transcript: bool,
    is_named: bool,
) -> Result<Operator, Failure> {
    let mut operator = with_flags(common, operator)?;
    choose_provider(&mut operator, provider)?;
    if no_transcript {
        operator.transcript.enabled = Some(false);
    }
    session::keep(&mut operator);
    if is_named || operator.transcript.enabled == Some(true) {
        state::keep(&mut operator);
    }
    Ok(operator)
}

/// Applies the flags that choose a model.
pub(crate) fn choose_provider(operator: &mut Operator, args: &ProviderArgs) -> Result<(), Failure> {
    let provider = &mut operator.provider;
    if let Some(kind) = args.provider {
        provider.kind = Some(kind);
    }
    if let Some(model) = &args.model {
        provider.model = Some(model.clone());
    }
    if let Some(url) = &args.base_url {
        provider.base_url = Some(url.clone());
    }
    if let Some(variable) = &args.api_key_env {
        provider.key =
            KeySource::of_variable(variable).map_err(|wrong| Failure::setup(format_args!("--api-key-env: {wrong}")))?;
    }
    if let Some(file) = &args.recording {
        let others = [
            ("--provider", args.provider.is_some_and(|kind| kind != ProviderKind::Recording)),
            ("--model", args.model.is_some()),
            ("--base-url", args.base_url.is_some()),
            ("--api-key-env", args.api_key_env.is_some()),
        ];
        if let Some((flag, _)) = others.iter().find(|(_, given)| *given) {
            return Err(Failure::setup(format_args!("--recording replaces the provider: remove {flag}")));
        }
        provider.kind = Some(ProviderKind::Recording);
        provider.recording = Some(file.clone());
    }
    Ok(())
}

/// Parses the values of `--permission`, each `TOOL=MODE` or `TOOL(PATTERN)=MODE`.
pub(crate) fn permissions(texts: &[String]) -> Result<Vec<PermissionRule>, Failure> {
    let read = |text: &String| {
        PermissionRule::parse(text)
            .map_err(|bad| Failure::setup(format!("--permission {text}: {}\n  help: {}", bad.message, bad.help)))
    };
    texts.iter().map(read).collect()
}
