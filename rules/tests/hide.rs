//! The group `hide`: what of a match must never be shown. Matching is the same as without it, and what is held back begins there.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::sync::Arc;

use rules::engine::Pattern;
use rules::{Fed, RuleSession, RuleSet, RuleSettings};
use tidegate_rules as rules;

use crate::judge::{Judge, Random};

/// The rule with this condition; `None` if no text matches it.
fn set(condition: &str) -> Option<Arc<RuleSet>> {
    let source = rules::RuleOrigin { layer: rules::RuleLayer::User, path: "r.md".into() };
    let file = format!("+++\ncondition = '''{condition}'''\nrepeat = 'always'\n+++\nNo.\n");
    let (rule, _) = rules::parse_rule_file("r", &source, &file);
    Some(RuleSet::build(vec![rule?], RuleSettings::default(), "").0)
}

/// What became of a text that was fed in deltas: what is safe behind each, and where the rule fired, with the first byte that is
/// hidden.
#[derive(Debug, PartialEq)]
struct Outcome {
    safe: Vec<(usize, u64)>,
    fired: Option<(u64, u64, u64)>,
}

fn feed(set: &Arc<RuleSet>, text: &str, step: usize) -> Outcome {
    let mut gate = RuleSession::new(Arc::clone(set)).gate();
    gate.block_start(0, &flow::StreamKind::Text);
    let (mut out, mut from) = (Outcome { safe: Vec::new(), fired: None }, 0);
    let found = |fed: &Fed| fed.matches.first().map(|one| (one.evidence.start, one.evidence.end, fed.decided));
    while from < text.len() {
        let to = text.ceil_char_boundary(text.len().min(from + step));
        let fed = gate.piece(0, &text[from..to]);
        from = to;
        out.safe.push((to, fed.safe));
        out.fired = found(&fed);
        if out.fired.is_some() {
            return out;
        }
    }
    let fed = gate.end(0);
    out.safe.push((from, fed.safe));
    out.fired = found(&fed);
    out
}

/// Condition, text, where it matches, the first byte that is hidden, and the most bytes that were held back.
const CASES: &[(&str, &str, [u64; 2], u64, u64)] = &[
    // Without the group all of it waits.
    ("key = [0-9]{4}", "the key = 1234", [4, 14], 4, 9),
    ("key = (?P<hide>[0-9]{4})", "the key = 1234", [4, 14], 10, 3),
    ("key = (?<hide>[0-9]{4})", "the key = 1234", [4, 14], 10, 3),
    // Words that only could become a match do not wait.
    (r"(?i)[\w.-]{0,20}key\s{0,3}[:=]\s{0,3}(?P<hide>[a-z0-9]{8})", "my_key: abcd1234", [0, 16], 8, 7),
    // What follows the group is hidden as well.
    ("key=(?P<hide>[0-9]{2}); end", "key=12; end", [0, 11], 4, 6),
    // The first byte that can belong to the group.
    ("a*(?P<hide>a{3})b", "aaaaaaab", [0, 8], 4, 3),
    ("[a-z]*(?P<hide>[a-z]{2,})!", "abcd!", [0, 5], 0, 4),
    ("(?P<hide>key=[0-9]{2})", "a key=12", [2, 8], 2, 5),
    // The repetition is in the group.
    ("k(?P<hide>[0-9]{3})", "k123", [0, 4], 1, 2),
    ("k=(?P<hide>(?:[0-9]{3})?);", "k=123;", [0, 6], 2, 3),
    ("k(?P<hide>[0-9]){1}2", "k12", [0, 3], 1, 1),
    ("(?:k(?P<hide>[0-9])){1,1}?2", "k12", [0, 3], 1, 1),
    // One in each alternative.
    ("id: (?P<hide>[0-9]{3})|name: (?P<hide>[a-z]{3})", "name: abc", [0, 9], 6, 2),
    ("(?:id|name): (?P<hide>[0-9]{3}|[a-z]{3})", "name: abc", [0, 9], 6, 2),
    // Before and after look-around, which is taken out of the condition.
    (r"(?<![a-z])key=(?P<hide>[0-9]{4})(?![0-9])", "a key=1234.", [1, 11], 6, 4),
    ("(?!keys)key.=?(?P<hide>[0-9]{4})", "key =1234", [0, 9], 5, 3),
    ("(?=.*[0-9])k(?P<hide>[a-z0-9]{4})", "kabc1", [0, 5], 1, 3),
    (r"\bkey=(?P<hide>\b[a-z]{3}\b)", "key=abc ", [0, 7], 4, 3),
    ("schlüssel=(?P<hide>é{2})", "schlüssel=éé", [0, 15], 11, 2),
];

#[test]
fn what_is_held_back_begins_with_the_group() {
    for (condition, text, [start, end], hidden, most) in CASES {
        let set = set(condition).unwrap();
        let bytewise = feed(&set, text, 1);
        let before = bytewise.safe.split_last().unwrap().1;
        let held = before.iter().map(|(at, safe)| *at as u64 - safe).max();
        let found = (bytewise.fired, held.unwrap());
        assert_eq!(found, (Some((*start, *end, *hidden)), *most), "{condition} on {text}: {bytewise:?}");
        for step in 1..8 {
            let outcome = feed(&set, text, step);
            let shown = outcome.safe.last().unwrap().1;
            assert_eq!((outcome.fired, shown), (bytewise.fired, *hidden), "{condition} on {text} in deltas of {step}");
        }
    }
}

#[test]
fn a_group_that_cannot_say_where_it_begins_is_an_error_with_its_place() {
    let looks = "the group `hide` is in a look-around, which is no part of the match";
    let lacks = "a match can lack the group `hide`";
    let repeated = "the group `hide` is in a repetition";
    for (condition, message, place) in [
        ("a(?P<hide>b)|c", lacks, "(?P<hide>"),
        // A branch of the other alternative can never match, the other one can.
        (r"k(?P<hide>[a-z]{3})|(?:x|[^\s\S])yz", lacks, "(?P<hide>"),
        ("(?:a(?P<hide>b))?c", repeated, "?"),
        ("k(?P<hide>[0-9]){3}", repeated, "{3}"),
        ("k(?P<hide>[0-9]){0,1}?z", repeated, "{0,1}?"),
        ("k(?P<hide>[0-9])?z", repeated, "?"),
        ("k(?P<hide>[0-9])+", repeated, "+"),
        ("k(?:(?:x(?P<hide>[0-9]))){1,2}", repeated, "{1,2}"),
        ("k(?:(?!x)(?P<hide>[0-9]))?", repeated, "?"),
        ("k(?P<hide>[0-9]){1}{2}", repeated, "{2}"),
        ("(?:k(?P<hide>[0-9])){0}z", repeated, "{0}"),
        ("(?:x|a(?<hide>b))c", lacks, "(?<hide>"),
        ("(?:a(?P<hide>b)){2}", repeated, "{2}"),
        ("(?:a(?P<hide>b))*c", repeated, "*"),
        ("a(?P<hide>b)c(?<hide>d)", "there are two groups `hide` in one match", "(?<hide>"),
        ("(?P<hide>b(?<hide>d))", "there are two groups `hide` in one match", "(?<hide>"),
        ("key(?=(?P<hide>x))", looks, "(?P<hide>"),
        ("(?<!a(?<hide>x))key", looks, "(?<hide>"),
        ("key(?P<hide", "the name of a group lacks its `>`", "(?P<"),
    ] {
        let error = Pattern::new(condition).unwrap_err();
        assert_eq!((error.message.as_str(), &condition[error.span]), (message, place), "{condition}");
    }
    // An alternative that can never match needs no group.
    assert!(Pattern::new(r"k(?P<hide>[a-z]{3})|x[^\s\S]yz").unwrap().has_shown_part());
    for fine in ["(?P<Hide>a)", "(?P<hidden>a)", "(?P<name>a)|b"] {
        assert!(!Pattern::new(fine).unwrap().has_shown_part(), "{fine}");
    }
}

const BEFORE: &[&str] =
    &["", "a", "ab", "a*", "[ab]{0,3}", "[a-c]{0,9}k", "[a-c]{0,9}", "(?:a|ab)", "k=", r"\b", "^a?", "é?"];
const HIDDEN: &[&str] = &["b", "[ab]{2}", "a+", "[a-c]{1,9}", "(?:b|ab)", "k?b", "é", "b{0,2}", r"\bb"];
const AFTER: &[&str] = &["", "c", "b?c", "[bc]{0,8}", "$", r"\b", "(?:c|k)", "(?m:$)"];
const TEXT: &[&str] = &["a", "b", "c", "k", "=", "é", " ", "\n", "ab", "aab", "bc", "k=", "abab"];

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

/// Where a match of `before`, the group and `after` ends first, and the smallest place at which its group can begin: every match is
/// divided at every place.
fn oracle([before, hidden, after]: [&str; 3], text: &[u8]) -> Option<(usize, usize)> {
    let judge = |pattern: String| Judge::new(&pattern.replace(r"\b", r"(?-u:\b)"));
    let end = judge(format!("{before}(?:{hidden}){after}")).first_end(text)?;
    let (first, rest) = (judge(before.to_owned()), judge(format!("(?:{hidden}){after}")));
    let begins = |at: &usize| (0..=*at).any(|start| first.reaches(text, start, *at)) && rest.reaches(text, *at, end);
    Some((end, (0..=end).find(begins).unwrap()))
}

#[test]
fn random_groups_begin_where_the_oracle_says() {
    let cases = crate::judge::cases(3_000);
    let mut random = Random(std::env::var("TIDEGATE_SEED").map_or(7, |seed| seed.parse().unwrap()));
    let (mut fired, mut more) = (0, 0);
    for case in 0..cases {
        let parts = [BEFORE, HIDDEN, AFTER].map(|list| pick(&mut random, list));
        let text: String = (0..3 + random.below(12)).map(|_| pick(&mut random, TEXT)).collect();
        let condition = format!("{}(?P<hide>{}){}", parts[0], parts[1], parts[2]);
        let pattern = Pattern::new(&condition).unwrap();
        if pattern.matches_no_bytes() || pattern.matches_empty() {
            continue;
        }
        let expected = oracle(parts, text.as_bytes());
        let Some(set) = set(&condition) else {
            assert_eq!(expected, None, "{condition} on {text:?}");
            continue;
        };
        for step in [1, 2, 1 + random.below(6)] {
            let outcome = feed(&set, &text, step);
            let context = || format!("case {case}: {condition} on {text:?}, {expected:?}: {outcome:?}");
            assert_eq!(outcome.fired.map(|(_, end, _)| end as usize), expected.map(|(end, _)| end), "{}", context());
            assert!(outcome.safe.is_sorted(), "{}", context());
            let shown = outcome.safe.last().unwrap().1 as usize;
            let Some(((.., hidden), (_, first))) = outcome.fired.zip(expected) else {
                assert_eq!(shown, text.len(), "{}", context());
                continue;
            };
            assert!(shown <= first && hidden as usize == shown, "{}", context());
            (fired, more) = (fired + 1, more + usize::from(shown < first));
        }
    }
    // More is hidden than the group where another match was in progress.
    assert!(fired * 2 > cases && more * 5 < fired, "{fired} fired, {more} hide more than the group");
}
