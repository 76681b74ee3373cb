//! A session's extensions: asked for at the start of each turn, replaced as a whole where they changed.

use std::sync::Arc;

use flow::{EventKind, PluginId, RegistrationAction};

use super::Session;
use crate::chain::Caller;
use crate::ports::{EventSink, ExtensionChange, ExtensionSet, ExtensionUpdate};
use crate::prompt::Frame;

impl Session {
    /// Switches to the current extensions, and to the tools, rules and prompt that come with them.
    ///
    /// # Errors
    /// A required extension cannot be used: the turn must not begin.
    pub(super) async fn renew_extensions(&mut self) -> Result<(), String> {
        let Some(source) = self.source.clone() else { return Ok(()) };
        let ExtensionUpdate { set, prompts, notices } = source.current().await?;
        prompts.into_iter().for_each(|prompt| self.hub.emit(EventKind::ExtensionPrompt(prompt)));
        if let Some(set) = set {
            self.replace_extensions(set)?;
        }
        notices.into_iter().for_each(|message| self.hub.emit(EventKind::Notice { message }));
        Ok(())
    }

    fn replace_extensions(&mut self, set: ExtensionSet) -> Result<(), String> {
        let ExtensionSet { extensions: host, tools, rules, system, additions, changes } = set;
        let unregistered = |change: &&ExtensionChange| change.action == RegistrationAction::Unregister;
        let unregistered: Vec<PluginId> = changes.iter().filter(unregistered).map(|one| one.plugin.clone()).collect();
        let extensions = host.adopt(&self.caller.extensions, &unregistered)?;
        self.caller = Arc::new(Caller::new(host.registrations(), extensions, Arc::clone(&self.hub)));
        self.view.set_tools(Arc::clone(&tools));
        let settings = &mut self.parts.settings;
        (settings.system, settings.additions) = (system, additions);
        self.frame = Frame::new(&settings.system, &settings.additions, settings.max_tokens);
        // Those of the rules are replaced only where the rules differ.
        self.frame.set_rules(self.rules.rules().system_blocks(self.rules.agent()));
        (self.parts.extensions, self.parts.tools, self.parts.rules) = (host, tools, rules);
        changes.into_iter().for_each(|change| self.emit_change(change));
        Ok(())
    }

    fn emit_change(&self, change: ExtensionChange) {
        let ExtensionChange { plugin, version, action, reason } = change;
        tracing::info!(%plugin, version, action = action.as_str(), reason, "the extensions of the session changed");
        self.hub.emit(match action {
            RegistrationAction::Register | RegistrationAction::Enable | RegistrationAction::Reload => {
                let registered = self.caller.registrations.iter().find(|one| one.plugin == plugin);
                let callbacks = registered.map(|one| one.callbacks.clone()).unwrap_or_default();
                EventKind::ExtensionRegistered { plugin, version, action, callbacks }
            }
            RegistrationAction::Unregister | RegistrationAction::Disable => {
                EventKind::ExtensionUnregistered { plugin, action, reason }
            }
        });
    }
}
