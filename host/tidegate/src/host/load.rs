//! Loads what hosts and sessions are made of. What cannot be loaded refuses the host, or is noted and left out where everything
//! that is wrong is to be reported.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use config::agents::Agents;
use config::rule_sources::{self, Sources};
use config::{ConfiguredPlugin, Diagnostics, FileStamp, Guidance, Operator, PluginEntry, thread_limits};
use flow::ports::Tools;
use flow::{Diagnostic, DiagnosticCode as Code, Permission, PluginId, ToolSpec};
use guard::additions::Addition;
use rules::RuleSpec;
use sandbox::EngineOptions;
use tools::{BuiltinTools, ToolSettings, ToolsError};

use crate::agents;
use crate::host::loaded::Loaded;
use crate::host::loaded::{Basis, Shared};
use crate::host::stored::Stored;
use crate::host::{assemble, code_rules};
use crate::live_rules::LiveRules;
use crate::live_rules::rulebook;
use crate::plugins::host_plugin::{HostPlugin, LoadedPlugin};
use crate::plugins::native::Native;
use crate::plugins::shown_prompts::ShownPrompts;
use crate::plugins::tools::{LateExtensions, PluginTools, ToolTable};
use crate::session::toolbox::{Decisions, Toolbox, take_absent};
use crate::{Engine, HostBuilder, HostError, SessionOptions};

/// What becomes of a part that cannot be loaded.
pub(crate) enum Faults {
    /// The host is refused.
    Refuse,
    /// It is left out, and kept here: what it was, and why.
    Note(Vec<(String, HostError)>),
}

impl Faults {
    /// Returns a part that was loaded; `None`: it could not be loaded, which is noted.
    fn part<T>(
        &mut self,
        what: impl Into<String>,
        part: Result<T, impl Into<HostError>>,
    ) -> Result<Option<T>, HostError> {
        match part {
            Ok(part) => Ok(Some(part)),
            Err(error) => self.take(what, error).map(|()| None),
        }
    }

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
    builder.check_state()?;
    // Before the manifests are read: what changes in between is then seen at the next look.
    let stamp = |entry: &PluginEntry| FileStamp::of_path(&entry.folder.join(config::MANIFEST_FILE));
    let stamps: Vec<FileStamp> = builder.operator.plugins.iter().map(stamp).collect();
    let plugins = manifests(&builder, faults)?;
    let engine = engine(&builder, faults)?;
    let host_plugins = host_plugins(engine.as_ref(), &builder.operator, &stamps, &plugins, faults)?;
    let stored = match builder.stored {
        Some(stored) => stored,
        None => Stored::open(&builder.operator.state, Arc::clone(&builder.clock))?,
    };
    let rules = faults.part("rules of the program", code_rules::compile(&builder.rules, "host"))?.unwrap_or_default();
    let basis = Basis {
        rules,
        native: builder.native,
        permissions: builder.permissions,
        policy: builder.policy,
        user_rules: builder.user_rules,
        clock: builder.clock,
        stored,
        metrics: builder.metrics,
        shown_prompts: ShownPrompts::new(builder.shown_prompts),
        engine,
        watched: Mutex::default(),
    };
    basis.watch_native(&basis.native);
    Shared::new(Arc::new(basis), builder.operator, host_plugins)
}

/// # Errors
/// A native extension has the id of a plugin or of another one, or cannot be used as it is registered.
pub(super) fn refuse_native(plugins: &[PluginId], native: &[Native]) -> Result<(), HostError> {
    for (at, one) in native.iter().enumerate() {
        let is_taken = plugins.contains(one.id()) || native[..at].iter().any(|other| other.id() == one.id());
        let taken = || "its id is that of a plugin, or of another native extension".to_owned();
        if let Some(why) = is_taken.then(taken).or_else(|| one.fault()) {
            return Err(HostError::NativeExtension { id: one.id().clone(), why });
        }
    }
    Ok(())
}

/// What a workspace is loaded for: sessions that agree in it share what is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wanted {
    pub(crate) workspace: PathBuf,
    pub(crate) plugins: Option<Vec<PluginId>>,
    /// Names of the embedder's tools.
    pub(crate) own_tools: Vec<String>,
    pub(crate) builtin_tools: bool,
    /// Plugins that the session does without, sorted.
    pub(crate) without: Vec<PluginId>,
    /// Rules of the session's own, without files.
    pub(crate) rules: Vec<RuleSpec>,
    /// Native extensions of the session's own.
    pub(crate) native: Vec<Native>,
}

impl Wanted {
    pub(crate) fn of(options: &SessionOptions) -> Self {
        let own = options.tools.as_ref().map(|tools| tools.specs()).unwrap_or_default();
        Self {
            workspace: options.workspace.clone(),
            plugins: options.plugins.clone(),
            own_tools: own.into_iter().map(|tool| tool.name).collect(),
            builtin_tools: options.builtin_tools,
            without: options.without.iter().cloned().collect(),
            rules: options.rules.clone(),
            native: options.native.clone(),
        }
    }
}

/// Loads what the sessions of a workspace share: its rules, its tools, and the guidance of plugins on tools. `before`: the rules of a
/// session that changes to it, whose files stay known.
///
/// # Errors
/// The workspace cannot be used, a plugin is unknown; and what `faults` does not take.
pub(crate) fn workspace(
    shared: &Arc<Shared>,
    wanted: &Wanted,
    own: Option<Arc<dyn Tools>>,
    before: Option<&LiveRules>,
    faults: &mut Faults,
) -> Result<Loaded, HostError> {
    let (operator, basis) = (&shared.operator, &shared.basis);
    let host_plugins = chosen(&shared.host_plugins, wanted)?;
    let plugins = configured(&host_plugins);
    let extensions = shared.select(&plugins);
    let native: Vec<Native> = basis.native.iter().chain(&wanted.native).cloned().collect();
    refuse_native(&shared.ids(), &native)?;
    let (table, refused) = ToolTable::collect(extensions.plugins(), &wanted.own_tools);
    for error in refused {
        faults.take("tools", error)?;
    }
    let (builtin, permissions, mut warnings) = permitted(shared, wanted, faults)?;
    let Permissions { decisions, read_rule, spawn_agent } = permissions;
    let workspace = builtin.workspace().to_owned();
    let table = Arc::new(table);
    let late = Arc::<LateExtensions>::default();
    let provided = PluginTools { table: Arc::clone(&table), late, decisions: decisions.clone() };
    let listed = wanted.builtin_tools.then(|| Arc::clone(&builtin) as _);
    let toolbox = Toolbox { own, builtin: listed, plugins: provided, decisions, agents: None, role: None };
    let specs = toolbox.specs();
    // The rulebook comes and goes with the rules; a plugin is allowed to name it in any case.
    let known: Vec<ToolSpec> = specs.iter().cloned().chain([rulebook::spec()]).collect();
    let builtin_names: Vec<&str> = tools::builtin_names().chain([rules::READ_RULE]).collect();
    let (guidance, found) = Guidance::collect(&plugins, &known, &builtin_names);
    let (wrong, found): (Vec<_>, Vec<_>) = found.into_iter().partition(Diagnostic::is_error);
    if !wrong.is_empty() {
        faults.take("guidance on tools", Diagnostics(wrong))?;
    }
    warnings.extend(found);
    let user = basis.user_rules.as_deref();
    let user_folder = basis.user_folder();
    let agents = Agents::load(user_folder, &wanted.workspace);
    let mut offered = specs;
    offered.extend((!agents.list.is_empty()).then(|| agents::spec(&agents)));
    let names: Vec<String> = offered.iter().map(|tool| tool.name.clone()).collect();
    warnings.extend(agents.found.iter().cloned());
    warnings.extend(agents.list.iter().flat_map(|agent| agent.unknown_tools(&names)));
    let (own_rules, about_own) =
        faults.part("rules of the session", code_rules::compile(&wanted.rules, "session"))?.unwrap_or_default();
    let (host_rules, about_host) = &basis.rules;
    let code = own_rules.into_iter().chain(host_rules.iter().cloned());
    let sources = Sources::new(operator, &plugins, &workspace, offered, &agents.list)
        .with_code(code, [about_own, about_host.clone()].concat());
    let folders = rule_sources::folders(operator, &wanted.workspace, &workspace, user);
    let retries = faults.part("errors", operator.retry_table(user_folder, &workspace))?;
    let (retries, left_out) = retries.unwrap_or_default();
    warnings.extend(left_out);
    let limits = match faults.part("thread limits", thread_limits::load(operator, user_folder, &workspace))? {
        Some(limits) => limits,
        None => thread_limits::of_sources(&[])?,
    };
    warnings.extend(limits.left_out.iter().cloned());
    warnings.extend(config::misplaced(user_folder, &workspace));
    let live = LiveRules::open(sources, folders, before);
    let settings = assemble::turn(operator, &workspace, &plugins, guidance.block(), Arc::new(retries));
    Ok(Loaded {
        shared: Arc::clone(shared),
        extensions: Arc::new(extensions),
        native,
        provided: table,
        built: live.built(),
        live,
        builtin: wanted.builtin_tools.then_some(builtin),
        decisions: toolbox.decisions,
        limits: Arc::new(limits),
        additions: Addition::in_order(&settings.additions).into(),
        settings,
        guidance: Arc::new(guidance),
        warnings,
        unread: rule_sources::unread(operator, &wanted.workspace, user),
        read_rule,
        agents: Arc::new(agents),
        spawn_agent,
        plugins,
        host_plugins,
        wanted: wanted.clone(),
    })
}

/// The operator's permissions that are not those of built-in tools.
struct Permissions {
    /// Of the tools of the embedder and of plugins.
    decisions: Decisions,
    read_rule: Permission,
    spawn_agent: Decisions,
}

impl Permissions {
    fn take(settings: &mut ToolSettings, own: &[String]) -> Result<Self, HostError> {
        let decisions = Decisions::take(settings, own, tools::is_builtin)?;
        let read_rule = rulebook::permission(settings)?;
        Ok(Self { decisions, read_rule, spawn_agent: agents::permission(settings)? })
    }
}

impl Default for Permissions {
    fn default() -> Self {
        let (decisions, spawn_agent) = (Decisions::default(), Decisions::default());
        Self { decisions, read_rule: Permission::Allow, spawn_agent }
    }
}

/// The built-in tools with their permissions, the permissions of the others, and which of them are about tools that are not there.
fn permitted(
    shared: &Shared,
    wanted: &Wanted,
    faults: &mut Faults,
) -> Result<(Arc<BuiltinTools>, Permissions, Vec<Diagnostic>), HostError> {
    // Of all plugins: a permission of a plugin that the session leaves out is no mistake.
    let provided = shared.host_plugins.iter().filter_map(|host_plugin| host_plugin.loaded.component.as_ref());
    let provided = provided.flat_map(|plugin| plugin.tools()).map(|tool| tool.provided.spec.name.clone());
    let foreign: Vec<String> = wanted.own_tools.iter().cloned().chain(provided).collect();
    let plugins = configured(&shared.host_plugins);
    let mut settings =
        assemble::tools(&shared.operator, &shared.basis.permissions, &plugins, shared.basis.policy.as_deref());
    let permissions = faults.part("tools", Permissions::take(&mut settings, &foreign))?.unwrap_or_default();
    let ceiling = shared.basis.policy.as_ref().map(|policy| &*policy.permissions).unwrap_or_default();
    let written = (&*shared.operator.tools.permissions, ceiling);
    let absent = faults.part("tools", take_absent(&mut settings, &foreign, written))?.unwrap_or_default();
    Ok((Arc::new(builtin_tools(wanted, settings, faults)?), permissions, absent))
}

/// The plugins of a session, in the order of the host: the enabled ones that it names and does not do without, and those that the
/// operator requires.
fn chosen(all: &[HostPlugin], wanted: &Wanted) -> Result<Vec<HostPlugin>, HostError> {
    let id = |host_plugin: &HostPlugin| host_plugin.loaded.id().clone();
    let named = wanted.plugins.as_deref();
    if let Some(unknown) = named.unwrap_or_default().iter().find(|named| !all.iter().any(|one| id(one) == **named)) {
        return Err(HostError::UnknownPlugin { plugin: unknown.clone(), known: all.iter().map(id).collect() });
    }
    let is_chosen = |host_plugin: &&HostPlugin| {
        let named = named.is_none_or(|named| named.contains(host_plugin.loaded.id()));
        let wanted = named && !wanted.without.contains(host_plugin.loaded.id());
        host_plugin.enabled && (host_plugin.loaded.plugin.entry.required || wanted)
    };
    Ok(all.iter().filter(is_chosen).cloned().collect())
}

fn configured(host_plugins: &[HostPlugin]) -> Vec<ConfiguredPlugin> {
    host_plugins.iter().map(|host_plugin| host_plugin.loaded.plugin.clone()).collect()
}

/// The first tool of these plugins whose name a built-in tool or another plugin's tool has. Embedders' tools are known to their
/// sessions alone.
pub(crate) fn tool_clash(host_plugins: &[HostPlugin]) -> Option<HostError> {
    let enabled = host_plugins.iter().filter(|host_plugin| host_plugin.enabled);
    let components: Vec<sandbox::Plugin> =
        enabled.filter_map(|host_plugin| host_plugin.loaded.component.clone()).collect();
    ToolTable::collect(&components, &[]).1.into_iter().next()
}

/// # Errors
/// A plugin among these has the id of this one.
pub(crate) fn refuse_duplicate(before: &[HostPlugin], plugin: &ConfiguredPlugin) -> Result<(), HostError> {
    match config::duplicate(before.iter().map(|host_plugin| &host_plugin.loaded.plugin), plugin) {
        Some(error) => Err(Diagnostics(vec![error]).into()),
        None => Ok(()),
    }
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
    let max_instances = builder.operator.instances.unwrap_or(builder.max_instances);
    let options = EngineOptions { cache_dir: builder.cache_dir.clone(), max_instances, ..EngineOptions::default() };
    faults.part("sandbox", Engine::new(&options))
}

/// Loads the components, on all cores: compiling, and even taking what is compiled from the disk, is most of a start.
fn host_plugins(
    engine: Option<&Engine>,
    operator: &Operator,
    stamps: &[FileStamp],
    plugins: &[ConfiguredPlugin],
    faults: &mut Faults,
) -> Result<Vec<HostPlugin>, HostError> {
    let load = |plugin: &ConfiguredPlugin| {
        let of_folder = operator.plugins.iter().zip(stamps).find(|(entry, _)| entry.folder == plugin.entry.folder);
        let stamp = of_folder.map_or_else(FileStamp::never, |(_, stamp)| stamp.clone());
        LoadedPlugin::of_plugin(plugin.clone(), stamp, engine)
    };
    let (next, loaded) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(plugin) = plugins.get(at) else { return };
            let one = load(plugin);
            loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(at, one);
        }
    };
    std::thread::scope(|scope| {
        let helpers = available_parallelism().map_or(1, usize::from).min(plugins.len()).saturating_sub(1);
        (0..helpers).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let loaded = loaded.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut host_plugins = Vec::new();
    for ((serial, plugin), loaded) in (0..).zip(plugins).zip(loaded.into_values()) {
        if let Some(loaded) = faults.part(format!("plugin {}", plugin.manifest.id), loaded)? {
            host_plugins.push(HostPlugin { serial, enabled: true, loaded: Arc::new(loaded) });
        }
    }
    Ok(host_plugins)
}

/// The component of a plugin that has one.
pub(crate) fn component(
    engine: Option<&Engine>,
    plugin: &ConfiguredPlugin,
) -> Result<Option<sandbox::Plugin>, HostError> {
    missing_component(plugin)?;
    let Some(source) = assemble::plugin(plugin) else { return Ok(None) };
    Ok(Some(engine.ok_or(HostError::NoEngine)?.0.load(source)?))
}

/// A missing component is the first error that an author meets: the error states how to build it.
fn missing_component(plugin: &ConfiguredPlugin) -> Result<(), HostError> {
    let manifest = &plugin.manifest;
    let Some(component) = &manifest.component else { return Ok(()) };
    if config::is_there(component).unwrap_or(true) {
        let cause = match component.metadata() {
            Ok(about) if about.is_file() => return Ok(()),
            // Reading a pipe waits for somebody who writes.
            Ok(_) => "it is not a file".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("cannot read the component `{}`: {cause}", component.display());
        let error = Diagnostic::error(Code::ConfigUnreadable, message).about_plugin(&manifest.id);
        return Err(Diagnostics(vec![error.help("make it readable, or build it again")]).into());
    }
    Err(HostError::ComponentMissing {
        plugin: manifest.id.clone(),
        component: component.clone(),
        source_folder: manifest.build.as_ref().map(|_| manifest.folder.clone()),
    })
}
