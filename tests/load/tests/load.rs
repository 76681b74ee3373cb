//! Short forms of the load program: nothing of a session is found in another one, and no state is lost. `cargo xtask load` is the long form.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

/// Runs the program; it fails where something was wrong.
fn load(flags: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate-load")).args(flags.split_whitespace()).output().unwrap();
    let [text, wrong] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{flags}: {}\n{text}{wrong}", output.status);
    text
}

#[test]
fn sessions_share_nothing_while_plugins_are_reloaded() {
    let text = load("--seconds 5 --sessions 100 --reload 1");
    assert!(!text.contains("reloads 0,") && !text.contains("another version 0,"), "{text}");
}

#[test]
fn state_on_the_disk_is_found_again() {
    load("--seconds 4 --sessions 40 --store disk");
}

#[test]
fn no_state_is_lost_while_redis_restarts_twice() {
    let text = load("--seconds 9 --sessions 80 --reload 1 --store redis --restart 2");
    assert!(text.contains("restarts of the server 2,"), "{text}");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for (flags, wrong) in [
        ("--restart 1", "--restart needs --store redis"),
        ("--seconds 0", "--seconds takes a number from 1 on"),
        ("--store file", "--store is memory, disk or redis"),
        ("--wait", "--wait needs a value"),
        ("--active 3", "--active needs --program"),
        ("--program x --store disk", "--store is not for --program"),
        ("--browsers 3", "--browsers needs --program"),
        ("--program x --sessions 3 --browsers 2", "--browsers: each session needs one"),
        ("--program x --browsers 300 --capacity yes", "--capacity is not for --browsers"),
        ("--program x --idle perhaps", "--idle is yes or no"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_tidegate-load")).args(flags.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(wrong), "{flags}");
    }
}
