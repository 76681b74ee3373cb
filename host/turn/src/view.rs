//! What extensions see of their session. It owns nothing: the conversation belongs to [`History`], the position to [`Hub`].

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use flow::{Message, PluginId, RunPosition, ToolSpec};
use serde_json::Value;

use crate::events::Hub;
use crate::history::History;
use crate::session::SessionParts;
use flow::ports::{EmitError, EventTypes, Model, SessionInfo, SessionView, Tools};

/// The view of one session.
pub(crate) struct View {
    info: Mutex<SessionInfo>,
    tools: Mutex<Arc<dyn Tools>>,
    history: History,
    hub: Arc<Hub>,
    event_types: OnceLock<Arc<dyn EventTypes>>,
}

impl View {
    pub(crate) fn new(parts: &SessionParts, history: History, hub: Arc<Hub>) -> Self {
        let info = SessionInfo {
            id: parts.id.clone(),
            place: RunPosition::default(),
            provider: parts.model.provider().to_owned(),
            model: parts.model.name().to_owned(),
            workspace: parts.settings.workspace.clone(),
            agent: parts.settings.agent.clone(),
        };
        Self {
            info: Mutex::new(info),
            tools: Mutex::new(Arc::clone(&parts.tools)),
            history,
            hub,
            event_types: OnceLock::new(),
        }
    }

    /// Extensions emit events of these types.
    pub(crate) fn set_event_types(&self, types: Arc<dyn EventTypes>) {
        let _first = self.event_types.set(types);
    }

    /// This model answers from now on.
    pub(crate) fn set_model(&self, model: &dyn Model) {
        let mut info = self.info.lock().unwrap_or_else(PoisonError::into_inner);
        (info.provider, info.model) = (model.provider().to_owned(), model.name().to_owned());
    }

    /// The session has these tools from now on.
    pub(crate) fn set_tools(&self, tools: Arc<dyn Tools>) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = tools;
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
        let tools = Arc::clone(&self.tools.lock().unwrap_or_else(PoisonError::into_inner));
        tools.specs()
    }

    fn admit_event(&self, plugin: &PluginId, event_type: &str, payload: &Value) -> Result<String, EmitError> {
        match self.event_types.get() {
            Some(types) => types.admit(Some(plugin), event_type, payload),
            None => Err(EmitError::Unknown { event_type: event_type.to_owned(), known: Vec::new() }),
        }
    }
}
