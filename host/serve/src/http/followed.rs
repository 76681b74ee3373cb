//! The events of a session that another process runs, a conversation of a gateway: they are read from its transcript.
//!
//! The transcript is read again after the reader has taken the previous lines. A reader that lags by more than the backlog gets a snapshot.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::SessionId;
use tidegate::event::{Backlog, FollowedSession};
use tidegate::transcript::TranscriptError;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::known::Known;
use super::problem::Problem;
use super::sessions::{Sessions, blocking};
use super::wire_event::{END, MESSAGE, Position, SNAPSHOT, WireEvent, snapshot_data};

/// The interval between two reads.
const LOOK: Duration = Duration::from_millis(250);

/// The events of a followed session from a position on. Dropping it ends the reading.
#[derive(Debug)]
pub(super) struct FollowedEvents {
    known: Arc<Known>,
    user: String,
    access: watch::Receiver<u64>,
    closing: CancellationToken,
    /// What was read since the last time; closed where nothing more can be read.
    read: mpsc::Receiver<Vec<WireEvent>>,
    waiting: VecDeque<WireEvent>,
    /// The id of the last event that the reader has.
    last: String,
    is_over: bool,
}

/// The reading itself.
struct Reading {
    followed: FollowedSession,
    known: Arc<Known>,
    generation: String,
    /// The number of the first event that the reader does not have.
    next: u64,
}

impl FollowedEvents {
    /// Follows a session from the event after `from`, the id of the last one that the reader has.
    ///
    /// # Errors
    /// The id is not that of an event, or the transcript cannot be read.
    pub(super) async fn subscribe(
        (sessions, known, user): (&Sessions, Arc<Known>, &str),
        from: Option<&str>,
        closing: CancellationToken,
    ) -> Result<Self, Problem> {
        let access = known.changes();
        let followed = sessions.followed(&known.id).await?;
        // Two transcripts of one name have begun at different times.
        let generation = format!("{:016x}", followed.created_ms());
        let next = from.map(|from| Position::of(from, &generation)).transpose()?.map_or(0, Position::next);
        let last = WireEvent::new(&generation, next.checked_sub(1), END, Value::Null).id;
        let reading = Reading { followed, known: Arc::clone(&known), generation, next };
        let (to, read) = mpsc::channel(1);
        tokio::spawn(reading.run(to, closing.clone()));
        let (user, waiting) = (user.to_owned(), VecDeque::new());
        Ok(Self { known, user, access, closing, read, waiting, last, is_over: false })
    }

    /// Returns the next event; `None`: the stream ends. It loses nothing when it is dropped before its end.
    pub(super) async fn next(&mut self) -> Option<WireEvent> {
        loop {
            if !self.known.admits(&self.user) {
                return self.ended();
            }
            if let Some(event) = self.waiting.pop_front() {
                self.last.clone_from(&event.id);
                return Some(event);
            }
            tokio::select! {
                biased;
                () = self.closing.cancelled() => return None,
                Ok(()) = self.access.changed() => {}
                read = self.read.recv() => match read {
                    Some(events) => self.waiting.extend(events),
                    None => return self.unread().await,
                },
            }
        }
    }

    /// Nothing more can be read. Whether that is because the session is deleted is known when that is done.
    async fn unread(&mut self) -> Option<WireEvent> {
        drop(self.known.open.lock().await);
        if self.known.is_deleted() { self.ended() } else { None }
    }

    /// Returns why the session has ended for the reader, once.
    fn ended(&mut self) -> Option<WireEvent> {
        let reason = if self.known.is_deleted() { "deleted" } else { "closed" };
        let is_first = !std::mem::replace(&mut self.is_over, true);
        is_first.then(|| WireEvent { id: self.last.clone(), kind: END, data: json!({"reason": reason}) })
    }
}

impl Reading {
    /// Reads until the reader has left, the server closes or nothing more can be read.
    async fn run(mut self, to: mpsc::Sender<Vec<WireEvent>>, closing: CancellationToken) {
        loop {
            let events = self.events();
            if !events.is_empty() && to.send(events).await.is_err() {
                return;
            }
            tokio::select! {
                () = to.closed() => return,
                () = closing.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            self = match blocking(move || self.look_again()).await {
                Ok((reading, Ok(()))) => reading,
                Ok((reading, Err(error))) => {
                    let known = Arc::clone(&reading.known);
                    drop(reading);
                    return stopped(&known, &error).await;
                }
                Err(error) => return tracing::error!("a conversation is not followed any more: {error:?}"),
            };
        }
    }

    fn look_again(mut self) -> (Self, Result<(), TranscriptError>) {
        let read = self.followed.look_again();
        (self, read)
    }

    /// Returns what was read and the reader does not have.
    fn events(&mut self) -> Vec<WireEvent> {
        let (snapshot, lines) = self.followed.missed(self.next);
        self.next = self.followed.next_seq();
        let last = self.next.checked_sub(1);
        let event = |last, kind, data| WireEvent::new(&self.generation, last, kind, data);
        let snapshot = snapshot.map(|snapshot| event(last, SNAPSHOT, snapshot_data(&snapshot)));
        let lines = lines.iter().map(|line| event(Some(line.seq), MESSAGE, line.json()));
        snapshot.into_iter().chain(lines).collect()
    }
}

/// Notes that nothing more can be read of a session.
async fn stopped(known: &Known, error: &TranscriptError) {
    // Who deletes it has the lock until it is deleted.
    drop(known.open.lock().await);
    let id = known.id.as_str();
    if known.is_deleted() {
        tracing::debug!("{id} was deleted while it was followed");
    } else {
        tracing::warn!("{id} is not followed any more: {error}");
    }
}

impl Sessions {
    /// Reads a session that another process runs.
    ///
    /// # Errors
    /// Its transcript cannot be read.
    pub(super) async fn followed(&self, id: &SessionId) -> Result<FollowedSession, Problem> {
        let store = self.host.transcripts().cloned().ok_or_else(Problem::not_found)?;
        let id = id.clone();
        Ok(blocking(move || FollowedSession::open(&store, &id, Backlog::default())).await??)
    }
}
