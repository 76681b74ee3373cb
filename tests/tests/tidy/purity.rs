//! `flow`, `record`, `rules`, `wire`, `chat` and `guard` do no I/O and know no clock; the attempt core of `guard` emits nothing either. (That they
//! compile for a target without either is another check; this one names the line.)

use crate::imports::{is_within, paths};
use crate::tree::{File, files};
use crate::{bites, hold};

const PURE: [&str; 6] =
    ["host/flow/src/", "host/record/src/", "host/wire/src/", "rules/src/", "host/chat/src/", "host/guard/src/"];

/// The attempt core returns effects and events; what emits them is around it.
const CORE: &str = "host/guard/src/attempt/";
const EMITTERS: [&str; 9] = [
    "crate::chain",
    "crate::relay",
    "crate::segments",
    "crate::shown",
    "super::super::chain",
    "super::super::relay",
    "super::super::segments",
    "super::super::shown",
    "flow::ports",
];

/// Names of [`FORBIDDEN`] that files are allowed: the time of the last change of a file is a value, which somebody else reads; and how
/// long a callback took is measured, and only reported.
const ALLOWED: [(&str, &str); 2] =
    [("host/flow/src/ports/files.rs", "std::time::SystemTime"), ("host/guard/src/chain.rs", "std::time::Instant")];

const FORBIDDEN: [&str; 13] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "std::os",
    "std::io::stdin",
    "std::io::stdout",
    "std::io::stderr",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::time::*",
    "SystemTime::now",
];

fn purity(files: &[File]) -> (usize, Vec<String>) {
    let mut read = 0;
    let mut findings = Vec::new();
    let pure = |file: &&File| file.is_rust() && PURE.iter().any(|folder| file.path.starts_with(folder));
    for file in files.iter().filter(pure) {
        read += 1;
        let is_allowed = |path: &str| ALLOWED.contains(&(file.path.as_str(), path));
        let bad = |path: &String| !is_allowed(path) && FORBIDDEN.iter().any(|root| is_within(path, root));
        let bad = paths(&file.path, &file.text).into_iter().filter(bad);
        findings.extend(bad.map(|path| format!("{} names {path}, and it must do no I/O", file.path)));
        let emits = |path: &String| EMITTERS.iter().any(|root| is_within(path, root));
        let emits = paths(&file.path, &file.text).into_iter().filter(|path| file.path.starts_with(CORE) && emits(path));
        findings.extend(emits.map(|path| format!("{} names {path}, and the attempt core emits nothing", file.path)));
    }
    (read, findings)
}

#[test]
fn values_and_rules_do_no_io() {
    let (read, findings) = purity(&files());
    hold("purity", read, 15, &findings);
}

#[test]
fn io_is_found() {
    for text in ["use std::{fs, fmt};", "fn f() { std::time::Instant::now(); }", "fn f() { x!(std::env::args()); }"] {
        bites(&purity(&[File::sample("rules/src/a.rs", text)]).1, "rules/src/a.rs names std::");
    }
    let clock = "use std::time::SystemTime; fn f() { SystemTime::now(); }";
    bites(&purity(&[File::sample(ALLOWED[0].0, clock)]).1, "names SystemTime::now");
    let emitter = "use flow::ports::EventSink;";
    for emitter in [emitter, "use super::super::relay::Relay;", "fn f(to: &crate::segments::Segments) {}"] {
        bites(&purity(&[File::sample("host/guard/src/attempt/a.rs", emitter)]).1, "the attempt core emits nothing");
    }
    assert_eq!(purity(&[File::sample("host/chat/src/a.rs", emitter)]), (1, Vec::new()));
    assert_eq!(purity(&[File::sample("host/tools/src/a.rs", "use std::fs;")]), (0, Vec::new()));
    assert_eq!(purity(&[File::sample("rules/src/a.rs", "use std::time::Duration;")]), (1, Vec::new()));
}
