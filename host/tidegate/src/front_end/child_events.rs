//! What agents of a session do, for a chat of that session.

use chat::{Changed, ChatSession, ChildThread, SavedChat};
use flow::Event;
use tokio::sync::mpsc;

use crate::Session;
use crate::agents::ChildSessions;
use crate::front_end::recent::NoBacklog;

/// What happens in the sessions of the agents that a session starts, and of those that they start, for a [`ChatSession`] of that session. Made by
/// [`Session::child_events`].
#[derive(Debug)]
pub struct ChildEvents {
    sessions: ChildSessions,
    send: mpsc::UnboundedSender<ChildEvent>,
    events: mpsc::UnboundedReceiver<ChildEvent>,
}

/// Something that has happened in the session of an agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildEvent {
    /// The agent that it has happened to.
    pub child: ChildThread,
    /// What has happened.
    pub kind: ChildEventKind,
}

/// What has happened in the session of an agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant, reason = "nearly all are events")]
pub enum ChildEventKind {
    /// The next event.
    Event(Event),
    /// What a chat of the agent has learnt, in the place of events that are not kept any more.
    Snapshot(Box<SavedChat>),
}

impl ChildEvent {
    /// Has a chat of the session process it. Returns whether what is shown has changed.
    pub fn apply<M>(&self, chat: &mut ChatSession<M>) -> Changed {
        match &self.kind {
            ChildEventKind::Event(event) => chat.process_child(&self.child, event),
            ChildEventKind::Snapshot(saved) => chat.restore_child(&self.child, saved),
        }
    }
}

impl Session {
    /// Subscribes to what agents do on every level, from the start of each: those that work already, and those that will.
    ///
    /// # Errors
    /// The session was opened without [`SessionOptions::backlog`](crate::SessionOptions::backlog), and so are its agents'.
    pub fn child_events(&self) -> Result<ChildEvents, NoBacklog> {
        self.keeps_events()?;
        let (send, events) = mpsc::unbounded_channel();
        Ok(ChildEvents { sessions: self.child_sessions(), send, events })
    }
}

impl ChildEvents {
    /// Waits for the next one, as long as it takes. It loses nothing when it is dropped before its end.
    pub async fn next(&mut self) -> ChildEvent {
        loop {
            tokio::select! {
                Some(child) = self.sessions.next() => self.follow(&child),
                Some(event) = self.events.recv() => return event,
            }
        }
    }

    /// Takes the events of an agent's session until it ends.
    fn follow(&self, session: &Session) {
        // It has a backlog because its parent has.
        let Ok(mut subscribed) = session.subscribe_from(0) else { return };
        let (child, send) = (ChildThread::new(session.id().as_str(), session.agent()), self.send.clone());
        tokio::spawn(async move {
            if let Some(before) = subscribed.snapshot.take() {
                let kind = ChildEventKind::Snapshot(Box::new(before.chat));
                // Nobody listens any more: the loop below ends with the next event.
                let _ = send.send(ChildEvent { child: child.clone(), kind });
            }
            while let Some(event) = subscribed.events.next().await {
                if send.send(ChildEvent { child: child.clone(), kind: ChildEventKind::Event(event) }).is_err() {
                    return;
                }
            }
        });
    }
}
