//! What a terminal is asked: its size, raw mode, and to forget what was typed before a question.

use std::io::{self, IsTerminal, stderr, stdin, stdout};
use std::os::fd::AsFd;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use unicode_width::UnicodeWidthChar as _;

use super::keys;

/// The most columns of a tab.
const TAB: usize = 8;
/// The most bytes of an answer.
const MAX_ANSWER: usize = 4096;

/// Whether a person can be asked: they see what is printed, and what they type is read.
pub(crate) fn is_interactive() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Whether the terminal can only print: the rows of a chat cannot be drawn there.
pub(crate) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Kinds of terminals that have one screen.
const ONE_SCREEN: [&str; 5] = ["linux", "ansi", "vt", "cons25", "cygwin"];

/// Whether the terminal can show a page in the place of everything, and then what was there before.
pub(crate) fn has_other_screen() -> bool {
    !has_one_screen(&std::env::var("TERM").unwrap_or_default())
}

/// Returns whether a terminal of this name is of one of these kinds: `linux-16color` and `vt100` are, `vte-256color` is not.
fn has_one_screen(term: &str) -> bool {
    let is_variant = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    ONE_SCREEN.iter().any(|kind| term.strip_prefix(kind).is_some_and(is_variant))
}

/// What begins such a page, and ends it. Where the terminal has one screen, both erase it.
pub(super) fn other_screen() -> (&'static str, &'static str) {
    const ERASE: &str = "\x1b[2J\x1b[H";
    if has_other_screen() { ("\x1b[?1049h", "\x1b[?1049l") } else { (ERASE, ERASE) }
}

/// The columns that a text without line ends takes at most: terminals differ in whether they draw a sequence of emoji as one.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// The most columns that a character takes.
pub(super) fn width_of(c: char) -> usize {
    match c {
        '\t' => TAB,
        // It makes an emoji of a narrow character before it.
        '\u{fe0f}' => 1,
        _ => c.width().unwrap_or(1),
    }
}

/// Columns and rows of the terminal; 80 and 24 where it does not know.
pub(crate) fn size() -> (usize, usize) {
    if stderr().is_terminal() { size_of(stderr()) } else { size_of(stdout()) }
}

/// Columns of a terminal; 80 where it does not know.
pub(crate) fn columns(terminal: impl AsFd) -> usize {
    size_of(terminal).0
}

fn size_of(terminal: impl AsFd) -> (usize, usize) {
    match rustix::termios::tcgetwinsize(terminal) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
        _ => (80, 24),
    }
}

/// Whether the terminal is there no more: its window was closed, or the connection to it has ended.
pub(crate) fn is_gone() -> bool {
    rustix::termios::tcgetwinsize(stderr()).is_err()
}

/// Drops what was typed and not read yet: it cannot be an answer to a question that was not there.
pub(crate) fn forget_input() {
    // Where this fails standard input is no terminal, and nothing is asked.
    let _no_terminal = rustix::termios::tcflush(stdin(), rustix::termios::QueueSelector::IFlush);
}

/// The mode of the terminal before raw mode.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Switches the terminal to raw mode: each byte is read as it comes, and the terminal echoes and signals none.
///
/// # Errors
/// Standard input is no terminal, or it is gone.
pub(crate) fn enter_raw_mode() -> io::Result<()> {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let own = tcgetattr(stdin())?;
    let mut raw = before.get_or_insert(own).clone();
    raw.make_raw();
    Ok(tcsetattr(stdin(), OptionalActions::Now, &raw)?)
}

/// Restores the mode of the terminal, if it is in raw mode.
///
/// # Errors
/// As [`enter_raw_mode`].
pub(crate) fn leave_raw_mode() -> io::Result<()> {
    match BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(before) => Ok(tcsetattr(stdin(), OptionalActions::Now, &before)?),
        None => Ok(()),
    }
}

/// Stops the program, with all that its shell started with it, as `Ctrl+Z` does outside of a chat. Returns when it is continued.
///
/// # Errors
/// The system refuses it.
pub(crate) fn stop() -> io::Result<()> {
    Ok(kill_current_process_group(Signal::TSTP)?)
}

/// The signals that the program was continued after a stop, by [`stop`] or by another process.
///
/// # Errors
/// The signal cannot be followed.
pub(crate) fn continued() -> io::Result<tokio::signal::unix::Signal> {
    signal(SignalKind::from_raw(Signal::CONT.as_raw()))
}

/// Waits for a line, and reads it; `None` where the input has ended or cannot be read. Nothing is read where it is dropped before.
///
/// What was typed before must be forgotten first: a line that is there already might not wake it.
pub(crate) async fn read_line() -> Option<String> {
    #[allow(
        deprecated,
        reason = "its replacement is unsafe for descriptors that can be closed; standard input is open until the end"
    )]
    let input = AsyncFd::with_interest(stdin(), Interest::READABLE).ok()?;
    // A terminal is readable when it has a whole line, or when its input has ended.
    let _ready = input.readable().await.ok()?;
    let mut line = [0; MAX_ANSWER];
    let bytes = rustix::io::retry_on_intr(|| rustix::io::read(stdin(), &mut line)).ok().filter(|bytes| *bytes > 0)?;
    Some(keys::text(&line[..bytes]).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::has_one_screen;

    #[test]
    fn a_kind_of_terminal_is_a_whole_word() {
        for (term, expected) in [
            ("linux", true),
            ("linux-16color", true),
            ("vt100", true),
            ("vt220-w", true),
            ("vte", false),
            ("vte-256color", false),
            ("ansi", true),
            ("ansiterm", false),
            ("xterm-256color", false),
            ("tmux", false),
            ("", false),
        ] {
            assert_eq!(has_one_screen(term), expected, "{term}");
        }
    }
}
