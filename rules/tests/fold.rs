//! Rules with `fold`: what they see, and that places, evidence and what is held back are those of the original, in any chunks.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use flow::{CallId, RuleMatch, Severity, StreamKind};
use rules::{Rule, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, parse_rule_file};
use tidegate_rules as rules;

use crate::judge::Random;

const ALL: &str = "fold = [\"invisible\", \"width\", \"compose\", \"case\"]";

fn rule(name: &str, front: &str) -> Rule {
    let source = RuleOrigin { layer: RuleLayer::Project, path: format!("/work/rules/{name}.md") };
    let (rule, found) = parse_rule_file(name, &source, &format!("+++\n{front}\n+++\nBody.\n"));
    assert_eq!(found, []);
    rule.unwrap()
}

fn session(rules: Vec<Rule>) -> RuleSession {
    let (set, found) = RuleSet::build(rules, RuleSettings::default(), "/work");
    assert_eq!(found, []);
    RuleSession::new(set)
}

/// What fired in a text that comes in these chunks, until a rule stops it, and how much of it was safe before each chunk.
fn watched(session: &RuleSession, chunks: &[&str]) -> (Vec<RuleMatch>, Vec<u64>) {
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let mut safe = vec![0];
    for chunk in chunks {
        let fed = gate.piece(0, chunk);
        safe.push(fed.safe);
        if !fed.matches.is_empty() {
            return (fed.matches, safe);
        }
    }
    let fed = gate.end(0);
    safe.push(fed.safe);
    (fed.matches, safe)
}

fn characters(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
}

#[test]
fn look_alikes_are_found_with_the_text_as_it_was_written() {
    for (condition, fold, text, found) in [
        ("forbidden", ALL, "x for\u{200b}bid\u{ad}den y", Some("for\u{200b}bid\u{ad}den")),
        ("forbidden", ALL, "x ＦＯＲＢＩＤＤＥＮ.", Some("ＦＯＲＢＩＤＤＥＮ")),
        ("café", ALL, "un cafe\u{301} ", Some("cafe\u{301}")),
        ("cafe\u{301}", ALL, "un CAFÉ ", Some("CAFÉ")),
        ("cafe", ALL, "un cafe\u{301} ", None),
        ("straße", ALL, "DIE STRASSE", Some("STRASSE")),
        ("strasse", ALL, "die Straße", Some("Straße")),
        ("sse", ALL, "die Straße", Some("ße")),
        (r"\bapi key\b", ALL, "API\u{a0}KEY!", Some("API\u{a0}KEY")),
        ("file", "fold = \"width\"", "a ﬁle", Some("ﬁle")),
        ("file", "fold = \"width\"", "a FILE", None),
        ("file", "fold = \"case\"", "a FiLe", Some("FiLe")),
        ("fi le", "fold = \"invisible\"", "fi\u{200b} le", Some("fi\u{200b} le")),
        ("ガ", ALL, "x ｶﾞ y", Some("ｶﾞ")),
        ("각", ALL, "x \u{1100}\u{1161}\u{11a8} y", Some("\u{1100}\u{1161}\u{11a8}")),
    ] {
        let session = session(vec![rule("r", &format!("condition = '{condition}'\n{fold}"))]);
        let (whole, _) = watched(&session, &[text]);
        let evidence = whole.first().map(|one| &one.evidence);
        assert_eq!(evidence.map(|one| one.text.as_str()), found, "{condition} in {text:?}");
        if let Some(evidence) = evidence {
            assert_eq!(&text[evidence.start as usize..evidence.end as usize], found.unwrap());
        }
        let (one_by_one, safe) = watched(&session, &characters(text));
        assert_eq!(one_by_one, whole, "{condition} in {text:?}");
        let start = evidence.map_or(text.len() as u64, |one| one.start);
        assert!(safe.iter().all(|safe| *safe <= start), "{condition} in {text:?}: {safe:?}");
    }
}

/// A match without a character behind one that is left out.
#[test]
fn an_empty_match_is_where_the_folded_text_has_it() {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "/work/rules/r.md".to_owned() };
    let text = "+++\ncondition = '(?m)x?$'\nfold = \"invisible\"\n+++\nBody.\n";
    let (rule, _) = parse_rule_file("r", &source, text);
    let (found, _) = watched(&session(vec![rule.unwrap()]), &["a\u{200b}\nb"]);
    let evidence = &found[0].evidence;
    assert_eq!((evidence.start, evidence.end, evidence.text.as_str()), (1, 1, ""));
}

#[test]
fn all_and_unless_see_the_same_and_so_do_arguments_of_calls() {
    let both = session(vec![rule("r", &format!("condition = 'one'\nall = 'two'\nunless = 'three'\n{ALL}"))]);
    for (text, fires) in [("ＴＷＯ o\u{200b}ne", true), ("ＴＷＯ", false), ("ＴＨＲＥＥ ＴＷＯ one", false)]
    {
        assert_eq!(!watched(&both, &[text]).0.is_empty(), fires, "{text}");
    }
    let session = session(vec![rule("r", &format!("condition = 'rm -rf'\nscope = 'tool'\n{ALL}"))]);
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Tool { call: CallId::new("c"), name: "shell".into() });
    let matches = gate.piece(0, r#"{"command": "r\u200bm -ｒf"}"#).matches;
    assert_eq!(matches[0].evidence.text, "r\u{200b}m -ｒf");
}

#[test]
fn rules_of_both_kinds_fire_in_the_order_of_their_bytes() {
    let plain = |name: &str, condition: &str| {
        rule(name, &format!("condition = '{condition}'\ninterrupt = 'never'\nscope = 'text'"))
    };
    let folded = |name: &str, condition: &str| {
        rule(name, &format!("condition = '{condition}'\ninterrupt = 'never'\nscope = 'text'\n{ALL}"))
    };
    let session = session(vec![plain("a", "one"), folded("b", "two"), plain("c", "three"), folded("d", "ONE")]);
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let first = gate.piece(0, "one TWO three.").matches;
    let rest = std::iter::from_fn(|| gate.more(0)).flat_map(|fed| fed.matches);
    let names: Vec<String> = first.into_iter().chain(rest).map(|one| one.rule).collect();
    // What follows `ONE` could be an accent of its last letter, so that this is known a byte later.
    assert_eq!(names, ["a", "d", "b", "c"]);
}

#[test]
fn a_secret_that_is_folded_is_in_no_evidence() {
    let secret = format!("condition = 'key-[a-z]{{8}}'\nsecret = true\n{ALL}");
    let other = "condition = 'abc'\ninterrupt = 'never'\nscope = 'text'";
    let session = session(vec![rule("a", other), rule("b", &secret)]);
    let mut gate = session.gate();
    gate.block_start(0, &StreamKind::Text);
    let mut matches = gate.piece(0, "ＫＥＹ-abc\u{200b}defgh.").matches;
    matches.extend(std::iter::from_fn(|| gate.more(0)).flat_map(|fed| fed.matches));
    let evidence: Vec<(&str, &str)> =
        matches.iter().map(|one| (one.rule.as_str(), one.evidence.text.as_str())).collect();
    assert_eq!(evidence, [("a", "[hidden]"), ("b", "[hidden]")]);
}

/// `for`, then invisible characters: how much is held back when so many bytes of them have come, and what has fired at which byte.
fn padded(front: &str, before: &str, pad: &str, count: usize, size: usize) -> (Vec<(u64, u64)>, u64, u64) {
    let session = session(vec![rule("r", front)]);
    let text = format!("{before}{}", pad.repeat(count));
    let chunks: Vec<&str> = characters(&text);
    let (mut gate, mut safe, mut most) = (session.gate(), 0, 0_u64);
    gate.block_start(0, &StreamKind::Text);
    let mut fed = 0;
    for chunk in chunks.chunks(size).map(<[&str]>::concat) {
        let step = gate.piece(0, &chunk);
        fed += chunk.len() as u64;
        safe = safe.max(step.safe);
        if !step.matches.is_empty() {
            let found = step.matches.iter().map(|one| (one.evidence.start, one.evidence.end)).collect();
            assert!(step.matches.iter().all(|one| !one.evidence.text.contains('\u{fffd}')), "{:?}", step.matches);
            return (found, safe, most);
        }
        most = most.max(fed - safe);
    }
    (Vec::new(), safe, most)
}

#[test]
fn invisible_characters_do_not_hold_text_back_without_end() {
    let guard = format!("condition = 'forbidden'\nscope = 'text'\n{ALL}");
    for pad in ["\u{200b}", "\u{ad}", "\u{e0041}", "\u{3164}"] {
        // In the middle of what may be a match they count as one, at the same byte for every chunking, and nothing of it is shown.
        let (found, safe, most) = padded(&guard, "x for", pad, 400_000, 1);
        assert_eq!((found.len(), found[0].0, safe), (1, 2, 2), "{pad:?}");
        assert!((4096..=5300).contains(&found[0].1) && most <= 5300, "{pad:?} {found:?} {most}");
        for size in [7, 1_000, 400_000] {
            assert_eq!(padded(&guard, "x for", pad, 400_000, size).0, found, "{pad:?} {size}");
        }
        // Elsewhere they are shown, and what follows is still watched.
        let (found, safe, most) = padded(&guard, "nothing", pad, 4_000, 3);
        assert!(found.is_empty() && safe > 7 && most <= 5300, "{pad:?} {safe} {most}");
    }
    // Less than that is no match yet, and does not help who goes on.
    let (found, safe, _) = padded(&guard, "x for", "\u{200b}", 1_000, 5);
    assert_eq!((found, safe), (vec![], 2));
    let text = format!("x for{}bidden y", "\u{200b}".repeat(1_000));
    assert_eq!(watched(&session(vec![rule("r", &guard)]), &[text.as_str()]).0[0].evidence.start, 2);
    // A letter between each two runs makes the match no longer than its condition.
    let spread: String = "forbidde".chars().map(|c| format!("{c}{}", "\u{200b}".repeat(900))).collect();
    let (found, safe) = watched(&session(vec![rule("r", &guard)]), &characters(&spread));
    assert_eq!((found.len(), safe.iter().max()), (1, Some(&0)));
    // Nothing is held back for a rule that only reminds, and it does not fire.
    let reminds = format!("{guard}\ninterrupt = 'never'");
    assert_eq!(padded(&reminds, "x for", "\u{200b}", 10_000, 9).0, []);
    // The limit of conditions without a bound is that of the settings.
    let unbounded = format!("condition = 'for.*bidden'\nscope = 'text'\n{ALL}");
    let (found, safe, _) = padded(&unbounded, "x for", "\u{200b}", 10_000, 9);
    assert!(found.is_empty() && safe > 4096, "{safe}");
    // Of a secret nothing is shown.
    let secret = format!("condition = 'for[a-z]{{6}}'\nsecret = true\n{ALL}");
    let (found, safe, _) = padded(&secret, "x for", "\u{200b}", 10_000, 9);
    assert_eq!((found.len(), safe), (1, 2));
}

#[test]
fn accents_without_end_do_not_hold_text_back() {
    let guard = format!("condition = 'forbidden'\nscope = 'text'\n{ALL}");
    let (found, safe, most) = padded(&guard, "q", "\u{35c}", 100_000, 11);
    assert!(found.is_empty() && safe > 199_000 && most < 200, "{safe} {most}");
}

/// Random texts of units of which the folded form is known, in random chunks.
#[test]
fn random_texts_are_judged_as_their_folded_form() {
    const UNITS: [(&str, &str); 12] = [
        ("a", "a"),
        ("A", "a"),
        ("ａ", "a"),
        ("\u{200b}", ""),
        ("e\u{301}", "é"),
        ("É", "é"),
        ("ß", "ss"),
        ("s", "s"),
        ("b", "b"),
        (" ", " "),
        ("日", "日"),
        ("😀", "😀"),
    ];
    let conditions = ["aéb", "ss", "a{2,3}b", "b日?a", r"\bsa", "é$", "(?:ab|é s)"];
    let sessions: Vec<RuleSession> =
        conditions.iter().map(|one| session(vec![rule("r", &format!("condition = '{one}'\n{ALL}"))])).collect();
    let mut random = Random(7);
    let mut fired = 0;
    for round in 0..4000 {
        let units: Vec<(&str, &str)> = (0..random.below(14)).map(|_| UNITS[random.below(UNITS.len())]).collect();
        let text: String = units.iter().map(|(original, _)| *original).collect();
        let folded: String = units.iter().map(|(_, folded)| *folded).collect();
        let at = round % conditions.len();
        let plain = session(vec![rule("r", &format!("condition = '{}'", conditions[at]))]);
        let expected = watched(&plain, &[&folded]).0;
        let mut chunks = Vec::new();
        let mut begun = 0;
        for (place, _) in text.char_indices().skip(1) {
            if random.below(3) == 0 {
                chunks.push(&text[begun..place]);
                begun = place;
            }
        }
        chunks.push(&text[begun..]);
        let (found, safe) = watched(&sessions[at], &chunks);
        assert_eq!(found.len(), expected.len(), "{} in {text:?} in {chunks:?}", conditions[at]);
        let Some(found) = found.first() else {
            assert_eq!(safe.last(), Some(&(text.len() as u64)), "{text:?}");
            continue;
        };
        fired += 1;
        let before = &text[..found.evidence.start as usize];
        assert!(safe.iter().all(|safe| *safe <= found.evidence.start), "{} in {text:?}: {safe:?}", conditions[at]);
        assert!(text[before.len()..].starts_with(&found.evidence.text), "{text:?}");
    }
    assert!(fired > 300, "{fired}");
}

#[test]
fn a_kind_that_does_not_exist_is_an_error_with_its_place() {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "/work/rules/r.md".to_owned() };
    let (rule, found) =
        parse_rule_file("r", &source, "+++\ncondition = 'x'\nfold = [\"case\", \"widht\"]\n+++\nBody.\n");
    assert!(rule.is_none());
    let error = found.iter().find(|one| one.severity == Severity::Error).unwrap();
    assert_eq!(error.message, "`fold` has no kind `widht`");
    assert_eq!(error.help.as_deref(), Some("the kinds are `invisible`, `width`, `compose`, `case`"));
    assert_eq!(error.labels.len(), 1, "it points to the word");
}
