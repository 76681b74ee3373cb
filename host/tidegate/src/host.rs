//! Opens a host: plugins loaded, rules built, tools set up, provider connected. Sessions come from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::rule_sources;
use config::{Operator, PermissionRule};
use flow::SessionId;
use providers::Secret;
use sandbox::{EngineOptions, SandboxHost};
use turn::Session;
use turn::ports::{Clock, Confirm, Model};

use crate::load::{self, Faults};
use crate::{HostError, Loaded, Nobody, SystemClock, assemble};

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
    pub(crate) operator: Operator,
    pub(crate) workspace: PathBuf,
    confirm: Arc<dyn Confirm>,
    clock: Arc<dyn Clock>,
    pub(crate) record: Option<PathBuf>,
    pub(crate) key: Option<Secret>,
    pub(crate) cache_dir: Option<PathBuf>,
    pub(crate) user_rules: Option<PathBuf>,
    pub(crate) permissions: Vec<PermissionRule>,
    pub(crate) max_instances: u32,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("loaded", &self.loaded).finish_non_exhaustive()
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
            let provider = assemble::provider(&self.operator.provider, self.record.as_deref(), self.key.as_ref())?;
            let loaded = load::load(&self, &mut Faults::Refuse)?;
            loaded.refuse_unmet()?;
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
        blocking(move || load::load(&self, &mut Faults::Refuse)).await
    }
}

/// Compiling a component takes up to seconds of pure work: not on a thread that serves others.
pub(crate) async fn blocking<T: Send + 'static>(
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
            key: None,
            cache_dir: assemble::cache_dir(),
            user_rules: rule_sources::user_folder(),
            permissions: Vec::new(),
            max_instances: EngineOptions::default().max_instances,
        }
    }

    /// A session with an empty history. Sessions share nothing but what is loaded.
    ///
    /// When a turn of it begins, the rule folders are looked at: edited rule files count from that turn on, without
    /// anything to call. The session says so with the event `rules_reloaded`.
    ///
    /// # Errors
    /// A session with this id is open: the two would share what plugins keep.
    pub fn session(&self, id: SessionId) -> Result<Session, HostError> {
        let rules = self.loaded.live.session();
        let session = Session::open(turn::Parts {
            id,
            model: Arc::clone(&self.model),
            extensions: Arc::<SandboxHost>::clone(&self.loaded.extensions),
            tools: self.loaded.tools(&rules),
            confirm: Arc::clone(&self.confirm),
            rules,
            clock: Arc::clone(&self.clock),
            settings: self.loaded.settings.clone(),
        })?;
        Ok(session)
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
