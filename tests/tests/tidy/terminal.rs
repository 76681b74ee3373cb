//! Only `host/cli/src/screen` writes to the terminal: what others print has to pass through it, and is cleaned there.

use crate::imports::{is_within, paths};
use crate::tree::{File, files};
use crate::{bites, hold};

/// The streams, however they are reached.
const STREAMS: [&str; 4] = ["std::io::stdout", "std::io::stderr", "stdout", "stderr"];
/// Macros that write to one.
const MACROS: [&str; 5] = ["println", "print", "eprintln", "eprint", "dbg"];

fn writers(files: &[File]) -> (usize, Vec<String>) {
    let bound = |file: &&File| {
        file.is_rust() && file.path.starts_with("host/cli/src/") && !file.path.starts_with("host/cli/src/screen/")
    };
    let mut findings = Vec::new();
    for file in files.iter().filter(bound) {
        for path in paths(&file.path, &file.text) {
            let short = path.strip_prefix("io::").unwrap_or(&path);
            let streams = STREAMS.iter().any(|stream| is_within(short, stream));
            let writes = streams || MACROS.contains(&path.as_str()) || path == "std::io::*";
            findings.extend(writes.then(|| format!("{} names {path}; print through `screen`", file.path)));
        }
        let device = file.text.contains("/dev/tty").then(|| format!("{} names the terminal's device", file.path));
        findings.extend(device);
    }
    (files.iter().filter(bound).count(), findings)
}

#[test]
fn one_module_writes_to_the_terminal() {
    let (read, findings) = writers(&files());
    hold("terminal", read, 20, &findings);
}

#[test]
fn another_writer_is_found() {
    let file = |path: &str, text: &str| [File::sample(&format!("host/cli/src/{path}"), text)];
    bites(&writers(&file("run.rs", "use std::io::{Write, stdout};")).1, "run.rs names std::io::stdout");
    bites(&writers(&file("run.rs", "fn f() { println!(\"x\"); }")).1, "names println");
    bites(&writers(&file("run.rs", "use std::io; fn f() { io::stderr().lock(); }")).1, "names io::stderr");
    bites(&writers(&file("run.rs", "fn f() { std::io::stdout(); }")).1, "names std::io::stdout");
    bites(&writers(&file("run.rs", "const D: &str = \"/dev/tty\";")).1, "device");
    assert!(writers(&file("screen/sink.rs", "fn f() { std::io::stdout(); }")).1.is_empty());
    assert!(writers(&file("run.rs", "use crate::screen; fn f() { screen::note(1); }")).1.is_empty());
}
