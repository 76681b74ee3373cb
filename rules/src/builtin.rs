//! The built-in pack: the files under `builtin/`, each one rule.

use crate::{Diagnostic, Rule, RuleLayer, RuleOrigin, parse_rule_file};

macro_rules! pack {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../builtin/", $name, ".md")))),*]
    };
}

/// Name and text of each file of the pack.
pub const BUILTIN_FILES: &[(&str, &str)] = pack![
    "ci-check-ignored"
    "claim-without-run"
    "command-by-interpolation"
    "conflict-marker"
    "database-dropped"
    "elided-code"
    "failure-waved-off"
    "files-unseen"
    "generated-file-edited"
    "git-force-push"
    "git-hooks-skipped"
    "git-work-thrown-away"
    "go-context-todo"
    "go-error-dropped"
    "go-error-text"
    "go-http-no-timeout"
    "js-async-foreach"
    "js-empty-catch"
    "js-html-from-text"
    "lock-file-edited"
    "python-bare-except"
    "python-debug-left"
    "python-error-swallowed"
    "python-eval"
    "python-mutable-default"
    "rust-debug-left"
    "rust-sleep-in-async"
    "rust-unfinished"
    "rust-unsafe-unexplained"
    "rust-warning-silenced"
    "secret-in-file"
    "shell-kill-by-name"
    "shell-needs-terminal"
    "shell-open-permissions"
    "shell-pipe-to-shell"
    "shell-remove-root"
    "snapshots-accepted"
    "sql-by-interpolation"
    "stub-left"
    "test-always-passes"
    "test-switched-off"
    "tls-check-off"
    "ts-as-any"
    "ts-check-off"
];

/// Compiles the built-in rules. The diagnostics are empty, which a test checks.
pub fn builtin() -> (Vec<Rule>, Vec<Diagnostic>) {
    parse_builtin(BUILTIN_FILES)
}

/// Compiles some of [`BUILTIN_FILES`], so that a caller with threads can divide the work.
pub fn parse_builtin(files: &[(&str, &str)]) -> (Vec<Rule>, Vec<Diagnostic>) {
    let (mut rules, mut found) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let source = RuleOrigin { layer: RuleLayer::Builtin, path: format!("rules/builtin/{name}.md") };
        let (rule, diagnostics) = parse_rule_file(name, &source, text);
        rules.extend(rule);
        found.extend(diagnostics);
    }
    (rules, found)
}
