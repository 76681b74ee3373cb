//! The events of a session over a websocket.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use super::access::{PROTOCOL, protocols};
use super::problem::Problem;
use super::source::Source;
use super::wire_event::WireEvent;

/// The maximum size of a message of a client, which has nothing to send, in bytes.
const MAX_MESSAGE: usize = 4 << 10;

/// The time limit for a client to take the last frame.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns whether a request is one for a websocket.
pub(super) fn is_asked_for(headers: &HeaderMap) -> bool {
    let upgrades = headers.get_all(header::UPGRADE).iter();
    upgrades.into_iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// Returns the response that begins a websocket.
///
/// # Errors
/// The request is not one of version 13.
pub(super) fn accepted(headers: &HeaderMap) -> Result<Response<Body>, Problem> {
    let key = headers.get(header::SEC_WEBSOCKET_KEY);
    let version = headers.get(header::SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes);
    let (Some(key), Some(b"13")) = (key, version) else {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "malformed", "connect with a websocket of version 13"));
    };
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(Problem::internal)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let own = response.headers_mut();
    own.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    own.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    own.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    // A browser that offered protocols needs one of them, and the token must not be repeated.
    if protocols(headers).any(|offered| offered == PROTOCOL) {
        own.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    Ok(response)
}

/// Sends events until they end or the client leaves.
pub(super) async fn serve(upgrade: OnUpgrade, mut events: Source, ping: Duration, _permit: OwnedSemaphorePermit) {
    let upgraded = match upgrade.await {
        Ok(upgraded) => TokioIo::new(upgraded),
        Err(error) => return tracing::debug!("a websocket does not begin: {error}"),
    };
    let config = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Server, Some(config)).await;
    let mut silent = false;
    loop {
        let message = tokio::select! {
            event = events.next() => match event {
                Some(event) => Message::text(text(&event)),
                None => break,
            },
            received = socket.next() => match received {
                // The library answers pings.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                    silent = false;
                    continue;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {
                    let reason = "commands are sent with POST".into();
                    let close = CloseFrame { code: CloseCode::Policy, reason };
                    drop(timeout(PATIENCE, socket.close(Some(close))).await);
                    return;
                }
            },
            // It has answered no ping.
            () = tokio::time::sleep(ping) => {
                if std::mem::replace(&mut silent, true) {
                    return;
                }
                Message::Ping(Bytes::new())
            }
        };
        // The connection has a time limit for what it writes.
        if let Err(error) = socket.send(message).await {
            return tracing::debug!("a websocket has ended: {error}");
        }
    }
    let close = CloseFrame { code: CloseCode::Away, reason: "the events end".into() };
    drop(timeout(PATIENCE, socket.close(Some(close))).await);
}

fn text(event: &WireEvent) -> String {
    json!({"id": event.id, "event": event.kind, "data": event.data}).to_string()
}
