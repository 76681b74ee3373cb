//! Updates on their way to the client. The SDK queues what it sends without a limit, so that they are counted here: the events of a session
//! wait while too many updates do, in a queue that joins adjacent chunks of text.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;
use tokio::sync::watch;

/// The most updates that wait before the next event is taken.
const MAX_WAITING: usize = 64;

/// What the line of an update contains, near its start.
const UPDATE: &[u8] = b"\"method\":\"session/update\"";

/// The updates of all sessions of a connection. A clone is the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Outgoing(Arc<watch::Sender<Waiting>>);

#[derive(Debug, Default)]
struct Waiting {
    updates: usize,
    /// A message that is no update was written.
    is_answered: bool,
    /// Nothing is written any more.
    is_closed: bool,
}

impl Outgoing {
    /// An update is handed to the SDK.
    pub(super) fn add(&self) {
        self.0.send_modify(|waiting| waiting.updates += 1);
    }

    /// An update is written, or is not going to be.
    pub(super) fn remove(&self) {
        self.0.send_modify(|waiting| waiting.updates = waiting.updates.saturating_sub(1));
    }

    /// Waits until another update can be handed over. Once nothing is written any more that is so at once.
    pub(super) async fn ready(&self) {
        let is_ready = |waiting: &Waiting| waiting.is_closed || waiting.updates < MAX_WAITING;
        // `self` has the sender.
        let _closed = self.0.subscribe().wait_for(is_ready).await.is_err();
    }

    /// From now on an answer is waited for.
    pub(super) fn expect_answer(&self) {
        self.0.send_modify(|waiting| waiting.is_answered = false);
    }

    /// Waits until a message is written that is no update, which is the answer to the only request.
    pub(super) async fn answered(&self) {
        let is_answered = |waiting: &Waiting| waiting.is_closed || waiting.is_answered;
        // `self` has the sender.
        let _closed = self.0.subscribe().wait_for(is_answered).await.is_err();
    }

    /// Counts the updates that are written to this output, one message a line.
    pub(super) fn counted<W>(&self, output: W) -> Counted<W> {
        Counted { output: Box::pin(output), outgoing: self.clone(), line: Line::Start }
    }
}

/// An output whose updates are counted.
pub(super) struct Counted<W> {
    output: Pin<Box<W>>,
    outgoing: Outgoing,
    line: Line,
}

/// Where in the output the next byte is.
enum Line {
    Start,
    Update,
    Other,
}

impl<W> Drop for Counted<W> {
    fn drop(&mut self) {
        self.outgoing.0.send_modify(|waiting| waiting.is_closed = true);
    }
}

impl<W> Counted<W> {
    /// The first `count` of these bytes were written. What a line is shows its beginning, which is offered as a whole.
    fn written(&mut self, offered: &[u8], count: usize) {
        let mut end = 0;
        for part in offered.split_inclusive(|byte| *byte == b'\n') {
            if end >= count {
                return;
            }
            end += part.len();
            if matches!(self.line, Line::Start) {
                self.line = line(part);
            }
            if end <= count && part.ends_with(b"\n") {
                match self.line {
                    Line::Update => self.outgoing.remove(),
                    _ => drop(
                        self.outgoing.0.send_if_modified(|waiting| !std::mem::replace(&mut waiting.is_answered, true)),
                    ),
                }
                self.line = Line::Start;
            }
        }
    }
}

fn line(bytes: &[u8]) -> Line {
    let start = &bytes[..bytes.len().min(2 * UPDATE.len())];
    if start.windows(UPDATE.len()).any(|window| window == UPDATE) { Line::Update } else { Line::Other }
}

impl<W: AsyncWrite> AsyncWrite for Counted<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(self.output.as_mut().poll_write(cx, bytes))?;
        self.written(bytes, written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.as_mut().poll_shutdown(cx)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Whether another update can be handed over now.
    async fn is_ready(outgoing: &Outgoing) -> bool {
        tokio::select! {
            biased;
            () = outgoing.ready() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn another_update_waits_until_enough_are_written() {
        let outgoing = Outgoing::default();
        // Each line is written in parts, the first of which is shorter than the name of the method.
        let (output, mut client) = tokio::io::duplex(16);
        let mut output = outgoing.counted(output);
        for _ in 0..MAX_WAITING {
            assert!(is_ready(&outgoing).await);
            outgoing.add();
        }
        assert!(!is_ready(&outgoing).await);
        let read = tokio::spawn(async move {
            let mut all = String::new();
            client.read_to_string(&mut all).await.unwrap();
            all
        });
        let lines = [
            ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"method\":\"session/update\"}}\n", false),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"session/updated\",\"params\":{}}\n", false),
            ("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{}}", false),
            ("\n", true),
        ];
        for (bytes, expected) in lines {
            output.write_all(bytes.as_bytes()).await.unwrap();
            assert_eq!(is_ready(&outgoing).await, expected, "{bytes}");
        }
        outgoing.add();
        assert!(!is_ready(&outgoing).await);
        drop(output);
        assert!(is_ready(&outgoing).await, "nobody waits for a connection that has ended");
        assert_eq!(read.await.unwrap(), lines.map(|(bytes, _)| bytes).concat());
    }
}
