//! Hostile text from each source that reaches the program's output: nothing of it acts on a terminal, and none of it begins a
//! line that looks like the host's.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Place, Say, assert_harmless, err, out, recording};

/// What moves a cursor, sets a title, hides and reorders text, and begins a line like the host's own.
const HOSTILE: &str =
    "x\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}1m\r\u{8}\u{202e}\u{200b}\u{feff}\nok   provider: forged\nerror: forged\u{e0041}";

fn checked(output: &Output, what: &str) -> String {
    let (out, err) = (out(output), err(output));
    assert_harmless(&out);
    assert_harmless(&err);
    for line in out.lines().chain(err.lines()) {
        assert!(!line.starts_with("ok   provider: forged") && !line.starts_with("error: forged"), "{what}: {line}");
    }
    format!("{out}{err}")
}

fn place(answers: &[&[Say<'_>]]) -> Place {
    let place = Place::new();
    place.write("answers.jsonl", &recording(answers));
    place.write("tidegate.toml", "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n");
    place
}

#[test]
fn names_and_contents_of_files() {
    let place = place(&[&[Say::Text("hi")]]);
    let name = "a\u{1b}[2J\u{202e}\nok   provider: forged.md";
    let escaped = "a\\u{1b}[2J\\u{202e}\\nok   provider: forged.md";
    for content in [HOSTILE.to_owned(), format!("+++\ncondition = '(\u{1b}[2J\u{9b}{}'\n+++\nB\n", '\u{202e}')] {
        place.write(&format!(".tidegate/rules/{name}"), &content);
        for arguments in [
            &["rules", "check", ".tidegate/rules"][..],
            &["rules", "list"],
            &["doctor"],
            &["run", "go"],
            &["rules", "check", ".tidegate/rules", "--json"],
        ] {
            let printed = checked(&place.run(arguments), &format!("{arguments:?}"));
            assert!(
                arguments.contains(&"--json") || printed.contains("provider: forged.md"),
                "{arguments:?} {printed}"
            );
        }
    }
    let said = checked(&place.run(&["rules", "check", name]), "a file of the command line");
    assert!(said.contains(escaped), "{said}");
}

#[test]
fn arguments_of_the_command_line() {
    let place = place(&[]);
    for arguments in [
        &["run", "go", "--permission", HOSTILE][..],
        &["run", "go", "--recording", HOSTILE],
        &["run", "go", "--config", HOSTILE],
        &["run", "go", "--workspace", HOSTILE],
        &["run", "go", "--plugin", HOSTILE],
        &["run", "go", "--provider", HOSTILE],
        &["rules", "explain", HOSTILE],
        &["plugin", "build", HOSTILE],
        &[HOSTILE],
        &["run", "go", &format!("--provider={HOSTILE}")],
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        checked(&output, &format!("{arguments:?}"));
    }
}

#[test]
fn manifests_and_rules_of_plugins() {
    let place = place(&[&[Say::Text("SECRET"), Say::Thinking("t")], &[Say::Text("fine")]]);
    let text = json!(HOSTILE).to_string();
    let rule = format!(
        "[[rule]]\nname = \"r\"\ndescription = {text}\ncondition = 'SECRET'\nscope = \"text\"\nbody = {text}\n"
    );
    let manifest = format!("id = \"p\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = {text}\n{rule}");
    // JSON's escapes are TOML's, but for one half of a surrogate pair.
    place.write("p/plugin.toml", &manifest);
    for arguments in [
        &["plugin", "list", "--plugin", "p"][..],
        &["rules", "list", "--verbose", "--plugin", "p"],
        &["rules", "explain", "r", "--plugin", "p"],
        &["doctor", "--plugin", "p"],
        &["run", "go", "--plugin", "p", "--summary"],
    ] {
        let output = place.run(arguments);
        let printed = checked(&output, &format!("{arguments:?}"));
        assert_eq!(output.status.code(), Some(0), "{arguments:?} {printed}");
    }
}

#[test]
fn errors_of_providers() {
    let place = place(&[]);
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": HOSTILE}}).to_string();
    let lines = [
        json!({"tidegate_recording": 1, "wire": "anthropic", "model": "recorded"}),
        json!({"request": {}}),
        json!({"response": 400, "headers": {"content-type": "application/json"}, "at_ms": 0}),
        json!({"text": body, "at_ms": 0}),
        json!({"end": "complete", "at_ms": 0}),
    ];
    place.write("answers.jsonl", &lines.iter().map(|line: &Value| format!("{line}\n")).collect::<String>());
    for format in ["text", "json", "stream-json"] {
        let output = place.run(&["run", "go", "--output", format]);
        assert_eq!(output.status.code(), Some(1));
        let printed = checked(&output, format);
        assert!(printed.contains("forged"), "{printed}");
    }
}
