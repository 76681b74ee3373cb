//! Permissions of commands, however they are spelt: `tests/corpus/shell/commands.toml`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the counts of the corpus")]

use std::collections::BTreeMap;
use std::path::Path;

use flow::{Permission, PermissionMode};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;
use tidegate_tools::ToolSettings;

use crate::common::{World, rule};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    group: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    about: String,
    permissions: BTreeMap<String, String>,
    /// Denied, and each removes the file `y` where it runs.
    #[serde(default)]
    removes: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    allow: Vec<String>,
}

fn corpus() -> Vec<Group> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/shell/commands.toml");
    toml::from_str::<Corpus>(&std::fs::read_to_string(file).unwrap()).unwrap().group
}

fn world<'a>(permissions: impl IntoIterator<Item = (&'a str, &'a str)>) -> World {
    let rules = permissions.into_iter().map(|(key, mode)| rule(key, PermissionMode::from_word(mode).unwrap()));
    World::with(ToolSettings { permissions: rules.collect(), ..ToolSettings::default() })
}

fn decided(world: &World, command: &str) -> (&'static str, Permission) {
    let permission = world.permission("shell", json!({ "command": command }));
    let word = match permission {
        Permission::Allow => "allow",
        Permission::Ask { .. } => "ask",
        Permission::Deny { .. } => "deny",
    };
    (word, permission)
}

#[test]
fn a_spelling_does_not_change_what_is_permitted() {
    let (mut counts, mut wrong) = (BTreeMap::new(), Vec::new());
    for group in corpus() {
        let world = world(group.permissions.iter().map(|(key, mode)| (key.as_str(), mode.as_str())));
        let kinds = [("deny", &group.removes), ("deny", &group.deny), ("ask", &group.ask), ("allow", &group.allow)];
        for (expected, commands) in kinds {
            for command in commands {
                let (found, permission) = decided(&world, command);
                *counts.entry(expected).or_insert(0) += 1;
                if found != expected {
                    wrong.push(format!("{}: {command:?} is not `{expected}`: {permission:?}", group.about));
                }
            }
        }
    }
    println!("{counts:?}, {} of them wrong", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(counts["deny"] >= 330 && counts["ask"] >= 240 && counts["allow"] >= 140, "{counts:?}");
}

/// The spellings are real: a shell runs each of them, and the file is gone.
#[cfg(target_os = "linux")]
#[test]
fn the_spellings_do_what_the_corpus_says() {
    let spellings: Vec<String> = corpus().into_iter().flat_map(|group| group.removes).collect();
    assert!(spellings.len() >= 170, "{} spellings", spellings.len());
    let mut wrong = Vec::new();
    for command in &spellings {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("y"), "").unwrap();
        let mut sh = std::process::Command::new("sh");
        let output =
            sh.args(["-c", command]).current_dir(folder.path()).stdin(std::process::Stdio::null()).output().unwrap();
        if folder.path().join("y").exists() {
            wrong.push(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// One of the ways in which a command can be inside of another one.
fn inside(kind: usize, command: &str) -> String {
    let quoted = format!("'{}'", command.replace('\'', r"'\''"));
    match kind {
        0 => format!("{{ {command}\n}}"),
        1 => format!("( {command}\n)"),
        2 => format!("true && {{\n{command}\n}}"),
        3 => format!("if {command}\nthen :; fi"),
        4 => format!("for f in a b; do {command}\ndone | cat"),
        5 => format!("x=$( {command}\n)"),
        6 => format!("echo \"a $( {command}\n) b\""),
        7 => format!("sh -c {quoted}"),
        8 => format!("timeout -k 1 5 nice -n 3 bash -ec {quoted}"),
        9 => format!("eval {quoted}"),
        10 => format!("find . -exec sh -c {quoted} \\;"),
        11 => format!("f() {{\n{command}\n}}; f"),
        12 => format!("case x in (*) {command}\n;; esac"),
        13 => format!("cat <<E{0}\n$( {command}\n)\nE{0}\n", command.len()),
        14 => format!("echo ${{x:-$( {command}\n)}}"),
        15 => format!("! {{\n{command}\n}} || :"),
        16 => format!("A=1 env -i B=2 sh -c {quoted} > /dev/null"),
        17 => format!("trap {quoted} EXIT"),
        18 => format!("while :; do {command}\nbreak; done &"),
        _ => format!("# a comment; true $(\n{command}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// However a command that is denied is wrapped, it never runs unasked, and without it nothing is denied.
    #[test]
    fn no_nesting_hides_a_denied_command(kinds in prop::collection::vec(0_usize..20, 0..5)) {
        let world = world([("shell", "allow"), ("shell(rm *)", "deny")]);
        let wrapped = |command: &str| kinds.iter().fold(command.to_owned(), |command, kind| inside(*kind, &command));
        let command = wrapped("rm y");
        prop_assert_eq!(decided(&world, &command).0, "deny", "{}", command);
        let command = wrapped("cat y");
        prop_assert_eq!(decided(&world, &command).0, "allow", "{}", command);
    }

    /// Any text has a decision.
    #[test]
    fn no_text_is_too_much(text in "[a-z $(){}\\[\\]<>&|;'\"`\\\\\n*?!#=/-]{0,60}") {
        let world = world([("shell", "allow"), ("shell(rm *)", "deny"), ("shell(git *)", "allow")]);
        decided(&world, &text);
    }
}

/// Lines that are made to take long, or to nest deeply.
#[test]
fn hostile_lines_ask() {
    let world = world([("shell", "allow"), ("shell(rm *)", "deny")]);
    let nested = |open: &str, close: &str, times: usize| format!("{}rm y{}", open.repeat(times), close.repeat(times));
    for (open, close) in [
        ("(", ")"),
        ("{ ", "; }"),
        ("echo $(", ")"),
        ("$((", "))"),
        ("echo ${x:-$(", ")}"),
        ("if ", "; then :; fi"),
        ("case x in *) ", ";; esac"),
        ("f() { ", "; }"),
        ("\"$(", ")\""),
        ("[[ ( ", " ) ]]"),
        ("cat <(", ")"),
        ("`", "`"),
        ("env -Z ", ""),
        ("sudo -Z ", ""),
        ("! ", ""),
        ("nice ", ""),
        ("xargs -Z ", ""),
        ("parallel ", ""),
        ("eval eval ", ""),
        ("x|", ""),
    ] {
        for times in [20, 400, 1500] {
            let line = nested(open, close, times);
            assert_ne!(decided(&world, &line).0, "allow", "{open} {times}");
        }
    }
    for text in
        ["{a,".repeat(10_000), "a[".repeat(10_000), "'".repeat(30_001), "x=(".repeat(9_000), "<<E ".repeat(3000)]
    {
        decided(&world, &text);
    }
    let long = format!("echo {}", "a ".repeat(40_000));
    let Permission::Ask { reason } = decided(&world, &long).1 else { panic!("a line of {} bytes", long.len()) };
    assert_eq!(
        reason,
        "whether `\"shell(rm *)\" = \"deny\"` ([tools.permission] in tidegate.toml) is about this command cannot be decided: it is \
         longer than 32 KiB, or has too many braces to be looked at"
    );
}
