//! The plugins of one session: those of its host that it uses, renewed when a turn starts.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flow::PluginId;
use turn::ports::{BoxFuture, ExtensionSet, ExtensionSource, ExtensionUpdate, RuleSource};

use crate::host::blocking;
use crate::live_plugins::LivePlugins;
use crate::load::Wanted;
use crate::loaded::Shared;
use crate::{HostError, Loaded, SessionOptions, plugins, record};

/// The plugins of one session.
pub(crate) struct SessionPlugins {
    live: Arc<LivePlugins>,
    options: SessionOptions,
    state: Mutex<State>,
}

struct State {
    /// What the session goes by.
    loaded: Arc<Loaded>,
    /// Plugins that the session does without.
    disabled: BTreeSet<PluginId>,
    /// The edition of problems that were reported to the session.
    seen: u64,
    /// What could not be loaded for the session, so that it is tried and reported once.
    failed: Option<(Arc<Shared>, Wanted)>,
}

impl SessionPlugins {
    pub(crate) fn new(live: Arc<LivePlugins>, options: SessionOptions, loaded: Arc<Loaded>) -> Self {
        let seen = live.edition();
        // The conversation has its own owner.
        let options = SessionOptions { history: Vec::new(), ..options };
        Self { live, options, state: Mutex::new(State { loaded, disabled: BTreeSet::new(), seen, failed: None }) }
    }

    /// What the session goes by in its current turn, or did in its last one.
    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.state().loaded)
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
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the session goes by from now on, where that is something else.
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
            let failed = state.failed.as_ref();
            let is_known = Arc::ptr_eq(&state.loaded.shared, shared) && state.loaded.wanted == wanted;
            if is_known || failed.is_some_and(|(known, other)| Arc::ptr_eq(known, shared) && *other == wanted) {
                return Ok(None);
            }
            (Arc::clone(&state.loaded), wanted)
        };
        let (shared, tools, failing) = (Arc::clone(shared), self.options.tools.clone(), wanted.clone());
        let opened = blocking(move || {
            let opened = shared.open(wanted, tools, Some(&before.live));
            Ok((shared, opened))
        });
        let (shared, opened) = opened.await?;
        if opened.is_err() {
            self.state().failed = Some((shared, failing));
        }
        opened.map(Some)
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
                    notices.push(format!("the session continues with the plugins that it has: {error}"));
                    None
                }
            };
            // From here on nothing waits: what is recorded as known is what the turn gets.
            let mut state = self.state();
            state.seen = edition;
            let Some(loaded) = renewed else { return Ok(ExtensionUpdate { set: None, notices }) };
            let before = &state.loaded;
            let changes =
                record::changes(&before.records, &before.shared.records, &loaded.records, &loaded.shared.records);
            let rules = loaded.live.session();
            let (extensions, tools) = loaded.extensions(&self.options, &rules);
            let set = ExtensionSet {
                extensions,
                tools,
                rules: rules as Arc<dyn RuleSource>,
                system: loaded.settings.system.clone(),
                additions: loaded.settings.additions.clone(),
                changes,
            };
            state.loaded = loaded;
            Ok(ExtensionUpdate { set: Some(set), notices })
        })
    }
}
