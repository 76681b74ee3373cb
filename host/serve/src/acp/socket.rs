//! One websocket as a connection of the protocol: each message is one text frame, in both directions.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::frame::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

/// The time limit for a client to read the last messages at the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes between the socket and the protocol, in each direction: what a client does not take stays with the sessions, which join it.
const CAPACITY: usize = 64 << 10;

/// The interval of pings: a machine that is switched off closes no connection.
const PING: Duration = Duration::from_secs(30);

/// The time limit for a client that sends nothing, not even the answer to a ping.
const SILENCE: Duration = Duration::from_secs(90);

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
    let (fail, failed) = oneshot::channel();
    // Tasks, which end with this future.
    let (mut reading, mut writing) = (JoinSet::new(), JoinSet::new());
    reading.spawn(async move {
        if let Some(close) = read(source, received).await {
            tracing::warn!("a client is disconnected: {}", close.reason);
            // The websocket may be closed already.
            let _ = fail.send(close);
        }
    });
    writing.spawn(write(sent, sink, failed));
    let ended = run(output, input).await;
    if tokio::time::timeout(PATIENCE, writing.join_next()).await.is_err() {
        tracing::warn!("a client has not read the last messages within {PATIENCE:?}");
    }
    ended
}

/// Passes each message of the client on as a line. The end of the websocket is the end of the input. Returns why the agent closes it.
async fn read(
    mut socket: impl Stream<Item = Result<Message, Error>> + Unpin,
    mut to: impl AsyncWrite + Unpin,
) -> Option<CloseFrame> {
    loop {
        let Ok(message) = tokio::time::timeout(SILENCE, socket.next()).await else {
            return Some(close(CloseCode::Away, format!("it has sent nothing for {} seconds", SILENCE.as_secs())));
        };
        let given = match message? {
            Ok(Message::Text(text)) => to.write_all(&line(&text)).await,
            Ok(Message::Binary(_)) => to.write_all(NO_JSON).await,
            Ok(Message::Close(_)) => return None,
            // The library answers them.
            Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => Ok(()),
            Err(error) => return fault(&error),
        };
        // Nobody reads any more.
        if given.is_err() {
            return None;
        }
    }
}

/// Returns the close frame for a client that broke the protocol; `None` if it has disconnected.
fn fault(error: &Error) -> Option<CloseFrame> {
    let code = match error {
        Error::Capacity(_) => CloseCode::Size,
        Error::Utf8(_) => CloseCode::Invalid,
        // It has disconnected without closing the websocket.
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => return None,
        Error::Protocol(_) => CloseCode::Protocol,
        _ => {
            tracing::debug!("a websocket has ended: {error}");
            return None;
        }
    };
    Some(close(code, error.to_string()))
}

fn close(code: CloseCode, mut reason: String) -> CloseFrame {
    reason.truncate(reason.floor_char_boundary(MAX_REASON));
    CloseFrame { code, reason: reason.into() }
}

/// The maximum length of the reason in a close frame, in bytes.
const MAX_REASON: usize = 123;

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

/// Sends each line as a message, and a ping at each interval. Closes the websocket after the last line, or when the client has `failed`.
async fn write(
    from: impl AsyncRead + Unpin,
    mut socket: impl Sink<Message, Error = Error> + Unpin,
    mut failed: oneshot::Receiver<CloseFrame>,
) -> Result<(), Error> {
    let mut lines = BufReader::new(from).split(b'\n');
    let mut pings = tokio::time::interval_at(Instant::now() + PING, PING);
    let mut can_fail = true;
    loop {
        let message = tokio::select! {
            biased;
            close = &mut failed, if can_fail => match close {
                Ok(close) => Message::Close(Some(close)),
                // The client has closed the websocket, which ends the agent.
                Err(_) => {
                    can_fail = false;
                    continue;
                }
            },
            line = lines.next_segment() => match line? {
                Some(mut line) => {
                    line.truncate(line.trim_ascii_end().len());
                    let text = String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                    Message::text(text)
                }
                None => Message::Close(Some(close(CloseCode::Away, "the agent has ended".to_owned()))),
            },
            _ = pings.tick() => Message::Ping(Bytes::new()),
        };
        let is_last = message.is_close();
        socket.send(message).await?;
        if is_last {
            return socket.close().await;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::AsyncReadExt as _;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio_tungstenite::tungstenite::error::CapacityError;

    use super::*;

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

    /// A websocket whose messages are sent and read by a test.
    struct Socket(UnboundedReceiver<Result<Message, Error>>, UnboundedSender<Message>);

    impl Stream for Socket {
        type Item = Result<Message, Error>;

        fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.0.poll_recv(cx)
        }
    }

    impl Sink<Message> for Socket {
        type Error = Error;

        fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
            Poll::Ready(Ok(()))
        }

        fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), Error> {
            self.1.send(message).map_err(|_| Error::ConnectionClosed)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Serves an agent that ends with its input. Returns what it read, and what the client gets, which sends this and leaves or stays.
    async fn served(sends: Vec<Result<Message, Error>>, stays: bool) -> (String, Vec<Message>) {
        let (send, incoming) = unbounded_channel();
        let (outgoing, mut sent) = unbounded_channel();
        sends.into_iter().for_each(|message| send.send(message).unwrap());
        let stays = stays.then_some(send);
        let read = bridged(Socket(incoming, outgoing), |output, mut input| async move {
            let mut read = String::new();
            input.read_to_string(&mut read).await.unwrap();
            drop(output);
            read
        });
        let read = read.await;
        drop(stays);
        (read, std::iter::from_fn(|| sent.try_recv().ok()).collect())
    }

    fn code(message: Option<&Message>) -> Option<CloseCode> {
        if let Some(Message::Close(Some(close))) = message { Some(close.code) } else { None }
    }

    #[tokio::test]
    async fn a_client_that_breaks_the_protocol_learns_how() {
        let too_long = || Error::Capacity(CapacityError::MessageTooLong { size: 2, max_size: 1 });
        let masked = || Error::Protocol(ProtocolError::UnmaskedFrameFromClient);
        let gone = || Error::Protocol(ProtocolError::ResetWithoutClosingHandshake);
        for (error, expected) in [
            (too_long(), CloseCode::Size),
            (masked(), CloseCode::Protocol),
            (gone(), CloseCode::Away),
            (Error::ConnectionClosed, CloseCode::Away),
        ] {
            let sends = vec![Ok(Message::text("{}")), Err(error)];
            let (read, sent) = served(sends, true).await;
            assert_eq!((&*read, sent.len(), code(sent.last())), ("{}\n", 1, Some(expected)), "{sent:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_silent_is_asked_and_then_disconnected() {
        let (_, sent) = served(Vec::new(), true).await;
        assert!((3..=4).contains(&sent.len()) && sent[..sent.len() - 1].iter().all(Message::is_ping), "{sent:?}");
        let Some(Message::Close(Some(close))) = sent.last() else { panic!("{sent:?}") };
        assert!(close.reason.starts_with("it has sent nothing"), "{close}");
        // A client that leaves needs no ping.
        let (_, sent) = served(vec![Ok(Message::Close(None))], true).await;
        assert_eq!((sent.len(), code(sent.last())), (1, Some(CloseCode::Away)));
    }
}
