//! Power `session`: facts about the session of the call. Name `session` under `[capabilities]`, with the reason.

use crate::{Attribute, Moment, host};

/// Facts about the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The extension's own id.
    pub extension: String,
    /// The session's id; empty while registering.
    pub id: String,
    /// The position in the run.
    pub at: Moment,
    /// The agent: `main`, or the name of a child agent.
    pub agent: String,
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The path of the workspace's folder; empty where there is none.
    pub workspace: String,
    /// Reserved for additions; unknown keys must be ignored.
    pub attributes: Vec<Attribute>,
}

/// Returns the facts as they are now.
pub fn info() -> SessionInfo {
    host::session_info()
}
