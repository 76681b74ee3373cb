//! The engine against the `regex` crate: the input says some conditions, a text and how it is cut, and every condition
//! fires at the smallest end of any of its matches in the whole text.

use std::sync::Arc;

use regex_automata::util::syntax;
use regex_automata::{Input, meta};
use rules::engine::{Automaton, Cursor, Pattern};

/// A part of a condition in the rules' dialect, and the same in Rust's.
const LEAVES: [(&str, &str); 32] = [
    ("a", "a"),
    ("b", "b"),
    ("c", "c"),
    ("ab", "ab"),
    ("abc", "abc"),
    ("é", "é"),
    ("1", "1"),
    ("_", "_"),
    (" ", " "),
    (".", "."),
    ("[ab]", "[ab]"),
    ("[^a]", "[^a]"),
    (r"\s", r"\s"),
    ("\n", "\n"),
    ("^", "^"),
    ("$", "$"),
    ("(?m:^)", "(?m:^)"),
    ("(?m:$)", "(?m:$)"),
    ("(?Rm:$)", "(?Rm:$)"),
    ("(?Rm:^)", "(?Rm:^)"),
    (r"\A", r"\A"),
    (r"\z", r"\z"),
    ("(?i:A)", "(?i:A)"),
    ("[é-ü]", "[é-ü]"),
    (r"\w", "[0-9A-Za-z_]"),
    (r"\W", "[^0-9A-Za-z_]"),
    (r"\d", "[0-9]"),
    (r"[\w.]", "[0-9A-Za-z_.]"),
    (r"\b", r"(?-u:\b)"),
    (r"\B", r"(?-u:\B)"),
    (r"\b{start}", r"(?-u:\b{start})"),
    (r"(?!\w)", r"(?-u:\b{end-half})"),
];

const TIMES: [&str; 8] = ["*", "+", "?", "*?", "+?", "{2}", "{1,3}", "{2,}"];

const PIECES: [&str; 16] = ["a", "b", "c", "ab", "abc", " ", "_", "\n", "\r", "\r\n", "é", "ü", "1", ".", "ſ", "aaaa"];

/// The most parts of one condition.
const MAX_PARTS: u32 = 24;

struct Bytes<'b>(std::slice::Iter<'b, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> usize {
        self.0.next().copied().unwrap_or(0).into()
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes.iter());
    let count = 1 + bytes.next() % 4;
    let pairs: Vec<(String, String)> = (0..count).map(|_| part(&mut bytes, 4, &mut MAX_PARTS.clone())).collect();
    let text: String = (0..bytes.next() % 32).map(|_| PIECES[bytes.next() % PIECES.len()]).collect();
    let cuts: Vec<usize> = bytes.0.map(|size| 1 + usize::from(*size) % 7).collect();
    let patterns: Vec<Arc<Pattern>> = pairs
        .iter()
        .map(|(ours, _)| Arc::new(Pattern::new(ours).unwrap_or_else(|error| panic!("{ours:?}: {error:?}"))))
        .collect();
    let expected: Vec<Option<usize>> = pairs.iter().map(|(_, theirs)| first_end(theirs, text.as_bytes())).collect();
    for automaton in [Automaton::new(patterns.clone()), Automaton::with_cache_bytes(patterns.clone(), 9_000)] {
        for cuts in [&[usize::MAX][..], &[1], &cuts] {
            let found = ends(&automaton, text.as_bytes(), cuts);
            for ((pattern, expected), found) in patterns.iter().zip(&expected).zip(found) {
                // One that matches before the first byte is not asked about.
                let expected = if pattern.matches_empty() { found } else { *expected };
                assert_eq!(found, expected, "{} on {text:?} cut {cuts:?}", pattern.as_str());
            }
        }
    }
}

/// Reads a condition from the input.
fn part(bytes: &mut Bytes<'_>, depth: u32, left: &mut u32) -> (String, String) {
    let kind = bytes.next() % 8;
    if depth == 0 || *left == 0 || kind < 3 {
        let (ours, theirs) = LEAVES[bytes.next() % LEAVES.len()];
        *left = left.saturating_sub(1);
        return (ours.to_owned(), theirs.to_owned());
    }
    if kind == 7 {
        let (ours, theirs) = part(bytes, depth - 1, left);
        let times = TIMES[bytes.next() % TIMES.len()];
        return (format!("(?:{ours}){times}"), format!("(?:{theirs}){times}"));
    }
    let by = if kind == 6 { "|" } else { "" };
    let parts: Vec<_> = (0..=bytes.next() % 4).map(|_| part(bytes, depth - 1, left)).collect();
    let joined = |texts: Vec<&str>| format!("(?:{})", texts.join(by));
    (
        joined(parts.iter().map(|(ours, _)| ours.as_str()).collect()),
        joined(parts.iter().map(|(_, theirs)| theirs.as_str()).collect()),
    )
}

/// The smallest end of any match.
fn first_end(pattern: &str, text: &[u8]) -> Option<usize> {
    let syntax = syntax::Config::new().utf8(false);
    let config = meta::Config::new().utf8_empty(true);
    let judge = meta::Regex::builder().syntax(syntax).configure(config).build(pattern).unwrap();
    (0..=text.len()).find(|end| judge.is_match(Input::new(text).span(0..*end)))
}

/// Where each pattern fires first, with the text fed in chunks of the sizes `cuts`, cyclically.
fn ends(automaton: &Arc<Automaton>, text: &[u8], cuts: &[usize]) -> Vec<Option<usize>> {
    let mut found = vec![None; automaton.patterns().len()];
    let mut cursor = Cursor::new(automaton);
    let mut note = |hit: rules::engine::Match| {
        assert!(hit.seen == hit.end || hit.seen == hit.end + 1);
        found[hit.pattern as usize].get_or_insert(hit.end as usize);
        true
    };
    let (mut rest, mut sizes) = (text, cuts.iter().copied().chain([1]).cycle());
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(sizes.next().unwrap_or(1).min(rest.len()));
        cursor.feed(piece, &mut note);
        rest = more;
    }
    cursor.finish(&mut note);
    found
}
