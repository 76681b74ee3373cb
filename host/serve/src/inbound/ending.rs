//! The end of a connection after HTTP has ended.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::patient::Remaining;

/// The time limit for a client that still sends to close its side of the connection.
const LINGER: Duration = Duration::from_secs(10);
/// The maximum pause between two reads, and the time limit for a client that has sent no complete request.
const PAUSE: Duration = Duration::from_secs(1);

/// The answer to a request without TLS.
const HTTPS: &str = "this port expects HTTPS: write https:// in place of http:// in the URL\n";

/// Bytes that are read at once, and dropped.
const READ: usize = 16 << 10;

/// Why HTTP has ended on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The last request has its answer, or the client has left.
    Done,
    /// The head of a request was not complete in time.
    Slow,
    /// It never began, because a client of a server with a certificate does not begin TLS.
    Plain,
}

impl<S> Remaining<S> {
    /// A stream whose client has sent bytes that nothing has read.
    pub(super) fn unanswered(stream: S) -> Self {
        Self { stream, has_unanswered: true, is_ended: false }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Remaining<S> {
    /// Ends the connection. A client that still sends, such as a body that was refused, can read the answer first: a connection that is closed
    /// with unread bytes takes the answer away from it. `slow`: the answer to a head that was not complete in time.
    pub(super) async fn end(mut self, ended: Ended, slow: impl FnOnce() -> (&'static str, String)) {
        // Without a part of a head, the client has only kept its connection.
        if self.is_ended || (ended == Ended::Slow && !self.has_unanswered) {
            return;
        }
        let answer = match ended {
            Ended::Done => None,
            Ended::Slow => Some(response("408 Request Timeout", slow())),
            Ended::Plain => Some(response("400 Bad Request", ("text/plain; charset=utf-8", HTTPS.to_owned()))),
        };
        let ending = async {
            if let Some(answer) = answer {
                self.stream.write_all(answer.as_bytes()).await?;
            }
            self.stream.shutdown().await?;
            let mut dropped = vec![0; READ];
            // At the end of the time the connection is closed as it is.
            while let Ok(read) = timeout(PAUSE, self.stream.read(&mut dropped)).await {
                if read? == 0 {
                    break;
                }
            }
            Ok::<_, std::io::Error>(())
        };
        if let Ok(Err(error)) = timeout(if ended == Ended::Done { LINGER } else { PAUSE }, ending).await {
            tracing::debug!("a connection was not ended by its client: {error}");
        }
    }
}

fn response(status: &str, (kind, body): (&str, String)) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}
