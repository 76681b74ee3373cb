//! The model of a session, and another one between two turns.

use std::sync::Arc;

use flow::ports::Model;

use super::{Session, TurnRunning, lock};
use crate::HostError;
use crate::host::assemble;
use crate::session::opening::price;

impl Session {
    /// The provider's and the model's name.
    pub fn model(&self) -> (String, String) {
        let model = self.0.current_model();
        (model.provider().to_owned(), model.name().to_owned())
    }

    /// The tokens that its model takes, prompt and answer together, where the operator or the table of models says it.
    pub fn context_tokens(&self) -> Option<u64> {
        assemble::context_tokens(&self.loaded().shared.operator, self.0.current_model().name())
    }

    /// Has another model answer from the next turn on, such as one of [`Host::other_model`](crate::Host::other_model). Everything else stays: the
    /// conversation, subscriptions, what waits, plugins and their state, limits and what is spent of them. The next turn reports it with
    /// [`EventKind::ThreadResumed`](crate::EventKind::ThreadResumed), `by: "model"`, and so does the transcript. Agents that the model starts get it, unless their
    /// file names another one.
    ///
    /// Conditions of `[events]` on the model go by the one that the session was opened with.
    ///
    /// ```no_run
    /// # async fn change(host: tidegate::Host, session: tidegate::Session) -> Result<(), Box<dyn std::error::Error>> {
    /// let model = host.other_model("claude-haiku-4-5").ok_or("the host has no provider")??;
    /// session.set_model(model)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// A turn runs, or the session is closed; or money is limited, and the price of this model is not known. Nothing has changed then.
    pub fn set_model(&self, model: Arc<dyn Model>) -> Result<(), HostError> {
        let loaded = self.loaded();
        let price = price(&self.0.handles.budget, &loaded, model.name())?;
        let compaction = assemble::compaction(&loaded.shared.operator, model.name());
        let mut state = lock(&self.0.state);
        let session = state.idle.as_mut().ok_or(TurnRunning)?;
        session.set_model(Arc::clone(&model), compaction, price);
        self.0.plugins.children().set_model(Arc::clone(&model));
        *lock(&self.0.model) = model;
        Ok(())
    }
}
