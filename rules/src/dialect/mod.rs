//! The dialect of conditions: Rust's syntax, with what rule files bring along from other hosts: `\w`, `\d` and `\b` of
//! ASCII, their escapes and classes, and look-around as far as an automaton can do it.
//!
//! `syntax` reads a condition and spells it in Rust's own way, `escape` and `class` do so for the parts that differ,
//! `around` takes look-around out, `hide` marks the beginning of
//! the hidden part.

mod anchors;
mod around;
mod class;
mod ends;
mod escape;
mod hide;
mod product;
mod syntax;

use std::fmt;
use std::ops::Range;

use regex_syntax::hir::Hir;

pub(crate) use anchors::{Anchors, anchors};

/// Why a condition cannot be used, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Where, in bytes of the condition.
    pub span: Range<usize>,
}

impl PatternError {
    fn new(span: Range<usize>, message: impl Into<String>, help: &str) -> Self {
        Self { message: message.into(), help: Some(help.to_owned()).filter(|help| !help.is_empty()), span }
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PatternError {}

/// Reads a condition.
pub(crate) fn parse(pattern: &str) -> Result<Hir, PatternError> {
    let read = syntax::read(pattern)?;
    let hir = match syntax::plain(&read.branches) {
        Some(text) => text.parse("", pattern.len()),
        None => around::eliminate(&read.branches, pattern.len(), &mut Vec::new()),
    }?;
    hide::check(&hir, &read.hides)?;
    Ok(hir)
}

/// Where the first group begins that captures in other dialects, up to its first inside byte.
pub(crate) fn first_group(pattern: &str) -> Option<Range<usize>> {
    syntax::read(pattern).ok()?.first_group
}

/// What a usable condition may mean otherwise than its author thinks, as warnings with their places.
pub(crate) fn notes(pattern: &str) -> Vec<PatternError> {
    let mut notes = Vec::new();
    if let Ok(read) = syntax::read(pattern) {
        notes.extend(read.notes);
        notes.extend(dead_alternatives(&read.branches, pattern.len()));
    }
    notes.extend(delimiters(pattern));
    notes
}

/// Alternatives whose look-around can never match, each span once: they are dropped from the condition.
fn dead_alternatives(branches: &syntax::Branches, len: usize) -> Vec<PatternError> {
    let mut never: Vec<PatternError> = Vec::new();
    if syntax::plain(branches).is_none() && around::eliminate(branches, len, &mut never).is_err() {
        return Vec::new();
    }
    never.dedup_by(|a, b| a.span == b.span);
    let message = "the alternative with this look-around never matches and is left out";
    never.into_iter().map(|one| PatternError::new(one.span, message, "remove it, or fix it")).collect()
}

/// `/…/i` is how a condition is written in a program, where the slashes are not part of it.
fn delimiters(pattern: &str) -> Option<PatternError> {
    let letters = pattern.len() - pattern.trim_end_matches(['d', 'g', 'i', 'm', 's', 'u', 'v', 'y']).len();
    let inside = pattern[..pattern.len() - letters].strip_prefix('/')?.strip_suffix('/')?;
    (letters > 0 && !inside.is_empty()).then(|| {
        let help = "remove the slashes and write the flags in front, such as `(?i)`";
        PatternError::new(0..pattern.len(), "the slashes and the letters after them are part of the condition", help)
    })
}
