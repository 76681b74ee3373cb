//! A connection whose client has a time limit for taking what is written, and whose stream is left after HTTP has ended.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The time limits for a client that takes nothing of what is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteLimits {
    pub(crate) usual: Duration,
    /// After the server closes. It is not longer.
    pub(crate) closing: Duration,
}

/// The time at which the response that is written must have ended, if it has such a time, however fast its client takes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadline(Arc<Mutex<Option<Instant>>>);

impl Deadline {
    pub(crate) fn set(&self, time: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that fails when a write has waited for longer than the limit. Without it, a client that reads nothing keeps a connection for ever.
/// When it is dropped, its [`Remains`] have the stream.
#[derive(Debug)]
pub(super) struct Patient<S> {
    /// There until it is dropped.
    stream: Option<S>,
    limits: WriteLimits,
    deadline: Deadline,
    /// The end of the time, while a write waits.
    waits: Option<Pin<Box<Sleep>>>,
    /// Completes when the server closes; `None`: it has.
    closing: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// Bytes were read after the last write.
    has_unanswered: bool,
    /// The client sends nothing any more.
    is_ended: bool,
    remains: Remains<S>,
}

/// The stream of a connection after HTTP has ended.
#[derive(Debug)]
pub(super) struct Remains<S>(Arc<Mutex<Option<Remaining<S>>>>);

/// A stream that is left after HTTP has ended.
#[derive(Debug)]
pub(super) struct Remaining<S> {
    pub(super) stream: S,
    /// The client has sent bytes that have no answer.
    pub(super) has_unanswered: bool,
    /// The client sends nothing any more.
    pub(super) is_ended: bool,
}

impl<S> Clone for Remains<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Remains<S> {
    /// Takes the stream; `None`: HTTP has not ended, or another protocol uses it.
    pub(super) fn take(&self) -> Option<Remaining<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<S> Patient<S> {
    /// Wraps the stream of a connection. `closing`: cancelled when the server closes.
    pub(super) fn new(stream: S, limits: WriteLimits, deadline: Deadline, closing: &CancellationToken) -> Self {
        let (stream, remains) = (Some(stream), Remains(Arc::default()));
        let closing = Some(Box::pin(closing.clone().cancelled_owned()));
        Self { stream, limits, deadline, waits: None, closing, has_unanswered: false, is_ended: false, remains }
    }

    pub(super) fn remains(&self) -> Remains<S> {
        self.remains.clone()
    }

    fn stream(&mut self) -> Pin<&mut S>
    where
        S: Unpin,
    {
        Pin::new(self.stream.as_mut().unwrap_or_else(|| unreachable!("the stream is there until the drop")))
    }

    /// Passes the result of a write on, unless it has waited for too long.
    fn limited<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let deadline = self.deadline.get();
        if deadline.is_some_and(|time| Instant::now() >= time) {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the time limit of the response is over")));
        }
        if written.is_ready() {
            self.waits = None;
            return written;
        }
        if self.closing.as_mut().is_some_and(|closing| closing.as_mut().poll(cx).is_ready()) {
            self.closing = None;
            self.waits = None;
        }
        let limit = if self.closing.is_some() { self.limits.usual } else { self.limits.closing };
        let late = Instant::now() + limit;
        let late = deadline.map_or(late, |time| time.min(late));
        let waits = self.waits.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(late)));
        ready!(waits.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing of what is sent")))
    }
}

impl<S> Drop for Patient<S> {
    fn drop(&mut self) {
        let (has_unanswered, is_ended) = (self.has_unanswered, self.is_ended);
        let remaining = self.stream.take().map(|stream| Remaining { stream, has_unanswered, is_ended });
        *self.remains.0.lock().unwrap_or_else(PoisonError::into_inner) = remaining;
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = self.stream().poll_read(cx, buf);
        if read.is_ready() {
            let has_more = buf.filled().len() > before;
            self.has_unanswered |= has_more;
            self.is_ended |= !has_more;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.has_unanswered = false;
        let written = self.stream().poll_write(cx, bytes);
        self.limited(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.has_unanswered = false;
        let written = self.stream().poll_write_vectored(cx, bytes);
        self.limited(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.stream().poll_flush(cx);
        self.limited(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // With TLS, it writes.
        let shut = self.stream().poll_shutdown(cx);
        self.limited(cx, shut)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const LIMITS: WriteLimits = WriteLimits { usual: Duration::from_secs(9), closing: Duration::from_millis(300) };

    /// A client that takes nothing, so that the last bytes wait.
    #[derive(Debug)]
    struct Full;

    impl AsyncRead for Full {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Full {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_bytes_of_a_connection_have_a_limit() {
        let begun = Instant::now();
        let error =
            Patient::new(Full, LIMITS, Deadline::default(), &CancellationToken::new()).shutdown().await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, LIMITS.usual));
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_keeps_its_connection_and_one_that_does_not_loses_it() {
        let (client, server) = tokio::io::duplex(4);
        let mut server = Patient::new(server, LIMITS, Deadline::default(), &CancellationToken::new());
        let reading = tokio::spawn(async move {
            let (mut client, mut byte) = (client, [0; 4]);
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(5)).await;
                client.read_exact(&mut byte).await.unwrap();
            }
            client
        });
        server.write_all(b"0123456789012345").await.unwrap();
        let _client = reading.await.unwrap();
        let error = server.write_all(b"01234").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_in_drips_loses_its_connection_at_the_deadline() {
        let ((mut client, server), deadline) = (tokio::io::duplex(4), Deadline::default());
        let mut server = Patient::new(server, LIMITS, deadline.clone(), &CancellationToken::new());
        let begun = Instant::now();
        deadline.set(Some(begun + Duration::from_secs(30)));
        let reading = tokio::spawn(async move {
            while client.read_u8().await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let error = server.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
        reading.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_loses_its_connection_at_the_deadline() {
        let (begun, deadline) = (Instant::now(), Deadline::default());
        deadline.set(Some(begun + Duration::from_secs(2)));
        let mut server = Patient::new(Full, LIMITS, deadline, &CancellationToken::new());
        server.write_all(b"01234").await.unwrap_err();
        assert_eq!(begun.elapsed().as_secs(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_server_shortens_the_limit() {
        let closing = CancellationToken::new();
        let mut server = Patient::new(Full, LIMITS, Deadline::default(), &closing);
        let write = tokio::spawn(async move { server.write_all(b"01234").await.map_err(|error| error.kind()) });
        tokio::time::sleep(Duration::from_millis(10)).await;
        let begun = Instant::now();
        closing.cancel();
        assert_eq!((write.await.unwrap(), begun.elapsed()), (Err(io::ErrorKind::TimedOut), LIMITS.closing));
    }
}
