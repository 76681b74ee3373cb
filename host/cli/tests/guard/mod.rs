//! `tidegate guard`: an agent that has a loop of its own, with the rules between it and its model.

mod answers;
mod faults;
mod fidelity;
mod limits;
mod masking;
mod raw;
mod sdks;
mod split;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tidegate_servers::{Scripted, ensure_judge};

use crate::support::{Place, err};

/// A word that the scripted model writes until it is reminded.
const FORBIDDEN: &str = "+++\ncondition = \"forbidden\"\nscope = [\"text\", \"thinking\", \"tool\"]\nrepeat = \"always\"\n+++\nNever say that word.\n";

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guard").join(name)
}

#[test]
fn the_official_sdks_are_guarded() {
    let (place, model) = (Place::with(&[("no-forbidden", FORBIDDEN)]), Scripted::start().unwrap());
    let python = ensure_judge().unwrap().join("bin/python");
    let (url, openai) = (model.base_url(), format!("{}/v1", model.base_url()));
    let mut command = place.command(&["guard", "--anthropic-url", url, "--openai-url", &openai, "--"]);
    command.arg(python).arg(source("client.py")).env("UPSTREAM", url).stdin(Stdio::null());
    let output = command.output().unwrap();
    let told = err(&output);
    assert_eq!(output.status.code(), Some(7), "{told}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (stream, whole) = ("Hello.\nNow the These are fine.\n", "These are fine.\n");
    let expected = json!({
        "anthropic": stream, "anthropic whole": whole, "count": 10, "chat": stream, "chat whole": whole,
        "responses": stream, "responses whole": whole, "models": ["m"], "same": true, "websocket": 426, "other host": 421,
        "requests": [
            ["/v1/messages", false, "Bearer a-key"], ["/v1/messages", true, "Bearer a-key"],
            ["/v1/messages", false, "Bearer a-key"], ["/v1/messages", true, "Bearer a-key"],
            ["/v1/messages/count_tokens", false, "Bearer a-key"],
            ["/v1/chat/completions", false, "Bearer o-key"], ["/v1/chat/completions", true, "Bearer o-key"],
            ["/v1/chat/completions", false, "Bearer o-key"], ["/v1/chat/completions", true, "Bearer o-key"],
            ["/v1/responses", false, "Bearer o-key"], ["/v1/responses", true, "Bearer o-key"],
            ["/v1/responses", false, "Bearer o-key"], ["/v1/responses", true, "Bearer o-key"],
            ["/v1/messages?beta=true", false, null],
        ],
    });
    assert_eq!(seen, expected, "{told}");
    assert!(told.contains("  no-forbidden: stopped and asked again 6×"), "{told}");
}

#[test]
fn a_command_ends_as_it_ends() {
    let place = Place::with(&[("no-forbidden", FORBIDDEN)]);
    for (script, code) in [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143)] {
        let output = place.command(&["guard", "--", "sh", "-c", script]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert!(err(&output).contains("guard: 0 answers checked"), "{}", err(&output));
    }
    let output =
        place.command(&["guard", "--", "sh", "-c", "echo $ANTHROPIC_BASE_URL $OPENAI_BASE_URL"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (base, openai) = said.trim().split_once(' ').unwrap();
    assert!(base.starts_with("http://127.0.0.1:") && openai == format!("{base}/v1"), "{said}");
}

#[test]
fn what_is_wrong_is_said_before_the_command_starts() {
    let place = Place::with(&[("no-forbidden", FORBIDDEN)]);
    for (arguments, said) in [
        (&["guard", "--", "no-such-program"][..], "cannot start no-such-program"),
        (
            &["guard", "--anthropic-url", "api.example", "--", "true"],
            "cannot use api.example as the address of a model",
        ),
        (&["guard", "--openai-url", "ftp://a/", "--", "true"], "does not begin with http:// or https://"),
        (&["guard"], "COMMAND"),
        (&["guard", "--prt", "1", "--", "true"], "--port"),
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).contains(said), "{}", err(&output));
    }
}

#[test]
fn a_plugin_of_the_command_line_acts() {
    let plugin = crate::masked::plugin().display().to_string();
    let place = Place::with(&[("no-forbidden", FORBIDDEN)]);
    let output = place.run(&["guard", "--plugin", &plugin, "--grant", "state", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(err(&output).contains(" and 1 plugin between the agent and its model"), "{}", err(&output));
}

/// A requested guard is in force, or the command fails with the reason.
#[test]
fn what_is_required_is_in_force() {
    let own_tool = "+++\ncondition = \"forbidden\"\nscope = \"tool:exec_command\"\n+++\nNever.\n";
    for (settings, rule, code, said) in [
        ("[rules]\nrequired = [\"gone\"]\n".to_owned(), FORBIDDEN, 2, "`gone`"),
        (
            "[rules]\nrequired = [\"no-forbidden\"]\n".to_owned(),
            "+++\ncondition = \"(\"\n+++\nNever.\n",
            2,
            "no-forbidden",
        ),
        // The tools are the agent's.
        ("[rules]\nrequired = [\"no-forbidden\"]\n".to_owned(), own_tool, 0, "guard: 0 answers checked"),
        (
            String::new(),
            "+++\ncondition = \"(\"\n+++\nNever.\n",
            0,
            "1 rule has errors and is not in force: `no-forbidden`",
        ),
    ] {
        let place = Place::with(&[("no-forbidden", rule)]);
        place.write("tidegate.toml", &settings);
        let output = place.run(&["guard", "--", "true"]);
        assert_eq!(output.status.code(), Some(code), "{settings}: {}", err(&output));
        assert!(err(&output).contains(said), "{settings}: {}", err(&output));
    }
}
