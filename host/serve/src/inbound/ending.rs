//! The end of a connection after HTTP has ended.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::patient::Remaining;

/// The time limit for a client that still sends to close its side of the connection.
const LINGER: Duration = Duration::from_secs(10);
/// The maximum pause between two reads, and the time limit for a client whose head was not complete in time.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes that are read at once, and dropped.
const READ: usize = 16 << 10;

impl<S: AsyncRead + AsyncWrite + Unpin> Remaining<S> {
    /// Ends the connection. A client that still sends, such as a body that was refused, can read the answer first: a connection that is closed
    /// with unread bytes takes the answer away from it. `is_slow`: a head was not complete in time, to which `answer` is the answer.
    pub(super) async fn end(mut self, is_slow: bool, answer: impl FnOnce() -> (&'static str, String)) {
        // Without a part of a head, the client has only kept its connection.
        if self.is_ended || (is_slow && !self.has_unanswered) {
            return;
        }
        let ending = async {
            if is_slow {
                self.stream.write_all(too_slow(answer()).as_bytes()).await?;
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
        if let Ok(Err(error)) = timeout(if is_slow { PAUSE } else { LINGER }, ending).await {
            tracing::debug!("a connection was not ended by its client: {error}");
        }
    }
}

fn too_slow((kind, body): (&str, String)) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 408 Request Timeout\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}
