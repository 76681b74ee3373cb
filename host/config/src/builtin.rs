//! The built-in rules, compiled on several threads.

use std::num::NonZero;
use std::thread;

use flow::Diagnostic;
use rules::{BUILTIN_FILES, Rule, parse_builtin};

/// The most threads that compile rules.
const MAX_THREADS: usize = 4;

/// Compiles the built-in rules, as [`rules::builtin`] does and in the same order.
///
/// It takes about 10 ms of processor time, most of what a program with cached components needs to start, so the work is
/// divided among the processors.
pub(crate) fn builtin() -> (Vec<Rule>, Vec<Diagnostic>) {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let mut parts = BUILTIN_FILES.chunks(BUILTIN_FILES.len().div_ceil(threads));
    let first = parts.next().unwrap_or_default();
    thread::scope(|scope| {
        let start = |part| (part, thread::Builder::new().spawn_scoped(scope, move || parse_builtin(part)));
        let rest: Vec<_> = parts.map(start).collect();
        let (mut rules, mut found) = parse_builtin(first);
        for (part, handle) in rest {
            // The part of a thread that could not be started is compiled here.
            let compiled = handle.ok().and_then(|handle| handle.join().ok());
            let (more, diagnostics) = compiled.unwrap_or_else(|| parse_builtin(part));
            rules.extend(more);
            found.extend(diagnostics);
        }
        (rules, found)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn threads_change_neither_rules_nor_their_order() {
        let (rules, found) = super::builtin();
        let (expected, none) = rules::builtin();
        let names = |rules: &[rules::Rule]| rules.iter().map(|rule| rule.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&rules), names(&expected));
        assert_eq!((found.len(), none.len()), (0, 0));
    }
}
