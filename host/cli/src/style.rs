//! Colours, and whether there are any: not where the output is no terminal, and not where `NO_COLOR` is set.

use std::io::{IsTerminal, stdout};

use anstyle::{AnsiColor, Color, Style};

pub(crate) const BAD: Style = bold(AnsiColor::Red);
pub(crate) const WARNING: Style = bold(AnsiColor::Yellow);
pub(crate) const GOOD: Style = bold(AnsiColor::Green);
pub(crate) const TOOL: Style = bold(AnsiColor::Cyan);
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();

const fn bold(colour: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(Color::Ansi(colour)))
}

fn wanted(is_terminal: bool) -> bool {
    is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether standard error has colours.
pub(crate) fn stderr_has_colour() -> bool {
    wanted(std::io::stderr().is_terminal())
}

/// Whether standard output has colours.
pub(crate) fn stdout_has_colour() -> bool {
    wanted(stdout().is_terminal())
}

/// What switches a style on, on standard error; nothing where it has no colours.
pub(crate) fn stderr(style: Style) -> String {
    if stderr_has_colour() { style.render().to_string() } else { String::new() }
}

/// What switches all styles off, on standard error.
pub(crate) fn stderr_reset() -> &'static str {
    if stderr_has_colour() { "\x1b[0m" } else { "" }
}

/// `text` in a style, for standard output.
pub(crate) fn out(style: Style, text: &str) -> String {
    if stdout_has_colour() { format!("{}{text}\x1b[0m", style.render()) } else { text.to_owned() }
}

/// `text` in a style, for standard error.
pub(crate) fn err(style: Style, text: &str) -> String {
    format!("{}{text}{}", stderr(style), stderr_reset())
}
