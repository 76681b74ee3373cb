//! Event types that are not the program's own: those that plugins and event catalogues declare.

use crate::PluginId;
use serde_json::Value;

/// The declared event types of a session.
pub trait EventTypes: Send + Sync {
    /// Whether an event of a type can be emitted, by a plugin or by the program that embeds the host. Returns the name of the type: that of
    /// a plugin's own type begins with the plugin's id.
    ///
    /// # Errors
    /// The type is not declared for this emitter, or the payload does not conform to its schema or is too large.
    fn admit(&self, plugin: Option<&PluginId>, event_type: &str, payload: &Value) -> Result<String, EmitError>;
}

/// Why an event of a declared type is not emitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Nothing declares the type.
    #[error("the event type `{event_type}` is not declared{}", known_types(known))]
    Unknown {
        /// The type that was named.
        event_type: String,
        /// The types that are declared.
        known: Vec<String>,
    },
    /// The payload is not what the type says; the string says where and why.
    #[error("{0}")]
    Payload(String),
    /// The payload is too large.
    #[error("the payload of `{event_type}` has {bytes} bytes, the limit is {max}")]
    TooLarge {
        /// The full name of the type.
        event_type: String,
        /// The size of the payload as JSON.
        bytes: usize,
        /// The largest size.
        max: usize,
    },
    /// The event catalogue of the session cannot be used; the string says why.
    #[error("the event types of the session cannot be used: {0}")]
    Catalogue(String),
}

fn known_types(known: &[String]) -> String {
    match known {
        [] => {
            "; `[events]` of a plugin.toml and `thread_events.toml` declare types, with the schemas of their payloads"
                .to_owned()
        }
        known => format!("; those that are: `{}`", known.join("`, `")),
    }
}
