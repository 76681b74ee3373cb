//! Rule files as large as they may be, of lines that are hard to read: the work grows with the size and not with its square, which would
//! take far longer than anybody waits for a test.
#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use flow::Diagnostic;
use rules::{Rule, RuleLayer, RuleOrigin, parse_rule_file};
use tidegate_rules as rules;

const SIZE: usize = 1 << 20;

const FRONT: &str = "+++\ncondition = 'zz'\n+++\nBody.\n";

fn parse(text: &str) -> (Option<Rule>, Vec<Diagnostic>) {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "r.md".into() };
    parse_rule_file("r", &source, text)
}

fn repeated(lines: &str) -> String {
    lines.repeat(SIZE / lines.len())
}

#[test]
fn fences_that_never_end_are_read_once() {
    let mut falling: String = (3..1400).rev().map(|length| format!("{} a\n", "`".repeat(length))).collect();
    falling.push_str("``\n");
    for lines in [repeated("```a \n"), repeated("~~~ b\n```a\n"), falling, repeated("~~~a\n````\n~~~~b\n```\n")] {
        let (rule, found) = parse(&format!("{FRONT}{lines}"));
        assert_eq!((rule.unwrap().examples.len(), found), (0, vec![]));
    }
}

#[test]
fn of_many_problems_the_first_are_reported_and_the_others_counted() {
    for (begin, line, end) in [
        (FRONT, "```tool:shell command\n```\n", ""),
        (FRONT, "## Passes\n```text\n```\n", ""),
        ("+++\ncondition = 'zz'\n+++\nBody.\n## Fires\n", "```sh\nzz\n```\n", ""),
        (FRONT, "## Fires\n", ""),
        ("---\ncondition: zz\n", "foo\n", "---\nBody.\n"),
    ] {
        let (rule, found) = parse(&format!("{begin}{}{end}", repeated(line)));
        assert!(rule.is_some(), "{line}: {}", found.last().unwrap());
        let places: Vec<usize> = found.iter().map(|one| one.location().unwrap().line()).collect();
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
        let others = SIZE / line.len() - 64;
        assert!(
            found.len() == 64 && found[63].message.ends_with(&format!(" (and {others} more in this file)")),
            "{}",
            found[63]
        );
    }
    // Nothing hides an error, and as many as are allowed are reported as they are.
    let (rule, found) = parse(&format!("---\n{}condition: (\n---\nBody.\n", "foo\n".repeat(100)));
    let last = found.last().unwrap();
    assert!(rule.is_none() && last.is_error() && last.message.ends_with(" more in this file)"), "{last}");
    let (_, found) = parse(&format!("---\ncondition: zz\n{}---\nBody.\n", "foo\n".repeat(64)));
    assert!(found.len() == 64 && found[62].message == found[63].message);
}

/// A condition of a megabyte with look-around is refused by its size, and not after it was copied once for each part of it.
#[test]
fn a_condition_of_many_look_arounds_is_refused_at_once() {
    for part in ["(?=.*a)(?!.*b)", "(?=a)x", "x(?<=a)", "(?!a)"] {
        let (rule, found) = parse(&format!("---\ncondition: '{}c'\n---\nBody.\n", repeated(part)));
        assert!(rule.is_none() && found.iter().any(Diagnostic::is_error), "{part}");
    }
}
