//! Opens a host: plugins loaded, provider connected. Sessions come from it, each in its own workspace.

pub(crate) mod admission;
pub(crate) mod assemble;
mod code_rules;
pub(crate) mod engine;
pub(crate) mod expiry;
pub(crate) mod fork;
pub(crate) mod load;
pub(crate) mod loaded;
pub(crate) mod looks;
pub(crate) mod policy;
#[cfg(feature = "redis")]
pub(crate) mod redis_place;
pub(crate) mod stored;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use config::rule_sources;
use config::{Operator, PermissionRule, PluginEntry, Policy};
use flow::ports::{Clock, Confirm, Model, StateAdmin, StateStore};
use providers::{HttpConfig, ProviderConfig, Secret};
use rules::RuleSpec;
use sandbox::EngineOptions;
use store::TranscriptStore;
use system::SystemClock;
use telemetry::Metrics;

use crate::agents::Children;
use crate::host::load::{Faults, Wanted};
use crate::host::loaded::Loaded;
use crate::host::policy::POLICY_FILE;
use crate::host::stored::Stored;
use crate::plugins::desired::ReadOperator;
use crate::plugins::live::LivePlugins;
use crate::plugins::native::Native;
use crate::plugins::of_session::SessionPlugins;
use crate::plugins::shown_prompts;
use crate::session::confirm::Nobody;
use crate::session::kept_model::Kept;
use crate::{Engine, HostError, Session, SessionOptions};

/// What sessions share: plugins, a model, and the operator's decisions. A clone is the same host.
#[derive(Clone)]
pub struct Host {
    pub(crate) live: Arc<LivePlugins>,
    engine: Option<Engine>,
    metrics: Option<Metrics>,
    /// `None`: the operator has chosen no provider, and each session brings its own model.
    pub(crate) provider: Option<ProviderConfig>,
    model: Option<Arc<dyn Model>>,
    /// The embedder gave the model: it is not the provider's.
    has_given_model: bool,
    /// Other models of the provider that were connected, as long as they are in use.
    others: Arc<Mutex<Vec<Weak<dyn Model>>>>,
    confirm: Arc<dyn Confirm>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Where its sessions are recorded; `None`: nowhere.
    pub(crate) transcripts: Option<TranscriptStore>,
}

/// How to open a [`Host`].
pub struct HostBuilder {
    pub(crate) operator: Operator,
    pub(crate) engine: Option<Engine>,
    model: Option<Arc<dyn Model>>,
    pub(crate) connects_model: bool,
    confirm: Arc<dyn Confirm>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) stored: Option<Stored>,
    pub(crate) metrics: Option<Metrics>,
    pub(crate) shown_prompts: Option<PathBuf>,
    pub(crate) rules: Vec<RuleSpec>,
    pub(crate) native: Vec<Native>,
    record: Option<PathBuf>,
    key: Option<Secret>,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) user_rules: Option<PathBuf>,
    pub(crate) permissions: Vec<PermissionRule>,
    pub(crate) max_instances: u32,
    pub(crate) follow: Option<ReadOperator>,
    pub(crate) policy_file: PathBuf,
    /// `None`: there is none, or it has not been read yet.
    pub(crate) policy: Option<Arc<Policy>>,
    /// Entries of the operator that have no effect under the policy.
    pub(crate) replaced: Vec<PluginEntry>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("plugins", &self.live.shared().ids()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl HostBuilder {
    /// Runs the plugins on this engine, which any number of hosts in the process can share. Default: an engine of the host's
    /// own, made with [`HostBuilder::cache_dir`] and [`HostBuilder::max_instances`], which have no effect otherwise.
    #[must_use]
    pub fn engine(mut self, engine: &Engine) -> Self {
        self.engine = Some(engine.clone());
        self
    }

    /// The model that answers, instead of the provider that the operator chose.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Connects no provider, even if the operator has chosen one: the host is for [conversations](Host::conversation), or each session
    /// brings a model.
    #[must_use]
    pub fn without_model(mut self) -> Self {
        self.connects_model = false;
        self
    }

    /// The handler of questions where a tool's permission is `ask`. Default: [`Nobody`], every question is denied.
    #[must_use]
    pub fn confirm(mut self, confirm: Arc<dyn Confirm>) -> Self {
        self.confirm = confirm;
        self
    }

    /// The clock of the host: events, retries, the life of values that plugins keep, and back-off after failures go by it. Time
    /// limits of callbacks are always real time. Default: the machine's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Keeps the state of plugins in this store, instead of the one that the operator's file selects. Hosts that share a store
    /// share its sessions: each is open in one of them at a time.
    #[must_use]
    pub fn state_store<S: StateStore + StateAdmin + 'static>(mut self, store: Arc<S>) -> Self {
        self.stored = Some(Stored::of(store));
        self
    }

    /// Counts what the sessions do in these metrics, from the first event of each session on. Hosts that share metrics are counted
    /// together. Default: nothing is counted, which costs nothing.
    #[must_use]
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// Adds a stream rule for all sessions, without a file: see [`SessionOptions::rule`]. A rule with an error refuses the host. A file that the
    /// model can write does not take its place, and the operator can switch it off as any other, unless it is required.
    #[must_use]
    pub fn rule(mut self, rule: RuleSpec) -> Self {
        self.rules.push(rule);
        self
    }

    /// Adds a [native extension](crate::native) that works in all sessions. If it is invalid, or has the id of a plugin, opening the host
    /// fails.
    #[must_use]
    pub fn extension(mut self, extension: Native) -> Self {
        self.native.push(extension);
        self
    }

    /// Remembers in the user's state folder (`tidegate/prompts`) which texts of plugins were shown in a workspace. What plugins have
    /// the model read is the event `extension_prompt` before the first request with it, where the text is new in the workspace or has
    /// changed. Default: as long as the host exists, so that each process shows it again.
    #[must_use]
    pub fn remember_shown_prompts(mut self) -> Self {
        self.shown_prompts = shown_prompts::default_folder();
        self
    }

    /// Records what goes over the wire to this file, which must not exist. Secrets are removed.
    #[must_use]
    pub fn record(mut self, file: Option<PathBuf>) -> Self {
        self.record = file;
        self
    }

    /// The provider's key itself, instead of the environment variable that the operator's file names. It is never printed
    /// or recorded, and commands of tools do not get it.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Secret::new(key));
        self
    }

    /// Where compiled components are kept. Default: `tidegate/components` in the user's cache folder; `None`: nowhere.
    #[must_use]
    pub fn cache_dir(mut self, folder: Option<PathBuf>) -> Self {
        self.cache_dir = folder;
        self
    }

    /// The user's folder of rule files. Default: `tidegate/rules` in the user's configuration folder; `None`: there is
    /// none. It need not exist. The operator's file can switch it off.
    #[must_use]
    pub fn user_rules(mut self, folder: Option<PathBuf>) -> Self {
        self.user_rules = folder;
        self
    }

    /// Permissions of tools that win over those of the operator's file, as `--permission` gives them.
    #[must_use]
    pub fn permissions(mut self, permissions: Vec<PermissionRule>) -> Self {
        self.permissions = permissions;
        self
    }

    /// How many instances of plugins there may be at once, unless the operator's file has `instances` under `[limits]`. A plugin has one in
    /// each session that used it within the last minute, and another one for each `ttsr_triggered` that runs, which delays no other
    /// callback. Where all are taken, a call gets that of an idle session; where a call runs in each, it waits up to 10 s, and its turn
    /// fails after that. Default: 4,096. Address space is set aside for each, which takes about 5 µs at the start.
    #[must_use]
    pub fn max_instances(mut self, instances: u32) -> Self {
        self.max_instances = instances;
        self
    }

    /// Follows the operator's file: where it was edited, `read` gives the settings, with everything that wins over the file, and they
    /// are in force from the next turn of each session on. An edited file that cannot be used, or that names a plugin which cannot be
    /// loaded, changes nothing and is reported. `[provider]`, `[state]`, `[turn]`, `[tools]`, `[rules]` and the entries of plugins that
    /// guard stay as they were when the host was opened: a command that the model runs must not switch off what guards against it.
    /// Plugins guard that are required, that have a callback which fails closed, or that have what was shown kept.
    ///
    /// The error of `read` is one line, as of [`Diagnostics::in_one_line`].
    ///
    /// Without this only the files of the plugins are followed: an edited manifest, or another component, is in force from the next
    /// turn on. Changed files of plugins that guard are not used.
    ///
    /// [`Diagnostics::in_one_line`]: crate::diagnostic::Diagnostics::in_one_line
    #[must_use]
    pub fn follow(mut self, read: impl Fn() -> Result<Operator, String> + Send + Sync + 'static) -> Self {
        self.follow = Some(Arc::new(read));
        self
    }

    /// Opens the host, under [the policy of the machine](crate::config::POLICY_FILE). Nothing is sent to the provider yet. Where no provider is
    /// chosen, every session has to bring a model.
    ///
    /// # Errors
    /// The policy, the provider, the engine or a plugin cannot be used. Everything that is wrong with the manifests is in one error.
    pub async fn open(self) -> Result<Host, HostError> {
        blocking(move || {
            let this = self.under_policy()?;
            let provider = match this.provider() {
                _ if !this.connects_model => None,
                Ok(provider) => Some(provider),
                Err(HostError::NoProvider { .. }) => None,
                Err(error @ HostError::Config(_)) => return Err(error),
                Err(_) if this.model.is_some() => None,
                Err(error) => return Err(error),
            };
            let model = match (&this.model, &provider) {
                (Some(model), _) => Some(Arc::clone(model)),
                (None, Some(provider)) => Some(providers::connect(provider)?),
                (None, None) => None,
            };
            let has_given_model = this.model.is_some();
            let (confirm, clock) = (Arc::clone(&this.confirm), Arc::clone(&this.clock));
            let follow = this.follow.clone();
            let transcripts = this.transcripts()?;
            let shared = load::shared(this, &mut Faults::Refuse)?;
            let (engine, metrics) = (shared.basis.engine.clone(), shared.basis.metrics.clone());
            let live = LivePlugins::new(shared, follow);
            Ok(Host {
                live,
                engine,
                metrics,
                provider,
                model,
                has_given_model,
                others: Arc::default(),
                confirm,
                clock,
                transcripts,
            })
        })
        .await
    }

    /// Loads plugins, and the rules of a workspace, alone: no provider need be chosen.
    ///
    /// # Errors
    /// As [`HostBuilder::open`], or the workspace cannot be used.
    pub async fn load(self, workspace: impl AsRef<Path>) -> Result<Loaded, HostError> {
        let wanted = Wanted::of(&SessionOptions::new(workspace));
        blocking(move || {
            let shared = Arc::new(load::shared(self.under_policy()?, &mut Faults::Refuse)?);
            load::workspace(&shared, &wanted, None, None, &mut Faults::Refuse)
        })
        .await
    }

    /// Loads the plugins alone, as a host does that opens.
    ///
    /// # Errors
    /// A plugin cannot be loaded, or the policy cannot be read.
    pub async fn check_plugins(self) -> Result<(), HostError> {
        blocking(move || load::shared(self.under_policy()?, &mut Faults::Refuse).map(drop)).await
    }

    pub(crate) fn provider(&self) -> Result<ProviderConfig, HostError> {
        let config = assemble::provider(&self.operator.provider, self.record.as_deref(), self.key.as_ref())?;
        self.check_provider(&config)?;
        Ok(config)
    }
}

/// Compiling a component takes up to seconds of pure work: not on a thread that serves others.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> Result<T, HostError> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| HostError::NoRuntime)?;
    runtime.spawn_blocking(work).await?
}

impl Host {
    /// A host over what the operator decided.
    pub fn builder(operator: Operator) -> HostBuilder {
        HostBuilder {
            operator,
            engine: None,
            model: None,
            connects_model: true,
            confirm: Arc::new(Nobody),
            clock: Arc::new(SystemClock),
            stored: None,
            metrics: None,
            shown_prompts: None,
            rules: Vec::new(),
            native: Vec::new(),
            record: None,
            key: None,
            cache_dir: assemble::cache_dir(),
            user_rules: rule_sources::user_folder(),
            permissions: Vec::new(),
            max_instances: EngineOptions::default().max_instances,
            follow: None,
            policy_file: POLICY_FILE.into(),
            policy: None,
            replaced: Vec::new(),
        }
    }

    /// Opens a session. Sessions share nothing but what is loaded; any number of them can run at once. One whose transcript exists
    /// under the id of the options continues where that ends.
    ///
    /// When a turn of it begins, the rule folders are checked: edited rule files take effect from that turn on,
    /// without any call. The session reports it with the event `rules_reloaded`.
    ///
    /// # Errors
    /// A session with this id is open, the workspace cannot be used, a required rule is not in force, a plugin is unknown, there is no
    /// model, calls of open sessions wait for an instance of a plugin, or nearly no file descriptors,
    /// threads or memory are left.
    pub async fn session(&self, mut options: SessionOptions) -> Result<Session, HostError> {
        if let Some(engine) = &self.engine {
            engine.admit()?;
        }
        admission::admit()?;
        let keeps = options.model.is_none() && std::mem::take(&mut options.keeps_model);
        let kept = if keeps { self.kept_model(options.id.as_ref()).await? } else { Kept::default() };
        options.model = options.model.or(kept.model);
        let Some(model) = options.model.clone().or_else(|| self.model.clone()) else {
            let provider = &self.live.shared().operator.provider;
            return Err(assemble::provider(provider, None, None).err().unwrap_or(HostError::NoModel));
        };
        // A session that opens now has the plugins as they are now; what cannot be used is reported in its first turn.
        self.live.refresh().await;
        let (shared, live) = (self.live.shared(), Arc::clone(&self.live));
        let (wanted, tools) = (Wanted::of(&options), options.tools.clone());
        let loaded = blocking(move || shared.open(wanted, tools, None)).await?;
        // It can have been loaded for an earlier session, and a required rule can have been lost since. A look that fails is
        // reported by the first turn, which looks again.
        loaded.live.refresh().await;
        loaded.refuse_unmet()?;
        loaded.shared.basis.watch_native(&options.native);
        // While the first request is on its way, the conditions and the schemas of tools are compiled. The first answer waits for what is
        // left.
        let (rules, provided) = (Arc::clone(&loaded.live.built().set), Arc::clone(&loaded.provided));
        let prepare = move || {
            rules.prepare();
            provided.prepare();
        };
        drop(tokio::task::spawn_blocking(prepare));
        let confirm = options.confirm.clone().unwrap_or_else(|| Arc::clone(&self.confirm));
        let is_of_provider = self.is_of_provider(&model);
        let answered = (Arc::clone(&model), is_of_provider, Arc::clone(&confirm));
        let children = Arc::new(Children::new(self.clone(), &options, answered));
        let plugins = SessionPlugins::new(live, options.clone(), Arc::clone(&loaded), children);
        let recording = (self.transcripts.clone(), kept.notice);
        Session::open(plugins, options, (model, confirm, Arc::clone(&self.clock)), recording).await
    }

    /// Returns whether this is a model of the host's provider: its own, or one that [`Host::other_model`] has returned.
    fn is_of_provider(&self, model: &Arc<dyn Model>) -> bool {
        let own = self.model.as_ref().filter(|_| self.provider.is_some() && !self.has_given_model);
        own.is_some_and(|own| Arc::ptr_eq(own, model))
            || self.others().iter().any(|other| other.ptr_eq(&Arc::downgrade(model)))
    }

    fn others(&self) -> MutexGuard<'_, Vec<Weak<dyn Model>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the model of the host, if it has one.
    pub(crate) fn own_model(&self) -> Option<&Arc<dyn Model>> {
        self.model.as_ref()
    }

    /// Another model of the host's provider, for [`SessionOptions::model`]; `None` where the host has no provider. A recording has the
    /// answers of all models that were recorded.
    ///
    /// What goes over the wire is not recorded: the file belongs to the first model.
    ///
    /// # Errors
    /// The provider cannot be connected.
    pub fn other_model(&self, name: &str) -> Option<Result<Arc<dyn Model>, HostError>> {
        match self.provider.as_ref()? {
            ProviderConfig::Http(own) => {
                let config = HttpConfig { model: name.to_owned(), record: None, ..own.clone() };
                let model = providers::connect(&ProviderConfig::Http(config)).map_err(HostError::from);
                if let Ok(model) = &model {
                    let mut others = self.others();
                    others.retain(|other| other.strong_count() > 0);
                    others.push(Arc::downgrade(model));
                }
                Some(model)
            }
            ProviderConfig::Recording(_) => self.model.clone().map(Ok),
        }
    }

    /// The models that a front end offers, for [`Host::other_model`]: the one that answers, and those of `models` under `[provider]` of the
    /// operator's file. Empty where the host has no provider.
    pub fn models(&self) -> Vec<String> {
        let (Some(own), Some(_), false) = (&self.model, &self.provider, self.has_given_model) else {
            return Vec::new();
        };
        let mut all = vec![own.name().to_owned()];
        for name in &self.live.shared().operator.provider.models {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        all
    }

    /// Plugins, and the rules of a workspace, as a session of it has them.
    ///
    /// # Errors
    /// The workspace cannot be used.
    pub async fn loaded(&self, workspace: impl AsRef<Path>) -> Result<Loaded, HostError> {
        let (shared, wanted) = (self.live.shared(), Wanted::of(&SessionOptions::new(workspace)));
        blocking(move || load::workspace(&shared, &wanted, None, None, &mut Faults::Refuse)).await
    }

    /// The metrics that its sessions are counted in, if there are any.
    pub fn metrics(&self) -> Option<&Metrics> {
        self.metrics.as_ref()
    }

    /// The engine that the plugins run on, for other hosts to share.
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }
}
