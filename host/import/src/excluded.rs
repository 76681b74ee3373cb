//! Allow lists about the secret as look-around at the secret, where that means exactly the same.
//!
//! **Behind it**, `(?<!…)`: what is found at the end of the secret, and is never longer than the secret is.
//!
//! **Before it**, `(?!…)`, where the secret is all of a run of characters: it consists of some characters, and what follows it in a match is
//! none of them. An expression that is found in the secret is then one that is found in the run, and its `$` is the end of the run.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look};
use regex_syntax::{Parser, hir};

use crate::language;

/// What is put before and behind the secret.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Around {
    pub(crate) before: String,
    pub(crate) behind: String,
}

/// The look-around for the expressions of allow lists, at a secret that `tail` follows. `None`: there is none that means the same.
pub(crate) fn around(secret: &str, tail: &str, expressions: &[String]) -> Option<Around> {
    let run = Run::of(&language::parse(&format!("(?i){secret}"))?)?;
    let is_run = language::parse(&format!("(?i){tail}")).is_some_and(|tail| run.ends_before(&tail));
    let mut entries = Vec::new();
    for expression in expressions {
        let hir = Parser::new().parse(expression).ok()?;
        match hir.kind() {
            HirKind::Alternation(all) => entries.extend(all.iter().cloned()),
            _ => entries.push(hir),
        }
    }
    // The dialect takes one of the two at a place.
    let behind: Option<Vec<String>> = entries.iter().map(|one| run.at_end(one)).collect();
    let (before, behind) = match behind {
        Some(behind) => (Vec::new(), behind),
        None if is_run => {
            let before: Option<Vec<_>> = entries.iter().map(|one| run.entry(one)).collect();
            (before?.into_iter().flatten().collect(), Vec::new())
        }
        None => return None,
    };
    // The flags of the rest of the expression are not those of the list.
    let look = |sign: &str, all: &[String]| match all {
        [] => String::new(),
        all => format!("({sign}(?-imsx:{}))", all.join("|")),
    };
    let around = Around { before: look("?!", &before), behind: look("?<!", &behind) };
    (around != Around::default()).then_some(around)
}

/// Whether nothing matches the expression, of which no part is one that nothing matches.
fn never_matches(hir: &Hir) -> bool {
    hir.properties().minimum_len().is_none()
}

/// The characters of a secret, of ASCII alone, and its least length.
struct Run {
    chars: Vec<char>,
    least: usize,
}

impl Run {
    fn of(secret: &Hir) -> Option<Self> {
        let (mut all, mut stack) = ([false; 128], vec![secret]);
        while let Some(hir) = stack.pop() {
            let ranges: Vec<(u32, u32)> = match hir.kind() {
                HirKind::Literal(literal) => {
                    literal.0.iter().map(|byte| (u32::from(*byte), u32::from(*byte))).collect()
                }
                HirKind::Class(Class::Bytes(class)) => {
                    class.iter().map(|range| (range.start().into(), range.end().into())).collect()
                }
                HirKind::Class(Class::Unicode(class)) => {
                    class.iter().map(|range| (range.start().into(), range.end().into())).collect()
                }
                _ => Vec::new(),
            };
            for code in ranges.into_iter().flat_map(|(start, end)| start..=end) {
                *all.get_mut(code as usize)? = true;
            }
            stack.extend(hir.kind().subs());
        }
        let chars: Vec<char> = (0_u8..128).filter(|byte| all[usize::from(*byte)]).map(char::from).collect();
        let least = secret.properties().minimum_len().filter(|len| *len > 0)?;
        Some(Self { chars, least })
    }

    /// Whether what follows begins with another character, or is the end, or the end of a word that the whole run is.
    fn ends_before(&self, tail: &Hir) -> bool {
        let is_other = |start: u32, end: u32| !self.chars.iter().any(|c| (start..=end).contains(&u32::from(*c)));
        match tail.kind() {
            HirKind::Look(Look::End) => true,
            HirKind::Look(Look::WordAscii | Look::WordEndHalfAscii) => {
                self.chars.iter().all(|c| c.is_ascii_alphanumeric() || *c == '_')
            }
            HirKind::Literal(literal) => literal.0.first().is_some_and(|byte| is_other((*byte).into(), (*byte).into())),
            HirKind::Class(Class::Bytes(class)) => {
                class.iter().all(|range| is_other(range.start().into(), range.end().into()))
            }
            HirKind::Class(Class::Unicode(class)) => {
                class.iter().all(|range| is_other(range.start().into(), range.end().into()))
            }
            HirKind::Capture(group) => self.ends_before(&group.sub),
            HirKind::Repetition(one) => one.min > 0 && self.ends_before(&one.sub),
            HirKind::Concat(parts) => parts.first().is_some_and(|first| self.ends_before(first)),
            HirKind::Alternation(all) => all.iter().all(|one| self.ends_before(one)),
            HirKind::Empty | HirKind::Look(_) => false,
        }
    }

    /// An alternative that is found at the end of the secret: `X$`, or `.+X$` where the secret is longer than `X`.
    fn at_end(&self, hir: &Hir) -> Option<String> {
        let HirKind::Concat(parts) = hir.kind() else { return None };
        let (_, parts) = parts.split_last().filter(|(last, _)| *last.kind() == HirKind::Look(Look::End))?;
        let (lead, rest) = match parts.split_first().map(|(first, rest)| (first.kind(), rest)) {
            Some((HirKind::Repetition(one), rest)) if one.max.is_none() && self.are_all_in(&one.sub) => (one.min, rest),
            _ => (0, parts),
        };
        let end = self.within(&Hir::concat(rest.to_vec()))?;
        let longest = end.properties().maximum_len().filter(|len| *len > 0)?;
        (longest + lead as usize <= self.least).then(|| end.to_string())
    }

    /// Whether the class has all characters of the secret.
    fn are_all_in(&self, hir: &Hir) -> bool {
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else { return false };
        self.chars.iter().all(|c| class.iter().any(|range| range.start() <= *c && *c <= range.end()))
    }

    /// An alternative of an allow list, as it is found in a run; `Some(None)` where it cannot be, `None` where it cannot be said.
    fn entry(&self, hir: &Hir) -> Option<Option<String>> {
        let mut parts =
            if let HirKind::Concat(parts) = hir.kind() { parts.as_slice() } else { std::slice::from_ref(hir) };
        let is = |one: Option<&Hir>, look: Look| one.is_some_and(|one| *one.kind() == HirKind::Look(look));
        let (starts, ends) = (is(parts.first(), Look::Start), is(parts.last(), Look::End));
        parts = &parts[usize::from(starts).min(parts.len())..];
        parts = &parts[..parts.len() - usize::from(ends && !parts.is_empty())];
        let within = self.within(&Hir::concat(parts.to_vec()))?;
        if never_matches(&within) {
            return Some(None);
        }
        let chars: String = self.chars.iter().map(|c| regex_syntax::escape(&c.to_string())).collect();
        let before = if starts { String::new() } else { format!("[{chars}]*?") };
        let after = if ends { format!("(?:[^{chars}]|$)") } else { String::new() };
        Some(Some(format!("{before}{within}{after}")))
    }

    /// The expression for texts of these characters alone.
    fn within(&self, hir: &Hir) -> Option<Hir> {
        let all = |parts: &[Hir]| parts.iter().map(|part| self.within(part)).collect::<Option<Vec<_>>>();
        Some(match hir.kind() {
            HirKind::Empty => Hir::empty(),
            HirKind::Look(_) => return None,
            HirKind::Literal(literal) => {
                let is_ours = literal.0.iter().all(|byte| self.chars.contains(&char::from(*byte)));
                if is_ours { hir.clone() } else { Hir::fail() }
            }
            HirKind::Class(Class::Unicode(class)) => {
                let mut class = class.clone();
                class.intersect(&ClassUnicode::new(self.chars.iter().map(|c| ClassUnicodeRange::new(*c, *c))));
                Hir::class(Class::Unicode(class))
            }
            HirKind::Class(Class::Bytes(_)) => return None,
            HirKind::Capture(group) => self.within(&group.sub)?,
            HirKind::Repetition(one) => match self.within(&one.sub)? {
                sub if never_matches(&sub) => {
                    if one.min == 0 {
                        Hir::empty()
                    } else {
                        Hir::fail()
                    }
                }
                sub => Hir::repetition(hir::Repetition { sub: Box::new(sub), ..one.clone() }),
            },
            HirKind::Concat(parts) => match all(parts)? {
                parts if parts.iter().any(never_matches) => Hir::fail(),
                parts => Hir::concat(parts),
            },
            HirKind::Alternation(parts) => {
                Hir::alternation(all(parts)?.into_iter().filter(|part| !never_matches(part)).collect())
            }
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::around;

    #[test]
    fn an_allow_list_is_look_around_where_it_means_the_same() {
        for (secret, tail, expression, before, behind) in [
            ("(AK[A-Z2-7]{9})", r"\b", ".+EXAMPLE$", "", "(?<!(?-imsx:(?:EXAMPLE)))"),
            ("(AK[a-z]{2})", "[a-z]?;", "(?i)x$", "", "(?<!(?-imsx:[Xx]))"),
            ("(k[a-c]{4})", r"(?:[\s;]|$)", "^kaaaa$", "(?!(?-imsx:(?:kaaaa)(?:[^KabckABC]|$)))", ""),
            ("(k[a-c]{4})", ";", "ab", "(?!(?-imsx:[ABCKabck]*?(?:ab)))", ""),
            ("(k[a-c]{4})", ";", "^a[_-]?b", "(?!(?-imsx:(?:ab)))", ""),
            ("(k[a-c]{4})", ";", "^(?:a-|a)b|c[_-]b", "(?!(?-imsx:(?:ab)))", ""),
            // What cannot be in the secret needs none.
            ("(AK[a-f]{4})", r"(?:[\s;]|$)", r"^\$\{", "", ""),
            // The text at the end is longer than the secret may be.
            ("(AK[A-Z2-7]{5})", "", ".+EXAMPLE$", "", ""),
            // The run goes on behind the secret.
            ("(AK[a-z]{4})", "", "aaaa", "", ""),
            ("(AK[a-z]{4})", "[a-z]?;", "aaaa", "", ""),
            ("(AK[a-z-]{4})", r"\b", "aaaa", "", ""),
            ("(AK[a-z]{4})", ";", r"\baaaa", "", ""),
            ("(AK.{4})", ";", "aaaa", "", ""),
        ] {
            let found = around(secret, tail, &[expression.to_owned()]).unwrap_or_default();
            let sorted = |text: &str| {
                let mut all: Vec<char> = text.chars().collect();
                all.sort_unstable();
                all
            };
            assert_eq!(
                (sorted(&found.before), found.behind.as_str()),
                (sorted(before), behind),
                "{secret} {tail} {expression}: {found:?}"
            );
        }
    }
}
