//! How the parts of an answer look.
//!
//! All colours are of the terminal's palette, which its user has chosen for its background, and neither black, white nor a background: so
//! they can be read on a light terminal and on a dark one.

use anstyle::{AnsiColor, Color, Effects, Style};

/// What the look of an answer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// The most columns of a row.
    pub(crate) columns: usize,
    /// There are styles. Without them the marks of Markdown stay.
    pub(crate) is_styled: bool,
    /// What could pass for the host's gutter is written out.
    pub(crate) guard: bool,
}

const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

pub(super) const PLAIN: Style = Style::new();
pub(super) const DIM: Style = Style::new().dimmed();
pub(super) const CODE: Style = colour(AnsiColor::Cyan);
pub(super) const STRONG: Effects = Effects::BOLD;
pub(super) const EMPHASIS: Effects = Effects::ITALIC;
pub(super) const STRUCK: Effects = Effects::STRIKETHROUGH;
pub(super) const LINK: Effects = Effects::UNDERLINE;

/// The effects of a heading, by its level from 1.
pub(super) fn heading(level: usize) -> Effects {
    match level {
        1 => Effects::BOLD | Effects::UNDERLINE,
        2 => Effects::BOLD,
        _ => Effects::BOLD | Effects::ITALIC,
    }
}

/// The style of code, by the first part of its scope's name that is listed.
pub(super) const SCOPES: [(&str, Style); 16] = [
    ("comment", DIM),
    ("string", colour(AnsiColor::Green)),
    ("constant", colour(AnsiColor::Cyan)),
    ("keyword.operator", PLAIN),
    ("keyword", colour(AnsiColor::Magenta)),
    ("storage", colour(AnsiColor::Magenta)),
    ("entity.name.tag", colour(AnsiColor::Blue)),
    ("entity.name.function", colour(AnsiColor::Blue)),
    ("entity.other.attribute-name", colour(AnsiColor::Cyan)),
    ("support.function", colour(AnsiColor::Blue)),
    ("support.macro", colour(AnsiColor::Blue)),
    ("variable.function", colour(AnsiColor::Blue)),
    ("markup.inserted", colour(AnsiColor::Green)),
    ("markup.deleted", colour(AnsiColor::Red)),
    ("meta.diff", DIM),
    ("markup.heading", PLAIN.effects(Effects::BOLD)),
];
