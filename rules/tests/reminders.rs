//! Reminders of several rules at once: what they have in common is said once.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use flow::{CallId, RuleMatch, StreamKind};
use rules::{Rule, RuleLayer, RuleOrigin, RuleSession, RuleSet, RuleSettings, parse_rule_file};
use tidegate_rules as rules;

fn rule(name: &str, front: &str, body: &str) -> Rule {
    let source = RuleOrigin { layer: RuleLayer::Project, path: format!("/work/rules/{name}.md") };
    let (rule, found) = parse_rule_file(name, &source, &format!("+++\n{front}\n+++\n{body}\n"));
    assert_eq!(found, []);
    rule.unwrap()
}

fn session(rules: Vec<Rule>) -> RuleSession {
    RuleSession::new(RuleSet::build(rules, RuleSettings::default(), "/work").0)
}

fn found(session: &RuleSession, stream: &StreamKind, text: &str) -> Vec<RuleMatch> {
    let mut gate = session.gate();
    gate.block_start(0, stream);
    let mut matches = gate.piece(0, text).matches;
    matches.extend(std::iter::from_fn(|| gate.more(0)).flat_map(|fed| fed.matches));
    matches.extend(gate.end(0).matches);
    matches
}

#[test]
fn rules_with_one_cause_have_one_reminder() {
    let guard =
        "condition = '(?m)^rm[ ]'\nscope = 'tool:shell'\nfield = 'commands'\naction = 'block'\nrepeat = 'always'";
    let names: Vec<String> = (0..12).map(|number| format!("g{number}")).collect();
    let rules = names.iter().map(|name| rule(name, guard, &format!("Body of {name}."))).collect();
    let session = session(rules);
    let on = |arguments: &str| {
        found(&session, &StreamKind::Tool { call: CallId::new("c"), name: "shell".into() }, arguments)
    };
    // An open quote: no rule is broken, and none of their texts is sent.
    let unread = on(r#"{"command":"echo 'a"}"#);
    assert_eq!(unread.len(), names.len());
    let said = session.reminder(&unread);
    assert_eq!(said.matches("<system-interrupt").count(), 1, "{said}");
    assert!(said.starts_with(
        "<system-interrupt reason=\"unreadable_call\" rule=\"g0, g1, g2, g3, g4, g5, g6, g7 and 4 more\">\n"
    ));
    assert!(said.contains("could not be checked against rules that") && !said.contains("Body of"), "{said}");
    assert_eq!(said.matches("Found in a call of shell: ").count(), 1, "{said}");
    let of_one = session.reminder(&unread[..1]);
    assert!(of_one.contains("could not be checked against a rule that"), "{of_one}");
    // None of them is reminded of, so a rule of which the real reminder is gone may act again.
    for name in names.iter().map(String::as_str).chain(["g7 and 4 more"]) {
        assert!(!RuleSession::holds_reminder(&said, name) && !RuleSession::holds_reminder(&of_one, name), "{name}");
    }
    // A violation: each rule has its own text, and what they have in common is said once.
    let broken = session.reminder(&on(r#"{"command":"rm x"}"#));
    assert_eq!(broken.matches("<system-interrupt").count(), names.len());
    assert_eq!(broken.matches("not a prompt injection").count(), 1, "{broken}");
    assert!(names.iter().all(|name| RuleSession::holds_reminder(&format!("{said}\n\n{broken}"), name)));
    assert!(names.iter().all(|name| broken.contains(&format!("\nBody of {name}.\n"))), "{broken}");
}

#[test]
fn rules_that_say_the_same_have_one_reminder() {
    let same = |name: &str, condition: &str| rule(name, &format!("condition = '{condition}'"), "No keys.");
    let rules = vec![same("a", "key-[0-9]{2}"), same("b", "y-1[0-9]"), rule("c", "condition = '-12'", "Another.")];
    let session = session(rules);
    let said = session.reminder(&found(&session, &StreamKind::Text, "the key-12"));
    assert_eq!((said.matches("<system-interrupt").count(), said.matches("No keys.").count()), (2, 1), "{said}");
    assert!(said.contains(" rule=\"a, b\">\n") && said.contains(": key-12\n") && said.contains(": y-12\n"), "{said}");
    for (name, is_named) in [("a", true), ("b", true), ("c", true), ("a, b", false), ("d", false), ("b, a", false)] {
        assert_eq!(RuleSession::holds_reminder(&said, name), is_named, "{name}");
    }
}

#[test]
fn a_comma_in_a_name_divides_nothing() {
    let same = |name: &str, condition: &str| rule(name, &format!("condition = '{condition}'"), "No keys.");
    let session = session(vec![same("a, b", "key-[0-9]{2}"), same("c", "y-1[0-9]")]);
    let said = session.reminder(&found(&session, &StreamKind::Text, "the key-12"));
    assert_eq!(said.matches("<system-interrupt").count(), 1, "{said}");
    for (name, is_named) in [("a, b", true), ("c", true), ("a", false), ("b", false), ("a, b, c", false)] {
        assert_eq!(RuleSession::holds_reminder(&said, name), is_named, "{name}: {said}");
    }
}
