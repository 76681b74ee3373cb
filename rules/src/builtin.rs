//! The built-in pack: the files under `builtin/`, each one rule.

use std::num::NonZero;
use std::thread;

use crate::{Diagnostic, Layer, Rule, Source, parse_rule_file};

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

/// The most threads that compile the built-in rules.
const MAX_THREADS: usize = 4;

/// Compiles the built-in rules. The diagnostics are empty, which a test checks.
///
/// Compiling them takes about 10 ms of processor time, most of what a program with cached components needs to start, so
/// the work is divided among the processors. The order is that of [`BUILTIN_FILES`].
pub fn builtin() -> (Vec<Rule>, Vec<Diagnostic>) {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let mut parts = BUILTIN_FILES.chunks(BUILTIN_FILES.len().div_ceil(threads));
    let first = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let rest: Vec<_> =
            parts.map(|part| (part, thread::Builder::new().spawn_scoped(scope, move || compile(part)))).collect();
        let (mut rules, mut found) = compile(first);
        for (part, handle) in rest {
            // Where no thread can be started, or one has panicked, its part is compiled here.
            let compiled = handle.ok().and_then(|handle| handle.join().ok());
            let (more, diagnostics) = compiled.unwrap_or_else(|| compile(part));
            rules.extend(more);
            found.extend(diagnostics);
        }
        (rules, found)
    })
}

fn compile(files: &[(&str, &str)]) -> (Vec<Rule>, Vec<Diagnostic>) {
    let (mut rules, mut found) = (Vec::new(), Vec::new());
    for (name, text) in files {
        let source = Source { layer: Layer::Builtin, path: format!("rules/builtin/{name}.md") };
        let (rule, diagnostics) = parse_rule_file(name, &source, text);
        rules.extend(rule);
        found.extend(diagnostics);
    }
    (rules, found)
}
