//! The files of a gateway: the operator's settings and rules, which are reloaded when they change.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serve::gateway::{Acting, Conversations, KeptConversations, Site, Source};
use tidegate::config::{GatewayRoute, GatewaySettings, POLICY_FILE, StatePlace};
use tidegate::metrics::Metrics;
use tidegate::plugin::{ConfiguredPlugin, MANIFEST_FILE, PluginInfo};
use tidegate::rule::RuleSet;
use tidegate::trust::WorkspaceSettings;
use tidegate::{Host, Operator};
use tokio::runtime::Handle;

use super::rules;
use super::stamps::Stamps;
use crate::args::Common;
use crate::exit::Failure;
use crate::say::count;
use crate::{open, run, say};

/// The folder of a project's rules, and that of a user's rules next to the settings; both can be created later.
const PROJECT_RULES: &str = ".tidegate/rules";
const USER_RULES: &str = "rules";

/// The source of a gateway's configuration: its files.
pub(crate) struct Files {
    common: Common,
    /// The flag `--listen`.
    listen: Option<SocketAddr>,
    /// The metrics in which plugins are counted.
    metrics: Option<Metrics>,
    known: Mutex<Known>,
}

/// The state of the last reload.
#[derive(Default)]
struct Known {
    stamps: Stamps,
    paths: Vec<PathBuf>,
    /// The settings that rules depend on.
    of_rules: Option<Operator>,
    /// The stamps of the files of its plugins, and of the connection to its store.
    of_plugins: Stamps,
    /// Whether the file of the workspace asked for something, and counted.
    is_trusted: bool,
    set: Option<Arc<RuleSet>>,
    host: Option<Host>,
    kept: KeptConversations,
    /// What counts from the start on: the address, and the files of the certificate.
    listens: Option<(SocketAddr, Option<[PathBuf; 2]>)>,
}

impl Files {
    pub(crate) fn new(common: Common, listen: Option<SocketAddr>, metrics: Option<Metrics>) -> Self {
        Self { common, listen, metrics, known: Mutex::default() }
    }

    /// Stores the data that conversations have not stored yet.
    pub(crate) async fn close(&self) {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner).kept.all();
        for conversations in all {
            conversations.close().await;
        }
    }

    /// Removes sessions that have expired according to the current settings.
    pub(crate) async fn remove_expired(&self) {
        let host = self.known.lock().unwrap_or_else(PoisonError::into_inner).host.clone();
        if let Some(host) = host {
            run::remove_expired(&host, &self.common.workspace).await;
        }
    }

    /// Loads the initial configuration.
    pub(crate) async fn first(&self) -> Result<(Site, GatewaySettings), Failure> {
        tokio::task::block_in_place(|| self.read())
    }

    fn read(&self) -> Result<(Site, GatewaySettings), Failure> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // An invalid configuration is not loaded again before it changes.
        known.stamps = known.look();
        let (operator, is_trusted) = self.settings(&mut known)?;
        let rules = self.rules(&operator, &mut known)?;
        let of_plugins = plugins(&operator, &mut known)?;
        let of_rules = Operator { gateway: GatewaySettings::default(), layers: Vec::new(), ..operator.clone() };
        let before = known.same(&of_rules, &rules.set).filter(|_| known.of_plugins == of_plugins);
        let host = match known.host.clone().filter(|_| before.is_some()) {
            Some(host) => host,
            None => super::host(&operator, self.metrics.as_ref(), known.host.as_ref())?,
        };
        let loaded = super::loaded(&host, &self.common.workspace)?;
        if before.is_none() {
            super::plugin_notes::report(&loaded, true);
        }
        let set = before.unwrap_or_else(|| Arc::clone(&rules.set));
        let settings = operator.gateway;
        let site = self.site(&settings, (&host, &loaded.plugins()), &set, &mut known)?;
        rules.report();
        (known.of_rules, known.set, known.host) = (Some(of_rules), Some(set), Some(host));
        (known.of_plugins, known.is_trusted) = (of_plugins, is_trusted);
        let files = settings.certificate.as_ref().map(|files| [files.certificate.path.clone(), files.key.path.clone()]);
        let (address, certificate) = known.listens.get_or_insert((settings.listen, files.clone()));
        if *address != settings.listen {
            say::note(format_args!(
                "warning: `listen` under `[gateway]` is {} now, which counts when the gateway is started again",
                settings.listen
            ));
        }
        if *certificate != files {
            say::note(
                "warning: `certificate` or `certificate_key` under `[gateway]` names another file now, which counts when the gateway is started again",
            );
        }
        Ok((site, settings))
    }

    /// Reads the settings. Returns also whether the file of the workspace asks for something, and counts.
    fn settings(&self, known: &mut Known) -> Result<(Operator, bool), Failure> {
        let settings = open::reader(&self.common).read(&self.common.workspace)?;
        let is_trusted = trusted(&settings);
        if known.is_trusted && !is_trusted {
            return Err(untrusted(&settings));
        }
        let operator = super::operator(&self.common, &settings, self.listen)?;
        known.paths = paths(&operator, &self.common);
        known.stamps = known.look();
        Ok((operator, is_trusted))
    }

    /// Reads the rules, which can replace those in force.
    fn rules(&self, operator: &Operator, known: &mut Known) -> Result<rules::Loaded, Failure> {
        let loaded = rules::read(operator, &self.common.workspace)?;
        if loaded.folders.iter().any(|folder| !known.paths.contains(folder)) {
            known.paths.extend(loaded.folders.iter().cloned());
            known.stamps = known.look();
        }
        loaded.check(known.set.as_deref(), &operator.gateway.routes)?;
        Ok(loaded)
    }

    /// Creates the site with its conversations, and closes those that it does not keep.
    fn site(
        &self,
        settings: &GatewaySettings,
        (host, plugins): (&Host, &[PluginInfo]),
        set: &Arc<RuleSet>,
        known: &mut Known,
    ) -> Result<Site, Failure> {
        let make = |rules, watching, route: &GatewayRoute, before: Option<&Conversations>| {
            let has_plugins = plugins.iter().any(|plugin| acts(plugin, route));
            let without_store = settings.without_store;
            let plugins = route.plugins.as_ref().map(|ids| ids.iter().filter_map(|id| id.parse().ok()).collect());
            let workspace = &*self.common.workspace;
            Conversations::new(Acting { host, workspace, rules, plugins, has_plugins, watching, without_store, before })
        };
        let before = known.kept.clone();
        let site = Site::of_settings(settings, set, &mut known.kept, &make)?;
        // These store their data before the next request reaches those that replace them.
        for (path, replaced, next) in before.replaced(&known.kept) {
            let forgotten = replaced.forgotten_by(next);
            if forgotten > 0 {
                let why = if next.is_some() { "`[state]` has changed" } else { "the route is gone" };
                let what = count(forgotten as u64, "conversation in memory is", "conversations in memory are");
                say::note(format_args!("warning: {what} forgotten, because {why}: `{path}`"));
            }
            Handle::current().block_on(replaced.leave());
        }
        Ok(site)
    }
}

/// Loads the plugins, and checks those that routes name. Returns the stamps of their files, and of the connection to the store.
fn plugins(operator: &Operator, known: &mut Known) -> Result<Stamps, Failure> {
    let plugins = operator.load_plugins()?;
    rules::check_plugins(operator, &plugins)?;
    let parts: Vec<PathBuf> = parts(&plugins).into_iter().chain(store_files(operator)).collect();
    known.paths.extend(parts.iter().cloned());
    known.stamps = known.look();
    Ok(Stamps::of(parts.iter().map(PathBuf::as_path)))
}

impl Known {
    fn look(&self) -> Stamps {
        Stamps::of(self.paths.iter().map(PathBuf::as_path))
    }

    /// Returns the previous rules if they are equal to these: conversations that they watch continue.
    fn same(&self, of_rules: &Operator, set: &RuleSet) -> Option<Arc<RuleSet>> {
        let before = self.set.as_ref().filter(|_| self.of_rules.as_ref() == Some(of_rules))?;
        let text = |set: &RuleSet| format!("{:?}", set.rules().map(|info| info.rule.clone()).collect::<Vec<_>>());
        (text(before) == text(set)).then(|| Arc::clone(before))
    }
}

impl Source for Files {
    fn look(&self, is_asked: bool) -> Option<Result<Site, String>> {
        {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if !is_asked && known.look() == known.stamps {
                return None;
            }
        }
        Some(self.read().map(|(site, _)| site).map_err(Failure::into_line))
    }
}

/// Returns whether the file of the workspace asks for something, and counts.
fn trusted(settings: &WorkspaceSettings) -> bool {
    settings.identity().is_some_and(|(_, digest)| !digest.is_empty())
}

/// What the file of the workspace asked for remains in force if the file is not trusted any more: a command of a model can have changed it, to
/// end what guards that model.
fn untrusted(settings: &WorkspaceSettings) -> Failure {
    match settings.request() {
        Some(request) => Failure::setup(format_args!(
            "{} is not trusted as it is now: `tidegate trust` shows what it asks for, and trusts it; then send SIGHUP",
            request.file.display()
        )),
        None => Failure::setup(
            "the tidegate.toml of the workspace does not ask for what was trusted any more: that counts when the gateway is restarted",
        ),
    }
}

/// Returns whether a plugin gets requests or answers of a route.
fn acts(plugin: &PluginInfo, route: &GatewayRoute) -> bool {
    let named = route.plugins.as_ref().is_none_or(|ids| ids.iter().any(|id| *id == plugin.id.to_string()));
    (plugin.required || named) && super::gets_traffic(plugin)
}

/// Returns the files of plugins that are read when the host is opened.
fn parts(plugins: &[ConfiguredPlugin]) -> Vec<PathBuf> {
    let manifests = plugins.iter().map(|plugin| plugin.entry.folder.join(MANIFEST_FILE));
    manifests.chain(plugins.iter().filter_map(|plugin| plugin.manifest.component.clone())).collect()
}

/// Returns the files of the connection to the store.
fn store_files(operator: &Operator) -> impl Iterator<Item = PathBuf> {
    let files = match &operator.state.place {
        StatePlace::Redis(redis) => [&redis.ca, &redis.certificate, &redis.certificate_key].map(Option::as_ref),
        _ => [None; 3],
    };
    files.into_iter().flatten().map(|file| file.path.clone())
}

/// Returns the files that determine the configuration.
fn paths(operator: &Operator, common: &Common) -> Vec<PathBuf> {
    let layers = operator.layers.iter().map(|layer| layer.source.path.clone()).chain(operator.absent.iter().cloned());
    let authorities = operator.gateway.routes.iter().filter_map(|route| route.ca.clone());
    let plugins = operator.plugins.iter().map(|plugin| plugin.folder.join(MANIFEST_FILE));
    let named = operator.rule_folders.more.iter().map(|folder| folder.path.clone());
    let user = open::files(common).user_file().and_then(|file| Some(file.parent()?.join(USER_RULES)));
    let own = [PathBuf::from(POLICY_FILE), common.workspace.join(PROJECT_RULES)].into_iter().chain(user);
    layers.chain(authorities).chain(plugins).chain(named).chain(own).collect()
}
