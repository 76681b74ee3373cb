//! The plugins of one session: those of its host that it uses, renewed when a turn starts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::Manifest;
use flow::ports::{BoxFuture, KnownPlugins};
use flow::{ExtensionPrompt, PluginId};
use turn::sources::{ExtensionSet, ExtensionSource, ExtensionUpdate, RuleSource};

use crate::agents::Children;
use crate::host::blocking;
use crate::host::load::Wanted;
use crate::host::loaded::Loaded;
use crate::host::loaded::Shared;
use crate::plugins::host_plugin::HostPlugin;
use crate::plugins::live::LivePlugins;
use crate::plugins::{self, host_plugin};
use crate::{HostError, SessionOptions};

/// The plugins of one session.
pub(crate) struct SessionPlugins {
    live: Arc<LivePlugins>,
    options: SessionOptions,
    /// The agents that the session has started.
    children: Arc<Children>,
    state: Mutex<State>,
}

struct State {
    /// What the session goes by.
    loaded: Arc<Loaded>,
    /// Plugins that the session does without.
    disabled: BTreeSet<PluginId>,
    /// The edition of problems that were reported to the session.
    seen: u64,
    /// Problems that there were when it opened, for its first turn.
    standing: Vec<String>,
    /// Why it cannot use the plugins of the host, as it was last reported.
    failed: Option<String>,
    /// Its first turn has begun: the texts of its plugins were shown.
    begun: bool,
}

impl SessionPlugins {
    pub(crate) fn new(
        live: Arc<LivePlugins>,
        options: SessionOptions,
        loaded: Arc<Loaded>,
        children: Arc<Children>,
    ) -> Self {
        let (seen, standing) = live.standing();
        // The conversation has its own owner.
        let options = SessionOptions { history: Vec::new(), ..options };
        let disabled = options.without.clone();
        children.set_without(&disabled);
        Self {
            live,
            options,
            children,
            state: Mutex::new(State { loaded, disabled, seen, standing, failed: None, begun: false }),
        }
    }

    /// The plugins and rules of the session's current turn, or of its last one.
    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.state().loaded)
    }

    /// The agents that the session has started.
    pub(crate) fn children(&self) -> &Arc<Children> {
        &self.children
    }

    /// Whether the session uses a plugin from its next turn on.
    ///
    /// # Errors
    /// The host has no such plugin, or the operator requires one that is to be disabled.
    pub(crate) fn set_enabled(&self, plugin: &PluginId, enabled: bool) -> Result<(), HostError> {
        let shared = self.live.shared();
        if enabled {
            plugins::find(&shared, plugin)?;
            self.state().disabled.remove(plugin);
        } else {
            plugins::optional(&shared, plugin)?;
            self.state().disabled.insert(plugin.clone());
        }
        self.children.set_without(&self.state().disabled);
        Ok(())
    }

    /// Whether the session is one of those that use a plugin where it is enabled.
    fn may_use(&self, host_plugin: &HostPlugin) -> bool {
        let named = self.options.plugins.as_ref();
        host_plugin.loaded.plugin.entry.required || named.is_none_or(|named| named.contains(host_plugin.loaded.id()))
    }

    /// A required plugin that the session does not use yet.
    fn lacks(&self, shared: &Shared) -> Option<PluginId> {
        let state = self.state();
        let has = |one: &HostPlugin| state.loaded.host_plugins.iter().any(|used| used.serial == one.serial);
        let required = shared.host_plugins.iter().filter(|host_plugin| host_plugin.loaded.plugin.entry.required);
        required.filter(|host_plugin| !has(host_plugin)).map(|host_plugin| host_plugin.loaded.id().clone()).next()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The texts that the model reads from the next turn on, and that were not shown in the workspace. Reads and writes a small file,
    /// once a session and change, without the lock of the state.
    fn new_prompts(&self, renewed: Option<&Arc<Loaded>>) -> Vec<ExtensionPrompt> {
        let loaded = {
            let mut state = self.state();
            let begun = std::mem::replace(&mut state.begun, true);
            match renewed {
                Some(loaded) => Arc::clone(loaded),
                None if begun => return Vec::new(),
                None => Arc::clone(&state.loaded),
            }
        };
        let plugins = loaded.host_plugins.iter().map(|host_plugin| &*host_plugin.loaded);
        // Without links: one workspace has one record.
        let workspace = loaded.builtin.as_ref().map_or(&*loaded.wanted.workspace, |tools| tools.workspace());
        loaded.shared.basis.shown_prompts.take_new(workspace, plugins)
    }

    /// The plugins that the configuration names, once, when the first turn begins: those that leave later are unregistered. `None` too where one
    /// that is disabled cannot be read: it could be any.
    fn known_plugins(&self, shared: &Shared) -> Option<KnownPlugins> {
        if self.state().begun {
            return None;
        }
        let loaded = shared.host_plugins.iter().map(|host_plugin| Some(host_plugin.loaded.id().clone()));
        let disabled = shared.operator.disabled.iter().map(|entry| {
            let manifest = Manifest::load(&entry.folder);
            manifest
                .inspect_err(|error| tracing::warn!("a disabled plugin cannot be read: {error}"))
                .ok()
                .map(|one| one.id)
        });
        Some(KnownPlugins { ids: loaded.chain(disabled).collect::<Option<_>>()?, keep: shared.operator.state.absent })
    }

    /// The plugins and rules that the session is to use from now on, if they differ from the current ones.
    ///
    /// # Errors
    /// It cannot be loaded for the session's workspace.
    async fn renewed(&self, shared: &Arc<Shared>) -> Result<Option<Arc<Loaded>>, HostError> {
        let (before, wanted) = {
            let state = self.state();
            let mut wanted = Wanted::of(&self.options);
            // A plugin that the session names may be gone.
            if let Some(plugins) = &mut wanted.plugins {
                plugins.retain(|plugin| plugins::find(shared, plugin).is_ok());
            }
            wanted.without = state.disabled.iter().cloned().collect();
            if Arc::ptr_eq(&state.loaded.shared, shared) && state.loaded.wanted == wanted {
                return Ok(None);
            }
            (Arc::clone(&state.loaded), wanted)
        };
        let (shared, tools) = (Arc::clone(shared), self.options.tools.clone());
        blocking(move || shared.open(wanted, tools, Some(&before.live))).await.map(Some)
    }
}

impl ExtensionSource for SessionPlugins {
    fn current(&self) -> BoxFuture<'_, Result<ExtensionUpdate, String>> {
        Box::pin(async move {
            let failed = self.live.refresh().await;
            let seen = self.state().seen;
            let (shared, edition, mut notices) = self.live.since(seen);
            notices.extend(failed);
            let renewed = match self.renewed(&shared).await {
                Ok(renewed) => renewed,
                Err(error) => {
                    let error = error.in_one_line();
                    if let Some(guard) = self.lacks(&shared) {
                        return Err(format!("plugin `{guard}` is required, and the session cannot use it: {error}"));
                    }
                    let failed = format!("the session continues with the plugins that it has: {error}");
                    if self.state().failed.replace(failed.clone()).as_ref() != Some(&failed) {
                        notices.push(failed);
                    }
                    None
                }
            };
            // From here on nothing waits: what is recorded as known is what the turn gets.
            let known = self.known_plugins(&shared);
            let prompts = self.new_prompts(renewed.as_ref());
            let mut state = self.state();
            state.seen = edition;
            notices.splice(0..0, std::mem::take(&mut state.standing));
            let Some(loaded) = renewed else { return Ok(ExtensionUpdate { set: None, prompts, notices, known }) };
            let before = &state.loaded;
            // What the program prints when it starts is not silent later: a permission whose tool has left, guidance on one that is not there.
            let new = loaded.warnings.iter().filter(|one| !before.warnings.contains(one));
            notices.extend(new.map(config::in_one_line));
            let known_before: Vec<HostPlugin> =
                before.shared.host_plugins.iter().filter(|host_plugin| self.may_use(host_plugin)).cloned().collect();
            let changes = host_plugin::changes(
                &before.host_plugins,
                &known_before,
                &loaded.host_plugins,
                &loaded.shared.host_plugins,
            );
            let rules = loaded.live.session();
            let (extensions, tools) = loaded.extensions(&self.options, &rules, &self.children);
            let set = ExtensionSet {
                extensions,
                tools,
                rules: rules as Arc<dyn RuleSource>,
                system: loaded.system(&self.options),
                additions: loaded.settings.additions.clone(),
                changes,
            };
            (state.loaded, state.failed) = (loaded, None);
            Ok(ExtensionUpdate { set: Some(set), prompts, notices, known })
        })
    }
}
