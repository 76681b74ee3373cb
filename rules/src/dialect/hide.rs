//! The group `hide`, `(?P<hide>…)`: what of a match must never be shown.
//!
//! Only where it begins counts, so it is read as a mark there, and a group without a name around the rest. No other group of a
//! condition is a capturing one: a capture in an expression is such a mark. A match has to pass exactly one.

use std::ops::Range;

use regex_syntax::hir::{Capture, Hir, HirKind};

use super::PatternError;

pub(super) const NAME: &str = "hide";

/// A mark in Rust's syntax.
pub(super) const MARK: &str = "()";

/// A mark as an expression.
pub(super) fn mark() -> Hir {
    Hir::capture(Capture { index: 1, name: None, sub: Box::new(Hir::empty()) })
}

/// What is wrong with the marks of an expression.
enum Wrong {
    Missing,
    Twice,
}

/// Checks that each match passes one mark, or none does. `places` are those of the groups in the condition.
///
/// # Errors
/// It may pass none, or several.
pub(super) fn check(hir: &Hir, places: &[Range<usize>]) -> Result<(), PatternError> {
    let Some(last) = places.last() else { return Ok(()) };
    let (message, help) = match passes(hir) {
        Ok(_) => return Ok(()),
        Err(Wrong::Missing) => (
            "a match can lack the group `hide`",
            "put the group around all alternatives, `(?P<hide>…|…)`, or one into each; and an optional part into the group",
        ),
        Err(Wrong::Twice) => (
            "there are two groups `hide` in one match",
            "keep the first: what follows it in the match is hidden as well",
        ),
    };
    Err(PatternError::new(last.clone(), message, help))
}

pub(super) fn in_look_around(place: Range<usize>) -> PatternError {
    let help = "put it around what the condition itself matches";
    PatternError::new(place, "the group `hide` is in a look-around, which is no part of the match", help)
}

/// The error about what repeats the group, or a group around it: a match could have it several times, or not at all.
pub(super) fn repeated(place: Range<usize>) -> PatternError {
    let help = "put the repetition into the group: `(?P<hide>(?:…){2})`, `(?P<hide>(?:…)?)`";
    PatternError::new(place, "the group `hide` is in a repetition", help)
}

/// Whether each match of the expression passes a mark; `false` if none does.
fn passes(hir: &Hir) -> Result<bool, Wrong> {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => Ok(false),
        HirKind::Capture(_) => Ok(true),
        HirKind::Repetition(repetition) => match passes(&repetition.sub)? {
            true => Err(Wrong::Missing),
            false => Ok(false),
        },
        HirKind::Concat(parts) => parts.iter().try_fold(false, |any, part| match (any, passes(part)?) {
            (true, true) => Err(Wrong::Twice),
            (any, own) => Ok(any || own),
        }),
        HirKind::Alternation(parts) => {
            // A branch that can never match needs no mark.
            let mut matching = parts.iter().filter(|part| can_match(part));
            let first = matching.next().map_or(Ok(false), passes)?;
            matching.try_fold(first, |first, part| if passes(part)? == first { Ok(first) } else { Err(Wrong::Missing) })
        }
    }
}

/// Whether the expression can match, assertions aside. `Properties::minimum_len` is unknown where a single branch cannot.
fn can_match(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Look(_) | HirKind::Capture(_) => true,
        HirKind::Class(class) => !class.is_empty(),
        HirKind::Repetition(repetition) => repetition.min == 0 || can_match(&repetition.sub),
        HirKind::Concat(parts) => parts.iter().all(can_match),
        HirKind::Alternation(parts) => parts.iter().any(can_match),
    }
}
