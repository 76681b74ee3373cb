//! The loaded plugins, their order, rules, and diagnostics, for inspection.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use config::agents::Agents;
use config::events::Catalogue;
use config::rule_sources::BuiltRules;
use config::{ConfiguredPlugin, Diagnostics, Guidance, Operator, PermissionRule, PluginLimits, Policy};
use flow::ports::{Clock, ExtensionHost, Tools};
use flow::{
    BlockOrigin, CallbackKind, Diagnostic, DiagnosticCode as Code, Permission, PluginId, Power, ProvidedTool,
    Registered, Registration, SystemBlock,
};
use guard::additions::Addition;
use rules::RuleSet;
use sandbox::{HostBreakers, SandboxHost};
use telemetry::Metrics;
use tools::BuiltinTools;

use crate::agents::{AgentTool, Children};
use crate::host::code_rules::CodeRules;
use crate::host::load::{self, Faults, Wanted};
use crate::host::stored::Stored;
use crate::live_rules::rulebook::WithRulebook;
use crate::live_rules::{LiveRules, SessionRules};
use crate::plugins::guidance::Guided;
use crate::plugins::host_plugin::{HostPlugin, LoadedPlugin};
use crate::plugins::native::{Native, NativeHost};
use crate::plugins::shown_prompts::ShownPrompts;
use crate::plugins::tools::{Binding, LateExtensions, PluginTools, ToolTable};
use crate::session::toolbox::{Decisions, Toolbox};
use crate::{Engine, HostError, SessionOptions};
use config::in_one_line;

/// What stays the same as long as a host exists.
pub(crate) struct Basis {
    /// Rules of the program, and what is to be said about them.
    pub(crate) rules: CodeRules,
    /// Native extensions of all sessions.
    pub(crate) native: Vec<Native>,
    /// Permissions that win over those of the operator's file.
    pub(crate) permissions: Vec<PermissionRule>,
    /// What nothing goes beyond.
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) user_rules: Option<PathBuf>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stored: Stored,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) shown_prompts: ShownPrompts,
    /// `None` only if a check continues without one.
    pub(crate) engine: Option<Engine>,
    /// The breakers of native extensions that are in the metrics.
    pub(crate) watched: Mutex<Vec<Weak<HostBreakers>>>,
}

impl Basis {
    /// Adds the breakers of native extensions to the metrics, each once, however many sessions have it.
    pub(crate) fn watch_native(&self, native: &[Native]) {
        let Some(metrics) = &self.metrics else { return };
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|one| one.strong_count() > 0);
        for one in native {
            let breakers = Arc::downgrade(one.breakers());
            if !watched.iter().any(|known| known.ptr_eq(&breakers)) {
                watched.push(Weak::clone(&breakers));
                metrics.watch_breaker(one.id(), move || breakers.upgrade().map(|breakers| breakers.of_callbacks()));
            }
        }
    }

    /// The folder of the user's other files: that of the rules is in it.
    pub(crate) fn user_folder(&self) -> Option<&Path> {
        self.user_rules.as_deref().and_then(Path::parent)
    }
}

/// What all sessions of a host share, until plugins or the operator's file change.
pub(crate) struct Shared {
    pub(crate) basis: Arc<Basis>,
    pub(crate) operator: Operator,
    /// All plugins, in order of registration, disabled ones included.
    pub(crate) host_plugins: Vec<HostPlugin>,
    /// Those that are enabled.
    extensions: SandboxHost,
    /// What is wrong with plugins and does not keep them from being used.
    warnings: Vec<Diagnostic>,
    /// What is loaded for sessions that are open.
    opened: Mutex<HashMap<Wanted, Weak<Loaded>>>,
}

impl Shared {
    /// The catalogue of events of a workspace, and what of its files was left out.
    ///
    /// # Errors
    /// Something in a file is wrong.
    pub(crate) fn event_catalogue(&self, workspace: &Path) -> Result<(Catalogue, Vec<Diagnostic>), Diagnostics> {
        Catalogue::load(&self.operator, self.basis.user_folder(), workspace)
    }

    /// Puts plugins together.
    ///
    /// # Errors
    /// Two of them have the same id, one has that of a native extension, or a native extension is invalid.
    pub(crate) fn new(basis: Arc<Basis>, operator: Operator, host_plugins: Vec<HostPlugin>) -> Result<Self, HostError> {
        let ids: Vec<PluginId> = host_plugins.iter().map(|host_plugin| host_plugin.loaded.id().clone()).collect();
        load::refuse_native(&ids, &basis.native)?;
        let enabled =
            || host_plugins.iter().filter(|host_plugin| host_plugin.enabled).map(|host_plugin| &host_plugin.loaded);
        let components = enabled().filter_map(|loaded| loaded.component.clone()).collect();
        let (store, clock) = (Arc::clone(&basis.stored.sessions), Arc::clone(&basis.clock));
        let extensions =
            SandboxHost::with_clock(components, store, clock)?.with_session_bytes(operator.state.session_bytes);
        let warnings = enabled().flat_map(|loaded| loaded.warnings()).collect();
        Ok(Self { basis, operator, host_plugins, extensions, warnings, opened: Mutex::default() })
    }

    /// Has the metrics ask for the breakers of the plugins that `before` does not have in this version.
    pub(crate) fn watch_breakers(&self, before: Option<&Self>) {
        let Some(metrics) = &self.basis.metrics else { return };
        let known = before.map_or(&[][..], |before| &before.host_plugins);
        let is_new = |one: &&HostPlugin| known.iter().all(|other| !Arc::ptr_eq(&one.loaded, &other.loaded));
        for component in
            self.host_plugins.iter().filter(is_new).filter_map(|host_plugin| host_plugin.loaded.component.as_ref())
        {
            metrics.watch_breaker(component.id(), component.breaker_state());
        }
        if let (None, Some(engine)) = (before, &self.basis.engine) {
            engine.counted_in(metrics);
        }
    }

    /// The plugins' ids.
    pub(crate) fn ids(&self) -> Vec<PluginId> {
        self.host_plugins.iter().map(|host_plugin| host_plugin.loaded.id().clone()).collect()
    }

    /// Those of these plugins that are enabled, in the order of the host.
    pub(crate) fn select(&self, plugins: &[ConfiguredPlugin]) -> SandboxHost {
        self.extensions.select(|id| plugins.iter().any(|plugin| plugin.manifest.id == *id))
    }

    /// What a session needs of its workspace: loaded for it, or for an open session that wants the same. Blocks on the disk. The
    /// caller looks at the rules of what was loaded before, and refuses what is required and not in force.
    ///
    /// # Errors
    /// The workspace cannot be used, or there is no such plugin.
    pub(crate) fn open(
        self: &Arc<Self>,
        wanted: Wanted,
        tools: Option<Arc<dyn Tools>>,
        before: Option<&LiveRules>,
    ) -> Result<Arc<Loaded>, HostError> {
        let lock = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&wanted).and_then(Weak::upgrade) {
            return Ok(known);
        }
        // Not under the lock: a folder on a slow disk must not keep other sessions waiting.
        let loaded = load::workspace(self, &wanted, tools, before, &mut Faults::Refuse)?;
        let mut opened = lock();
        opened.retain(|_, loaded| loaded.strong_count() > 0);
        // Another session may have been quicker; one of the two is used by all that follow.
        if let Some(known) = opened.get(&wanted).and_then(Weak::upgrade) {
            return Ok(known);
        }
        let loaded = Arc::new(loaded);
        opened.insert(wanted, Arc::downgrade(&loaded));
        Ok(loaded)
    }
}

/// Plugins and rules for one workspace, loaded and checked, for inspection; running needs a host.
pub struct Loaded {
    pub(crate) shared: Arc<Shared>,
    pub(crate) extensions: Arc<SandboxHost>,
    /// Native extensions of the host and of the session.
    pub(crate) native: Vec<Native>,
    pub(crate) live: Arc<LiveRules>,
    /// The rules when they were loaded.
    pub(crate) built: Arc<BuiltRules>,
    pub(crate) plugins: Vec<ConfiguredPlugin>,
    /// The same plugins, as the host has them.
    pub(crate) host_plugins: Vec<HostPlugin>,
    /// What it was loaded for.
    pub(crate) wanted: Wanted,
    pub(crate) builtin: Option<Arc<BuiltinTools>>,
    /// The tools that its plugins provide.
    pub(crate) provided: Arc<ToolTable>,
    /// The operator's permissions of the tools of the embedder and of plugins.
    pub(crate) decisions: Decisions,
    pub(crate) guidance: Arc<Guidance>,
    /// What names tools that its sessions do not have.
    pub(crate) warnings: Vec<Diagnostic>,
    /// Rule folders that are there and not read, each with why.
    pub(crate) unread: Vec<(String, String)>,
    /// Who may read rules.
    pub(crate) read_rule: Permission,
    /// The agents that can be started.
    pub(crate) agents: Arc<Agents>,
    /// Who may start them.
    pub(crate) spawn_agent: Decisions,
    pub(crate) settings: turn::SessionSettings,
    /// The additions of its plugins to the prompt, for conversations whose turns run elsewhere.
    pub(crate) additions: Arc<[Addition]>,
    /// What sessions may take.
    pub(crate) limits: Arc<config::thread_limits::ThreadLimits>,
}

/// One loaded plugin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PluginInfo {
    /// The plugin's id, from its manifest.
    pub id: PluginId,
    /// The plugin's version, from its manifest.
    pub version: String,
    /// What it is, in one line.
    pub description: String,
    /// The folder of its manifest; empty for a native extension.
    pub folder: PathBuf,
    /// Whether sessions may use it.
    pub enabled: bool,
    /// Its callbacks, the operator's word already applied. Empty for a plugin of rules and prompts.
    pub callbacks: Vec<Registered>,
    /// The tools that it provides to the model.
    pub tools: Vec<ProvidedTool>,
    /// Its failure refuses the turn.
    pub required: bool,
    /// Powers that it asked for and was granted, each with why it asks.
    pub powers: Vec<(String, String)>,
    /// How many stream rules its manifest has.
    pub rules: usize,
    /// How many prompt additions its manifest has.
    pub prompts: usize,
    /// Whether it is about what the model reads: it has additions to the prompt, with the power for them, or guidance on tools.
    pub adds_to_prompt: bool,
    /// The limits, after applying the operator's. Of a native extension, `callback`, `text` and `output_bytes` are enforced, and nothing
    /// else, because its code runs in the process.
    pub limits: PluginLimits,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("plugins", &self.plugins.len()).finish_non_exhaustive()
    }
}

impl Loaded {
    /// The plugins, in order of registration, and after them the native extensions.
    pub fn plugins(&self) -> Vec<PluginInfo> {
        let native = self.native.iter().map(|one| PluginInfo::of_native(one, self.shared.operator.limits));
        self.host_plugins.iter().map(PluginInfo::of).chain(native).collect()
    }

    /// The host of its plugins and of its native extensions, with `plugins` in the place of its own.
    pub(crate) fn with_native(&self, plugins: Arc<SandboxHost>) -> Arc<dyn ExtensionHost> {
        let limits = (Arc::clone(&self.shared.basis.clock), self.shared.operator.limits.output_bytes);
        NativeHost::merge(plugins, &self.native, limits)
    }

    /// What plugins and native extensions registered, in order of registration.
    pub(crate) fn registrations(&self) -> Arc<[Registration]> {
        self.with_native(Arc::clone(&self.extensions)).registrations()
    }

    /// Who is called for a callback, in order: highest priority first, ties in order of registration.
    pub fn chain(&self, callback: CallbackKind) -> Vec<(PluginId, u8)> {
        let registrations = self.registrations();
        let of_kind = guard::in_order(&registrations).into_iter().filter(|(_, one)| one.kind() == callback);
        of_kind.map(|(plugin, one)| (registrations[plugin].plugin.clone(), one.priority)).collect()
    }

    /// The rules as they were when they were loaded, those that are not used included. Sessions use the rules
    /// that the files contain when a turn begins.
    pub fn rules(&self) -> &RuleSet {
        &self.built.set
    }

    /// The rules in force: as of the beginning of the last turn of a session of this workspace, or as they were loaded.
    pub fn rules_in_force(&self) -> Arc<BuiltRules> {
        self.live.built()
    }

    /// The limits of its sessions, unless [`SessionOptions::limits`] replaces them.
    pub fn limits(&self) -> &flow::Limits {
        &self.limits.limits
    }

    /// The agents that the model can start in sessions of the workspace, and what is wrong with files that declare others. The warnings
    /// contain that, too.
    pub fn agents(&self) -> &Agents {
        &self.agents
    }

    /// What is not as it should be and did not stop the host: rules that were refused or can never fire, and what the
    /// sandbox could not have.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.built.warnings().into_iter().chain(self.other_warnings()).collect()
    }

    /// Rules that are not in force as written, as of the last check of their files: refused, in part or as a whole,
    /// or never able to fire. A front end shows them with every turn's result.
    pub fn rule_problems(&self) -> Vec<Diagnostic> {
        self.live.built().problems()
    }

    /// The same, each in one line with its place, as events carry what is wrong.
    pub fn rule_problem_lines(&self) -> Vec<String> {
        self.rule_problems().iter().map(in_one_line).collect()
    }

    /// The reasons for which no session must be opened, all at once, as of the last look at the rule files.
    ///
    /// # Errors
    /// A required rule is not in force.
    pub(crate) fn refuse_unmet(&self) -> Result<(), Diagnostics> {
        let unmet = self.live.built().unmet.clone();
        if unmet.is_empty() { Ok(()) } else { Err(Diagnostics(unmet)) }
    }

    /// Those of them that no rule causes.
    pub(crate) fn other_warnings(&self) -> impl Iterator<Item = Diagnostic> {
        let engine = self.shared.basis.engine.as_ref();
        let report = engine.map(|engine| engine.report().clone()).unwrap_or_default();
        let has = engine.map(|engine| engine.instances().limit);
        let other = other_limit(self.shared.operator.instances, has);
        self.shared.warnings.iter().chain(&self.warnings).cloned().chain(lacking(report)).chain(other)
    }

    /// The extensions of a session, and its tools where it goes by these rules. The two belong together: the plugins' tools are
    /// called in the extensions that a session opens, or adopts, from this host of them.
    pub(crate) fn extensions(
        &self,
        options: &SessionOptions,
        rules: &Arc<SessionRules>,
        children: &Arc<Children>,
    ) -> (Arc<dyn ExtensionHost>, Arc<dyn Tools>) {
        let late = Arc::<LateExtensions>::default();
        let host = self.with_native(Arc::clone(&self.extensions));
        let tools = self.tools(options, rules, &late, children);
        (Arc::new(Binding { host, late }), tools)
    }

    /// Whether an extension has to see results of tools before anybody sees anything of them: commands run without the embedder's
    /// terminals then, which show their output as it comes.
    fn checks_results(&self) -> bool {
        let registrations = self.registrations();
        let mut callbacks = registrations.iter().flat_map(|one| &one.callbacks);
        callbacks.any(|one| one.kind() == CallbackKind::ToolResult && one.guards())
    }

    fn tools(
        &self,
        options: &SessionOptions,
        rules: &Arc<SessionRules>,
        late: &Arc<LateExtensions>,
        children: &Arc<Children>,
    ) -> Arc<dyn Tools> {
        let builtin = self.builtin.as_ref().map(|tools| -> Arc<dyn Tools> {
            let mut tools = Arc::clone(tools);
            if let Some(files) = &options.files {
                tools = Arc::new(tools.with_files(Arc::clone(files)));
            }
            if let Some(terminals) = options.terminals.as_ref().filter(|_| !self.checks_results()) {
                tools = Arc::new(tools.with_terminals(Arc::clone(terminals)));
            }
            tools
        });
        let (table, decisions) = (Arc::clone(&self.provided), self.decisions.clone());
        let plugins = PluginTools { table, late: Arc::clone(late), decisions: decisions.clone() };
        let agents = (!self.agents.list.is_empty()).then(|| AgentTool {
            agents: Arc::clone(&self.agents),
            children: Arc::clone(children),
            decisions: self.spawn_agent.clone(),
        });
        let (own, role) = (options.tools.clone(), options.role.clone());
        let toolbox = Toolbox { own, builtin, plugins, decisions, agents, role };
        // An agent that is limited to some tools reads the rules that its prompt lists.
        let tools = WithRulebook {
            tools: Arc::new(toolbox),
            rules: Arc::clone(rules),
            permission: self.read_rule.clone(),
            agent: options.agent.clone(),
        };
        Arc::new(Guided { tools: Arc::new(tools), guidance: Arc::clone(&self.guidance) })
    }

    /// Blocks of the system prompt of a session: that of its agent takes the place of the operator's.
    pub(crate) fn system(&self, options: &SessionOptions) -> Vec<SystemBlock> {
        let mut system = self.settings.system.clone();
        if let Some(role) = &options.role {
            let prompt = SystemBlock::new(BlockOrigin::Host, role.agent.system.clone());
            system.splice(..system.len().min(1), [prompt]);
        }
        system
    }

    /// Components compiled and components found compiled since the engine was started.
    pub fn compiled_and_loaded(&self) -> (u64, u64) {
        let counts = self.shared.basis.engine.as_ref().map(Engine::counts);
        counts.map_or((0, 0), |counts| (counts.compiled, counts.loaded))
    }
}

impl PluginInfo {
    fn of_native(native: &Native, limits: PluginLimits) -> Self {
        let Registration { plugin, version, callbacks, required, .. } = native.registration().clone();
        Self {
            id: plugin,
            version,
            description: "an extension of the program, in native code".to_owned(),
            folder: PathBuf::new(),
            enabled: true,
            callbacks,
            tools: Vec::new(),
            required,
            powers: Vec::new(),
            rules: 0,
            prompts: 0,
            adds_to_prompt: false,
            limits: PluginLimits { callback: native.time(), text: native.time(), ..limits },
        }
    }

    pub(crate) fn of(host_plugin: &HostPlugin) -> Self {
        let LoadedPlugin { plugin, component, .. } = &*host_plugin.loaded;
        let manifest = &plugin.manifest;
        let powers = manifest.capabilities.iter().filter(|(power, _)| plugin.may(**power));
        Self {
            id: manifest.id.clone(),
            version: manifest.version.clone(),
            description: manifest.description.clone(),
            folder: manifest.folder.clone(),
            enabled: host_plugin.enabled,
            callbacks: component.iter().flat_map(|component| component.registration().callbacks.clone()).collect(),
            tools: component.iter().flat_map(|component| component.registration().tools.clone()).collect(),
            required: plugin.entry.required,
            powers: powers.map(|(power, why)| (power.as_str().to_owned(), why.clone())).collect(),
            rules: manifest.rules.len(),
            prompts: manifest.prompts.len(),
            adds_to_prompt: (plugin.may(Power::Prompt) && !manifest.prompts.is_empty())
                || manifest.guidance.names().next().is_some(),
            limits: plugin.limits,
        }
    }
}

/// The number of instances that the operator's file wants, where the engine has another one: it was started for another host, or before the
/// file was edited.
fn other_limit(wanted: Option<u32>, has: Option<u64>) -> Option<Diagnostic> {
    let (wanted, has) = (wanted?, has?);
    let message = format!(
        "`limits.instances` is {wanted}, and has no effect: this process was started with {has} instances of plugins for all its sessions"
    );
    (u64::from(wanted) != has).then(|| Diagnostic::warning(Code::HostInstances, message))
}

/// What the sandbox works without.
fn lacking(report: sandbox::EngineReport) -> impl Iterator<Item = Diagnostic> {
    let pooling = |why| {
        let message = format!("plugin instances are not pooled, so they start more slowly: {why}");
        Diagnostic::warning(Code::HostNoPooling, message)
    };
    let cache = |why| {
        let message = format!("compiled plugins are not stored, so they are compiled at every start: {why}");
        Diagnostic::warning(Code::HostNoCache, message)
    };
    report.pooling.map(pooling).into_iter().chain(report.cache.map(cache))
}

#[cfg(test)]
mod tests {
    use super::{lacking, other_limit};

    #[test]
    fn a_number_of_instances_that_has_no_effect_is_a_warning() {
        assert!(other_limit(Some(8), Some(8)).is_none() && other_limit(None, Some(8)).is_none());
        let warning = other_limit(Some(9), Some(8)).map(|one| one.to_string()).unwrap_or_default();
        assert!(
            warning.starts_with("warning[host-instances]: `limits.instances` is 9, and has no effect"),
            "{warning}"
        );
    }

    #[test]
    fn what_the_sandbox_lacks_is_a_warning() {
        let report = |pooling: Option<&str>, cache: Option<&str>| {
            let (pooling, cache) = (pooling.map(str::to_owned), cache.map(str::to_owned));
            let report = sandbox::EngineReport { pooling, cache };
            lacking(report).map(|one| one.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(report(None, None), [""; 0]);
        let both = report(Some("no address space"), Some("no folder"));
        assert!(both[0].starts_with("warning[host-no-pooling]: ") && both[0].ends_with("no address space"), "{both:?}");
        assert!(both[1].starts_with("warning[host-no-cache]: ") && both[1].ends_with("no folder"), "{both:?}");
    }
}
