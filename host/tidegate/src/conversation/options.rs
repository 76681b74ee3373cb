//! The options of a conversation.

use std::path::Path;
use std::sync::Arc;

use flow::{PluginId, SessionId};
use rules::{RuleSet, RuleSpec};

use crate::SessionOptions;
use crate::plugins::native::Native;

/// The options of one conversation. Everything that is not set comes from the host.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConversationOptions {
    pub(crate) session: SessionOptions,
    pub(crate) rule_set: Option<Arc<RuleSet>>,
    pub(crate) is_kept: bool,
    /// Whether its store is away: it is opened without it, and is stored when the store is back.
    pub(crate) is_local: bool,
}

impl ConversationOptions {
    /// Creates the options of a conversation about this folder. The folder's own rule files (`.tidegate/rules`) apply to it.
    pub fn new(workspace: impl AsRef<Path>) -> Self {
        let session = SessionOptions::new(workspace).without_builtin_tools();
        Self { session, rule_set: None, is_kept: true, is_local: false }
    }

    fn with(mut self, change: impl FnOnce(SessionOptions) -> SessionOptions) -> Self {
        self.session = change(self.session);
        self
    }

    /// Sets its id, as [`SessionOptions::id`] does.
    #[must_use]
    pub fn id(self, id: SessionId) -> Self {
        self.with(|session| session.id(id))
    }

    /// Names its agent, as [`SessionOptions::agent`] does.
    #[must_use]
    pub fn agent(self, name: impl Into<String>) -> Self {
        self.with(|session| session.agent(name))
    }

    /// Chooses its plugins, as [`SessionOptions::plugins`] does.
    #[must_use]
    pub fn plugins(self, plugins: impl IntoIterator<Item = PluginId>) -> Self {
        self.with(|session| session.plugins(plugins))
    }

    /// Adds a stream rule, as [`SessionOptions::rule`] does.
    #[must_use]
    pub fn rule(self, rule: RuleSpec) -> Self {
        self.with(|session| session.rule(rule))
    }

    /// Adds a native extension, as [`SessionOptions::extension`] does.
    #[must_use]
    pub fn extension(self, extension: Native) -> Self {
        self.with(|session| session.extension(extension))
    }

    /// Uses these rules, instead of those that the files and the host have when an exchange begins.
    #[must_use]
    pub fn rule_set(mut self, set: Arc<RuleSet>) -> Self {
        self.rule_set = Some(set);
        self
    }

    /// Neither stores nor records the conversation.
    #[must_use]
    pub fn not_kept(mut self) -> Self {
        self.is_kept = false;
        self
    }

    pub(crate) fn local(mut self) -> Self {
        self.is_local = true;
        self
    }
}
