//! The keys of a chat: read one by one on a thread of its own, which pauses while another program has the terminal.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

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
    /// Ctrl and a letter.
    Ctrl(char),
    /// The terminal has another size.
    Resize,
    /// Keys cannot be read any more, because of this.
    Gone(String),
}

/// How often the thread looks whether it has to pause.
const LOOK: Duration = Duration::from_millis(50);

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
            while paused.passes() {
                let next = match event::poll(LOOK) {
                    Ok(false) => continue,
                    Ok(true) => event::read(),
                    Err(error) => Err(error),
                };
                let (key, is_last) = match next {
                    Ok(event) => (key(event), false),
                    Err(error) => (Some(Key::Gone(error.to_string())), true),
                };
                let is_closed = key.is_some_and(|key| send.send((key, Instant::now())).is_err());
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

fn key(event: Event) -> Option<Key> {
    match event {
        Event::Key(KeyEvent { kind: KeyEventKind::Release, .. }) => None,
        Event::Key(KeyEvent { code, modifiers, .. }) => pressed(code, modifiers),
        Event::Paste(text) => Some(Key::Paste(text.replace("\r\n", "\n").replace('\r', "\n"))),
        Event::Resize(..) => Some(Key::Resize),
        Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

fn pressed(code: KeyCode, with: KeyModifiers) -> Option<Key> {
    let (ctrl, alt) = (with.contains(KeyModifiers::CONTROL), with.contains(KeyModifiers::ALT));
    Some(match code {
        KeyCode::Enter if alt => Key::AltEnter,
        KeyCode::Enter if with.contains(KeyModifiers::SHIFT) || ctrl => Key::NewLine,
        KeyCode::Enter => Key::Enter,
        KeyCode::Char('j') if ctrl => Key::NewLine,
        KeyCode::Char('h') if ctrl => Key::Backspace,
        KeyCode::Char(letter) if ctrl => Key::Ctrl(letter.to_ascii_lowercase()),
        KeyCode::Char('b') if alt => Key::WordLeft,
        KeyCode::Char('f') if alt => Key::WordRight,
        KeyCode::Char(_) if alt => return None,
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::Tab => Key::Tab,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace if alt || ctrl => Key::Ctrl('w'),
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left if alt || ctrl => Key::WordLeft,
        KeyCode::Right if alt || ctrl => Key::WordRight,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_the_page_of_keys_says() {
        let (none, ctrl, alt) = (KeyModifiers::NONE, KeyModifiers::CONTROL, KeyModifiers::ALT);
        for (code, with, expected) in [
            (KeyCode::Char('y'), none, Some(Key::Char('y'))),
            (KeyCode::Char('Y'), KeyModifiers::SHIFT, Some(Key::Char('Y'))),
            (KeyCode::Char('c'), ctrl, Some(Key::Ctrl('c'))),
            (KeyCode::Char('j'), ctrl, Some(Key::NewLine)),
            (KeyCode::Char('x'), alt, None),
            (KeyCode::Enter, none, Some(Key::Enter)),
            (KeyCode::Enter, alt, Some(Key::AltEnter)),
            (KeyCode::Enter, KeyModifiers::SHIFT, Some(Key::NewLine)),
            (KeyCode::Left, ctrl, Some(Key::WordLeft)),
            (KeyCode::Backspace, alt, Some(Key::Ctrl('w'))),
            (KeyCode::F(1), none, None),
        ] {
            assert_eq!(pressed(code, with), expected, "{code:?} {with:?}");
        }
        assert_eq!(key(Event::Paste("a\r\nb\rc".into())), Some(Key::Paste("a\nb\nc".into())));
    }
}
