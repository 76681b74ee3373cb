//! One turn of a session in a convention: where it begins for a client, and where its stream ends.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderName, Response};
use bytes::Bytes;
use futures_util::stream;
use record::{Shown, ShownBody};
use tokio::sync::OwnedSemaphorePermit;

use super::begin::Begin;
use super::convention::Convention;
use super::events::{Events, Seen};
use super::sse::KEEP_ALIVE;
use super::waiting::until_waiting;
use crate::conventions::{Act, Turn, asked_by_child, open_of_child};

/// How `useChat` knows the convention.
const UI_STREAM: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// What happens next in a turn.
#[allow(clippy::large_enum_variant, reason = "it is taken at once")]
enum Next {
    Seen(Option<Seen>),
    /// It waits for a person, and everything before that was seen.
    Waits,
    /// Nothing has happened for a while.
    Nothing,
}

/// The stream of a turn.
pub(super) struct TurnStream {
    events: Events,
    convention: Convention,
    begin: Begin,
    /// The time since which it waits for the next event.
    waits_since: Option<Instant>,
    is_over: bool,
}

impl TurnStream {
    /// `text`: what the convention has before the first act.
    pub(super) fn new(
        events: Events,
        mut convention: Convention,
        mut begin: Begin,
        mut text: String,
    ) -> (Self, String) {
        if let Some(turn) = &begin.turn {
            convention.turn(turn.number(), &mut text);
        }
        let acts = std::mem::take(&mut begin.acts);
        convention.take(None, acts, &mut text);
        let is_over = begin.turn.as_ref().is_some_and(Turn::is_over);
        if is_over {
            convention.done(&mut text);
        }
        (Self { events, convention, begin, waits_since: None, is_over }, text)
    }

    /// Returns what follows; an empty text: nothing has happened for `keep_alive`; `None`: the stream has ended.
    async fn next(&mut self, keep_alive: Duration) -> Option<String> {
        while !self.is_over {
            let mut text = String::new();
            match self.begin.lines.pop_front() {
                Some(line) => self.line(&line, &mut text),
                None => match self.happens(keep_alive).await {
                    Next::Seen(seen) => {
                        self.waits_since = None;
                        self.seen(seen, &mut text);
                    }
                    Next::Waits => self.pause(&mut text),
                    Next::Nothing => return Some(text),
                },
            }
            if !text.is_empty() {
                return Some(text);
            }
        }
        None
    }

    async fn happens(&mut self, keep_alive: Duration) -> Next {
        let turn = self.begin.turn.as_ref();
        let open = turn.map(Turn::waits_for).filter(|open| self.convention.pauses(open));
        let session = self.events.session().clone();
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        let waits = async {
            match open {
                Some(open) => until_waiting(&session, open, since).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            seen = self.events.seen() => Next::Seen(seen),
            () = waits => Next::Waits,
            () = tokio::time::sleep(keep_alive) => Next::Nothing,
        }
    }

    fn pause(&mut self, text: &mut String) {
        if let Some(turn) = &self.begin.turn {
            self.convention.pause(turn.waits_for(), text);
        }
        self.is_over = true;
    }

    fn fail(&mut self, code: &str, why: &str, text: &mut String) {
        self.convention.fail(code, why, text);
        self.is_over = true;
    }

    fn seen(&mut self, seen: Option<Seen>, text: &mut String) {
        match seen {
            Some(Seen::Line(line)) => self.line(&line, text),
            Some(Seen::ChildLine(child, line)) => {
                if self.begin.turn.is_some() {
                    let acts = asked_by_child(&child, &line).map(Act::Aside).into_iter().collect();
                    self.convention.take(Some(&line), acts, text);
                }
            }
            Some(Seen::ChildSnapshot(child, snapshot)) => {
                if self.begin.turn.is_some() {
                    let acts = open_of_child(&child, &snapshot.chat).into_iter().map(Act::Aside).collect();
                    self.convention.take(None, acts, text);
                }
            }
            // The session has answered from the lines that it keeps.
            Some(Seen::Snapshot(_)) => {}
            Some(Seen::End(_)) => self.fail("closed", "the session is not there any more", text),
            None => self.fail("closing", "the server has closed the session: connect again", text),
        }
    }

    fn line(&mut self, line: &Shown, text: &mut String) {
        if self.begin.turn.is_none() && !self.begins(line, text) {
            return;
        }
        let Some(turn) = &mut self.begin.turn else { return };
        let mut acts = Vec::new();
        turn.take(line, &mut acts);
        if turn.is_before(line) {
            turn.abandon("the turn has no end", &mut acts);
        }
        let is_over = turn.is_over();
        self.convention.take(Some(line), acts, text);
        if is_over {
            self.convention.done(text);
            self.is_over = true;
        }
    }

    /// Whether the turn of the input begins with this line.
    fn begins(&mut self, line: &Shown, text: &mut String) -> bool {
        let input = self.begin.input.as_deref();
        match &line.body {
            ShownBody::InputReceived(message) | ShownBody::SteeringMessage(message)
                if message.id.as_deref() == input => {}
            ShownBody::InputWithdrawn(withdrawn) if Some(&*withdrawn.id) == input => {
                self.fail("withdrawn", "the message was taken back before it was delivered", text);
                return false;
            }
            _ => return false,
        }
        self.convention.turn(line.turn, text);
        self.begin.turn = Some(Turn::new(line.turn));
        true
    }
}

/// Returns the response that streams a turn.
pub(super) fn response(
    (stream, text): (TurnStream, String),
    keep_alive: Duration,
    permit: OwnedSemaphorePermit,
) -> Response<Body> {
    let is_ui = matches!(stream.convention, Convention::Ui(_));
    let stream = stream::unfold((stream, Some(text), permit), move |(mut stream, first, permit)| async move {
        let bytes = match first {
            // The client has the head of the response.
            Some(text) => Bytes::from([KEEP_ALIVE, text.as_bytes()].concat()),
            None => match stream.next(keep_alive).await? {
                text if text.is_empty() => Bytes::from_static(KEEP_ALIVE),
                text => Bytes::from(text),
            },
        };
        Some((Ok::<_, Infallible>(bytes), (stream, None, permit)))
    });
    headed(Body::from_stream(stream), is_ui)
}

/// Returns the response with a stream, or with all of one.
pub(super) fn headed(body: Body, is_ui: bool) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that collect answers would hold events back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    if is_ui {
        headers.insert(UI_STREAM, HeaderValue::from_static("v1"));
    }
    response
}
