//! What the texts of expressions have in common: decided on their automata, not on how they are written.

use std::collections::HashSet;

use regex_automata::nfa::thompson::{Compiler, Config, NFA, State, WhichCaptures};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

/// The pairs of states that are visited before a question remains open.
const BUDGET: usize = 400_000;

/// The most bytes of an automaton. Counts multiply: `(a{1000}){1000}`.
const MAX_BYTES: usize = 8 << 20;

/// An expression as the scanner reads it: classes of ASCII, as in the dialect of conditions.
pub(crate) fn parse(text: &str) -> Option<Hir> {
    let parse = |unicode| ParserBuilder::new().unicode(unicode).utf8(false).build().parse(text).ok();
    parse(false).or_else(|| parse(true))
}

/// The same for examples, which are tried afterwards: look-around and the group `hide` are passed over, and a brace that counts nothing is
/// itself.
pub(crate) fn loose(text: &str) -> Option<Hir> {
    // A name is used once, elsewhere.
    let text = text.replace("(?P<hide>", "(");
    parse(&text).or_else(|| parse(&without_look_around(&text)))
}

fn without_look_around(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let len = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '(' if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|sign| rest.starts_with(sign)) => {
                rest = &rest[group(rest)..];
                continue;
            }
            '{' if !is_count(rest) => {
                out.push('\\');
                1
            }
            c => c.len_utf8(),
        };
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out
}

/// The length of the group at the beginning of `text`.
fn group(text: &str) -> usize {
    let (mut depth, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

fn is_count(text: &str) -> bool {
    let inside = text[1..].split('}').next().unwrap_or_default();
    inside.starts_with(|c: char| c.is_ascii_digit()) && inside.chars().all(|c| c.is_ascii_digit() || c == ',')
}

/// An expression, to be compared with many others.
#[derive(Debug)]
pub(crate) struct Language(NFA);

impl Language {
    /// `None` where it is too large.
    pub(crate) fn of(hir: &Hir) -> Option<Self> {
        compile(hir).map(Self)
    }
}

fn compile(hir: &Hir) -> Option<NFA> {
    let config = Config::new().utf8(false).nfa_size_limit(Some(MAX_BYTES)).which_captures(WhichCaptures::None);
    Compiler::new().configure(config).build_from_hir(hir).ok()
}

/// Whether the beginning of an expression matches nothing but the empty text. Flags count as nothing.
pub(crate) fn is_empty_before(text: &str) -> bool {
    parse(text).is_some_and(|hir| hir.properties().maximum_len() == Some(0))
}

/// Whether every match contains one of the words, in any case. An open question counts as no.
pub(crate) fn always_has(hir: &Hir, words: &[String]) -> bool {
    let (Some(nfa), Some(words)) = (compile(hir), Words::new(words)) else { return false };
    let (mut seen, mut stack) = (HashSet::new(), vec![(nfa.start_anchored(), 0)]);
    while let Some((state, at)) = stack.pop() {
        if !seen.insert((state, at)) {
            continue;
        }
        if matches!(nfa.state(state), State::Match { .. }) || seen.len() > BUDGET {
            return false;
        }
        for (low, high, next) in moves(&nfa, state) {
            stack.extend((low..=high).filter_map(|byte| Some((next, words.after(at, byte)?))));
        }
        stack.extend(empties(&nfa, state).into_iter().map(|(_, next)| (next, at)));
    }
    true
}

/// Words as an automaton whose states are the beginnings of words (Knuth, Morris and Pratt).
struct Words {
    beginnings: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Words {
    fn new(words: &[String]) -> Option<Self> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_ascii_lowercase().into_bytes()).collect();
        if words.is_empty() || words.iter().any(Vec::is_empty) {
            return None;
        }
        let mut beginnings: Vec<Vec<u8>> =
            words.iter().flat_map(|word| (0..word.len()).map(|end| word[..end].to_vec())).collect();
        beginnings.sort_by_key(Vec::len);
        beginnings.dedup();
        Some(Self { beginnings, words })
    }

    /// The state behind a byte; none where a word is complete.
    fn after(&self, at: usize, byte: u8) -> Option<usize> {
        let mut text = self.beginnings[at].clone();
        text.push(byte.to_ascii_lowercase());
        if self.words.iter().any(|word| text.ends_with(word)) {
            return None;
        }
        let ends = (0..=text.len()).map(|from| &text[from..]);
        ends.filter_map(|end| self.beginnings.iter().position(|known| known == end)).next()
    }
}

/// How far the search for an expression is within a text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Search {
    Waits,
    At(StateID),
    /// At a state behind `$`.
    AtEnd(StateID),
    Found,
}

/// Whether a text that is all of `whole` can contain a match of `part`. An open question counts as yes.
pub(crate) fn can_contain(Language(whole): &Language, part: &Hir) -> bool {
    let Some(part) = compile(part) else { return true };
    let (mut seen, mut stack) = (HashSet::new(), vec![(whole.start_anchored(), Search::Waits, true)]);
    while let Some(place) = stack.pop() {
        let (state, search, is_first) = place;
        if !seen.insert(place) {
            continue;
        }
        if seen.len() > BUDGET {
            return true;
        }
        let is_end = matches!(whole.state(state), State::Match { .. });
        let done = match search {
            Search::Found => is_end,
            Search::AtEnd(at) => is_end && matches!(part.state(at), State::Match { .. }),
            Search::Waits | Search::At(_) => false,
        };
        if done {
            return true;
        }
        stack.extend(empties(whole, state).into_iter().map(|(_, next)| (next, search, is_first)));
        stack.extend(within(&part, search, is_first).into_iter().map(|search| (state, search, is_first)));
        for (low, high, next) in moves(whole, state) {
            match search {
                Search::Waits | Search::Found => stack.push((next, search, false)),
                Search::At(at) => {
                    let both = moves(&part, at).into_iter().filter(|(from, to, _)| *from <= high && low <= *to);
                    stack.extend(both.map(|(.., to)| (next, Search::At(to), false)));
                }
                Search::AtEnd(_) => {}
            }
        }
    }
    false
}

/// Where the search can go without a byte.
fn within(part: &NFA, search: Search, is_first: bool) -> Vec<Search> {
    let at = match search {
        Search::Waits => return vec![Search::At(part.start_anchored())],
        Search::At(at) | Search::AtEnd(at) => at,
        Search::Found => return Vec::new(),
    };
    if search == Search::At(at) && matches!(part.state(at), State::Match { .. }) {
        return vec![Search::Found];
    }
    let ends = matches!(search, Search::AtEnd(_));
    let next = empties(part, at).into_iter().filter_map(|(look, next)| match look {
        Some(Look::Start) => is_first.then_some((next, ends)),
        Some(Look::End) => Some((next, true)),
        _ => Some((next, ends)),
    });
    next.map(|(next, ends)| if ends { Search::AtEnd(next) } else { Search::At(next) }).collect()
}

/// The bytes that a state consumes, from the first to the second, and what follows.
fn moves(nfa: &NFA, state: StateID) -> Vec<(u8, u8, StateID)> {
    match nfa.state(state) {
        State::ByteRange { trans } => vec![(trans.start, trans.end, trans.next)],
        State::Sparse(sparse) => sparse.transitions.iter().map(|one| (one.start, one.end, one.next)).collect(),
        State::Dense(dense) => {
            let some = dense.transitions.iter().zip(0_u8..=255).filter(|(next, _)| **next != StateID::ZERO);
            some.map(|(next, byte)| (byte, byte, *next)).collect()
        }
        _ => Vec::new(),
    }
}

/// The states that follow without a byte, and the assertion between. Assertions that are not told apart count as true.
fn empties(nfa: &NFA, state: StateID) -> Vec<(Option<Look>, StateID)> {
    match nfa.state(state) {
        State::Look { look, next } => vec![(Some(*look), *next)],
        State::Union { alternates } => alternates.iter().map(|next| (None, *next)).collect(),
        State::BinaryUnion { alt1, alt2 } => vec![(None, *alt1), (None, *alt2)],
        State::Capture { next, .. } => vec![(None, *next)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{Language, always_has, can_contain, parse};

    #[test]
    fn a_keyword_is_in_every_match_or_not() {
        for (text, words, always) in [
            (r"(?i)[\w.-]{0,50}?(?:adobe)=([a-z]{4})", &["adobe"][..], true),
            (r"\b((?:A3T[A-Z0-9]|AKIA|ASIA)[A-Z2-7]{16})\b", &["a3t", "akia", "asia"], true),
            (r"\b((?:A3T[A-Z0-9]|AKIA|ASIA)[A-Z2-7]{16})\b", &["a3t", "akia"], false),
            (r"\b(pat[a-z0-9]{14})\b", &["airtable"], false),
            ("a(?:bc|xbc)d", &["bcd"], true),
            ("aab", &["ab"], true),
            ("ab", &[""], false),
        ] {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(always_has(&parse(text).unwrap(), &words), always, "{text}");
        }
    }

    #[test]
    fn what_is_too_large_is_an_open_question() {
        let large = parse("(?:(?:a{1000}){1000}){1000}").unwrap();
        assert!(Language::of(&large).is_none());
        assert!(!always_has(&large, &["a".to_owned()]));
    }

    #[test]
    fn a_secret_can_be_allowed_or_not() {
        for (whole, part, can) in [
            ("[a-f0-9]{32}", "^true|false|null$", false),
            ("[a-z0-9]{32}", "^true|false|null$", true),
            ("[a-z]{3}u", "null$", false),
            ("[a-z]{3}ll", "null$", true),
            ("AKIA[A-Z2-7]{16}", ".+EXAMPLE$", true),
            ("AKIA[A-F2-7]{16}", ".+EXAMPLE$", false),
            ("[a-z]{9}", "^(?:a+|b+)$", true),
            ("x[a-z]{9}", "^(?:a+|b+)$", false),
            ("[A-Z]{4}", r"^\$\{[A-Z]+\}$", false),
        ] {
            assert_eq!(
                can_contain(&Language::of(&parse(whole).unwrap()).unwrap(), &parse(part).unwrap()),
                can,
                "{whole} {part}"
            );
        }
    }
}
