//! Prompt additions of the plugins, and the messages and tools that plugins can read.

use std::sync::Arc;

use config::Guidance;
use flow::Power;
use gateway::{Given, Guide, Shown};

use super::Conversation;

impl Conversation {
    /// Returns what its plugins add to a request of the turn under way.
    pub fn given(&self) -> Given {
        self.given_in(self.completed_turns() + 1)
    }

    /// Returns what its plugins would add to a request that was not made yet.
    pub(super) fn given_next(&self, continues_turn: bool) -> Given {
        let begins = self.state().has_begun && !continues_turn;
        self.given_in(self.completed_turns() + 1 + u64::from(begins))
    }

    fn given_in(&self, turn: u64) -> Given {
        let loaded = &self.0.loaded;
        let has_guidance = loaded.plugins.iter().any(|plugin| plugin.manifest.guidance.names().next().is_some());
        let own = Arc::clone(loaded);
        let guide = move || -> Guide { Arc::new(move |names| Guidance::for_client(&own.plugins, names)) };
        Given {
            additions: Arc::clone(&loaded.additions),
            guide: has_guidance.then(guide),
            agent: self.0.options.session.agent.clone(),
            workspace: loaded.settings.workspace.clone(),
            turn: u32::try_from(turn).unwrap_or(u32::MAX),
        }
    }

    /// Returns whether a plugin has the power to read the conversation or its tools.
    pub fn shows(&self) -> bool {
        let loaded = &self.0.loaded;
        let may_read = |plugin: &config::ConfiguredPlugin| plugin.may(Power::History) || plugin.may(Power::Tools);
        !loaded.native.is_empty() || loaded.plugins.iter().any(may_read)
    }

    /// Replaces the messages and the tools that plugins see by those of a request.
    pub fn show(&self, shown: Shown) {
        let Shown { messages, tools, .. } = shown;
        self.history().show(messages);
        self.set_tools(tools);
    }
}
