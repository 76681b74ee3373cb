//! The built-in pack: the files under `builtin/`, each one rule.

use crate::file::parse_trusted;
use crate::{Diagnostic, Rule, RuleLayer, RuleOrigin};

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

/// The built-in rules. Their conditions are compiled when they are first used, because most programs that read them start no
/// turn; that all of them are valid is enforced by a test.
pub fn builtin() -> (Vec<Rule>, Vec<Diagnostic>) {
    let (mut rules, mut found) = (Vec::new(), Vec::new());
    for (name, text) in BUILTIN_FILES {
        let (rule, diagnostics) = parse_trusted(name, &builtin_origin(name), text);
        rules.extend(rule);
        found.extend(diagnostics);
    }
    (rules, found)
}

/// Where the built-in rule of this name comes from.
pub fn builtin_origin(name: &str) -> RuleOrigin {
    RuleOrigin { layer: RuleLayer::Builtin, path: format!("rules/builtin/{name}.md") }
}
