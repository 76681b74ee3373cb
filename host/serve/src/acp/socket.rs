//! One websocket as a connection of the protocol: each message is one text frame, in both directions.

use std::io;
use std::time::Duration;

use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::header;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use super::access::Access;
use super::input::MAX_LINE;

/// How long a client may take to ask for a websocket, and at the end to read the last messages.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes between the socket and the protocol, in each direction: what a client does not take stays with the sessions, which join it.
const CAPACITY: usize = 64 << 10;

/// Accepts the websocket of a client that is admitted. A client that is not gets the reason as the response; `None`: there is no websocket.
pub(super) async fn accepted(stream: TcpStream, access: &Access) -> Option<WebSocketStream<TcpStream>> {
    let config = WebSocketConfig::default().max_message_size(Some(MAX_LINE)).max_frame_size(Some(MAX_LINE));
    // The size of the error is that of the library's signature.
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
    match tokio::time::timeout(PATIENCE, accept_hdr_async_with_config(stream, check, Some(config))).await {
        Ok(Ok(socket)) => Some(socket),
        Ok(Err(error)) => {
            tracing::warn!("a client was not admitted: {error}");
            None
        }
        Err(_late) => None,
    }
}

/// The two streams of a connection that `run` serves: where its messages go, and where those of the client come from. Returns when it has
/// ended and the client has its last messages.
pub(super) async fn bridged<S, R>(socket: S, run: impl FnOnce(DuplexStream, DuplexStream) -> R) -> R::Output
where
    S: Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Send + 'static,
    R: Future,
{
    let (sink, source) = socket.split();
    let (output, sent) = tokio::io::duplex(CAPACITY);
    let (received, input) = tokio::io::duplex(CAPACITY);
    // Tasks, which end with this future.
    let (mut reading, mut writing) = (JoinSet::new(), JoinSet::new());
    reading.spawn(read(source, received));
    writing.spawn(write(sent, sink));
    let ended = run(output, input).await;
    if tokio::time::timeout(PATIENCE, writing.join_next()).await.is_err() {
        tracing::warn!("a client has not read the last messages within {PATIENCE:?}");
    }
    ended
}

/// Gives each message of the client on as a line. The end of the websocket is the end of the input.
async fn read(mut socket: impl Stream<Item = Result<Message, Error>> + Unpin, mut to: impl AsyncWrite + Unpin) {
    while let Some(message) = socket.next().await {
        let given = match message {
            Ok(Message::Text(text)) => to.write_all(&line(&text)).await,
            Ok(Message::Binary(_)) => to.write_all(NO_JSON).await,
            Ok(Message::Close(_)) => return,
            // The library answers them.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => Ok(()),
            Err(error) => {
                tracing::debug!("a websocket has ended: {error}");
                return;
            }
        };
        // Nobody reads any more.
        if given.is_err() {
            return;
        }
    }
}

/// A line that is answered as what is no JSON.
const NO_JSON: &[u8] = b"\0\n";

/// A message as one line. JSON can have line ends between its parts.
fn line(text: &str) -> Vec<u8> {
    let text = text.trim();
    if !text.contains(['\n', '\r']) {
        return [text.as_bytes(), b"\n"].concat();
    }
    let parsed = serde_json::from_str::<serde_json::Value>(text);
    parsed.map_or_else(|_| NO_JSON.to_owned(), |message| format!("{message}\n").into_bytes())
}

/// Sends each line as a message, and closes the websocket after the last one.
async fn write(
    from: impl AsyncRead + Unpin,
    mut socket: impl Sink<Message, Error = Error> + Unpin,
) -> Result<(), Error> {
    let mut lines = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        if lines.read_until(b'\n', &mut line).await? == 0 {
            let reason = Utf8Bytes::from_static("the agent has ended");
            socket.send(Message::Close(Some(CloseFrame { code: CloseCode::Away, reason }))).await?;
            return socket.close().await;
        }
        line.truncate(line.trim_ascii_end().len());
        let text = String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        socket.send(Message::text(text)).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_message_is_one_line() {
        for (text, expected) in [
            ("{\"a\": 1}", "{\"a\": 1}\n"),
            ("{\"a\": 1}\n", "{\"a\": 1}\n"),
            ("{\n\"a\": \"x y\"\r\n}", "{\"a\":\"x y\"}\n"),
            ("{\"a\": \"x\ny\"}", "\0\n"),
            ("{}\n{}", "\0\n"),
            ("", "\n"),
        ] {
            assert_eq!(String::from_utf8_lossy(&line(text)), expected, "{text:?}");
        }
    }
}
