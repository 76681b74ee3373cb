//! The assertions `^` and `$` of a condition that mean the whole text, and not a line of it.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{self, AssertionKind, Ast, Flag, Flags, Visitor};

use super::syntax;

/// The bytes of a condition at which they are, in order: `^` begins, and `$` ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Anchors {
    pub(crate) begins: Vec<usize>,
    pub(crate) ends: Vec<usize>,
}

/// The assertions of a condition on which the flag `m` is off; none of a condition that cannot be read.
pub(crate) fn anchors(pattern: &str) -> Anchors {
    let Ok(read) = syntax::read(pattern) else { return Anchors::default() };
    let text = syntax::plain(&read.branches).unwrap_or_else(|| syntax::outline(&read.branches));
    let Ok(tree) = Parser::new().parse(text.as_str()) else { return Anchors::default() };
    let Ok(found) = ast::visit(&tree, Finder::default());
    let place = |at: &usize| text.origin(*at..at + 1, pattern.len()).start;
    Anchors { begins: found.begins.iter().map(place).collect(), ends: found.ends.iter().map(place).collect() }
}

/// Places in the tree of a condition.
#[derive(Debug, Default)]
struct Finder {
    of_lines: bool,
    /// The flag outside of each open group.
    outer: Vec<bool>,
    begins: Vec<usize>,
    ends: Vec<usize>,
}

impl Finder {
    fn set(&mut self, flags: &Flags) {
        self.of_lines = flags.flag_state(Flag::MultiLine).unwrap_or(self.of_lines);
    }
}

impl Visitor for Finder {
    type Output = Self;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Self, Self::Err> {
        Ok(self)
    }

    fn visit_pre(&mut self, tree: &Ast) -> Result<(), Self::Err> {
        match tree {
            Ast::Flags(flags) => self.set(&flags.flags),
            Ast::Group(group) => {
                self.outer.push(self.of_lines);
                group.flags().into_iter().for_each(|flags| self.set(flags));
            }
            Ast::Assertion(one) if !self.of_lines => match one.kind {
                AssertionKind::StartLine => self.begins.push(one.span.start.offset),
                AssertionKind::EndLine => self.ends.push(one.span.start.offset),
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    fn visit_post(&mut self, tree: &Ast) -> Result<(), Self::Err> {
        if matches!(tree, Ast::Group(_)) {
            self.of_lines = self.outer.pop().unwrap_or_default();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Anchors, anchors};

    #[test]
    fn an_assertion_of_a_line_is_none_of_the_text() {
        for (pattern, begins, ends) in [
            ("^a$", vec![0], vec![2]),
            ("(?m)^a$", vec![], vec![]),
            (r"(?m:^)rm|^\s*x", vec![9], vec![]),
            ("(?m)^a(?-m:^b$)$|^c", vec![11], vec![13]),
            ("(a(?m)^b)|^c", vec![10], vec![]),
            // Past a `|` too.
            ("a(?m)|^b", vec![], vec![]),
            // Classes, also one within another, and escapes.
            ("[$^]^", vec![4], vec![]),
            ("a[a[:^alpha:]^]x^", vec![16], vec![]),
            (r"\^[\]^]\$^", vec![9], vec![]),
            // A comment.
            ("(?x)a # ^$\n ^", vec![12], vec![]),
            // Other spellings of what Rust spells otherwise, before the place and in it.
            (r"\w[^]é{}^", vec![9], vec![]),
            (r"(?<!a)^b(?!^c$)(d(?m)(?=$))", vec![6, 11], vec![13]),
            (r"\Aa\z", vec![], vec![]),
            ("(", vec![], vec![]),
        ] {
            assert_eq!(anchors(pattern), Anchors { begins, ends }, "{pattern}");
        }
    }
}
