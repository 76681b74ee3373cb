//! The handle for changing the plugins of a host while its sessions are open.

pub(crate) mod desired;
pub(crate) mod guidance;
pub(crate) mod host_plugin;
pub(crate) mod live;
pub(crate) mod native;
pub(crate) mod of_session;
pub(crate) mod shown_prompts;
pub(crate) mod stale;
pub(crate) mod tools;

use std::sync::Arc;

use config::{PluginEntry, PluginLimits};
use flow::PluginId;

use crate::host::loaded::PluginInfo;
use crate::host::loaded::Shared;
use crate::host::policy;
use crate::plugins::desired::Desired;
use crate::plugins::host_plugin::HostPlugin;
use crate::plugins::live::LivePlugins;
use crate::{Host, HostError};

/// The plugins of a [`Host`]. Changes take effect in every session when its next turn starts: callbacks, rules, prompt additions
/// and tool guidance of a plugin together. A turn that runs ends with the plugins it began with.
///
/// Changes made here stay in force as long as the host exists, whatever else is edited in the operator's file. Where the entry of a
/// plugin is edited there, the edited entry replaces what [`Plugins::configure`] made of it.
///
/// ```no_run
/// # async fn change(host: tidegate::Host) -> Result<(), tidegate::HostError> {
/// let mut entry = tidegate::plugin::PluginEntry::of_path("plugins/notes".as_ref());
/// entry.grants.push(tidegate::plugin::Power::State);
/// let notes = host.plugins().register(entry).await?;
/// host.plugins().disable(&notes).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Plugins(Arc<LivePlugins>);

impl Host {
    /// The plugins of the host, to change them while sessions are open.
    pub fn plugins(&self) -> Plugins {
        Plugins(Arc::clone(&self.live))
    }
}

impl Plugins {
    /// All plugins, in order of registration, disabled ones included.
    pub fn list(&self) -> Vec<PluginInfo> {
        self.0.shared().host_plugins.iter().map(PluginInfo::of).collect()
    }

    /// Registers a plugin, after all others. It is checked, compiled and asked for its callbacks before this returns.
    ///
    /// # Errors
    /// The plugin cannot be loaded, or there is one with its id or its folder. Nothing has changed then.
    pub async fn register(&self, entry: PluginEntry) -> Result<PluginId, HostError> {
        let folder = entry.folder.clone();
        let shared = self
            .0
            .change(move |desired, shared| {
                let known = shared
                    .host_plugins
                    .iter()
                    .find(|host_plugin| host_plugin.loaded.plugin.entry.folder == entry.folder);
                if let Some(host_plugin) = known {
                    return Err(HostError::PluginRegistered { plugin: host_plugin.loaded.id().clone() });
                }
                desired.add(entry);
                Ok(())
            })
            .await?;
        let host_plugin =
            shared.host_plugins.iter().find(|host_plugin| host_plugin.loaded.plugin.entry.folder == folder);
        host_plugin.map(|host_plugin| host_plugin.loaded.id().clone()).ok_or(HostError::NoEngine)
    }

    /// Removes a plugin. Each session deletes what the plugin kept in it when its next turn starts; of one that is closed before that,
    /// it stays in the store until it expires.
    ///
    /// # Errors
    /// There is no such plugin, or the operator requires it.
    pub async fn unregister(&self, plugin: &PluginId) -> Result<(), HostError> {
        let plugin = plugin.clone();
        let change = self.0.change(move |desired, shared| {
            desired.remove(optional(shared, &plugin)?);
            Ok(())
        });
        change.await.map(drop)
    }

    /// Uses a disabled plugin again, with the state that it kept.
    ///
    /// # Errors
    /// There is no such plugin, or the operator's file switches it off.
    pub async fn enable(&self, plugin: &PluginId) -> Result<(), HostError> {
        let plugin = plugin.clone();
        let change = self.0.change(move |desired, shared| {
            desired.set_enabled(switched_on(desired, shared, &plugin)?.loaded.id(), true);
            Ok(())
        });
        change.await.map(drop)
    }

    /// Stops using a plugin in all sessions. What it keeps in them stays.
    ///
    /// # Errors
    /// There is no such plugin, or the operator requires it.
    pub async fn disable(&self, plugin: &PluginId) -> Result<(), HostError> {
        let plugin = plugin.clone();
        let change = self.0.change(move |desired, shared| {
            desired.set_enabled(optional(shared, &plugin)?.loaded.id(), false);
            Ok(())
        });
        change.await.map(drop)
    }

    /// Changes the operator's entry of a plugin: priorities, limits, grants, settings, failure policy, `required`. Its folder
    /// stays. Limits of the plugin as they are now: [`Plugins::limits`].
    ///
    /// # Errors
    /// There is no such plugin, the operator's file switches it off, it guards and its files have changed since it was loaded, or it
    /// cannot be used so; then it is used as before.
    pub async fn configure(
        &self,
        plugin: &PluginId,
        edit: impl FnOnce(&mut PluginEntry) + Send + 'static,
    ) -> Result<(), HostError> {
        let plugin = plugin.clone();
        let change = self.0.change(move |desired, shared| {
            let host_plugin = switched_on(desired, shared, &plugin)?;
            policy::refuse_change(host_plugin)?;
            let before = &host_plugin.loaded.plugin.entry;
            let mut entry = before.clone();
            edit(&mut entry);
            entry.folder.clone_from(&before.folder);
            desired.replace(entry);
            Ok(())
        });
        change.await.map(drop)
    }

    /// Looks for edited files now, not when the next turn starts. Returns what cannot be used.
    pub async fn refresh(&self) -> Vec<String> {
        let seen = self.0.edition();
        let failed = self.0.refresh().await;
        self.0.since(seen).2.into_iter().chain(failed).collect()
    }

    /// The limits of a plugin.
    ///
    /// # Errors
    /// There is no such plugin.
    pub fn limits(&self, plugin: &PluginId) -> Result<PluginLimits, HostError> {
        Ok(find(&self.0.shared(), plugin)?.loaded.plugin.limits)
    }
}

impl std::fmt::Debug for Plugins {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<PluginId> = self.list().into_iter().map(|plugin| plugin.id).collect();
        f.debug_tuple("Plugins").field(&ids).finish()
    }
}

/// The plugin of this id.
pub(crate) fn find<'s>(shared: &'s Shared, plugin: &PluginId) -> Result<&'s HostPlugin, HostError> {
    let found = shared.host_plugins.iter().find(|host_plugin| host_plugin.loaded.id() == plugin);
    found.ok_or_else(|| HostError::UnknownPlugin { plugin: plugin.clone(), known: shared.ids() })
}

/// The plugin of this id, which sessions can do without.
pub(crate) fn optional<'s>(shared: &'s Shared, plugin: &PluginId) -> Result<&'s HostPlugin, HostError> {
    let host_plugin = find(shared, plugin)?;
    policy::refuse_change(host_plugin)?;
    if host_plugin.loaded.plugin.entry.required {
        return Err(HostError::PluginRequired { plugin: plugin.clone() });
    }
    Ok(host_plugin)
}

/// The plugin of this id, which the operator's file does not switch off.
fn switched_on<'s>(desired: &Desired, shared: &'s Shared, plugin: &PluginId) -> Result<&'s HostPlugin, HostError> {
    let host_plugin = find(shared, plugin)?;
    if desired.is_switched_off(&host_plugin.loaded.plugin.entry) {
        return Err(HostError::PluginOff { plugin: plugin.clone() });
    }
    Ok(host_plugin)
}
