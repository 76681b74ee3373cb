//! A session's extensions: asked for at the start of each turn, replaced as a whole where they changed.

use std::sync::Arc;

use flow::{EventKind, PluginId, RegistrationAction};

use super::Session;
use crate::events::Hub;
use crate::prompt::Frame;
use crate::sources::{ExtensionChange, ExtensionSet, ExtensionUpdate};
use flow::ports::{AbsentState, EventSink, KnownPlugins};
use guard::Caller;

impl Session {
    /// Switches to the current extensions, and to the tools, rules and prompt that come with them.
    ///
    /// # Errors
    /// A required extension cannot be used: the turn must not begin.
    pub(super) async fn renew_extensions(&mut self) -> Result<(), String> {
        let Some(source) = self.source.clone() else { return Ok(()) };
        let ExtensionUpdate { set, prompts, notices, known } = source.current().await?;
        prompts.into_iter().for_each(|prompt| self.handles.hub.emit(EventKind::ExtensionPrompt(prompt)));
        if let Some(set) = set {
            // What they would write is of plugins that may be gone.
            self.notices.stop().await;
            self.replace_extensions(set)?;
        }
        notices.into_iter().for_each(|message| self.handles.hub.emit(EventKind::Notice { message }));
        if let Some(known) = known {
            self.forget_absent(&known).await;
        }
        Ok(())
    }

    /// Reports what plugins keep in the session that are not configured any more, and deletes it when its time is over.
    async fn forget_absent(&self, known: &KnownPlugins) {
        let absent = match self.caller.extensions().forget_absent(known).await {
            Ok(absent) => absent,
            // The store is asked again by everything that needs it, which reports it.
            Err(error) => return tracing::warn!("what is kept of plugins that left is not known: {error}"),
        };
        for AbsentState { plugin, keys, bytes, kept } in absent {
            let what = format!("{keys} {} ({bytes} bytes)", if keys == 1 { "key" } else { "keys" });
            match kept {
                Some(kept) => {
                    let days = kept.as_secs().div_ceil(86_400);
                    let days = format!("{days} {}", if days == 1 { "day" } else { "days" });
                    let message = format!(
                        "the plugin `{plugin}` is not configured any more: {what} that it keeps in this session are deleted in {days}, unless it is \
                         configured again; `tidegate state clear {} --of {plugin}` deletes them before, when the session is closed",
                        self.parts.id
                    );
                    self.handles.hub.emit(EventKind::Notice { message });
                }
                None => self.emit_change(ExtensionChange {
                    plugin,
                    version: String::new(),
                    action: RegistrationAction::Unregister,
                    reason: format!(
                        "it is not configured any more, and {what} that it kept in this session are deleted"
                    ),
                }),
            }
        }
    }

    fn replace_extensions(&mut self, set: ExtensionSet) -> Result<(), String> {
        let ExtensionSet { extensions: host, tools, rules, system, additions, changes } = set;
        let unregistered = |change: &&ExtensionChange| change.action == RegistrationAction::Unregister;
        let unregistered: Vec<PluginId> = changes.iter().filter(unregistered).map(|one| one.plugin.clone()).collect();
        let extensions = host.adopt(self.caller.extensions(), &unregistered)?;
        self.caller = Arc::new(Caller::new(host.registrations(), extensions, Arc::<Hub>::clone(&self.handles.hub)));
        let offered = Arc::clone(&tools);
        self.view.set_tools(move || offered.specs());
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
        self.handles.hub.emit(match action {
            RegistrationAction::Register | RegistrationAction::Enable | RegistrationAction::Reload => {
                let registered = self.caller.registrations().iter().find(|one| one.plugin == plugin);
                let callbacks = registered.map(|one| one.callbacks.clone()).unwrap_or_default();
                EventKind::ExtensionRegistered { plugin, version, action, callbacks }
            }
            RegistrationAction::Unregister | RegistrationAction::Disable => {
                EventKind::ExtensionUnregistered { plugin, action, reason }
            }
        });
    }
}
