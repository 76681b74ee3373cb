//! A standard output that nobody reads is no failure of any command; one that cannot be written is.

use std::fs::File;
use std::process::Stdio;

use super::provider::{Provider, Reply};
use super::started::Started;
use crate::support::Place;

/// Commands that print something to standard output.
const COMMANDS: [&[&str]; 19] = [
    &["--help"],
    &["--version"],
    &["run", "--help"],
    &["completions", "bash"],
    &["config", "show", "--defaults", "errors"],
    &["doctor"],
    &["doctor", "--json"],
    &["agents", "list"],
    &["plugin", "list"],
    &["plugin", "list", "--json"],
    &["rules", "list"],
    &["rules", "list", "--json"],
    &["rules", "explain", "conflict-marker"],
    &["session", "list"],
    &["session", "list", "--json"],
    &["session", "show", "s"],
    &["session", "export", "s"],
    &["explain", "--session", "s"],
    &["state", "list"],
];

const RUNS: [&[&str]; 3] =
    [&["run", "go"], &["run", "go", "--output", "json"], &["run", "go", "--output", "stream-json"]];

fn place(provider: &Provider) -> Place {
    let place = Place::new();
    place.write("op.toml", &provider.settings());
    let first = Started::new(&place, &["run", "go", "--session", "s", "--config", "op.toml"]).ended("a first run");
    assert_eq!(first.code, Some(0), "{first:?}");
    place
}

#[test]
fn an_output_that_nobody_reads_is_no_failure() {
    let provider = Provider::start(&[Reply::Text("Done.")]);
    let place = place(&provider);
    for arguments in COMMANDS.iter().chain(&RUNS) {
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        let mut command = place.command(&[arguments, &["--config", "op.toml"][..]].concat());
        let ended = Started::of(command.stdin(Stdio::null()).stdout(write)).ended(&format!("{arguments:?}"));
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
        assert!(!ended.err.contains("error"), "{arguments:?}: {ended:?}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let provider = Provider::start(&[Reply::Text("Done.")]);
    let place = place(&provider);
    for arguments in COMMANDS.iter().chain(&RUNS) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = place.command(&[arguments, &["--config", "op.toml"][..]].concat());
        let ended = Started::of(command.stdin(Stdio::null()).stdout(full)).ended(&format!("{arguments:?}"));
        assert_eq!(ended.code, Some(1), "{arguments:?}: {ended:?}");
        assert!(ended.err.contains("cannot write to standard output: No space left"), "{arguments:?}: {ended:?}");
    }
}
