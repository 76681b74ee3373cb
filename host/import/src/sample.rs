//! Texts that an expression matches, for examples: the shortest, of zeros where there is a choice, so that nobody takes one for a secret.
//! Those that come later are of two characters in turn, because scanners allow what is one character again and again.

use regex_syntax::hir::{Class, Hir, HirKind};

/// The characters that are preferred for a class: the first of these that it has. Letters follow the first two, then the rest.
const FIRST: &str = "0x";
const REST: &str = "-_/.\"'=:; +\n";

/// The longest text.
const MOST: usize = 8_192;

/// The most parts of an expression that one text passes: `(?:a?){1000000}` is of many without a character.
const STEPS: usize = 65_536;

/// Which of several texts is made: of two characters, of each choice another alternative, with what may be left out.
#[derive(Clone, Copy)]
struct Choice {
    mixed: bool,
    alternative: usize,
    optional: bool,
}

/// Texts that match, as far as assertions allow it, alone and between others; the shortest first.
pub(crate) fn texts(hir: &Hir) -> Vec<String> {
    // A blank before it, where a word must not begin at the beginning of the text.
    alone(hir).into_iter().flat_map(|text| [text.clone(), format!(" {text}"), format!("{text} .")]).collect()
}

/// Texts that match, as far as assertions allow it, and nothing else.
pub(crate) fn alone(hir: &Hir) -> Vec<String> {
    let choices = (0..24).map(|at| Choice { mixed: at >= 12, alternative: at % 12 / 2, optional: at % 2 == 1 });
    let mut out: Vec<String> = Vec::new();
    for choice in choices {
        let (mut text, mut steps) = (Vec::new(), STEPS);
        if write(hir, choice, &mut text, &mut steps) {
            out.extend(String::from_utf8(text));
        }
    }
    out.retain(|text| !text.is_empty() && text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control()));
    let mut seen = std::collections::HashSet::new();
    out.retain(|text| seen.insert(text.clone()));
    out
}

/// Appends a text that matches; `false` where there is none, or none that is short.
fn write(hir: &Hir, choice: Choice, out: &mut Vec<u8>, steps: &mut usize) -> bool {
    let Some(left) = steps.checked_sub(1).filter(|_| out.len() <= MOST) else { return false };
    *steps = left;
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => {
            out.extend_from_slice(&literal.0);
            true
        }
        HirKind::Class(class) => match character(class, if choice.mixed { out.len() % 2 } else { 0 }) {
            Some(c) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                true
            }
            None => false,
        },
        HirKind::Repetition(one) => {
            let most = one.max.unwrap_or(u32::MAX);
            let times = if choice.optional { one.min.max(1).min(most) } else { one.min };
            (0..times).all(|_| write(&one.sub, choice, out, steps))
        }
        HirKind::Capture(group) => write(&group.sub, choice, out, steps),
        HirKind::Concat(parts) => parts.iter().all(|part| write(part, choice, out, steps)),
        HirKind::Alternation(all) => {
            let first = choice.alternative % all.len();
            let start = out.len();
            let order = (first..all.len()).chain(0..first);
            order.into_iter().any(|at| {
                out.truncate(start);
                write(&all[at], choice, out, steps)
            })
        }
    }
}

/// The character for a class: the first of those that are preferred, or the second where there is one.
fn character(class: &Class, place: usize) -> Option<char> {
    let has = |c: char| match class {
        Class::Unicode(class) => class.iter().any(|range| range.start() <= c && c <= range.end()),
        Class::Bytes(class) => class.iter().any(|range| range.start() <= c as u8 && c as u8 <= range.end()),
    };
    let letters = FIRST.chars().chain('a'..='z').chain(['X']).chain('A'..='Z');
    let mut preferred = letters.chain(REST.chars()).chain(' '..='~').filter(|c| has(*c));
    let first = preferred.next();
    let second = first.and_then(|first| preferred.find(|c| *c != first)).filter(|_| place > 0);
    second.or(first).or_else(|| match class {
        Class::Unicode(class) => class.iter().map(|range| range.start()).find(|c| !c.is_control()),
        Class::Bytes(_) => None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::texts;

    #[test]
    fn an_expression_of_too_many_parts_has_no_text() {
        for text in ["(?:[a-z]?){4000000000}abc", "(?:(?:(?:a?){1000}){1000}){1000}", "a{9000}"] {
            assert!(texts(&regex_syntax::parse(text).unwrap()).is_empty(), "{text}");
        }
    }
}
