//! Events of declared types that plugins emit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use flow::ports::EmitError;
use flow::{EventKind, PluginId};
use serde_json::Value;

use crate::guest::{Guest, Session};
use crate::limits::{self, EVENT_BYTES, EVENTS, MESSAGE_BYTES};

/// Why an event is not emitted.
#[derive(Debug)]
pub(crate) enum NotEmitted {
    /// Its type is not declared.
    Unknown(String),
    /// Its payload is not what the type says.
    Payload(String),
    /// There are too many, or it is too large.
    Limit(String),
    /// None can be emitted now.
    Unavailable(String),
}

/// How many events each plugin has emitted, with the turn of the last one.
#[derive(Debug, Default)]
pub(crate) struct Emitted(Mutex<HashMap<PluginId, (u32, u32)>>);

impl From<EmitError> for NotEmitted {
    fn from(error: EmitError) -> Self {
        let why = limits::shorten(error.to_string(), MESSAGE_BYTES);
        match error {
            EmitError::Unknown { .. } => Self::Unknown(why),
            EmitError::Payload(_) => Self::Payload(why),
            EmitError::TooLarge { .. } => Self::Limit(why),
            _ => Self::Unavailable(why),
        }
    }
}

impl Emitted {
    /// Counts an event of `plugin` in `turn`; `false`: there are too many.
    fn count(&self, plugin: &PluginId, turn: u32) -> bool {
        let mut emitted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, count) = emitted.entry(plugin.clone()).or_default();
        if *last != turn {
            (*last, *count) = (turn, 0);
        }
        *count += 1;
        *count <= EVENTS
    }
}

impl Session {
    fn emit(&self, plugin: &PluginId, event_type: &str, payload: &str) -> Result<(), NotEmitted> {
        let bytes = payload.len();
        if bytes > EVENT_BYTES {
            return Err(NotEmitted::Limit(format!("the payload has {bytes} bytes, the limit is {EVENT_BYTES}")));
        }
        let payload: Value = serde_json::from_str(payload)
            .map_err(|error| NotEmitted::Payload(format!("the payload is not JSON: {error}")))?;
        if !payload.is_object() {
            return Err(NotEmitted::Payload("the payload is not an object".to_owned()));
        }
        let event_type = self.view.admit_event(plugin, event_type, &payload)?;
        if !self.emitted.count(plugin, self.view.info().place.turn) {
            return Err(NotEmitted::Limit(format!("an extension can emit {EVENTS} events in a turn")));
        }
        let (plugin, payload) = (Some(plugin.clone()), Arc::new(payload));
        self.events.emit(EventKind::CustomEvent { event_type, plugin, payload });
        Ok(())
    }
}

impl Guest {
    /// An event of the interface `events`.
    pub(crate) fn emit(&mut self, event_type: &str, payload: &str) -> Result<(), NotEmitted> {
        match self.session() {
            None => Err(NotEmitted::Unavailable("not during register".to_owned())),
            Some(session) => session.emit(&self.plugin.id, limits::cut(event_type, MESSAGE_BYTES), payload),
        }
    }
}
