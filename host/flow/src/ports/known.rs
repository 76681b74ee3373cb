//! Plugins that a session has state of, and those that there are.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::PluginId;

/// The plugins that the configuration names, whether the session uses them or not. What others keep in the session is deleted after a while.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPlugins {
    /// Their ids: those that are loaded, disabled, or not used by the session.
    pub ids: BTreeSet<PluginId>,
    /// How long the state of another plugin is kept, from the first turn without it.
    pub keep: Duration,
}

/// What a plugin keeps in a session that the configuration does not name any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AbsentState {
    /// The plugin's id.
    pub plugin: PluginId,
    /// The number of its keys.
    pub keys: u64,
    /// Bytes of its keys and values.
    pub bytes: u64,
    /// How long it is still kept, from this turn, which is the first without the plugin; `None`: it was deleted.
    pub kept: Option<Duration>,
}
