//! Conditions made to be hard: the work stays linear, the memory within its bound, and the verdicts right.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::sync::Arc;

use rules::engine::{Automaton, CacheBudget, Cursor, EngineStats, Pattern};
use rules::{RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, parse_rule_file};
use tidegate_rules as rules;

use crate::judge::{Judge, Random};

/// Feeds a text in deltas of four bytes; the first end of each pattern.
fn feed(automaton: &Arc<Automaton>, text: &[u8]) -> Vec<Option<usize>> {
    let mut ends = vec![None; automaton.patterns().len()];
    let mut cursor = Cursor::holding(automaton, vec![true; ends.len()]);
    let mut note = |hit: rules::engine::Match| {
        let end = &mut ends[hit.pattern as usize];
        end.is_none() && end.replace(hit.end as usize).is_none()
    };
    text.chunks(4).for_each(|piece| cursor.feed(piece, &mut note));
    cursor.finish(&mut note);
    ends
}

fn automaton(patterns: &[String], budget: usize) -> Arc<Automaton> {
    Automaton::with_cache_bytes(patterns.iter().map(|text| Arc::new(Pattern::new(text).unwrap())).collect(), budget)
}

/// Runs half a text and the whole, with little budget and with much: verdicts are those of the oracle, twice the text
/// takes about twice the work, and no more than the bound is used.
fn holds_up(patterns: &[String], text: &[u8]) -> EngineStats {
    let expected: Vec<_> = patterns.iter().map(|pattern| Judge::new(pattern).first_end(text)).collect();
    for budget in [1 << 17, 1 << 24] {
        let work = |text: &[u8]| {
            let automaton = automaton(patterns, budget);
            let ends = feed(&automaton, text);
            let stats = automaton.stats();
            let state = 4 * stats.nfa_states + 4096;
            assert!(stats.budget_used <= budget + state && stats.bytes <= budget + state, "{stats:?}");
            let states = stats.nfa_states as u64;
            assert!(stats.step_states <= (text.len() as u64 + 1) * 2 * states, "{stats:?}");
            (ends, stats)
        };
        let (_, half) = work(&text[..text.len() / 2]);
        let (ends, whole) = work(text);
        assert!(ends == expected, "{:?}", patterns.first());
        // Gaps fill up in the first half, so it is the easier one; with a square it would be four times the work.
        assert!(whole.step_states <= half.step_states * 3, "{half:?} {whole:?}");
    }
    let little = automaton(patterns, 1 << 17);
    feed(&little, text);
    little.stats()
}

#[test]
fn counting_what_may_begin_anywhere() {
    let mut numbers = Random(1);
    let mut text: Vec<u8> = (0..120_000).map(|_| b"ab"[numbers.below(2)]).collect();
    text.extend(b"abbbbbbbbbbbbbbc");
    let stats = holds_up(&["[ab]*a[ab]{14}c".into(), "[ab]*a[ab]{13}c".into()], &text);
    assert!(stats.freezes > 0 && stats.uncached_bytes > 50_000, "it is there to need more than there is: {stats:?}");
}

#[test]
fn a_wide_gap_that_begins_again_and_again() {
    let mut numbers = Random(2);
    let mut text = Vec::new();
    while text.len() < 60_000 {
        text.extend(["foo ", "fo o", "x\ny ", "é ", "barn"][numbers.below(5)].replace("barn", "ba r").bytes());
    }
    text.extend(b"foo here is the bar");
    holds_up(&[r"(?-u:\b)foo[\s\S]{0,300}bar".into(), r"(?-u:\b)foo(?s:.){0,300}baz".into()], &text);
}

#[test]
fn a_thousand_gaps_at_once() {
    let patterns: Vec<String> = (0..1000).map(|n| format!("fo.{{0,200}}end{n}x")).collect();
    let mut numbers = Random(3);
    let mut text = Vec::new();
    while text.len() < 3_000 {
        text.extend(["fo", "xyz yz", " end", "42", "e\n"][numbers.below(5)].bytes());
    }
    text.extend(b"fo end7x");
    let stats = holds_up(&patterns, &text);
    assert!(stats.clears > 0, "{stats:?}");
}

#[test]
fn a_pause_ends() {
    let automaton = automaton(&["[ab]*a[ab]{14}c".into()], 1 << 16);
    let mut numbers = Random(4);
    let hard: Vec<u8> = (0..1_600_000).map(|_| b"ab"[numbers.below(2)]).collect();
    feed(&automaton, &hard);
    let first = automaton.stats();
    assert!(first.freezes > 0 && first.uncached_bytes > 1 << 20, "{first:?}");
    // Easy text has no rows either until the pause is over; then it soon needs no more.
    let easy = b"nothing of the kind, only words; ".repeat(36_000);
    feed(&automaton, &easy);
    let then = automaton.stats();
    assert!(then.uncached_bytes > first.uncached_bytes && !then.frozen, "{first:?} {then:?}");
    feed(&automaton, &easy);
    assert_eq!(automaton.stats().uncached_bytes, then.uncached_bytes);
}

#[test]
fn automata_share_their_budget_and_each_has_its_part() {
    let budget = CacheBudget::new(1 << 20);
    let pattern = || vec![Arc::new(Pattern::new("[ab]*a[ab]{14}c").unwrap())];
    let automata: Vec<_> = (0..4).map(|_| Automaton::with_budget(pattern(), &budget)).collect();
    let mut numbers = Random(5);
    let hard: Vec<u8> = (0..40_000).map(|_| b"ab"[numbers.below(2)]).collect();
    for automaton in &automata {
        feed(automaton, &hard);
        // The first took all; a later one still gets a quarter.
        assert!(automaton.stats().bytes >= (1 << 20) / 4, "{:?}", automaton.stats());
        assert!(budget.used() <= 2 << 20);
    }
    assert_eq!(budget.used(), automata.iter().map(|automaton| automaton.stats().bytes).sum::<usize>());
    drop(automata);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_rule_set_says_when_its_memory_was_too_small() {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "rules/hard.md".into() };
    let file = "+++\ncondition = 'fo[\\s\\S]{0,900}[xy]{900}end'\nscope = 'text'\n+++\nNo.\n";
    let (rule, found) = parse_rule_file("hard", &source, file);
    assert!(found.is_empty(), "{found:?}");
    let (set, _) = RuleSet::build(vec![rule.unwrap()], RuleSettings::default(), "/w");
    assert_eq!(set.engine_trouble(), None);
    let mut gate = RuleSession::new(Arc::clone(&set)).gate();
    gate.block_start(0, &flow::StreamKind::Text);
    let mut numbers = Random(6);
    for _ in 0..80_000 {
        gate.piece(0, ["fo", "x", "y", "xxxxy"][numbers.below(4)]);
    }
    let trouble = set.engine_trouble().unwrap();
    assert!(trouble.contains("`hard`") && trouble.contains("disable the rule"), "{trouble}");
    assert!(!trouble.contains('\n'));
    assert!(rules::engine::stats(&set)[0].budget_used < 48 << 20);
}

/// Rules that make matching slow are named, with their share, before a stream is slow.
#[test]
fn slow_rules_are_named() {
    let rule = |name: &str, condition: &str| {
        let source = RuleOrigin { layer: RuleLayer::Project, path: format!("rules/{name}.md") };
        let file = format!("+++\ncondition = '{condition}'\nscope = 'text'\n+++\nNo.\n");
        parse_rule_file(name, &source, &file).0.unwrap()
    };
    let fast = || vec![rule("word", "never{3}again"), rule("gap", "(?i)password[^\\n]{0,200}=[a-z]{8,90}")];
    let hard = rule("hard", "[a-d ][^q]{0,90}[e-h][^z]{20,60}zqx");
    let slow = |rules: Vec<rules::Rule>| RuleSet::build(rules, RuleSettings::default(), "/w").0.slow();
    assert_eq!(slow(fast()), []);
    assert_eq!(slow(rules::builtin().0), []);
    let found = slow(fast().into_iter().chain([hard.clone()]).collect());
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(one.rule(), Some("hard"));
    assert!(one.message.contains("99 % of the work of 3 rules"), "{one:?}");
    assert!(slow(vec![hard])[0].message.starts_with("matching is slow"));
}

/// Conditions that make ordinary text wait are named where a group `hide` would halve that.
#[test]
fn conditions_that_hold_back_more_than_they_hide_are_named() {
    let waits = |keys: &str| {
        let source = RuleOrigin { layer: RuleLayer::Project, path: "r.md".into() };
        let rule = parse_rule_file("r", &source, &format!("+++\n{keys}\n+++\nNo.\n")).0.unwrap();
        let found = RuleSet::build(vec![rule], RuleSettings::default(), "/w").0.waits();
        let told = |one: flow::Diagnostic| (one.code, one.location().map(|at| at.line()), one.help.unwrap_or_default());
        found.into_iter().map(told).next()
    };
    let token = r"(?i)[\w.-]{0,50}?(?:acme)[\w.-]{0,20}\s{0,3}[:=]\s{0,3}";
    let found = waits(&format!("secret = true\ncondition = '{token}([a-z0-9]{{32}})'")).unwrap();
    assert_eq!((found.0, found.1), (flow::DiagnosticCode::RuleHidesMore, Some(3)));
    assert!(found.2.starts_with("begin its first group with `(?P<hide>`"), "{found:?}");
    let found = waits(&format!("secret = true\ncondition = '{token}[a-z0-9]{{32}}'")).unwrap();
    assert!(found.2.starts_with("put what must not be shown into a group"), "{found:?}");
    for fine in [
        format!("secret = true\ncondition = '{token}(?P<hide>[a-z0-9]{{32}})'"),
        // Nothing waits for it.
        format!("interrupt = 'never'\ncondition = '{token}([a-z0-9]{{32}})'"),
        format!("scope = 'tool'\ncondition = '{token}([a-z0-9]{{32}})'"),
        // It waits for nothing.
        "secret = true\ncondition = 'acme_([a-z0-9]{32})'".to_owned(),
        // All of it is a violation, and there is no group.
        r"condition = '[A-Z][a-z ]{9,40}, forever'".to_owned(),
    ] {
        assert_eq!(waits(&fine), None, "{fine}");
    }
    let (rules, _) = rules::builtin();
    assert_eq!(RuleSet::build(rules, RuleSettings::default(), "/w").0.waits(), []);
}

/// Two hundred patterns each, in the shapes of real sets, on text of the kind that models write: states do not multiply, so
/// what is computed fits on a small part of the budget. As one DFA it does not.
#[test]
fn the_states_of_real_sets_do_not_multiply() {
    let text: String = rules::BUILTIN_FILES.iter().map(|(_, text)| *text).collect();
    let sets = [
        include_str!("../../tests/benches/sets/secrets.txt"),
        include_str!("../../tests/benches/sets/personal.txt"),
        include_str!("../../tests/benches/sets/injection.txt"),
    ];
    let patterns = |set: &str| -> Vec<_> { set.lines().map(|line| Arc::new(Pattern::new(line).unwrap())).collect() };
    for set in sets {
        let automaton = Automaton::new(patterns(set));
        feed(&automaton, text.as_bytes());
        let stats = automaton.stats();
        assert!(stats.bytes < 3 << 20 && stats.step_states < 10 * text.len() as u64, "{stats:?}");
    }
    let whole = Automaton::undivided(patterns(sets[0]));
    feed(&whole, &text.as_bytes()[..20_000]);
    assert!(whole.stats().step_states > 100 * 20_000, "{:?}", whole.stats());
}

/// Alternatives with look-around are written out: 64 of them at most, in one group or in several.
#[test]
fn look_around_in_too_many_alternatives_is_refused() {
    let list = |count: usize| (0..count).map(|n| format!("x{n}(?!b)c")).collect::<Vec<_>>().join("|");
    assert!(Pattern::new(&list(64)).is_ok());
    let refused = Pattern::new(&list(65)).unwrap_err();
    assert_eq!(refused.message, "too many alternatives contain look-around");
    assert_eq!(refused.span, 0..list(65).len());
    let group = |count: usize| format!("(?:{})", list(count));
    assert!(Pattern::new(&format!("{}{}", group(4), group(16))).is_ok());
    assert!(Pattern::new(&format!("{}{}", group(5), group(13))).is_err());
}
