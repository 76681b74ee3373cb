//! Opens a host: plugins loaded, rules built, tools set up, provider connected. Sessions come from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Diagnostic, Operator, PermissionRule};
use flow::{CallbackKind, PluginId, SessionId};
use rules::RuleSet;
use sandbox::{EngineOptions, Sandbox, SandboxHost};
use tools::BuiltinTools;
use turn::Session;
use turn::ports::{Clock, Confirm, ExtensionHost, FixedRules, Model, Tools};

use crate::guidance::{Guidance, Ordered};
use crate::{HostError, Nobody, SystemClock, assemble};

/// Plugins and rules, loaded and checked; enough to look at, not to run.
pub struct Loaded {
    pub(crate) extensions: Arc<SandboxHost>,
    pub(crate) rules: Arc<RuleSet>,
    sandbox: Sandbox,
    plugins: Vec<config::Plugin>,
    warnings: Vec<Diagnostic>,
    pub(crate) tools: Arc<dyn Tools>,
    settings: turn::Settings,
}

/// What is loaded, with a model: sessions come from it.
pub struct Host {
    pub(crate) provider: providers::ProviderConfig,
    loaded: Loaded,
    model: Arc<dyn Model>,
    confirm: Arc<dyn Confirm>,
    clock: Arc<dyn Clock>,
}

/// How to open a [`Host`].
pub struct HostBuilder {
    operator: Operator,
    workspace: PathBuf,
    confirm: Arc<dyn Confirm>,
    clock: Arc<dyn Clock>,
    record: Option<PathBuf>,
    cache_dir: Option<PathBuf>,
    permissions: Vec<PermissionRule>,
    max_instances: u32,
}

/// One loaded plugin.
#[derive(Clone, Debug)]
pub struct PluginInfo {
    /// Its id.
    pub id: PluginId,
    /// Its version.
    pub version: String,
    /// What it is, in one line.
    pub description: String,
    /// The folder of its manifest.
    pub folder: PathBuf,
    /// Its callbacks with their priorities, the operator's word already applied. Empty for a plugin of rules and prompts.
    pub callbacks: Vec<(CallbackKind, u8)>,
    /// Powers that it asked for and was granted.
    pub powers: Vec<String>,
    /// How many stream rules its manifest has.
    pub rules: usize,
    /// How many prompt additions its manifest has.
    pub prompts: usize,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("loaded", &self.loaded).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("plugins", &self.plugins.len()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder").field("workspace", &self.workspace).finish_non_exhaustive()
    }
}

impl HostBuilder {
    /// Who is asked where a tool's permission says `ask`. Default: [`Nobody`], every question is denied.
    #[must_use]
    pub fn confirm(mut self, confirm: Arc<dyn Confirm>) -> Self {
        self.confirm = confirm;
        self
    }

    /// Time. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Records what goes over the wire to this file, which must not exist. Secrets are removed.
    #[must_use]
    pub fn record(mut self, file: Option<PathBuf>) -> Self {
        self.record = file;
        self
    }

    /// Where compiled components are kept. Default: `tidegate/components` in the user's cache folder; `None`: nowhere.
    #[must_use]
    pub fn cache_dir(mut self, folder: Option<PathBuf>) -> Self {
        self.cache_dir = folder;
        self
    }

    /// Permissions of tools that win over those of the operator's file, as `--permission` gives them.
    #[must_use]
    pub fn permissions(mut self, permissions: Vec<PermissionRule>) -> Self {
        self.permissions = permissions;
        self
    }

    /// How many instances there may be at once: open sessions times plugins. Default: 4,096. Address space is set aside for
    /// each, which takes about 5 µs at the start.
    #[must_use]
    pub fn max_instances(mut self, instances: u32) -> Self {
        self.max_instances = instances;
        self
    }

    /// Opens the host. Nothing is sent to the provider yet.
    ///
    /// # Errors
    /// The first room in which something is wrong; of the operator's files and manifests, everything that is.
    pub async fn open(self) -> Result<Host, HostError> {
        blocking(move || {
            let provider = assemble::provider(&self.operator.provider, self.record.as_deref())?;
            let loaded = self.load_blocking()?;
            let model = providers::connect(&provider)?;
            Ok(Host { provider, loaded, model, confirm: self.confirm, clock: self.clock })
        })
        .await
    }

    /// Loads plugins and rules alone: no provider need be chosen.
    ///
    /// # Errors
    /// As [`HostBuilder::open`].
    pub async fn load(self) -> Result<Loaded, HostError> {
        blocking(move || self.load_blocking()).await
    }

    fn load_blocking(&self) -> Result<Loaded, HostError> {
        let operator = &self.operator;
        let plugins = operator.load_plugins()?;
        let builtin = BuiltinTools::new(&self.workspace, assemble::tools(operator, &self.permissions))?;
        let workspace = builtin.workspace().to_owned();
        let guidance = Guidance::collect(&plugins, &builtin.specs())?;
        let (rules, mut warnings) = assemble::rules(operator, &plugins, &workspace);
        let offered: Vec<String> = builtin.specs().into_iter().map(|tool| tool.name).collect();
        warnings.extend(assemble::idle_rules(&rules, &offered));
        warnings.extend(plugins.iter().filter_map(crate::stale::warning));
        let sandbox =
            Sandbox::new(&EngineOptions { cache_dir: self.cache_dir.clone(), max_instances: self.max_instances })?;
        let extensions = Arc::new(load(&sandbox, &plugins)?);
        let settings = assemble::turn(operator, &workspace, &plugins, guidance.text());
        let tools: Arc<dyn Tools> = Arc::new(Ordered { tools: Arc::new(builtin), guidance });
        Ok(Loaded { extensions, rules, sandbox, plugins, warnings, tools, settings })
    }
}

/// Compiling a component takes up to seconds of pure work: not on a thread that serves others.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let cut_off = |error| HostError::Setup(format!("opening the host was cut off: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(cut_off)?
}

impl Host {
    /// A host over what the operator decided, for a workspace.
    pub fn builder(operator: Operator, workspace: impl AsRef<Path>) -> HostBuilder {
        HostBuilder {
            operator,
            workspace: workspace.as_ref().to_owned(),
            confirm: Arc::new(Nobody),
            clock: Arc::new(SystemClock),
            record: None,
            cache_dir: assemble::cache_dir(),
            permissions: Vec::new(),
            max_instances: EngineOptions::default().max_instances,
        }
    }

    /// A session with an empty history. Sessions share nothing but what is loaded.
    pub fn session(&self, id: SessionId) -> Session {
        Session::open(turn::Parts {
            id,
            model: Arc::clone(&self.model),
            extensions: Arc::<SandboxHost>::clone(&self.loaded.extensions),
            tools: Arc::clone(&self.loaded.tools),
            confirm: Arc::clone(&self.confirm),
            rules: Arc::new(FixedRules(Arc::clone(&self.loaded.rules))),
            clock: Arc::clone(&self.clock),
            settings: self.loaded.settings.clone(),
        })
    }

    /// Throws away what plugins keep for a session. Until then their state stays, so that a session of the same id finds
    /// it again.
    pub fn forget(&self, id: &SessionId) {
        self.loaded.extensions.forget(id);
    }

    /// Plugins and rules.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// The provider's and the model's name.
    pub fn model(&self) -> (&str, &str) {
        (self.model.provider(), self.model.name())
    }
}

impl Loaded {
    /// The plugins, in order of registration.
    pub fn plugins(&self) -> Vec<PluginInfo> {
        self.plugins.iter().map(|plugin| self.describe(plugin)).collect()
    }

    /// Who is called for a callback, in order: highest priority first, ties in order of registration.
    pub fn chain(&self, callback: CallbackKind) -> Vec<(PluginId, u8)> {
        let mut chain: Vec<(PluginId, u8)> = Vec::new();
        for one in self.extensions.registrations() {
            let of_kind = one.callbacks.iter().filter(|(registered, _)| registered.kind() == callback);
            chain.extend(of_kind.map(|(_, priority)| (one.plugin.clone(), *priority)));
        }
        chain.sort_by_key(|(_, priority)| std::cmp::Reverse(*priority));
        chain
    }

    /// The stream rules, those that are not used included.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// What is not as it should be and did not stop the host: rules that were refused or can never fire, and what the
    /// sandbox could not have.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let report = self.sandbox.report();
        let lacking = [
            report
                .pooling
                .as_ref()
                .map(|why| format!("instances are not pooled, which makes starting them slower: {why}")),
            report.cache.as_ref().map(|why| format!("compiled plugins are not kept: {why}")),
        ];
        self.warnings.iter().cloned().chain(lacking.into_iter().flatten().map(Diagnostic::warning)).collect()
    }

    /// Components compiled and components found compiled since the host was opened.
    pub fn compiled_and_loaded(&self) -> (u64, u64) {
        let counts = self.sandbox.counts();
        (counts.compiled, counts.loaded)
    }

    fn describe(&self, plugin: &config::Plugin) -> PluginInfo {
        let manifest = &plugin.manifest;
        let registered = self.extensions.registrations().into_iter().find(|one| one.plugin == manifest.id);
        let callbacks = registered.map(|one| one.callbacks.iter().map(|(one, at)| (one.kind(), *at)).collect());
        let powers = config::Power::ALL.into_iter().filter(|power| plugin.may(*power));
        PluginInfo {
            id: manifest.id.clone(),
            version: manifest.version.clone(),
            description: manifest.description.clone(),
            folder: manifest.folder.clone(),
            callbacks: callbacks.unwrap_or_default(),
            powers: powers.map(|power| power.as_str().to_owned()).collect(),
            rules: manifest.rules.len(),
            prompts: manifest.prompts.len(),
        }
    }
}

fn load(sandbox: &Sandbox, plugins: &[config::Plugin]) -> Result<SandboxHost, HostError> {
    for plugin in plugins {
        missing_component(plugin)?;
    }
    let sources = plugins.iter().filter_map(assemble::plugin);
    let loaded: Result<Vec<sandbox::Plugin>, _> = sources.map(|source| sandbox.load(source)).collect();
    SandboxHost::new(loaded?).map_err(|duplicate| HostError::Setup(duplicate.to_string()))
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
