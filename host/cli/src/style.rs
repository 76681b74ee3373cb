//! Colours, whether there are any, and how a style travels inside a string.
//!
//! Our strings are mixed with those of models, plugins and files by `format!`, so a styled string cannot carry escape
//! sequences: the writer could not distinguish ours from theirs. It carries a mark with a key that is drawn when the program
//! starts. Only `screen` turns marks into escape sequences; a text that others wrote cannot contain one.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::{LazyLock, OnceLock};

use anstyle::{AnsiColor, Color, Style};

use crate::args::ColorWhen;
use crate::screen::clean::flat;

pub(crate) const BAD: Style = bold(AnsiColor::Red);
pub(crate) const WARNING: Style = bold(AnsiColor::Yellow);
pub(crate) const GOOD: Style = bold(AnsiColor::Green);
pub(crate) const TOOL: Style = bold(AnsiColor::Cyan);
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const STRONG: Style = Style::new().bold();

/// All styles, by their number in a mark.
const ALL: [Style; 6] = [BAD, WARNING, GOOD, TOOL, DIM, STRONG];

const fn bold(colour: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(Color::Ansi(colour)))
}

/// The value of `--color`.
static WHEN: OnceLock<ColorWhen> = OnceLock::new();

/// Follows `--color` from now on.
pub(crate) fn choose(when: ColorWhen) {
    // Said once, by `main`.
    let _first = WHEN.set(when);
}

/// Whether a stream has colours. `--color` decides; by default `NO_COLOR`, then `CLICOLOR_FORCE`, then whether the stream is
/// a terminal that understands them.
pub(crate) fn wanted(is_terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match WHEN.get().copied().unwrap_or(ColorWhen::Auto) {
        ColorWhen::Always => true,
        ColorWhen::Never => false,
        ColorWhen::Auto if set("NO_COLOR").is_some() => false,
        ColorWhen::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColorWhen::Auto => is_terminal && set("TERM").is_none_or(|term| term != "dumb"),
    }
}

/// Begins a mark. It is not a character, so no text has a use for it.
const MARK: char = '\u{10ffff}';

/// The random key of the marks.
static KEY: LazyLock<String> = LazyLock::new(|| format!("{MARK}{:016x}", RandomState::new().build_hasher().finish()));

/// `text`, a part of one line, in a style.
pub(crate) fn styled(style: Style, text: &str) -> String {
    let text = flat(text);
    let Some(number) = ALL.iter().position(|one| *one == style) else { return text };
    format!("{}{number}{text}{}-", *KEY, *KEY)
}

pub(crate) use {styled as err, styled as out};

/// A part of a styled string.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// Text, not cleaned.
    Text(&'t str),
    /// A style begins.
    Begin(Style),
    /// All styles end.
    End,
}

/// Takes a styled string apart.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (index, piece) in text.split(KEY.as_str()).enumerate() {
        let (number, rest) = match piece.chars().next() {
            Some(first) if index > 0 && first.is_ascii() => piece.split_at(1),
            _ => ("", piece),
        };
        let style = number.parse().ok().and_then(|number: usize| ALL.get(number));
        match style {
            Some(style) => parts.push(Part::Begin(*style)),
            None if index > 0 => parts.push(Part::End),
            None => {}
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_is_found_again_and_a_text_cannot_forge_one() {
        let text = format!("a {} b", out(BAD, "c"));
        assert_eq!(parts(&text), [Part::Text("a "), Part::Begin(BAD), Part::Text("c"), Part::End, Part::Text(" b")]);
        let forged = format!("{MARK}0000000000000000{}x{MARK}", 0);
        assert_eq!(parts(&forged), [Part::Text(forged.as_str())]);
        assert_eq!(parts(&out(Style::new().italic(), "plain")), [Part::Text("plain")]);
    }
}
