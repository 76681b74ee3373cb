//! The events of a session as server-sent events.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{self, HeaderValue};
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::source::Source;
use super::wire_event::{MESSAGE, WireEvent};

/// What a connection gets first, so that the client has the head of the response, and what it gets when nothing happens.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Returns the response that streams events. Its body is made when the connection takes it: what a slow reader has not taken stays in the
/// session.
pub(super) fn response(events: Source, keep_alive: Duration, permit: OwnedSemaphorePermit) -> Response<Body> {
    let stream = stream::unfold((events, true, permit), move |(mut events, is_first, permit)| async move {
        let chunk = if is_first {
            Bytes::from_static(KEEP_ALIVE)
        } else {
            match tokio::time::timeout(keep_alive, events.next()).await {
                Ok(event) => Bytes::from(text(&event?)),
                Err(_) => Bytes::from_static(KEEP_ALIVE),
            }
        };
        Some((Ok::<_, Infallible>(chunk), (events, false, permit)))
    });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies that collect answers would hold events back.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn text(event: &WireEvent) -> String {
    let mut text = format!("id: {}\n", event.id);
    if event.kind != MESSAGE {
        // A string takes everything.
        let _ = writeln!(text, "event: {}", event.kind);
    }
    // JSON has no line ends between its parts here.
    let _ = write!(text, "data: {}\n\n", event.data);
    text
}
