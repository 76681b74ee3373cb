//! The model's text on standard output: as it is, or rendered where a person reads it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clean::{Cleaner, Keep};
use super::sink::{self, Stream, is_terminal};
use super::{is_shared, live, terminal};
use crate::markdown::{Look, Markdown, Row};
use crate::style;

/// The model's text is shown as it is.
static RAW: AtomicBool = AtomicBool::new(false);

/// Shows the model's text as it is, or rendered, from now on.
pub(crate) fn set_raw(is_raw: bool) {
    RAW.store(is_raw, Ordering::Relaxed);
}

/// Whether the model's text is shown as it is.
pub(crate) fn is_raw() -> bool {
    RAW.load(Ordering::Relaxed)
}

/// The model's text on standard output.
#[derive(Debug)]
pub(crate) struct Answer {
    cleaner: Cleaner,
    /// The text that is rendered; `None`: it is printed as it is.
    markdown: Option<Markdown>,
}

impl Answer {
    pub(crate) fn new() -> Self {
        Self { cleaner: Cleaner::new(Keep::Lines, is_shared()), markdown: markdown() }
    }

    /// Prints a chunk.
    pub(crate) fn push(&mut self, text: &str) -> io::Result<()> {
        if self.markdown.is_some() != is_rendered() {
            self.pause()?;
            self.markdown = markdown();
        }
        let mut shown = String::with_capacity(text.len());
        self.cleaner.push(text, &mut shown);
        let Some(markdown) = &mut self.markdown else { return super::write_answer(&shown) };
        markdown.set_look(look());
        let rows = markdown.push(&shown);
        draw(&rows, &markdown.tail())
    }

    /// Draws the part that is not final again, because the terminal has got another size.
    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        let Some(markdown) = &mut self.markdown else { return Ok(()) };
        markdown.set_look(look());
        draw(&[], &markdown.tail())
    }

    /// Ends the line, because one of the host follows. The text can continue.
    pub(crate) fn pause(&mut self) -> io::Result<()> {
        self.end(Markdown::cut)
    }

    /// Ends the text, and its line.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.end(Markdown::finish)
    }

    /// The text continues after this one, which is on the screen already, or was.
    pub(crate) fn continue_after(&mut self, text: &str) {
        let Some(markdown) = &mut self.markdown else { return };
        // What it becomes is not printed once more.
        markdown.finish();
        let mut clean = String::with_capacity(text.len());
        Cleaner::new(Keep::Lines, is_shared()).push(text, &mut clean);
        markdown.push(&clean);
        markdown.cut();
    }

    fn end(&mut self, rows: fn(&mut Markdown) -> Vec<Row>) -> io::Result<()> {
        let mut shown = String::new();
        self.cleaner.finish(&mut shown);
        self.cleaner = Cleaner::new(Keep::Lines, is_shared());
        let Some(markdown) = &mut self.markdown else {
            super::write_answer(&shown)?;
            return super::end_line();
        };
        let mut last = markdown.push(&shown);
        last.extend(rows(markdown));
        draw(&last, &[])
    }
}

/// Whether the model's text is rendered: its reader sees a terminal that can show styles or move its cursor.
fn is_rendered() -> bool {
    !is_raw() && is_terminal(Stream::Out) && !terminal::is_dumb()
}

fn markdown() -> Option<Markdown> {
    is_rendered().then(|| Markdown::new(look()))
}

/// The most columns of a row.
pub(super) fn columns() -> usize {
    super::out_columns().unwrap_or(80).saturating_sub(1).max(1)
}

fn look() -> Look {
    Look { columns: columns(), is_styled: style::wanted(is_terminal(Stream::Out)), guard: is_shared() }
}

/// Prints rows, and shows others below them for now.
pub(super) fn draw(rows: &[Row], tail: &[Row]) -> io::Result<()> {
    let is_styled = style::wanted(is_terminal(Stream::Out));
    let mut text = String::new();
    for row in rows {
        text.extend(row.is_code.then_some(live::WHOLE));
        text.push_str(&row.painted(is_styled));
        text.push('\n');
    }
    live::answer(&text, tail.iter().map(|row| row.painted(is_styled)).collect())
        .unwrap_or_else(|| sink::write(Stream::Out, text.replace(live::WHOLE, "").as_bytes()))
}
