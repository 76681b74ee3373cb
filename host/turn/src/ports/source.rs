//! The port that changes the extensions of a session, with all that comes with them, between two turns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use flow::{ExtensionPrompt, PluginId, PromptAddition, RegistrationAction, SystemBlock};

use super::{BoxFuture, ExtensionHost, RuleSource, Tools};

/// Decides which extensions a session has. Asked when a turn starts, before the rules are.
pub trait ExtensionSource: Send + Sync {
    /// Returns what changed since the last call. It applies to the turn that starts and to those that follow; nothing of it changes
    /// while a turn runs. Dropping the future cancels the request; no change is lost for the next one.
    ///
    /// # Errors
    /// An extension that the operator requires cannot be used: the turn must not begin. The string names it and the remedy.
    fn current(&self) -> BoxFuture<'_, Result<ExtensionUpdate, String>>;
}

/// The answer of an [`ExtensionSource`].
#[derive(Default)]
pub struct ExtensionUpdate {
    /// The extensions from now on; `None` if nothing changed.
    pub set: Option<ExtensionSet>,
    /// Texts for the model that were not shown in the workspace yet. They are shown before anything else is done.
    pub prompts: Vec<ExtensionPrompt>,
    /// Problems found meanwhile, such as a new version that cannot be loaded, each once.
    pub notices: Vec<String>,
    /// The plugins that there are, where that is to be compared with what is stored in the session; `None`: it was before, or is not known.
    pub known: Option<KnownPlugins>,
}

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

/// Everything that plugins contribute to a session. It replaces what was there as a whole: callbacks never run with the rules, the
/// prompt or the tools of another version of their plugin.
pub struct ExtensionSet {
    /// The extensions, which adopt those of the session.
    pub extensions: Arc<dyn ExtensionHost>,
    /// The tools, with the order that plugins suggest.
    pub tools: Arc<dyn Tools>,
    /// The rules, with those of the plugins.
    pub rules: Arc<dyn RuleSource>,
    /// Blocks of the system prompt, as in [`crate::SessionSettings`].
    pub system: Vec<SystemBlock>,
    /// What plugins add to the prompt.
    pub additions: Vec<PromptAddition>,
    /// What is different, for events and for the state of plugins that are gone.
    pub changes: Vec<ExtensionChange>,
}

/// A plugin that came, left, or has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionChange {
    /// The plugin's id.
    pub plugin: PluginId,
    /// Its version: the new one, or of a plugin that left the last one.
    pub version: String,
    /// Whether it came, left, or has changed.
    pub action: RegistrationAction,
    /// Why, as in `its files were edited`.
    pub reason: String,
}

impl std::fmt::Debug for ExtensionSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExtensionSet").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ExtensionUpdate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExtensionUpdate").field("set", &self.set).field("notices", &self.notices).finish()
    }
}
