//! The group `hide`: where in an expression the secret is.

use std::fmt;
use std::ops::Range;

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, GroupKind};

use crate::set::Part;
use crate::{excluded, language};

/// A condition for an expression, with the group `hide` around its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hiding {
    pub(crate) condition: String,
    /// Why all of a match is hidden although the scanner names a part.
    pub(crate) no_part: Option<NoPart>,
    /// Whether it excludes what the allow lists exclude.
    pub(crate) excludes: bool,
}

/// Why a condition has no group `hide` although the scanner names a part of its match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoPart {
    /// The groups of the expression cannot be found.
    Unreadable,
    /// The expression has no group with this number.
    Missing,
    /// The group is repeated.
    Repeated,
    /// The dialect refuses the condition with the group, for this reason.
    Refused(String),
}

impl fmt::Display for NoPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "its groups cannot be found",
            Self::Missing => "it has no such group",
            Self::Repeated => "its group is repeated",
            Self::Refused(why) => why,
        })
    }
}

/// A group that captures: its number, its text, and what is around it.
struct Capture {
    number: usize,
    span: Range<usize>,
    /// The name with its signs: `?P<key>`, which `hide` takes the place of.
    name: Range<usize>,
    repeated: bool,
    /// Not every match goes through it.
    optional: bool,
    /// It is in another one.
    inner: bool,
}

/// Puts the group `hide` around the part that is secret, and look-around for the `excluded` expressions, as far as there is one. The dialect
/// decides whether every match has the group.
pub(crate) fn hiding(text: &str, part: Part, excluded: &[String]) -> Hiding {
    let without = |no_part| Hiding { condition: text.to_owned(), no_part, excludes: false };
    if part == Part::Match {
        return without(None);
    }
    let Ok(ast) = Parser::new().parse(text) else { return without(Some(NoPart::Unreadable)) };
    let captures = captures(&ast, text);
    let wanted: Vec<&Capture> = match (part, captures.first()) {
        (_, None) => return without(None),
        (Part::Group(number), _) => captures.iter().filter(|one| one.number == number).collect(),
        // The first that is not empty. Where it is in every match, it is the first.
        (_, Some(first)) if !first.optional => vec![first],
        _ => captures.iter().filter(|one| !one.inner).collect(),
    };
    if wanted.is_empty() {
        return without(Some(NoPart::Missing));
    }
    if wanted.iter().any(|one| one.repeated) {
        return without(Some(NoPart::Repeated));
    }
    let (condition, excludes) = with_hide(text, &wanted, &captures, excluded);
    Hiding { condition, no_part: None, excludes }
}

/// The condition, and whether it excludes what is excluded. Where nothing precedes the only group but assertions, all of the match is the
/// group, as far as hiding begins.
fn with_hide(text: &str, wanted: &[&Capture], all: &[Capture], excluded: &[String]) -> (String, bool) {
    let hides = wanted.len() > 1 || wanted.iter().any(|one| !language::is_empty_before(&text[..one.span.start]));
    let around = |one: &&Capture| excluded::around(&text[one.span.clone()], &text[one.span.end..], excluded);
    let around: Vec<_> = if excluded.is_empty() { Vec::new() } else { wanted.iter().filter_map(around).collect() };
    let mut edits: Vec<(Range<usize>, &str)> = Vec::new();
    let excludes = !excluded.is_empty() && around.len() == wanted.len();
    for (one, around) in wanted.iter().zip(&around).filter(|_| excludes) {
        edits.push((one.span.start..one.span.start, &around.before));
        edits.push((one.span.end..one.span.end, &around.behind));
    }
    for one in all {
        let is_hide = hides && wanted.iter().any(|wanted| wanted.number == one.number);
        if is_hide {
            edits.push((one.name.clone(), "?P<hide>"));
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    let (mut out, mut at) = (String::with_capacity(text.len() + 9), 0);
    for (span, new) in edits {
        out.push_str(&text[at..span.start]);
        out.push_str(new);
        at = span.end;
    }
    (out + &text[at..], excludes)
}

fn span(ast: &Ast) -> Range<usize> {
    let span = ast.span();
    span.start.offset..span.end.offset
}

/// The groups in the order of their numbers.
fn captures(ast: &Ast, text: &str) -> Vec<Capture> {
    let (mut out, mut stack) = (Vec::new(), vec![(ast, [false; 3])]);
    while let Some((ast, around)) = stack.pop() {
        let [repeated, optional, inner] = around;
        match ast {
            Ast::Group(group) => {
                let span = span(ast);
                let number = match &group.kind {
                    GroupKind::CaptureIndex(number) => Some((*number, 0)),
                    GroupKind::CaptureName { name, .. } => {
                        Some((name.index, text[span.start..].find('>').unwrap_or(0)))
                    }
                    GroupKind::NonCapturing(_) => None,
                };
                stack.push((&group.ast, [repeated, optional, inner || number.is_some()]));
                if let Some((number, signs)) = number {
                    let name = span.start + 1..span.start + 1 + signs;
                    out.push(Capture { number: number as usize, span, name, repeated, optional, inner });
                }
            }
            Ast::Repetition(one) => stack.push((&one.ast, [true, optional, inner])),
            Ast::Alternation(all) => stack.extend(all.asts.iter().map(|one| (one, [repeated, true, inner]))),
            Ast::Concat(all) => stack.extend(all.asts.iter().map(|one| (one, around))),
            _ => {}
        }
    }
    out.sort_by_key(|one| one.number);
    out
}

#[cfg(test)]
mod tests {
    use super::{Part, hiding};

    #[test]
    fn the_secret_is_hidden_in_every_match() {
        for (text, part, condition, is_without) in [
            ("key=([a-z]{4})", Part::FirstGroup, "key=(?P<hide>[a-z]{4})", false),
            ("(?i)key(=|:)(?P<v>[a-z]{4})", Part::Group(2), "(?i)key(=|:)(?P<hide>[a-z]{4})", false),
            // Nothing of a match precedes the secret.
            (r"\b(ab[0-9]{4})(?:\s|$)", Part::FirstGroup, r"\b(ab[0-9]{4})(?:\s|$)", false),
            ("ab[0-9]{4}", Part::FirstGroup, "ab[0-9]{4}", false),
            // Each alternative has a group of its own.
            ("(?i)a=(b{4})|(c{4})", Part::FirstGroup, "(?i)a=(?P<hide>b{4})|(?P<hide>c{4})", false),
            ("x(?:a=(b(b){3})|c=(d{4}))", Part::FirstGroup, "x(?:a=(?P<hide>b(b){3})|c=(?P<hide>d{4}))", false),
            ("x([a-z]-){3}y", Part::FirstGroup, "x([a-z]-){3}y", true),
            ("x(?:a=(b{4}))?c", Part::FirstGroup, "x(?:a=(b{4}))?c", true),
            ("x(a)", Part::Group(2), "x(a)", true),
        ] {
            let hiding = hiding(text, part, &[]);
            assert_eq!((hiding.condition.as_str(), hiding.no_part.is_some()), (condition, is_without), "{text}");
        }
    }
}
