//! Patterns with counts, which run as leads, heads and tails, against the same patterns as one DFA and against an oracle that
//! searches the whole text: shapes of secret scanners, random texts, random deltas.
//!
//! `TIDEGATE_TIMES` is how many times the usual 10,000 cases it takes, `TIDEGATE_SEED` their seed.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::sync::Arc;

use rules::engine::{Automaton, Cursor, Match, Pattern};
use tidegate_rules as rules;

use crate::judge::{Judge, Random};

const NAMES: [&str; 12] = ["abc", "key", "bca", "ska", "ab_c", "cabc", "abcabc", "k-s", "sss", "aB", "a", "ki"];
const CLASSES: [&str; 10] =
    [r"[\w.-]", r"[ \t\w.-]", "[a-c]", ".", "(?s:.)", r"[^\n]", "[é-ü_a]", r"[\w]", "[abk0-9]", "[^a]"];
const ENDS: [&str; 7] = ["", "", "", r"\b", "$", r#"(?:['"\s;]|\\[nr]|$)"#, "(?m:$)"];
const PIECES: [&str; 34] = [
    "a", "b", "c", "k", "s", "A", "K", " ", "\n", "=", ":", "-", ".", "_", "1", "2", "\"", "'", ";", "é", "ü", "ſ",
    "\u{212a}", "  ", "\t", "abcabcab", "12345678", "\r\n", "\\n", "x", "=> ", "cabc", "é1", "ska",
];

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

/// A class that is repeated a number of times that counts.
fn counted(random: &mut Random) -> String {
    let (class, most) = (pick(random, &CLASSES), 8 + random.below(7));
    let count = ["{0,@}", "{0,@}", "{0,@}?", "{2,@}", "{@}"][random.below(5)];
    format!("{class}{}", count.replace('@', &most.to_string()))
}

/// A name within a count of characters, then up to a count more, then what looks like a token; with a group `hide` around some of
/// it, where one is wanted. Returns whether the group is behind a lead.
fn shape(random: &mut Random, hides: bool) -> (String, bool) {
    let mut parts: Vec<String> = Vec::new();
    if random.below(4) == 0 {
        parts.push(pick(random, &[r"\b", "^", "(?m:^)", "(?:^|[ =])", r"\B"]).to_owned());
    }
    let leads = [0, 1, 1, 1, 1, 2][random.below(6)];
    for _ in 0..leads {
        parts.push(format!("{}{{0,{}}}{}", pick(random, &CLASSES), 8 + random.below(7), pick(random, &["", "?"])));
    }
    if random.below(6) == 0 {
        parts.push(pick(random, &[r"\b", "(?m:^)", "[ab]?", "x*"]).to_owned());
    }
    let [one, other] = [pick(random, &NAMES), pick(random, &NAMES)];
    parts.push(match random.below(4) {
        0 => format!("(?:{one}|{other})"),
        1 => format!("({one}[_.-]?{other})"),
        2 => format!("(?:{one}{}|{other})", counted(random)),
        _ => one.to_owned(),
    });
    if random.below(5) == 0 {
        parts.push(pick(random, &[r"\b", r"\s*", "$", "(?:=|:)"]).to_owned());
    }
    if random.below(5) > 0 {
        parts.push(counted(random));
    }
    if random.below(2) == 0 {
        parts.push(pick(random, &[r#"[\s'"]{0,3}"#, "(?:=|:{1,3}|=>)", "=", r"\s+", "[^ ]*"]).to_owned());
    }
    if random.below(3) == 0 {
        parts.push(format!("({})", counted(random)));
    }
    parts.push(pick(random, &["", "", "abc", "=k", "1"]).to_owned());
    parts.push(pick(random, &ENDS).to_owned());
    if hides {
        let from = random.below(parts.len());
        let to = from + random.below(parts.len() - from);
        parts[from].insert_str(0, "(?P<hide>");
        parts[to].push(')');
    }
    (parts.concat(), hides && leads > 0)
}

fn pattern(random: &mut Random, hides: bool) -> (String, bool) {
    let (flags, hides) = (pick(random, &["(?i)", ""]), hides && random.below(3) == 0);
    match random.below(10) {
        0 => {
            let [one, other] = [shape(random, hides), shape(random, hides)];
            (format!("{flags}(?:{}|{})", one.0, other.0), one.1 || other.1)
        }
        1 => (format!("{flags}{}", pick(random, &NAMES)), false),
        _ => {
            let (text, is_behind_lead) = shape(random, hides);
            (format!("{flags}{text}"), is_behind_lead)
        }
    }
}

fn text(random: &mut Random) -> String {
    let piece = |random: &mut Random| if random.below(3) == 0 { pick(random, &NAMES) } else { pick(random, &PIECES) };
    (0..10 + random.below(50)).map(|_| piece(random)).collect()
}

/// What a stream reports: its matches, and after each delta what is held back, for all and for some patterns, and for whom.
#[derive(Debug, PartialEq)]
struct Outcome {
    matches: Vec<Match>,
    held: Vec<(u64, u64, Vec<u32>)>,
}

fn run(automaton: &Arc<Automaton>, holds: &[bool], text: &[u8], deltas: &[&[u8]]) -> Outcome {
    let mut cursor = Cursor::holding(automaton, holds.to_vec());
    let mut out = Outcome { matches: Vec::new(), held: Vec::new() };
    for delta in deltas {
        cursor.feed(delta, |found| {
            out.matches.push(found);
            true
        });
        out.held.push((cursor.held_from(), cursor.held_from_by(|pattern| pattern % 2 == 0), cursor.in_progress()));
    }
    assert_eq!(cursor.position(), text.len() as u64);
    cursor.finish(|found| {
        out.matches.push(found);
        true
    });
    out
}

/// Where a pattern matched whose lead others have too, and within a character of several bytes in a lead, more can be held back than one DFA
/// would; never less. One whose group `hide` is behind a lead can hold back less, since the lead is not searched for: an optional byte of the
/// group is only one that came.
fn agree(divided: &Outcome, whole: &Outcome, is_behind_lead: bool) -> bool {
    let places = |outcome: &Outcome| outcome.matches.iter().map(|m| (m.pattern, m.end, m.seen)).collect::<Vec<_>>();
    let back = |outcome: &Outcome| outcome.held.iter().map(|held| held.0).collect::<Vec<_>>();
    let longer = back(divided).iter().zip(back(whole)).all(|(ours, theirs)| *ours <= theirs);
    divided == whole || places(divided) == places(whole) && (is_behind_lead || longer)
}

/// The pattern in Rust's own dialect.
fn judge(pattern: &str) -> Judge {
    let theirs = pattern
        .replace("(?P<hide>", "(")
        .replace(r"\w", "0-9A-Za-z_")
        .replace(r"\b", r"(?-u:\b)")
        .replace(r"\B", r"(?-u:\B)");
    Judge::new(&theirs)
}

#[test]
fn divided_patterns_fire_and_hold_back_as_one_automaton_does() {
    let cases = crate::judge::cases(10_000);
    let seed: u64 = std::env::var("TIDEGATE_SEED").map_or(26, |seed| seed.parse().unwrap());
    let (matches, longer) = std::thread::scope(|threads| {
        let halves = [seed, seed + 1].map(|seed| threads.spawn(move || compare(cases / 2, Random(seed))));
        let [one, other] = halves.map(|half| half.join().unwrap());
        (one.0 + other.0, one.1 + other.1)
    });
    assert!(matches > cases && longer * 10 < cases, "{matches} matches, {longer} of {cases} cases hold longer");
}

/// Compares random sets of patterns. Returns the matches, and how many cases hold back longer.
fn compare(cases: usize, mut random: Random) -> (usize, usize) {
    let (mut matches, mut longer) = (0, 0);
    for case in 0..cases {
        let hides = random.below(3) == 0;
        let made = (0..1 + random.below(4)).map(|_| pattern(&mut random, hides));
        let (texts, behind_leads): (Vec<String>, Vec<bool>) = made.unzip();
        let is_behind_lead = behind_leads.contains(&true);
        let patterns: Vec<Arc<Pattern>> = texts.iter().map(|text| Arc::new(Pattern::new(text).unwrap())).collect();
        let holds: Vec<bool> = (0..texts.len()).map(|_| random.below(4) > 0).collect();
        let text = text(&mut random);
        let mut deltas: Vec<&[u8]> = Vec::new();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let (delta, later) = rest.split_at(rest.len().min(1 + random.below(6)));
            deltas.push(delta);
            rest = later;
        }
        let budget = [3_000, 9_000, 1 << 20, 1 << 20][random.below(4)];
        let divided = Automaton::with_cache_bytes(patterns.clone(), budget);
        let context = || format!("case {case}: {texts:?}, held {holds:?}, on {text:?}");
        let ours = run(&divided, &holds, text.as_bytes(), &deltas);
        let whole = run(&Automaton::undivided(patterns.clone()), &holds, text.as_bytes(), &deltas);
        assert!(agree(&ours, &whole, is_behind_lead), "{}\n{ours:?}\n{whole:?}", context());
        matches += whole.matches.len();
        longer += usize::from(ours != whole && !is_behind_lead);
        if case % 25 > 0 {
            continue;
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(run(&divided, &holds, text.as_bytes(), &bytes).matches, ours.matches, "{}", context());
        for (pattern, number) in patterns.iter().zip(0..).filter(|(pattern, _)| !pattern.matches_empty()) {
            let found = ours.matches.iter().find(|found| found.pattern == number).map(|found| found.end as usize);
            assert_eq!(
                found,
                judge(pattern.as_str()).first_end(text.as_bytes()),
                "{} in {}",
                pattern.as_str(),
                context()
            );
        }
    }
    (matches, longer)
}
