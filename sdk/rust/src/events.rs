//! Power `events`: events of types of the extension's own, for front ends, transcripts and exports. Always granted.
//!
//! A type is declared under `[events.NAME]` in `plugin.toml`, with the schema of its payload; its events are named `ID.NAME`. A catalogue of
//! the user or of the project can declare types for all extensions, too.

use std::fmt;

use serde::Serialize;

use crate::host;

/// Why an event is not emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventError {
    /// Neither `plugin.toml` nor a catalogue declares the type.
    UnknownType(String),
    /// The payload is no object, or not what the schema of the type says.
    InvalidPayload(String),
    /// The payload is too large, or there were too many events in the turn.
    Limit(String),
    /// Not now: called while registering.
    Unavailable(String),
    /// A refusal this version does not know.
    Other(String),
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownType(why)
            | Self::InvalidPayload(why)
            | Self::Limit(why)
            | Self::Unavailable(why)
            | Self::Other(why) => write!(f, "the event is not emitted: {why}"),
        }
    }
}

impl std::error::Error for EventError {}

/// Emits an event with this payload, at most 16 KiB as JSON. It is not undone, whatever becomes of the call.
///
/// # Errors
/// The type is not declared, the payload does not conform to its schema, or there are more than 256 events in the turn.
pub fn emit<T: Serialize + ?Sized>(event_type: &str, payload: &T) -> Result<(), EventError> {
    let payload = serde_json::to_string(payload).map_err(|error| EventError::InvalidPayload(error.to_string()))?;
    host::emit_event(event_type, &payload)
}
