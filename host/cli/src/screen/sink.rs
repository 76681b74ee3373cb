//! The two streams themselves.

#[cfg(not(test))]
use std::io;
#[cfg(not(test))]
use std::sync::PoisonError;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

/// Held while something is written to standard output.
static WRITING: Mutex<()> = Mutex::new(());

/// How often, and with which pauses, the end of the program looks whether what is being written has arrived.
const LOOKS: (u32, Duration) = (10, Duration::from_millis(10));

/// Waits a moment until what is being written to standard output has arrived. Nothing more can be written while the guard is kept.
pub(super) fn finish() -> Option<MutexGuard<'static, ()>> {
    (0..LOOKS.0).find_map(|_| match WRITING.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            thread::sleep(LOOKS.1);
            None
        }
    })
}

/// One of the two output streams of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// Writes bytes, all of them, and flushes. While there are rows at the bottom of the terminal, they go above them.
#[cfg(not(test))]
pub(super) fn write(stream: Stream, bytes: &[u8]) -> io::Result<()> {
    if is_terminal(stream)
        && let Some(printed) = super::live::print(bytes)
    {
        return printed;
    }
    match stream {
        Stream::Out => raw(bytes),
        Stream::Err => all(io::stderr().lock(), bytes),
    }
}

/// Writes bytes to the terminal as they are.
#[cfg(not(test))]
pub(super) fn raw(bytes: &[u8]) -> io::Result<()> {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    all(io::stdout().lock(), bytes)
}

#[cfg(not(test))]
fn all(mut to: impl io::Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

/// Whether a stream is a terminal.
#[cfg(not(test))]
pub(super) fn is_terminal(stream: Stream) -> bool {
    use io::IsTerminal;
    match stream {
        Stream::Out => io::stdout().is_terminal(),
        Stream::Err => io::stderr().is_terminal(),
    }
}

#[cfg(test)]
pub(super) use testing::{is_terminal, raw, write};

/// In this crate's tests both streams are one terminal without colours, of which each thread has its own.
#[cfg(test)]
pub(crate) mod testing {
    use std::cell::RefCell;
    use std::io;

    use super::Stream;

    thread_local! {
        static WRITTEN: RefCell<[Vec<u8>; 2]> = RefCell::default();
    }

    pub(in crate::screen) fn write(stream: Stream, bytes: &[u8]) -> io::Result<()> {
        WRITTEN.with_borrow_mut(|written| written[usize::from(stream == Stream::Err)].extend_from_slice(bytes));
        Ok(())
    }

    pub(in crate::screen) fn raw(bytes: &[u8]) -> io::Result<()> {
        write(Stream::Out, bytes)
    }

    pub(in crate::screen) fn is_terminal(_: Stream) -> bool {
        true
    }

    /// What this thread has written since the last call: to standard output, and to standard error.
    pub(crate) fn written() -> (String, String) {
        let [out, err] = WRITTEN.take();
        (String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
    }
}
