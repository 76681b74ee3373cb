//! Loads what a host is made of. What cannot be loaded refuses the host, or is noted and left out where all of it is to
//! be told.

use std::sync::Arc;

use config::Diagnostics;
use sandbox::{EngineOptions, Sandbox, SandboxHost};
use tools::{BuiltinTools, ToolSettings, ToolsError};
use turn::ports::Tools;

use crate::guidance::Guidance;
use crate::live::LiveRules;
use crate::{HostBuilder, HostError, Loaded, assemble, rulebook, stale};
use config::rule_sources::{self, Sources};

/// What becomes of a part that cannot be loaded.
pub(crate) enum Faults {
    /// The host is refused.
    Refuse,
    /// It is left out, and kept here: what it was, and why.
    Note(Vec<(String, HostError)>),
}

impl Faults {
    fn take(&mut self, what: impl Into<String>, error: impl Into<HostError>) -> Result<(), HostError> {
        match self {
            Self::Refuse => Err(error.into()),
            Self::Note(noted) => {
                noted.push((what.into(), error.into()));
                Ok(())
            }
        }
    }
}

/// Loads plugins and rules, and sets the tools up. Compiling takes up to seconds of pure work.
///
/// # Errors
/// The workspace cannot be used; and what `faults` does not take.
pub(crate) fn load(builder: &HostBuilder, faults: &mut Faults) -> Result<Loaded, HostError> {
    let operator = &builder.operator;
    let mut plugins = manifests(builder, faults)?;
    let mut settings = assemble::tools(operator, &builder.permissions, &plugins);
    let read_rule = match rulebook::permission(&mut settings) {
        Ok(permission) => permission,
        Err(error) => {
            faults.take("tools", error)?;
            flow::Permission::Allow
        }
    };
    let tools = builtin_tools(builder, settings, faults)?;
    let workspace = tools.workspace().to_owned();
    let specs = tools.specs();
    let guidance = guidance(&plugins, &specs, faults)?;
    let names = specs.into_iter().map(|tool| tool.name).collect();
    let sources = Sources::new(operator, &plugins, &workspace, names);
    let folders = rule_sources::folders(operator, &builder.workspace, &workspace, builder.user_rules.as_deref());
    let live = LiveRules::open(sources, folders);
    let warnings = plugins.iter().filter_map(stale::warning).collect();
    let (sandbox, extensions) = components(builder, &mut plugins, faults)?;
    Ok(Loaded {
        extensions: Arc::new(extensions),
        built: live.built(),
        live,
        sandbox,
        warnings,
        tools: Arc::new(tools),
        settings: assemble::turn(operator, &workspace, &plugins, guidance.text()),
        guidance: Arc::new(guidance),
        unread: rule_sources::unread(operator, &workspace, builder.user_rules.as_deref()),
        read_rule,
        plugins,
    })
}

fn manifests(builder: &HostBuilder, faults: &mut Faults) -> Result<Vec<config::Plugin>, HostError> {
    let (plugins, refused) = builder.operator.load_each_plugin();
    if let Faults::Refuse = faults
        && !refused.is_empty()
    {
        let all = refused.into_iter().flat_map(|(_, found)| found.0).collect();
        return Err(Diagnostics(all).into());
    }
    for (folder, found) in refused {
        faults.take(format!("plugin {}", folder.display()), found)?;
    }
    Ok(plugins)
}

fn builtin_tools(
    builder: &HostBuilder,
    settings: ToolSettings,
    faults: &mut Faults,
) -> Result<BuiltinTools, HostError> {
    match BuiltinTools::new(&builder.workspace, settings) {
        Ok(tools) => Ok(tools),
        // Without a workspace nothing else can be found.
        Err(error @ ToolsError::Workspace { .. }) => Err(error.into()),
        Err(error) => {
            faults.take("tools", error)?;
            Ok(BuiltinTools::new(&builder.workspace, ToolSettings::default())?)
        }
    }
}

fn guidance(plugins: &[config::Plugin], specs: &[flow::ToolSpec], faults: &mut Faults) -> Result<Guidance, HostError> {
    // The rulebook comes and goes with the rules; a plugin may speak of it in any case.
    let known: Vec<flow::ToolSpec> = specs.iter().cloned().chain([rulebook::spec()]).collect();
    match Guidance::collect(plugins, &known) {
        Ok(guidance) => Ok(guidance),
        Err(error) => {
            faults.take("guidance on tools", error)?;
            Ok(Guidance::default())
        }
    }
}

/// Loads the components; `plugins` keeps those that could be loaded.
fn components(
    builder: &HostBuilder,
    plugins: &mut Vec<config::Plugin>,
    faults: &mut Faults,
) -> Result<(Option<Sandbox>, SandboxHost), HostError> {
    let options = EngineOptions { cache_dir: builder.cache_dir.clone(), max_instances: builder.max_instances };
    let sandbox = match Sandbox::new(&options) {
        Ok(sandbox) => Some(sandbox),
        Err(error) => {
            faults.take("sandbox", error)?;
            None
        }
    };
    let (mut loaded, mut kept) = (Vec::new(), Vec::new());
    for plugin in plugins.drain(..) {
        match component(sandbox.as_ref(), &plugin) {
            Ok(component) => {
                loaded.extend(component);
                kept.push(plugin);
            }
            Err(error) => faults.take(format!("plugin {}", plugin.manifest.id), error)?,
        }
    }
    *plugins = kept;
    let host = SandboxHost::new(loaded).map_err(|duplicate| HostError::Setup(duplicate.to_string()))?;
    Ok((sandbox, host))
}

/// The component of a plugin that has one.
fn component(sandbox: Option<&Sandbox>, plugin: &config::Plugin) -> Result<Option<sandbox::Plugin>, HostError> {
    missing_component(plugin)?;
    let Some(source) = assemble::plugin(plugin) else { return Ok(None) };
    let without = || HostError::Setup("it is not loaded: there is no sandbox to run it in".to_owned());
    Ok(Some(sandbox.ok_or_else(without)?.load(source)?))
}

/// A component that is not there yet is the first thing an author meets: say how it is made.
fn missing_component(plugin: &config::Plugin) -> Result<(), HostError> {
    let manifest = &plugin.manifest;
    let Some(component) = manifest.component.as_ref().filter(|component| !component.exists()) else { return Ok(()) };
    let (id, folder) = (&manifest.id, manifest.folder.display());
    let help = match manifest.build {
        Some(_) => format!("build it with `tidegate plugin build {folder}`"),
        None => "put it there, or correct `path` under `[component]`".to_owned(),
    };
    Err(HostError::Setup(format!("plugin `{id}` has no component at {}: {help}", component.display())))
}
