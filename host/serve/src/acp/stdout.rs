//! Standard output with a thread of its own, which writes all that has gathered since its last write: with many sessions, waiting for the end
//! of each line's write would be most of what a line costs.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tokio::io::AsyncWrite;

/// Bytes that gather before a writer waits: what the reader does not take stays with the sessions, which join it.
const CAPACITY: usize = 64 << 10;
/// How long the end waits for a reader that takes nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// An output that a thread writes. A flush does not wait for it; [`Written::all`] does.
#[derive(Debug)]
pub(super) struct Stdout(Arc<Shared>);

/// Waits for what was given to a [`Stdout`].
#[derive(Debug)]
pub(super) struct Written(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// There is something to write, or no more follows.
    work: Condvar,
    /// Nothing is left to write, or it cannot be written.
    rest: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct State {
    gathered: Vec<u8>,
    /// The thread writes what was gathered before.
    is_writing: bool,
    /// No more follows.
    is_over: bool,
    error: Option<io::Error>,
    /// Who waits for capacity.
    waker: Option<Waker>,
}

impl State {
    fn is_done(&self) -> bool {
        self.error.is_some() || (self.gathered.is_empty() && !self.is_writing)
    }

    /// The error, to be returned more than once.
    fn error(&self) -> Option<io::Error> {
        self.error.as_ref().map(|error| match error.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(error.kind(), error.to_string()),
        })
    }
}

impl Stdout {
    /// Starts the thread that writes to `output`, such as standard output.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(output: impl Write + Send + 'static) -> io::Result<(Self, Written)> {
        let shared = Arc::<Shared>::default();
        let theirs = Arc::clone(&shared);
        thread::Builder::new().name("stdout".to_owned()).spawn(move || theirs.run(output))?;
        Ok((Self(Arc::clone(&shared)), Written(shared)))
    }
}

impl Written {
    /// Waits until all is written, or cannot be written, or the reader takes nothing for a second.
    pub(super) async fn all(&self) {
        let done = async {
            loop {
                let rest = self.0.rest.notified();
                if self.0.lock().is_done() {
                    return;
                }
                rest.await;
            }
        };
        if tokio::time::timeout(PATIENCE, done).await.is_err() {
            tracing::warn!("the editor has not read the last lines within {PATIENCE:?}");
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut output: impl Write) {
        let mut lines = Vec::new();
        loop {
            let mut state = self.lock();
            while state.gathered.is_empty() {
                if state.is_over {
                    return;
                }
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            // The memory of the one is used by the other next.
            std::mem::swap(&mut state.gathered, &mut lines);
            state.is_writing = true;
            let waker = state.waker.take();
            drop(state);
            waker.into_iter().for_each(Waker::wake);
            let written = output.write_all(&lines).and_then(|()| output.flush());
            lines.clear();
            if !self.wrote(written) {
                return;
            }
        }
    }

    /// Returns whether more can be written.
    fn wrote(&self, written: io::Result<()>) -> bool {
        let mut state = self.lock();
        state.is_writing = false;
        state.error = written.err();
        let (goes_on, is_done) = (state.error.is_none(), state.is_done());
        // Who waits for capacity is woken when what has gathered is taken, or by the error.
        let waker = if goes_on { None } else { state.waker.take() };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        if is_done {
            self.rest.notify_waiters();
        }
        goes_on
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        if let Some(error) = state.error() {
            return Poll::Ready(Err(error));
        }
        if state.gathered.len() >= CAPACITY {
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let is_first = state.gathered.is_empty() && !state.is_writing;
        state.gathered.extend_from_slice(bytes);
        drop(state);
        if is_first {
            self.0.work.notify_one();
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.lock().error().map_or(Ok(()), Err))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl Drop for Stdout {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.work.notify_one();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::io::{self, Read as _, Write};

    use tokio::io::AsyncWriteExt as _;

    use super::{CAPACITY, Stdout};

    #[tokio::test]
    async fn all_that_is_written_arrives_in_order() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (mut output, written) = Stdout::start(writer).unwrap();
        let read = std::thread::spawn(move || {
            let mut all = String::new();
            reader.read_to_string(&mut all).map(|_| all)
        });
        let mut expected = String::new();
        for line in 0..20_000 {
            let line = format!("line {line}\n");
            output.write_all(line.as_bytes()).await.unwrap();
            output.flush().await.unwrap();
            expected += &line;
        }
        written.all().await;
        drop(output);
        assert!(read.join().unwrap().unwrap() == expected);
    }

    #[tokio::test]
    async fn a_reader_that_takes_nothing_makes_the_writer_wait() {
        let (mut reader, writer) = io::pipe().unwrap();
        let (mut output, written) = Stdout::start(writer).unwrap();
        let mut sent = 0;
        loop {
            tokio::select! {
                biased;
                wrote = output.write_all(&[b'x'; 1_000]) => wrote.unwrap(),
                () = async { for _ in 0..100 { tokio::task::yield_now().await } } => break,
            }
            sent += 1_000;
            assert!(sent < (1 << 20) + 3 * CAPACITY, "a pipe takes at most 1 MiB");
        }
        written.all().await;
        let mut read = vec![0; sent];
        std::thread::spawn(move || reader.read_exact(&mut read).map(|()| reader)).join().unwrap().unwrap();
        output.write_all(b"more").await.unwrap();
    }

    #[tokio::test]
    async fn an_output_that_fails_fails_the_writer() {
        struct Full;

        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let (mut output, written) = Stdout::start(Full).unwrap();
        output.write_all(b"line\n").await.unwrap();
        written.all().await;
        for _ in 0..2 {
            assert_eq!(output.write_all(b"line\n").await.unwrap_err().kind(), io::ErrorKind::StorageFull);
        }
    }
}
