//! The engine against an oracle that searches the whole text: the byte at which each pattern fires, evidence, and
//! that no byte of a match is released before the verdict, for every chunking.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::sync::Arc;

use proptest::prelude::*;
use rules::engine::{Automaton, Cursor, Match, Pattern};
use rules::{Fed, Hold, Rule, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, RuleSpec};
use tidegate_rules as rules;

use crate::judge::{Judge, Random};

/// A condition in the rules' dialect, and the same in Rust's own.
#[derive(Clone, Debug)]
struct Pair {
    ours: String,
    theirs: String,
}

fn same(text: &str) -> Pair {
    Pair { ours: text.into(), theirs: text.into() }
}

fn leaf() -> impl Strategy<Value = Pair> {
    let plain = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "ab",
        "abc",
        "é",
        "1",
        "_",
        " ",
        ".",
        "[ab]",
        "[^a]",
        r"\s",
        "\n",
        "^",
        "$",
        "(?m:^)",
        "(?m:$)",
        "(?R)(?m:$)",
        "(?R)(?m:^)",
        r"\A",
        r"\z",
        "(?i:A)",
        "[é-ü]",
    ]);
    let ascii = prop::sample::select(vec![
        (r"\w", "[0-9A-Za-z_]"),
        (r"\W", "[^0-9A-Za-z_]"),
        (r"\d", "[0-9]"),
        (r"[\w.]", "[0-9A-Za-z_.]"),
        (r"\b", r"(?-u:\b)"),
        (r"\B", r"(?-u:\B)"),
        (r"\b{start}", r"(?-u:\b{start})"),
        (r"\b{end}", r"(?-u:\b{end})"),
    ]);
    prop_oneof![
        3 => plain.prop_map(same),
        1 => ascii.prop_map(|(ours, theirs)| Pair { ours: ours.into(), theirs: theirs.into() }),
    ]
}

fn pattern() -> impl Strategy<Value = Pair> {
    leaf().prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..5);
        let joined = |parts: &[Pair], by: &str| Pair {
            ours: format!("(?:{})", parts.iter().map(|p| p.ours.as_str()).collect::<Vec<_>>().join(by)),
            theirs: format!("(?:{})", parts.iter().map(|p| p.theirs.as_str()).collect::<Vec<_>>().join(by)),
        };
        let times = prop::sample::select(vec!["*", "+", "?", "*?", "+?", "{2}", "{1,3}", "{2,}"]);
        prop_oneof![
            4 => list.clone().prop_map(move |parts| joined(&parts, "")),
            1 => list.prop_map(move |parts| joined(&parts, "|")),
            2 => (inner, times).prop_map(|(p, t)| Pair {
                ours: format!("(?:{}){t}", p.ours),
                theirs: format!("(?:{}){t}", p.theirs),
            }),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    let piece =
        prop::sample::select(vec!["a", "b", "c", "ab", "abc", " ", "_", "\n", "\r", "\r\n", "é", "ü", "1", ".", "ſ"]);
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

/// Where to cut `len` bytes: nowhere, at random, and behind every byte.
fn cuts(len: usize, seed: u64) -> Vec<Vec<usize>> {
    let (mut random, mut at, mut numbers) = (Vec::new(), 0, Random(seed | 1));
    while at < len {
        at = (at + 1 + numbers.below(5)).min(len);
        random.push(at);
    }
    vec![vec![len], random, (1..=len).collect()]
}

/// The first hit of each pattern, and what was held after each cut.
fn fires(automaton: &Arc<Automaton>, bytes: &[u8], cut: &[usize]) -> (Vec<Option<Match>>, Vec<(usize, u64)>) {
    let mut out = vec![None; automaton.patterns().len()];
    let mut cursor = Cursor::holding(automaton, vec![true; out.len()]);
    let (mut from, mut held) = (0, Vec::new());
    let mut note = |hit: Match| {
        out[hit.pattern as usize].get_or_insert(hit);
        true
    };
    for &to in cut {
        cursor.feed(&bytes[from..to], &mut note);
        from = to;
        held.push((to, cursor.held_from()));
    }
    cursor.finish(&mut note);
    (out, held)
}

/// Notes a hit if it is the pattern's first; returns whether it was of use.
fn first(found: &mut [Option<u64>], hit: Match) -> bool {
    found[hit.pattern as usize].is_none() && found[hit.pattern as usize].replace(hit.end).is_none()
}

/// The oracle finds a match that contains a position where another alternative matches the empty string.
#[test]
fn the_judge_sees_a_match_around_an_empty_one() {
    let judge = Judge::new(r"(?:(?-u:\B)|(?:é))");
    assert_eq!(judge.first_end("aéa".as_bytes()), Some(3));
    assert!(judge.is_match_at("aéa".as_bytes(), 1, 3));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), ..ProptestConfig::default() })]

    /// Each pattern fires at the smallest end of any of its matches, however the bytes are cut, and however little budget
    /// the automaton has for its rows.
    #[test]
    fn fires_at_the_smallest_end(
        pairs in prop::collection::vec(pattern(), 1..6),
        texts in prop::collection::vec(text(), 1..4),
        seed in any::<u64>(),
        tiny in any::<bool>(),
    ) {
        let patterns: Vec<Arc<Pattern>> = pairs.iter().map(|p| Arc::new(Pattern::new(&p.ours).unwrap())).collect();
        let automaton =
            if tiny { Automaton::with_cache_bytes(patterns.clone(), 9_000) } else { Automaton::new(patterns.clone()) };
        for text in &texts {
            let bytes = text.as_bytes();
            let expected: Vec<_> = pairs.iter().map(|p| Judge::new(&p.theirs).first_end(bytes)).collect();
            let mut seen = None;
            for cut in cuts(bytes.len(), seed) {
                let (found, _) = fires(&automaton, bytes, &cut);
                for ((pattern, expected), found) in patterns.iter().zip(&expected).zip(&found) {
                    if pattern.matches_empty() {
                        prop_assert_eq!(*expected, Some(0));
                        continue;
                    }
                    let end = found.map(|hit| hit.end as usize);
                    prop_assert_eq!(end, *expected, "{} on {:?} cut {:?}", pattern.as_str(), text, cut);
                    if let Some(Match { end, seen, .. }) = *found {
                        prop_assert!(seen == end || seen == end + 1);
                    }
                }
                prop_assert_eq!(seen.get_or_insert_with(|| found.clone()), &found, "another cut, other bytes");
            }
        }
    }

    /// What is held reaches back to the start of any match that is still to come, is the same at a place however the bytes
    /// before it were cut, even inside a character, never moves back, and is no longer than the longest match.
    #[test]
    fn what_is_held_is_no_longer_than_the_longest_match(
        pairs in prop::collection::vec(pattern(), 1..5),
        text in text(),
        seed in any::<u64>(),
        tiny in any::<bool>(),
    ) {
        let patterns: Vec<Arc<Pattern>> = pairs.iter().map(|p| Arc::new(Pattern::new(&p.ours).unwrap())).collect();
        let patterns: Vec<_> = patterns.into_iter().filter(|pattern| !pattern.matches_empty()).collect();
        let judges: Vec<Judge> = pairs.iter().map(|p| Judge::new(&p.theirs)).collect();
        let budget = if tiny { 9_000 } else { 1 << 20 };
        let automaton = Automaton::with_cache_bytes(patterns.clone(), budget);
        let longest = patterns.iter().map(|pattern| pattern.max_len()).try_fold(0, |most, len| Some(most.max(len?)));
        let bytes = text.as_bytes();
        let starts = judges.iter().filter(|judge| judge.first_end(&[]) != Some(0)).filter_map(|judge| judge.first_start(bytes));
        let first_start = starts.min().unwrap_or(bytes.len()) as u64;
        let mut places = vec![None; bytes.len() + 1];
        for cut in cuts(bytes.len(), seed) {
            let (found, held) = fires(&automaton, bytes, &cut);
            let verdict = found.iter().flatten().map(|hit| hit.seen).min().unwrap_or(u64::MAX);
            let mut last = 0;
            for (to, from) in held {
                prop_assert!(from >= last && from <= to as u64, "{pairs:?} on {text:?}: from {from} at {to}");
                last = from;
                prop_assert_eq!(*places[to].get_or_insert(from), from, "{:?} on {:?} at {}, another cut", &pairs, &text, to);
                if let Some(longest) = longest {
                    prop_assert!(to as u64 - from <= u64::from(longest), "{pairs:?} on {text:?}: {from}..{to} held");
                }
                if (to as u64) < verdict {
                    prop_assert!(from <= first_start, "{pairs:?} on {text:?}: {from} at {to}, a match at {first_start}");
                }
            }
        }
    }

    /// Streams that take turns on one automaton that has next to no cache budget find what each finds alone.
    #[test]
    fn streams_that_take_turns_do_not_disturb_each_other(
        pairs in prop::collection::vec(pattern(), 1..5),
        texts in prop::collection::vec(text(), 2..5),
        seed in any::<u64>(),
    ) {
        let patterns: Vec<Arc<Pattern>> = pairs.iter().map(|p| Arc::new(Pattern::new(&p.ours).unwrap())).collect();
        let automaton = Automaton::with_cache_bytes(patterns.clone(), 3_000);
        let mut streams: Vec<_> = texts
            .iter()
            .map(|text| (Cursor::new(&automaton), text.as_bytes(), vec![None::<u64>; patterns.len()]))
            .collect();
        let mut numbers = Random(seed);
        while streams.iter().any(|(_, rest, _)| !rest.is_empty()) {
            let at = numbers.below(streams.len());
            let (cursor, rest, found) = &mut streams[at];
            let (piece, later) = rest.split_at(rest.len().min(1 + numbers.below(3)));
            *rest = later;
            cursor.feed(piece, |hit| first(found, hit));
            prop_assert!(automaton.stats().bytes < 3_000 + 3_000);
        }
        for (text, (mut cursor, _, mut found)) in texts.iter().zip(streams) {
            cursor.finish(|hit| first(&mut found, hit));
            for (pair, (pattern, found)) in pairs.iter().zip(patterns.iter().zip(found)).filter(|(_, (p, _))| !p.matches_empty()) {
                let expected = Judge::new(&pair.theirs).first_end(text.as_bytes());
                prop_assert_eq!(found.map(|end| end as usize), expected, "{} on {:?}", pattern.as_str(), text);
            }
        }
    }

    /// With `hold = "match"`, what may be shown never reaches into a match; evidence is the same for every cut.
    #[test]
    fn no_byte_of_a_match_is_let_go(
        pairs in prop::collection::vec(pattern(), 1..4),
        text in text(),
        seed in any::<u64>(),
        hold in prop::sample::select(vec![Hold::Match, Hold::Block]),
        quiet in any::<prop::sample::Index>(),
    ) {
        // Nothing can fire in an empty stream.
        prop_assume!(!text.is_empty());
        // One rule of several may be a quiet one: it fires, and nothing waits for it.
        let quiet = if pairs.len() > 1 { Some(quiet.index(pairs.len())) } else { None };
        let set = rule_set(&pairs, hold, quiet);
        let loud = |at: &usize| Some(*at) != quiet;
        let judges: Vec<Judge> = pairs.iter().map(|p| Judge::new(&p.theirs)).collect();
        let starts = (0..pairs.len()).filter(loud).filter_map(|at| judges[at].first_start(text.as_bytes()));
        let first_start = starts.min().unwrap_or(text.len());
        let fires = (0..pairs.len()).filter(loud).any(|at| judges[at].first_end(text.as_bytes()).is_some());
        let mut first = None;
        for cut in cuts(text.len(), seed) {
            let mut matches = Vec::new();
            let (mut gate, mut from, mut safe) = (RuleSession::new(Arc::clone(&set)).gate(), 0, 0);
            gate.block_start(7, &flow::StreamKind::Text);
            let mut stopped = false;
            let stops = |fed: &Fed| fed.matches.iter().any(|m| quiet.is_none_or(|q| m.rule != format!("r{q}")));
            'text: for to in cut.iter().copied().filter(|to| text.is_char_boundary(*to)) {
                let mut next = Some(gate.piece(7, &text[from..to]));
                from = to;
                while let Some(fed) = next {
                    prop_assert!(fed.safe >= safe && fed.safe <= to as u64 && text.is_char_boundary(fed.safe as usize));
                    safe = fed.safe;
                    prop_assert!(safe as usize <= first_start, "{pairs:?} on {text:?}: {safe} shown");
                    stopped = stops(&fed);
                    matches.extend(fed.matches);
                    if stopped {
                        break 'text;
                    }
                    next = gate.more(7);
                }
            }
            if !stopped {
                let fed = gate.end(7);
                stopped = stops(&fed);
                matches.extend(fed.matches);
                prop_assert!(fed.safe as usize <= first_start || !stopped);
                prop_assert!(stopped || fed.safe as usize == text.len());
                safe = fed.safe;
            }
            prop_assert_eq!(stopped, fires, "{:?} on {:?}", &pairs, &text);
            for m in &matches {
                let at: usize = m.rule[1..].parse().unwrap();
                let end = judges[at].first_end(text.as_bytes()).unwrap();
                prop_assert_eq!(m.evidence.end as usize, end);
                // The first start of what was known at that byte: a match of the same end that an assertion has still to
                // allow may begin earlier.
                let start = m.evidence.start as usize;
                let exact = judges[at].is_match_at(text.as_bytes(), start, end);
                prop_assert!(exact, "{pairs:?} on {text:?}: no match at {start}..{end}");
            }
            // The verdict is reached at the byte: all that fired up to it, and what is shown, is the same for every cut.
            let outcome = (matches, safe);
            prop_assert_eq!(first.get_or_insert_with(|| outcome.clone()), &outcome);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(300), ..ProptestConfig::default() })]

    /// A rule with `all` fires where the last of what it asks for ends, and not where an `unless` came first.
    #[test]
    fn all_and_unless_are_judged_at_the_same_byte(
        any in prop::collection::vec(pattern(), 1..3),
        all in prop::collection::vec(pattern(), 0..3),
        unless in prop::collection::vec(pattern(), 0..2),
        text in text(),
        seed in any::<u64>(),
    ) {
        prop_assume!(!text.is_empty());
        let list = |pairs: &[Pair]| pairs.iter().map(|p| format!("(?:{})", p.ours)).collect::<rules::Strings>();
        let spec = RuleSpec { condition: list(&any), all: list(&all), unless: list(&unless), ..RuleSpec::default() };
        let set = set_of(rule("r", spec).into_iter().collect(), RuleSettings::default());
        let ends = |pairs: &[Pair]| pairs.iter().map(|p| Judge::new(&p.theirs).first_end(text.as_bytes())).collect::<Vec<_>>();
        let condition = ends(&any).into_iter().flatten().min();
        let wanted = ends(&all).into_iter().chain([condition]).try_fold(0, |most, end| Some(most.max(end?)));
        let veto = ends(&unless).into_iter().flatten().min();
        // At the same byte `unless` has the first word; which of two comes first, of which one waits for the next byte and
        // ends a byte earlier, is for the other tests.
        prop_assume!(wanted.zip(veto).is_none_or(|(wanted, veto)| wanted == veto || wanted.abs_diff(veto) > 1));
        prop_assume!(wanted != veto || wanted.is_none() || ![&any, &all, &unless].iter().any(|p| p.iter().any(looks)));
        let expected = wanted.filter(|wanted| veto.is_none_or(|veto| *wanted < veto));
        for cut in cuts(text.len(), seed) {
            let mut gate = RuleSession::new(Arc::clone(&set)).gate();
            gate.block_start(7, &flow::StreamKind::Text);
            let (mut from, mut matches) = (0, Vec::new());
            for to in cut.into_iter().filter(|to| text.is_char_boundary(*to)) {
                matches.extend(gate.piece(7, &text[from..to]).matches);
                matches.extend(std::iter::from_fn(|| gate.more(7)).flat_map(|fed| fed.matches));
                from = to;
            }
            matches.extend(gate.end(7).matches);
            prop_assert!(matches.len() <= 1);
            let end = matches.first().map(|found| found.evidence.end as usize);
            prop_assert_eq!(end, expected, "{:?} all {:?} unless {:?} on {:?}", &any, &all, &unless, &text);
        }
    }
}

/// Whether a pattern has an assertion: it is evaluated when the next byte arrives, `\A` with the first one.
fn looks(pair: &Pair) -> bool {
    pair.ours.contains(['$', '^']) || [r"\A", r"\b", r"\B", r"\z"].iter().any(|look| pair.ours.contains(look))
}

fn rule_set(pairs: &[Pair], hold: Hold, quiet: Option<usize>) -> Arc<RuleSet> {
    let rules = pairs.iter().enumerate().filter_map(|(at, pair)| {
        let spec = RuleSpec {
            // Within a group a condition is never taken for a file glob.
            condition: [format!("(?:{})", pair.ours)].into_iter().collect(),
            interrupt: (Some(at) == quiet).then_some(rules::InterruptMode::Never),
            ..RuleSpec::default()
        };
        rule(&format!("r{at}"), spec)
    });
    set_of(rules.collect(), RuleSettings { hold, ..RuleSettings::default() })
}

/// The rule, or none where it can never fire: then the judges must not find anything either.
fn rule(name: &str, spec: RuleSpec) -> Option<Rule> {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "test".into() };
    let spec = RuleSpec { scope: ["text"].into_iter().collect(), body: Some("Do not.".into()), ..spec };
    let (rule, mut found) = Rule::from_spec(name, &source, &spec, None);
    // Some of the patterns match the empty string, and some match nothing, which is reported.
    found.retain(|one| {
        let told =
            ["matches the empty string", "matches without a character", "with a blank", "can never", "is disabled"];
        !told.iter().any(|part| one.message.contains(part))
    });
    assert_eq!(found, []);
    rule
}

fn set_of(rules: Vec<Rule>, settings: RuleSettings) -> Arc<RuleSet> {
    let (set, found) = RuleSet::build(rules, settings, "/w");
    assert_eq!(found, []);
    set
}
