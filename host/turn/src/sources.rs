//! Where the rules and the extensions of a session come from: asked when a turn begins. They are no ports of `flow`, because they name
//! compiled rules, which it does not know.

use std::sync::Arc;

use flow::ports::{BoxFuture, ExtensionHost, KnownPlugins, Tools};
use flow::{ExtensionPrompt, PluginId, PromptAddition, RegistrationAction, SystemBlock};

/// Where a session's rules come from. Asked at the start of each turn.
pub trait RuleSource: Send + Sync {
    /// The rules as they are now. Dropping the future cancels the request; no change is lost for the next one.
    ///
    /// # Errors
    /// A rule that the operator requires is not in force: the turn must not begin. The string names the rule, its
    /// location and the remedy.
    fn current<'a>(&'a self) -> BoxFuture<'a, Result<RuleUpdate, String>>;
}

/// What a [`RuleSource`] answers.
#[derive(Clone, Debug)]
pub struct RuleUpdate {
    /// The rules: the same `Arc` as before where nothing changed.
    pub set: Arc<rules::RuleSet>,
    /// Problems found meanwhile (a file that cannot be read, a rule that was refused), each once.
    pub notices: Vec<String>,
}

/// Rules that never change.
#[derive(Clone, Debug)]
pub struct FixedRules(pub Arc<rules::RuleSet>);

impl RuleSource for FixedRules {
    fn current<'a>(&'a self) -> BoxFuture<'a, Result<RuleUpdate, String>> {
        Box::pin(std::future::ready(Ok(RuleUpdate { set: Arc::clone(&self.0), notices: Vec::new() })))
    }
}

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
