//! The keys of a chat: read one by one on a thread of its own, which pauses while another program has the terminal.

mod decode;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use tokio::sync::mpsc;

use self::decode::Decoder;
use super::terminal;

/// What the user has pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// A character that was typed, with Shift or without.
    Char(char),
    /// Text that was pasted, with `\n` at the ends of lines.
    Paste(String),
    Enter,
    /// Alt and Enter.
    AltEnter,
    /// Ctrl and J, or Shift and Enter where the terminal distinguishes it: the next line of the input.
    NewLine,
    Tab,
    Esc,
    Backspace,
    Delete,
    Left,
    Right,
    Up,
    Down,
    WordLeft,
    WordRight,
    Home,
    End,
    PageUp,
    PageDown,
    /// Ctrl and a letter.
    Ctrl(char),
    /// The terminal has another size.
    Resize,
    /// Keys cannot be read any more, because of this.
    Gone(String),
}

/// How often the thread looks whether it has to pause, and whether the terminal has another size.
const LOOK: Duration = Duration::from_millis(50);

/// The most bytes that are read at once.
const CHUNK: usize = 4096;

/// The keys in order.
#[derive(Debug)]
pub(crate) struct Keys {
    keys: mpsc::UnboundedReceiver<(Key, Instant)>,
    pause: Arc<Pause>,
}

/// Whether the thread reads.
#[derive(Debug, Default)]
struct Pause {
    state: Mutex<Reading>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reading {
    #[default]
    Reads,
    /// It has to stop.
    Stops,
    /// It has stopped.
    Stopped,
    /// Nobody wants keys any more.
    Ended,
}

impl Pause {
    fn lock(&self) -> MutexGuard<'_, Reading> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, to: Reading) {
        *self.lock() = to;
        self.changed.notify_all();
    }

    /// The thread waits while it has to; `false`: it ends.
    fn passes(&self) -> bool {
        let mut state = self.lock();
        loop {
            match *state {
                Reading::Reads => return true,
                Reading::Ended => return false,
                Reading::Stops => {
                    *state = Reading::Stopped;
                    self.changed.notify_all();
                }
                Reading::Stopped => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

impl Keys {
    /// Begins to read keys.
    pub(crate) fn read() -> Self {
        let (send, keys) = mpsc::unbounded_channel();
        let pause = Arc::new(Pause::default());
        let paused = Arc::clone(&pause);
        let failed = send.clone();
        // It waits for a key for ever, and the program does not wait for it at its end.
        let thread = std::thread::Builder::new().name("keys".into()).spawn(move || {
            let mut reader = Reader { decoder: Decoder::default(), size: terminal::size() };
            while paused.passes() {
                let (keys, is_last) = match reader.read() {
                    Ok(keys) => (keys, false),
                    Err(error) => (vec![Key::Gone(error.to_string())], true),
                };
                let is_closed = keys.into_iter().any(|key| send.send((key, Instant::now())).is_err());
                if is_last || is_closed {
                    return;
                }
            }
        });
        if let Err(error) = thread {
            // The receiver is here.
            let _ = failed.send((Key::Gone(error.to_string()), Instant::now()));
        }
        Self { keys, pause }
    }

    /// The next key, and when it was read.
    pub(crate) async fn next(&mut self) -> (Key, Instant) {
        let gone = || (Key::Gone("the reader of keys has ended".into()), Instant::now());
        self.keys.recv().await.unwrap_or_else(gone)
    }

    /// Reads no key while `work` runs, which blocks.
    pub(crate) fn paused<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.pause.set(Reading::Stops);
        let mut state = self.pause.lock();
        while *state == Reading::Stops && !self.keys.is_closed() {
            state = self.pause.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        let done = work();
        self.pause.set(Reading::Reads);
        done
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.pause.set(Reading::Ended);
    }
}

/// The text of a line that was typed or pasted, without what a terminal has reported meanwhile.
pub(super) fn text(line: &[u8]) -> String {
    let mut decoder = Decoder::default();
    let keys = decoder.push(line);
    let mut text = String::new();
    for key in keys.into_iter().chain(decoder.end()) {
        match key {
            Key::Char(c) => text.push(c),
            Key::Paste(pasted) => text.push_str(&pasted),
            _ => {}
        }
    }
    text
}

/// The keys that are read from standard input, and changes of the terminal's size.
struct Reader {
    decoder: Decoder,
    size: (usize, usize),
}

impl Reader {
    /// The keys of the next moment.
    ///
    /// # Errors
    /// The terminal is gone, or cannot be read.
    fn read(&mut self) -> std::io::Result<Vec<Key>> {
        let stdin = std::io::stdin();
        let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        let mut keys: Vec<Key> = match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait)) {
            Ok(0) => self.decoder.pause().into_iter().collect(),
            Ok(_) => self.bytes(&stdin)?,
            // A signal is no pause: the rest of a sequence can follow.
            Err(Errno::INTR) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let size = terminal::size();
        if std::mem::replace(&mut self.size, size) != size {
            keys.push(Key::Resize);
        }
        Ok(keys)
    }

    fn bytes(&mut self, stdin: &std::io::Stdin) -> std::io::Result<Vec<Key>> {
        let mut chunk = [0; CHUNK];
        match read(stdin, &mut chunk) {
            Ok(0) => Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the terminal is closed")),
            Ok(count) => Ok(self.decoder.push(&chunk[..count])),
            Err(Errno::INTR | Errno::AGAIN) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_report_of_the_terminal_is_no_part_of_a_line() {
        for line in [
            "y\n",
            "\x1b[?62;22cy\n",
            "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\y\r\n",
            "y\x1b[24;80R\n",
            "\x1b[200~y\x1b[201~\n",
            "\x1b[200~y",
        ] {
            assert_eq!(super::text(line.as_bytes()), "y", "{line:?}");
        }
        assert_eq!(super::text("  no, nö \n".as_bytes()), "  no, nö ");
    }
}
