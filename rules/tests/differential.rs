//! The engine against a judge that searches the whole text: the byte at which each pattern fires, evidence, and that no
//! byte of a match is let go before the verdict, for every way to cut the text.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::sync::Arc;

use proptest::prelude::*;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind, meta};
use rules::engine::{Automaton, Cursor, Pattern};
use rules::{Hold, Layer, Rule, RuleSet, RuleSpec, Session, Settings, Source};
use tidegate_rules as rules;

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

/// The judge: what the `regex` crate wraps, told where a search may end while it still sees what follows.
struct Judge {
    any: meta::Regex,
    longest: PikeVM,
}

impl Judge {
    fn new(pattern: &str) -> Self {
        let syntax = syntax::Config::new().utf8(false);
        let any = meta::Regex::builder().syntax(syntax).configure(meta::Config::new().utf8_empty(false)).build(pattern);
        let thompson = regex_automata::nfa::thompson::Config::new().utf8(false);
        let config = PikeVM::config().match_kind(MatchKind::All);
        let longest = PikeVM::builder().configure(config).syntax(syntax).thompson(thompson).build(pattern).unwrap();
        Self { any: any.unwrap(), longest }
    }

    /// The smallest end of any match.
    fn first_end(&self, text: &[u8]) -> Option<usize> {
        (0..=text.len()).find(|end| self.any.is_match(Input::new(text).span(0..*end)))
    }

    /// The smallest start of any match that has bytes.
    fn first_start(&self, text: &[u8]) -> Option<usize> {
        let mut cache = self.longest.create_cache();
        (0..text.len()).find(|start| {
            let input = Input::new(text).span(*start..text.len()).anchored(Anchored::Yes);
            self.longest.find_iter(&mut cache, input).next().is_some_and(|found| found.end() > *start)
        })
    }
}

/// Pieces of `bytes`: whole, single bytes, and cut at random.
fn cuts(len: usize, seed: u64) -> Vec<Vec<usize>> {
    let (mut random, mut at, mut state) = (Vec::new(), 0, seed | 1);
    while at < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        at = (at + 1 + (state >> 60) as usize % 5).min(len);
        random.push(at);
    }
    vec![vec![len], (1..=len).collect(), random]
}

fn fires(automaton: &Arc<Automaton>, bytes: &[u8], cut: &[usize]) -> Vec<Option<(u64, u64)>> {
    let mut out = vec![None; automaton.patterns().len()];
    let mut cursor = Cursor::new(automaton);
    let mut from = 0;
    let mut note = |hit: rules::engine::Hit| {
        out[hit.pattern as usize].get_or_insert((hit.end, hit.seen));
        true
    };
    for &to in cut {
        cursor.feed(&bytes[from..to], &mut note);
        from = to;
    }
    cursor.finish(&mut note);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(400), ..ProptestConfig::default() })]

    /// Each pattern fires at the smallest end of any of its matches, however the bytes are cut, and however little room
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
            if tiny { Automaton::with_room(patterns.clone(), 9_000) } else { Automaton::new(patterns.clone()) };
        for text in &texts {
            let bytes = text.as_bytes();
            let expected: Vec<_> = pairs.iter().map(|p| Judge::new(&p.theirs).first_end(bytes)).collect();
            let mut seen = None;
            for cut in cuts(bytes.len(), seed) {
                let found = fires(&automaton, bytes, &cut);
                for ((pattern, expected), found) in patterns.iter().zip(&expected).zip(&found) {
                    if pattern.matches_empty() {
                        prop_assert_eq!(*expected, Some(0));
                        continue;
                    }
                    let end = found.map(|(end, _)| end as usize);
                    prop_assert_eq!(end, *expected, "{} on {:?} cut {:?}", pattern.as_str(), text, cut);
                    if let Some((end, seen)) = found {
                        prop_assert!(*seen == *end || *seen == *end + 1);
                    }
                }
                prop_assert_eq!(seen.get_or_insert_with(|| found.clone()), &found, "another cut, other bytes");
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
            let (mut gate, mut from, mut safe) = (Session::new(Arc::clone(&set)).gate(), 0, 0);
            gate.block_start(7, &flow::BlockKind::Text);
            let mut stopped = false;
            for to in cut.iter().copied().filter(|to| text.is_char_boundary(*to)) {
                let fed = gate.piece(7, &text[from..to]);
                from = to;
                prop_assert!(fed.safe >= safe && fed.safe <= to as u64 && text.is_char_boundary(fed.safe as usize));
                safe = fed.safe;
                prop_assert!(safe as usize <= first_start, "{pairs:?} on {text:?}: {safe} shown");
                stopped = fed.matches.iter().any(|m| quiet.is_none_or(|q| m.rule != format!("r{q}")));
                matches.extend(fed.matches);
                if stopped {
                    break;
                }
            }
            if !stopped {
                let fed = gate.block_end(7);
                stopped = fed.matches.iter().any(|m| quiet.is_none_or(|q| m.rule != format!("r{q}")));
                matches.extend(fed.matches);
                prop_assert!(fed.safe as usize <= first_start || !stopped);
                prop_assert!(stopped || fed.safe as usize == text.len());
            }
            prop_assert_eq!(stopped, fires, "{:?} on {:?}", &pairs, &text);
            for m in &matches {
                let at: usize = m.rule[1..].parse().unwrap();
                let end = judges[at].first_end(text.as_bytes()).unwrap();
                prop_assert_eq!(m.evidence.end as usize, end);
                // The first start of what was known at that byte: a match of the same end that an assertion has still to
                // allow may begin earlier.
                let start = m.evidence.start as usize;
                let exact = Input::new(&text).span(start..end).anchored(Anchored::Yes);
                prop_assert!(judges[at].any.is_match(exact), "{pairs:?} on {text:?}: no match at {start}..{end}");
            }
            // All of a delta go together, so later cuts may hold more; the first to fire is the same.
            prop_assert_eq!(first.get_or_insert_with(|| matches.first().cloned()), &matches.first().cloned());
        }
    }
}

fn rule_set(pairs: &[Pair], hold: Hold, quiet: Option<usize>) -> Arc<RuleSet> {
    let source = Source { layer: Layer::Project, path: "test".into() };
    let rules = pairs.iter().enumerate().map(|(at, pair)| {
        let spec = RuleSpec {
            // Within a group a condition is never taken for a file glob.
            condition: [format!("(?:{})", pair.ours)].into_iter().collect(),
            scope: ["text"].into_iter().collect(),
            body: Some("Do not.".into()),
            interrupt: (Some(at) == quiet).then_some(rules::InterruptMode::Never),
            ..RuleSpec::default()
        };
        let (rule, mut found) = Rule::from_spec(&format!("r{at}"), &source, &spec, None);
        // Some of the patterns match without a byte, which is told.
        found.retain(|one| !one.message.contains("matches the empty text"));
        assert_eq!(found, []);
        rule.unwrap()
    });
    let (set, found) = RuleSet::build(rules.collect(), Settings { hold, ..Settings::default() }, "/w");
    assert_eq!(found, []);
    set
}
