//! Websockets are requested over HTTP: an admitted client gets one, and all others a response.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use super::access::Access;
use super::input::MAX_LINE;

/// The time limit for a client to request a websocket, and to read why it is refused.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum number of bytes that are read from a refused client.
const MAX_UNREAD: u64 = 1 << 20;

/// Accepts the websocket of an admitted client. A client that is not admitted, or that requests no websocket, gets the reason as the
/// response, and the result is `None`.
pub(super) async fn accepted(mut stream: TcpStream, access: &Access) -> Option<WebSocketStream<TcpStream>> {
    let config = WebSocketConfig::default().max_message_size(Some(MAX_LINE)).max_frame_size(Some(MAX_LINE));
    // The size of the error is given by the library's signature.
    #[allow(clippy::result_large_err, reason = "the signature is of the library")]
    let check = |request: &Request, response: Response| match access.refusal(request) {
        None => Ok(response),
        Some((status, why)) => {
            let mut refused = ErrorResponse::new(Some(format!("{why}\n")));
            *refused.status_mut() = status;
            refused.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain"));
            Err(refused)
        }
    };
    match tokio::time::timeout(PATIENCE, accept_hdr_async_with_config(&mut stream, check, Some(config))).await {
        // No bytes of a handshake are left over: the library refuses bytes behind the request.
        Ok(Ok(socket)) => drop(socket),
        Ok(Err(error)) => {
            tracing::warn!("a client was refused: {error}");
            if let Some(response) = response(&error) {
                // The client may have disconnected.
                let _ = tokio::time::timeout(PATIENCE, answer(stream, &response)).await;
            }
            return None;
        }
        Err(_late) => return None,
    }
    Some(WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await)
}

/// Returns the response to a request that the library has not answered; `None` if it has, or if nobody reads it.
fn response(error: &Error) -> Option<String> {
    let (status, headers, why) = match error {
        Error::Protocol(
            ProtocolError::MissingConnectionUpgradeHeader
            | ProtocolError::MissingUpgradeWebSocketHeader
            | ProtocolError::MissingSecWebSocketVersionHeader
            | ProtocolError::MissingSecWebSocketKey,
        ) => (
            "426 Upgrade Required",
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
            "this is the Agent Client Protocol over websockets: connect with a websocket of version 13",
        ),
        Error::Protocol(ProtocolError::WrongHttpMethod) => {
            ("405 Method Not Allowed", "Allow: GET\r\n", "a websocket begins with GET")
        }
        Error::Protocol(ProtocolError::HandshakeIncomplete) | Error::Http(_) | Error::Io(_) => return None,
        _ => ("400 Bad Request", "", "this is no request for a websocket"),
    };
    let length = why.len() + 1;
    Some(format!(
        "HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{why}\n"
    ))
}

/// Sends a response, and reads the client's bytes meanwhile: closing the connection earlier can lose the response.
async fn answer(mut stream: TcpStream, response: &str) -> io::Result<()> {
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(MAX_UNREAD), &mut tokio::io::sink()).await?;
    Ok(())
}
