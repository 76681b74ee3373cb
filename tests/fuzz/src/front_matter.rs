//! Rule files: for any content, the result is a rule or a diagnostic, and every diagnostic has a position in the text.

use rules::{Bucket, Diagnostic, Rule, RuleLayer, RuleOrigin, Severity, parse_rule_file};

pub(crate) const WORDS: &[&str] = &[
    "---\n",
    "+++\n",
    "...\n",
    "\u{feff}",
    "\r\n",
    "\t",
    "condition: ",
    "condition = ",
    "scope: ",
    "globs: ",
    "- ",
    "[",
    "]",
    "\"",
    "'",
    "'''",
    "\"\"\"",
    "|",
    ">-",
    "&a ",
    "*a",
    "!!str ",
    "# ",
    ": ",
    "true",
    "null",
    "tool:edit(*.rs)",
    "\\b",
    "\\u00e9",
    "interruptMode: never\n",
    "repeatGap: 2\n",
    "unless: ",
    "all: ",
    "(?!",
    "(?<=",
    "reminder: ",
    "alwaysApply: yes\n",
];

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (rule, found) = read(&text);
    for diagnostic in &found {
        check(diagnostic, &text);
    }
    match &rule {
        None => assert!(found.iter().any(|d| d.severity == Severity::Error), "refused in silence: {text:?}"),
        Some(rule) => usable(rule),
    }
    // A byte order mark changes nothing but the places.
    if !text.starts_with('\u{feff}') {
        let (marked, more) = read(&format!("\u{feff}{text}"));
        assert_eq!(summary(rule.as_ref()), summary(marked.as_ref()), "{text:?}: {found:?}");
        assert_eq!(found.len(), more.len());
    }
}

fn read(text: &str) -> (Option<Rule>, Vec<Diagnostic>) {
    let source = RuleOrigin { layer: RuleLayer::Project, path: "rules/r.md".into() };
    parse_rule_file("r", &source, text)
}

fn check(diagnostic: &Diagnostic, text: &str) {
    assert!(!diagnostic.message.is_empty());
    let at = diagnostic.location().unwrap_or_else(|| panic!("{diagnostic} has no place"));
    assert!(text.get(at.span.clone()).is_some(), "{diagnostic} points at {:?} of {} bytes", at.span, text.len());
    assert!(at.line() > 0 && at.column() > 0);
}

fn usable(rule: &Rule) {
    assert!(!rule.told().is_empty());
    assert!(!rule.scopes.is_empty());
    assert!(rule.bucket != Bucket::Stream || !(rule.conditions.is_empty() && rule.all.is_empty()));
}

fn summary(rule: Option<&Rule>) -> Option<(u64, String, usize)> {
    rule.map(|rule| (rule.content_hash(), rule.body.clone(), rule.scopes.len()))
}
