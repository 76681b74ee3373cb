//! Loads what hosts and sessions are made of. What cannot be loaded refuses the host, or is noted and left out where everything
//! that is wrong is to be reported.

use std::path::PathBuf;
use std::sync::Arc;

use config::rule_sources::{self, Sources};
use config::{ConfiguredPlugin, Diagnostics, Guidance};
use flow::{Permission, PluginId, ToolSpec};
use sandbox::{EngineOptions, SandboxHost};
use tools::{BuiltinTools, ToolSettings, ToolsError};
use turn::ports::Tools;

use crate::live::LiveRules;
use crate::loaded::Shared;
use crate::state::Stored;
use crate::toolbox::{Decisions, Toolbox, take_absent};
use crate::{Engine, HostBuilder, HostError, Loaded, SessionOptions, assemble, rulebook, stale};

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

/// Loads what all sessions of a host share. Compiling takes up to seconds of pure work.
///
/// # Errors
/// What `faults` does not take.
pub(crate) fn shared(builder: HostBuilder, faults: &mut Faults) -> Result<Shared, HostError> {
    let mut plugins = manifests(&builder, faults)?;
    let warnings = plugins.iter().filter_map(stale::warning).collect();
    let engine = engine(&builder, faults)?;
    let components = components(engine.as_ref(), &mut plugins, faults)?;
    let stored = match builder.stored {
        Some(stored) => stored,
        None => Stored::open(&builder.operator.state, Arc::clone(&builder.clock))?,
    };
    let store = Arc::clone(&stored.sessions);
    let extensions = SandboxHost::with_clock(components, store, builder.clock)?
        .with_session_bytes(builder.operator.state.session_bytes);
    Ok(Shared {
        operator: builder.operator,
        permissions: builder.permissions,
        user_rules: builder.user_rules,
        extensions,
        stored,
        engine,
        plugins,
        warnings,
        opened: Arc::default(),
    })
}

/// What a workspace is loaded for: sessions that agree in it share what is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    pub(crate) workspace: PathBuf,
    pub(crate) plugins: Option<Vec<PluginId>>,
    /// Names of the embedder's tools.
    pub(crate) own_tools: Vec<String>,
    pub(crate) builtin_tools: bool,
}

impl Wanted {
    pub(crate) fn of(options: &SessionOptions) -> Self {
        let own = options.tools.as_ref().map(|tools| tools.specs()).unwrap_or_default();
        Self {
            workspace: options.workspace.clone(),
            plugins: options.plugins.clone(),
            own_tools: own.into_iter().map(|tool| tool.name).collect(),
            builtin_tools: options.builtin_tools,
        }
    }
}

/// Loads what the sessions of a workspace share: its rules, its tools, and what plugins say about tools.
///
/// # Errors
/// The workspace cannot be used, a plugin is unknown; and what `faults` does not take.
pub(crate) fn workspace(
    shared: &Arc<Shared>,
    wanted: &Wanted,
    own: Option<Arc<dyn Tools>>,
    faults: &mut Faults,
) -> Result<Loaded, HostError> {
    let operator = &shared.operator;
    let plugins = chosen(&shared.plugins, wanted.plugins.as_deref())?;
    let mut settings = assemble::tools(operator, &shared.permissions, &shared.plugins);
    let (decisions, read_rule) = match decide(&mut settings, &wanted.own_tools) {
        Ok(decided) => decided,
        Err(error) => {
            faults.take("tools", error)?;
            (Decisions::default(), Permission::Allow)
        }
    };
    let mut warnings = match take_absent(&mut settings, &wanted.own_tools, operator) {
        Ok(warnings) => warnings,
        Err(found) => {
            faults.take("tools", found)?;
            Vec::new()
        }
    };
    let builtin = Arc::new(builtin_tools(wanted, settings, faults)?);
    let workspace = builtin.workspace().to_owned();
    let toolbox = Toolbox { own, builtin: wanted.builtin_tools.then(|| Arc::clone(&builtin) as _), decisions };
    let specs = toolbox.specs();
    // The rulebook comes and goes with the rules; a plugin is allowed to name it in any case.
    let known: Vec<ToolSpec> = specs.iter().cloned().chain([rulebook::spec()]).collect();
    let (guidance, found) = Guidance::collect(&plugins, &known);
    warnings.extend(found);
    let names = specs.into_iter().map(|tool| tool.name).collect();
    let sources = Sources::new(operator, &plugins, &workspace, names);
    let user = shared.user_rules.as_deref();
    let live = LiveRules::open(sources, rule_sources::folders(operator, &wanted.workspace, &workspace, user));
    Ok(Loaded {
        shared: Arc::clone(shared),
        extensions: Arc::new(shared.extensions.select(|id| plugins.iter().any(|plugin| plugin.manifest.id == *id))),
        built: live.built(),
        live,
        builtin: wanted.builtin_tools.then_some(builtin),
        decisions: toolbox.decisions,
        settings: assemble::turn(operator, &workspace, &plugins, guidance.block()),
        guidance: Arc::new(guidance),
        warnings,
        unread: rule_sources::unread(operator, &wanted.workspace, user),
        read_rule,
        plugins,
    })
}

/// The operator's word on tools that are not built in, and on `read_rule`.
fn decide(settings: &mut ToolSettings, own: &[String]) -> Result<(Decisions, Permission), HostError> {
    let decisions = Decisions::take(settings, own, tools::is_builtin)?;
    Ok((decisions, rulebook::permission(settings)?))
}

/// The plugins of a session, in the order of the host: those it names, and those that the operator requires.
fn chosen(all: &[ConfiguredPlugin], wanted: Option<&[PluginId]>) -> Result<Vec<ConfiguredPlugin>, HostError> {
    let Some(wanted) = wanted else { return Ok(all.to_vec()) };
    let ids = || all.iter().map(|plugin| plugin.manifest.id.clone());
    if let Some(unknown) = wanted.iter().find(|wanted| !ids().any(|id| id == **wanted)) {
        return Err(HostError::UnknownPlugin { plugin: unknown.clone(), known: ids().collect() });
    }
    let is_chosen = |plugin: &&ConfiguredPlugin| plugin.entry.required || wanted.contains(&plugin.manifest.id);
    Ok(all.iter().filter(is_chosen).cloned().collect())
}

fn manifests(builder: &HostBuilder, faults: &mut Faults) -> Result<Vec<ConfiguredPlugin>, HostError> {
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

fn builtin_tools(wanted: &Wanted, settings: ToolSettings, faults: &mut Faults) -> Result<BuiltinTools, HostError> {
    match BuiltinTools::new(&wanted.workspace, settings) {
        Ok(tools) => Ok(tools),
        // Without a workspace nothing else can be found.
        Err(error @ ToolsError::Workspace { .. }) => Err(error.into()),
        Err(error) => {
            faults.take("tools", error)?;
            Ok(BuiltinTools::new(&wanted.workspace, ToolSettings::default())?)
        }
    }
}

fn engine(builder: &HostBuilder, faults: &mut Faults) -> Result<Option<Engine>, HostError> {
    if let Some(engine) = &builder.engine {
        return Ok(Some(engine.clone()));
    }
    let options = EngineOptions { cache_dir: builder.cache_dir.clone(), max_instances: builder.max_instances };
    match Engine::new(&options) {
        Ok(engine) => Ok(Some(engine)),
        Err(error) => {
            faults.take("sandbox", error)?;
            Ok(None)
        }
    }
}

/// Loads the components; `plugins` keeps those that could be loaded.
fn components(
    engine: Option<&Engine>,
    plugins: &mut Vec<ConfiguredPlugin>,
    faults: &mut Faults,
) -> Result<Vec<sandbox::Plugin>, HostError> {
    let (mut loaded, mut kept) = (Vec::new(), Vec::new());
    for plugin in plugins.drain(..) {
        match component(engine, &plugin) {
            Ok(component) => {
                loaded.extend(component);
                kept.push(plugin);
            }
            Err(error) => faults.take(format!("plugin {}", plugin.manifest.id), error)?,
        }
    }
    *plugins = kept;
    Ok(loaded)
}

/// The component of a plugin that has one.
fn component(engine: Option<&Engine>, plugin: &ConfiguredPlugin) -> Result<Option<sandbox::Plugin>, HostError> {
    missing_component(plugin)?;
    let Some(source) = assemble::plugin(plugin) else { return Ok(None) };
    Ok(Some(engine.ok_or(HostError::NoEngine)?.0.load(source)?))
}

/// A missing component is the first error that an author meets: the error states how to build it.
fn missing_component(plugin: &ConfiguredPlugin) -> Result<(), HostError> {
    let manifest = &plugin.manifest;
    let Some(component) = manifest.component.as_ref().filter(|component| !component.exists()) else { return Ok(()) };
    Err(HostError::ComponentMissing {
        plugin: manifest.id.clone(),
        component: component.clone(),
        source_folder: manifest.build.as_ref().map(|_| manifest.folder.clone()),
    })
}
