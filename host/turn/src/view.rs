//! What extensions see of their session. It owns nothing: the conversation belongs to [`History`], the position to [`Hub`].

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use flow::{Message, PluginId, ToolSpec};
use serde_json::Value;

use crate::events::Hub;
use crate::history::History;
use flow::ports::{EmitError, EventTypes, SessionInfo, SessionView};

/// Returns the tools that the model is offered.
type Offered = Arc<dyn Fn() -> Vec<ToolSpec> + Send + Sync>;

/// The view of one session.
pub struct View {
    info: Mutex<SessionInfo>,
    tools: Mutex<Option<Offered>>,
    history: History,
    hub: Arc<Hub>,
    event_types: OnceLock<Arc<dyn EventTypes>>,
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("info", &self.info).finish_non_exhaustive()
    }
}

impl View {
    /// Returns the view of a session without tools. Its position is that of the hub.
    pub fn new(info: SessionInfo, history: History, hub: Arc<Hub>) -> Self {
        Self { info: Mutex::new(info), tools: Mutex::default(), history, hub, event_types: OnceLock::new() }
    }

    /// Extensions emit events of these types.
    pub fn set_event_types(&self, types: Arc<dyn EventTypes>) {
        let _first = self.event_types.set(types);
    }

    /// This model answers from now on.
    pub fn set_model(&self, provider: &str, model: &str) {
        let mut info = self.info.lock().unwrap_or_else(PoisonError::into_inner);
        (info.provider, info.model) = (provider.to_owned(), model.to_owned());
    }

    /// Replaces the tools of the session by those that `offered` returns.
    pub fn set_tools(&self, offered: impl Fn() -> Vec<ToolSpec> + Send + Sync + 'static) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(offered));
    }
}

impl SessionView for View {
    fn info(&self) -> SessionInfo {
        let info = self.info.lock().unwrap_or_else(PoisonError::into_inner).clone();
        SessionInfo { place: self.hub.place(), ..info }
    }

    fn history_len(&self) -> usize {
        self.history.visible_len()
    }

    fn history(&self, from: usize, count: usize) -> Vec<(u64, Arc<Message>)> {
        self.history.visible(from, count)
    }

    fn tools(&self) -> Vec<ToolSpec> {
        let offered = self.tools.lock().unwrap_or_else(PoisonError::into_inner).clone();
        offered.map(|offered| offered()).unwrap_or_default()
    }

    fn admit_event(&self, plugin: &PluginId, event_type: &str, payload: &Value) -> Result<String, EmitError> {
        match self.event_types.get() {
            Some(types) => types.admit(Some(plugin), event_type, payload),
            None => Err(EmitError::Unknown { event_type: event_type.to_owned(), known: Vec::new() }),
        }
    }
}
