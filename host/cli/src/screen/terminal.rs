//! What a terminal is asked: its size, and to forget what was typed before a question.

use std::io::{BufRead, IsTerminal, Read, stderr, stdin};
use std::os::fd::AsFd;

use unicode_width::UnicodeWidthChar as _;

/// The most columns of a tab.
const TAB: usize = 8;
/// The most bytes of an answer.
const MAX_ANSWER: u64 = 4096;

/// Whether a person can be asked: they see what is printed, and what they type is read.
pub(crate) fn is_interactive() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// The columns that a text without line ends takes, as most terminals draw it.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(|c| if c == '\t' { TAB } else { c.width().unwrap_or(1) }).sum()
}

/// Columns and rows of standard error; 80 and 24 where the terminal does not know.
pub(crate) fn size() -> (usize, usize) {
    size_of(stderr())
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

/// Drops what was typed and not read yet: it cannot be an answer to a question that was not there.
pub(crate) fn forget_input() {
    // Where this fails standard input is no terminal, and nothing is asked.
    let _no_terminal = rustix::termios::tcflush(stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Reads a line; `None` where the input has ended or cannot be read.
pub(crate) fn read_line() -> Option<String> {
    let mut line = String::new();
    match stdin().lock().take(MAX_ANSWER).read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}
