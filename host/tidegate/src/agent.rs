//! Agents: what answers in a session.
//!
//! A session's model can start others with `spawn_agent`; each is a [`Session`](crate::Session) of its own.
//! [`Session::child_sessions`](crate::Session::child_sessions) yields those sessions, [`Session::child_events`](crate::Session::child_events) what
//! happens in them, for a chat.

pub use crate::agents::ChildSessions;
pub use crate::front_end::child_events::{ChildEvent, ChildEventKind, ChildEvents};
pub use config::agents::{Agent, AgentLayer, Agents};
