//! Updates on their way to the client. The SDK queues what it sends without a limit, so that they are counted here: the events of a session
//! wait while too many updates do, in a queue that joins adjacent chunks of text.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;
use tokio::sync::{Semaphore, watch};

/// The most updates that wait before the next event is taken.
const MAX_WAITING: usize = 64;

/// What the line of an update contains, near its start.
const UPDATE: &[u8] = b"\"method\":\"session/update\"";

/// The updates of all sessions of a connection. A clone is the same one.
#[derive(Clone, Debug)]
pub(super) struct Outgoing(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// A permit for each update that can be handed over. Whoever waits for one is woken in turn, one by each line that is written: with
    /// thousands of sessions, waking all of them for each line would take all processors.
    free: Semaphore,
    /// Updates that were handed over without a permit, because nothing waited for one.
    over: AtomicUsize,
    answers: watch::Sender<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    /// A message that is no update was written.
    is_answered: bool,
    /// Nothing is written any more.
    is_closed: bool,
}

/// Keeps a permit for an update that is about to be handed over. At its end the permit makes up for that update.
#[derive(Debug)]
pub(super) struct Place<'a>(Option<&'a Shared>);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.into_iter().for_each(Shared::give_back);
    }
}

impl Shared {
    /// A permit is free, unless it makes up for an update without one.
    fn give_back(&self) {
        let one_less = |over: usize| over.checked_sub(1);
        if self.over.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_err() {
            self.free.add_permits(1);
        }
    }
}

impl Default for Outgoing {
    fn default() -> Self {
        let (free, over, answers) = (Semaphore::new(MAX_WAITING), AtomicUsize::new(0), watch::Sender::default());
        Self(Arc::new(Shared { free, over, answers }))
    }
}

impl Outgoing {
    /// An update is handed to the SDK.
    pub(super) fn add(&self) {
        match self.0.free.try_acquire() {
            Ok(permit) => permit.forget(),
            Err(_none) => drop(self.0.over.fetch_add(1, Ordering::SeqCst)),
        }
    }

    /// An update is written, or is not going to be.
    pub(super) fn remove(&self) {
        self.0.give_back();
    }

    /// Waits until another update can be handed over, in the order in which it was asked for. Once nothing is written any more that is so
    /// at once.
    pub(super) async fn ready(&self) -> Place<'_> {
        let permit = self.0.free.acquire().await.ok();
        Place(permit.map(|permit| {
            permit.forget();
            &*self.0
        }))
    }

    /// From now on an answer is waited for.
    pub(super) fn expect_answer(&self) {
        self.0.answers.send_modify(|answers| answers.is_answered = false);
    }

    /// Waits until a message is written that is no update, which is the answer to the only request.
    pub(super) async fn answered(&self) {
        let is_answered = |answers: &Answers| answers.is_closed || answers.is_answered;
        // `self` has the sender.
        let _closed = self.0.answers.subscribe().wait_for(is_answered).await.is_err();
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
        self.outgoing.0.free.close();
        self.outgoing.0.answers.send_modify(|answers| answers.is_closed = true);
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
                        self.outgoing
                            .0
                            .answers
                            .send_if_modified(|answers| !std::mem::replace(&mut answers.is_answered, true)),
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
    use std::future::Future as _;
    use std::task::Waker;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Whether another update can be handed over now.
    async fn is_ready(outgoing: &Outgoing) -> bool {
        tokio::select! {
            biased;
            _place = outgoing.ready() => true,
            () = std::future::ready(()) => false,
        }
    }

    #[test]
    fn who_waits_comes_in_turn_after_updates_that_did_not_wait() {
        let outgoing = Outgoing::default();
        // One more than there are places for.
        (0..=MAX_WAITING).for_each(|_| outgoing.add());
        let mut cx = Context::from_waker(Waker::noop());
        let [mut first, mut second] = [(); 2].map(|()| Box::pin(outgoing.ready()));
        let mut are_ready = || [&mut first, &mut second].map(|one| one.as_mut().poll(&mut cx));
        assert!(are_ready().iter().all(Poll::is_pending));
        outgoing.remove();
        assert!(are_ready().iter().all(Poll::is_pending), "it makes up for the one too many");
        outgoing.remove();
        let [Poll::Ready(place), Poll::Pending] = are_ready() else { panic!("only the first one comes") };
        outgoing.add();
        drop(place);
        assert!(second.as_mut().poll(&mut cx).is_pending(), "the place was used");
        outgoing.remove();
        assert!(second.as_mut().poll(&mut cx).is_ready(), "another line was written");
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
