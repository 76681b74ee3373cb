//! The built-in pack: the files under `builtin/`, each one rule.

use crate::{Diagnostic, Layer, Rule, Source, parse_rule_file};

macro_rules! pack {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../builtin/", $name, ".md")))),*]
    };
}

/// Name and text of each file of the pack.
pub const BUILTIN_FILES: &[(&str, &str)] = pack![
    "claim-without-run"
    "git-force-push"
    "git-hooks-skipped"
    "python-bare-except"
    "rust-debug-left"
    "rust-unfinished"
    "secret-in-file"
    "shell-pipe-to-shell"
    "test-switched-off"
    "ts-as-any"
];

/// The built-in rules, with what is wrong with them (nothing, a test says).
pub fn builtin() -> (Vec<Rule>, Vec<Diagnostic>) {
    let (mut rules, mut found) = (Vec::new(), Vec::new());
    for (name, text) in BUILTIN_FILES {
        let source = Source { layer: Layer::Builtin, path: format!("rules/builtin/{name}.md") };
        let (rule, diagnostics) = parse_rule_file(name, &source, text);
        rules.extend(rule);
        found.extend(diagnostics);
    }
    (rules, found)
}
