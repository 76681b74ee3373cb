//! The one place that writes to standard output and standard error. Everything that is printed is cleaned here (`clean`) and
//! gets its colours here (`style`).
//!
//! - [`out`] is standard output for the commands that print what was asked for;
//! - [`json`] prints a value exactly, as JSON that no terminal acts on;
//! - [`Answer`] streams the model's text, which `markdown` renders;
//! - [`note`] and [`block`] are lines of the host, on standard error; [`log`] makes one of each log event.
//!
//! [`live`] has the rows at the bottom of a chat, and [`keys`] what is pressed.
//!
//! Where the model's text and the host's lines share a terminal, each line of the host begins with a gutter that the model's
//! text cannot contain.

mod answer;
pub(crate) mod clean;
pub(crate) mod keys;
pub(crate) mod live;
pub(crate) mod log;
mod reader;
mod reasoning;
mod sink;
pub(crate) mod table;
pub(crate) mod terminal;
pub(crate) mod wrap;

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use self::answer::{Answer, is_raw, set_raw};
use self::clean::{Cleaner, GUTTER, Keep};
pub(crate) use self::reader::when_unread;
pub(crate) use self::reasoning::Reasoning;
#[cfg(test)]
pub(crate) use self::sink::testing;
use self::sink::{Stream, is_terminal};
use crate::style::{self, Part};

/// The model's text and the host's lines share a terminal.
static SHARED: AtomicBool = AtomicBool::new(false);
/// The model's text has not ended its line.
static OPEN_LINE: AtomicBool = AtomicBool::new(false);

/// From now on the host's lines have a gutter, where they share a terminal with the model's text.
pub(crate) fn share() {
    SHARED.store(is_terminal(Stream::Out) && is_terminal(Stream::Err), Ordering::Relaxed);
}

/// Whether the model's text is printed as it streams: somebody watches it.
pub(crate) fn is_live() -> bool {
    is_terminal(Stream::Out)
}

/// The columns of the terminal that shows standard output, if one does.
pub(crate) fn out_columns() -> Option<usize> {
    is_terminal(Stream::Out).then(|| terminal::columns(io::stdout()))
}

/// The columns of the terminal that shows the host's lines, if one does.
pub(crate) fn note_columns() -> Option<usize> {
    is_terminal(Stream::Err).then(|| terminal::columns(io::stderr()))
}

/// Lets a line of standard output that is being written arrive, where its reader takes it, and no other one begin: the program ends.
pub(crate) fn finish_line() {
    std::mem::forget(sink::finish());
}

fn is_shared() -> bool {
    SHARED.load(Ordering::Relaxed)
}

/// A styled string, cleaned and with its colours. `guard`: it is not ours alone, so nothing in it may look like the gutter.
fn paint(text: &str, keep: Keep, colour: bool, guard: bool) -> String {
    let mut painted = String::with_capacity(text.len());
    let mut cleaner = Cleaner::new(keep, guard);
    for part in style::parts(text) {
        match part {
            Part::Text(text) => cleaner.push(text, &mut painted),
            Part::Begin(style) if colour => painted.push_str(&style.render().to_string()),
            Part::End if colour => painted.push_str("\x1b[0m"),
            Part::Begin(_) | Part::End => {}
        }
    }
    cleaner.finish(&mut painted);
    painted
}

/// Returns the maximum number of columns of a line of the host, behind the gutter.
pub(crate) fn width(line: &str) -> usize {
    terminal::width(&paint(line, Keep::Line, false, true))
}

/// Standard output. What is written becomes visible line by line, and when it is flushed or dropped.
#[derive(Debug)]
pub(crate) struct Out {
    pending: Vec<u8>,
    colour: bool,
}

/// Returns the writer of standard output.
pub(crate) fn out() -> Out {
    Out { pending: Vec::new(), colour: style::wanted(is_terminal(Stream::Out)) }
}

impl Out {
    /// Prints the pending bytes up to `end`, which is a line end or the end.
    fn print(&mut self, end: usize) -> io::Result<()> {
        let bytes: Vec<u8> = self.pending.drain(..end).collect();
        // What was written here are whole strings, so a line is UTF-8.
        let text = paint(&String::from_utf8_lossy(&bytes), Keep::Lines, self.colour, false);
        sink::write(Stream::Out, text.as_bytes())
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if let Some(last) = self.pending.iter().rposition(|byte| *byte == b'\n') {
            self.print(last + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.print(self.pending.len())
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        // Whoever cares whether it arrives has flushed before.
        let _gone = self.flush();
    }
}

/// Prints a value as one line of JSON. It is exact: what a terminal would act on is escaped as JSON escapes it.
pub(crate) fn json(value: &serde_json::Value) -> io::Result<()> {
    sink::write(Stream::Out, format!("{}\n", clean::json(&value.to_string())).as_bytes())
}

fn write_answer(text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    OPEN_LINE.store(!text.ends_with('\n'), Ordering::Relaxed);
    sink::write(Stream::Out, text.as_bytes())
}

/// Ends the line of the model's text, where one is open.
fn end_line() -> io::Result<()> {
    if !OPEN_LINE.swap(false, Ordering::Relaxed) {
        return Ok(());
    }
    sink::write(Stream::Out, b"\n")
}

/// A line of the host on standard error; a line end in it is escaped. Where standard error is gone, there is nowhere left to
/// report it, and the work continues.
pub(crate) fn note(line: impl Display) {
    write_note(&line.to_string(), "\n");
}

/// Several lines of the host, whose line ends are the host's own.
pub(crate) fn block(text: impl Display) {
    text.to_string().lines().for_each(note);
}

/// The beginning of a line of the host, to be continued by what the user types.
pub(crate) fn prompt(line: impl Display) {
    write_note(&line.to_string(), "");
}

/// Ends the line of a prompt that was not answered.
pub(crate) fn end_prompt() {
    let _gone = sink::write(Stream::Err, b"\n");
}

fn write_note(line: &str, end: &str) {
    let (gutter, guard) = if is_shared() {
        // The model's line must not be continued by ours.
        let _gone = end_line();
        (style::out(style::DIM, &GUTTER.to_string()), true)
    } else {
        (String::new(), false)
    };
    let colour = style::wanted(is_terminal(Stream::Err));
    let gutter = paint(&gutter, Keep::Line, colour, false);
    let line = paint(line, Keep::Line, colour, guard);
    let _gone = sink::write(Stream::Err, format!("{gutter}{line}{end}").as_bytes());
}

/// A diagnostic with its colours. Its lines are its own: a line end in a message or in the name of a file is escaped.
pub(crate) fn diagnostic(diagnostic: &tidegate::diagnostic::Diagnostic) -> String {
    let rendered = tidegate::diagnostic::render(&diagnostic.clone().map_strings(clean::flat), false);
    let lines = rendered.split('\n').map(|line| {
        let label =
            |style, word: &str| line.strip_prefix(word).map(|rest| format!("{}{rest}", style::out(style, word)));
        let labelled = label(style::BAD, "error").or_else(|| label(style::WARNING, "warning"));
        let frame = || line.trim_start().starts_with(['|', '-', '=']).then(|| style::out(style::DIM, line));
        let mark = || line.contains(" ^").then(|| style::out(style::STRONG, line));
        labelled.or_else(mark).or_else(frame).unwrap_or_else(|| line.to_owned())
    });
    lines.collect::<Vec<_>>().join("\n")
}
