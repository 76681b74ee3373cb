//! Power `session`: the session the call is for. Name `session` under `[capabilities]`, with the reason.

use crate::{Attribute, Message, host};

/// Facts about the session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The extension's own id.
    pub extension: String,
    /// The session's id.
    pub id: String,
    /// The turn, from 1; 0 while registering.
    pub turn: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The attempt of the step, from 1.
    pub attempt: u32,
    /// The provider's name.
    pub provider: String,
    /// The model's name.
    pub model: String,
    /// The workspace's folder; empty where there is none.
    pub workspace: String,
    /// Room for more.
    pub attributes: Vec<Attribute>,
}

/// The facts as they are now.
pub fn info() -> SessionInfo {
    host::session_info()
}

/// Up to `count` (at most 256) messages of the conversation from position `from`, 0 = oldest. Hidden messages are left
/// out. An empty list: there are none from there on.
pub fn history(from: u32, count: u32) -> Vec<Message> {
    host::session_history(from, count)
}
