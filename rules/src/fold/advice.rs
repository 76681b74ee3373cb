//! Which rules need `fold`: those that stop what they find, in text that a person reads or a file of any kind.

use flow::Action;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::{Bucket, InterruptMode, Rule, Scope, dialect};

/// So many letters in a row are a word, of which one can be replaced by what looks like it.
const LETTERS: usize = 3;

impl Rule {
    /// Whether the rule stops what it finds, and does not find it where a letter only looks the same. Not about commands and about source
    /// code of a kind: what they mean changes with their letters. `mode` is the interrupt mode in effect for the rule.
    pub fn is_passed_by_look_alikes(&self, mode: InterruptMode) -> bool {
        let stops = |tool: bool| !matches!(self.requests(mode, tool), Action::Remind | Action::Pass);
        let any_file = |scope: &Scope| {
            matches!(scope, Scope::Tool { name, glob: None } if name.as_deref() != Some("shell"))
                && self.globs.is_empty()
        };
        let is_read = (self.watches_prose() && stops(false)) || (self.scopes.iter().any(any_file) && stops(true));
        let watched = self.bucket == Bucket::Stream && self.fold.is_none() && !self.watches_commands() && is_read;
        watched && self.conditions.iter().chain(&self.all).any(|pattern| has_word(pattern.as_str()))
    }
}

fn has_word(condition: &str) -> bool {
    dialect::parse(condition).is_ok_and(|hir| longest(&hir).1 >= LETTERS)
}

/// The letters in a row at the end of what it matches, and the most anywhere in it.
fn longest(hir: &Hir) -> (usize, usize) {
    let more = |(run, most): (usize, usize)| (run + 1, most.max(run + 1));
    match hir.kind() {
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            let step = |at: (usize, usize), c: char| if c.is_alphabetic() { more(at) } else { (0, at.1) };
            text.chars().fold((0, 0), step)
        }
        // A letter in both cases.
        HirKind::Class(Class::Unicode(class)) => {
            let all: Vec<char> = class.iter().flat_map(|range| [range.start(), range.end()]).collect();
            let is_letter = class.iter().all(|range| range.start() == range.end()) && all.len() <= 8;
            let is_letter = is_letter && all.iter().all(|c| c.is_alphabetic());
            (usize::from(is_letter), usize::from(is_letter))
        }
        HirKind::Concat(parts) => parts.iter().fold((0, 0), |(run, most), part| {
            // A capture is the mark of the group `hide`.
            if let HirKind::Look(_) | HirKind::Capture(_) = part.kind() {
                return (run, most);
            }
            let (end, inside) = longest(part);
            let whole = inside == end && inside > 0;
            let joined = if whole { run + end } else { end };
            (joined, most.max(inside).max(joined))
        }),
        HirKind::Repetition(repeated) => (0, longest(&repeated.sub).1),
        HirKind::Alternation(branches) => (0, branches.iter().map(|branch| longest(branch).1).max().unwrap_or(0)),
        HirKind::Empty | HirKind::Look(_) | HirKind::Capture(_) | HirKind::Class(_) => (0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::has_word;

    #[test]
    fn three_letters_in_a_row_are_a_word() {
        for word in [
            "forbidden",
            "(?i)key",
            "a(?:pi|bcd)e",
            r"\bfoo\b",
            "AKIA[0-9A-Z]{16}",
            "fo(?:o)",
            "(?i)straße",
            "ke(?P<hide>y)",
        ] {
            assert!(has_word(word), "{word}");
        }
        for none in ["[0-9]{16}", "ab", r"\d{3}-\d{2}", "a.b.c", "[a-z]+", "--f", "a1b2c3"] {
            assert!(!has_word(none), "{none}");
        }
    }
}
