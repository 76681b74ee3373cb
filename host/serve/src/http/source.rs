//! Where the events of a stream come from.

use super::events::Events;
use super::followed::FollowedEvents;
use super::wire_event::WireEvent;

/// The events of a session for one reader.
pub(super) enum Source {
    /// It is open here.
    Session(Box<Events>),
    /// Another process runs it.
    Followed(FollowedEvents),
}

impl Source {
    /// Returns the next event; `None`: the stream ends. It loses nothing when it is dropped before its end.
    pub(super) async fn next(&mut self) -> Option<WireEvent> {
        match self {
            Self::Session(events) => events.next().await,
            Self::Followed(events) => events.next().await,
        }
    }
}
