//! The events of a session for one reader: what was shown, of the session and of the agents that it starts.
//!
//! Nothing here has a queue: events wait in the subscriptions of the session, which join the text of a reader that lags.

use std::pin::Pin;
use std::sync::Arc;

use chat::ChildThread;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use record::Shown;
use serde_json::{Value, json};
use tidegate::event::{Reconnection, Snapshot};
use tidegate::{Event, Session, Subscription};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::known::Known;
use super::open::{Open, Reader};
use super::problem::Problem;
use super::wire_event::{CHILD, END, MESSAGE, Position, SNAPSHOT, WireEvent, snapshot_data};

/// The events of a session from a position on. Dropping it ends the reading.
pub(super) struct Events {
    known: Arc<Known>,
    open: Arc<Open>,
    user: String,
    snapshot: Option<Snapshot>,
    own: Option<Subscription>,
    children: tidegate::agent::ChildSessions,
    of_children: FuturesUnordered<NextOfChild>,
    access: watch::Receiver<u64>,
    closing: CancellationToken,
    /// The number of the last event of the session; `None`: before the first.
    last: Option<u64>,
    _reader: Reader,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").field("open", &self.open).field("last", &self.last).finish_non_exhaustive()
    }
}

/// Waits for the next event of a child; `None`: its session has ended.
type NextOfChild = Pin<Box<dyn Future<Output = Option<Box<Child>>> + Send>>;

/// A child whose next event is there.
struct Child {
    thread: ChildThread,
    snapshot: Option<Snapshot>,
    event: Option<Event>,
    events: Subscription,
}

/// What a reader gets.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all are lines")]
pub(super) enum Seen {
    /// In the place of events that are not kept any more.
    Snapshot(Snapshot),
    Line(Shown),
    ChildSnapshot(ChildThread, Snapshot),
    ChildLine(ChildThread, Shown),
    /// The session has ended for the reader, for this reason.
    End(&'static str),
}

/// What has happened next.
#[allow(clippy::large_enum_variant, reason = "nearly all are events")]
enum Next {
    Own(Option<Event>),
    NewChild(Session),
    Child(Box<Child>),
    Access,
    Closing,
}

impl Events {
    /// Subscribes to the events after `from`, the id of the last one that the reader has.
    ///
    /// # Errors
    /// The id is not that of an event.
    pub(super) fn subscribe(
        (known, open, user): (Arc<Known>, Arc<Open>, &str),
        from: Option<&str>,
        closing: CancellationToken,
    ) -> Result<Self, Problem> {
        let start = from.map(|from| Position::of(from, &open.generation)).transpose()?.unwrap_or(Position::After(None));
        let mut events = Self::subscribe_at((known, open, user), start.next(), closing)?;
        if let (Some(snapshot), Position::Elsewhere) = (&mut events.snapshot, start) {
            snapshot.omitted = snapshot.chat.next_seq();
        }
        Ok(events)
    }

    /// Subscribes to all events that are kept, and returns the lines of them.
    ///
    /// # Errors
    /// The user has no access any more.
    pub(super) fn kept(
        (known, open, user): (&Arc<Known>, &Arc<Open>, &str),
        closing: &CancellationToken,
    ) -> Result<(Self, Vec<Shown>), Problem> {
        loop {
            let first = open.session.kept_from().map_err(Problem::internal)?;
            let mut events = Self::subscribe_at((Arc::clone(known), Arc::clone(open), user), first, closing.clone())?;
            // Events that were left out in between make a snapshot.
            if events.snapshot.is_none() {
                let lines = events.waiting();
                return Ok((events, lines));
            }
        }
    }

    /// Subscribes from the event `next` on.
    fn subscribe_at(
        (known, open, user): (Arc<Known>, Arc<Open>, &str),
        next: u64,
        closing: CancellationToken,
    ) -> Result<Self, Problem> {
        let access = known.changes();
        // The access can have ended while the session was opened. From here on the stream ends with it.
        if !known.admits(user) {
            return Err(Problem::not_found());
        }
        let children = open.session.child_sessions();
        let Reconnection { snapshot, events, .. } = open.session.subscribe_from(next).map_err(Problem::internal)?;
        let last = next.checked_sub(1).filter(|_| snapshot.is_none());
        let (reader, user) = (open.read(), user.to_owned());
        let (own, of_children) = (Some(events), FuturesUnordered::new());
        Ok(Self { known, open, user, snapshot, own, children, of_children, access, closing, last, _reader: reader })
    }

    /// Returns the lines of the session that are there now.
    fn waiting(&mut self) -> Vec<Shown> {
        let thread = self.open.session.id().as_str();
        let Some(own) = &mut self.own else { return Vec::new() };
        std::iter::from_fn(|| own.try_next()).filter_map(|event| Shown::of(&event, thread)).collect()
    }

    /// Returns the next event; `None`: the stream ends. It loses nothing when it is dropped before its end.
    pub(super) async fn next(&mut self) -> Option<WireEvent> {
        Some(match self.seen().await? {
            Seen::Snapshot(snapshot) => self.event(SNAPSHOT, snapshot_data(&snapshot)),
            Seen::Line(line) => self.event(MESSAGE, line.json()),
            Seen::ChildSnapshot(thread, snapshot) => {
                self.event(CHILD, json!({"child": thread, "snapshot": snapshot_data(&snapshot)}))
            }
            Seen::ChildLine(thread, line) => self.event(CHILD, json!({"child": thread, "line": line.json()})),
            Seen::End(reason) => self.event(END, json!({"reason": reason})),
        })
    }

    /// The session whose events they are.
    pub(super) fn session(&self) -> &Session {
        &self.open.session
    }

    /// Returns what happens next; `None`: the stream ends. It loses nothing when it is dropped before its end.
    pub(super) async fn seen(&mut self) -> Option<Seen> {
        if let Some(snapshot) = self.snapshot.take() {
            self.last = snapshot.chat.next_seq().checked_sub(1);
            return Some(Seen::Snapshot(snapshot));
        }
        loop {
            // The session has ended, and the reader has been sent why.
            self.own.as_ref()?;
            match self.happens().await {
                Next::Own(Some(event)) => {
                    // The reader connects again, and gets what is recorded.
                    if self.open.is_lost() {
                        self.own = None;
                        return None;
                    }
                    self.last = Some(event.seq);
                    if let Some(shown) = Shown::of(&event, self.open.session.id().as_str()) {
                        return Some(Seen::Line(shown));
                    }
                }
                Next::Own(None) => return self.ended().await,
                Next::NewChild(session) => self.follow(&session),
                Next::Child(_) if self.open.is_lost() => {
                    self.own = None;
                    return None;
                }
                Next::Child(child) => {
                    if let Some(seen) = self.of_child(child) {
                        return Some(seen);
                    }
                }
                Next::Access if self.known.admits(&self.user) => {}
                Next::Access => return Some(self.end("closed")),
                Next::Closing => {
                    self.own = None;
                    return None;
                }
            }
        }
    }

    async fn happens(&mut self) -> Next {
        let own = async {
            match &mut self.own {
                Some(own) => own.next().await,
                None => None,
            }
        };
        let of_children = async {
            // One whose session has ended leaves the others to wait for.
            while let Some(next) = self.of_children.next().await {
                if let Some(child) = next {
                    return child;
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Next::Closing,
            // Whoever loses the access gets nothing more.
            Ok(()) = self.access.changed() => Next::Access,
            event = own => Next::Own(event),
            Some(session) = self.children.next() => Next::NewChild(session),
            child = of_children => Next::Child(child),
        }
    }

    /// Follows an agent that the session has started.
    fn follow(&self, session: &Session) {
        // It has a backlog because its parent has.
        let Ok(Reconnection { snapshot, events, .. }) = session.subscribe_from(0) else { return };
        let thread = ChildThread::new(session.id().as_str(), session.agent());
        self.of_children.push(Box::pin(of_child(Box::new(Child { thread, snapshot, event: None, events }))));
    }

    fn of_child(&self, mut child: Box<Child>) -> Option<Seen> {
        let thread = child.thread.clone();
        let seen = match (child.snapshot.take(), child.event.take()) {
            (Some(snapshot), _) => Some(Seen::ChildSnapshot(thread, snapshot)),
            (None, Some(event)) => Shown::of(&event, &child.thread.id).map(|line| Seen::ChildLine(thread, line)),
            (None, None) => None,
        };
        self.of_children.push(Box::pin(of_child(child)));
        seen
    }

    /// The session is closed, and its events were read.
    async fn ended(&mut self) -> Option<Seen> {
        // Who deletes it has the lock until it is deleted.
        drop(self.known.open.lock().await);
        self.own = None;
        self.known.is_deleted().then_some(Seen::End("deleted"))
    }

    fn end(&mut self, reason: &'static str) -> Seen {
        self.own = None;
        Seen::End(reason)
    }

    fn event(&self, kind: &'static str, data: Value) -> WireEvent {
        WireEvent::new(&self.open.generation, self.last, kind, data)
    }
}

/// Waits for the next event of a child; `None`: its session has ended.
async fn of_child(mut child: Box<Child>) -> Option<Box<Child>> {
    if child.snapshot.is_none() {
        child.event = Some(child.events.next().await?);
    }
    Some(child)
}
