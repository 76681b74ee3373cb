//! Independent clients: each runs sessions of its own against the program, and says what was not as expected.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tidegate_servers::{ensure_editors_js, ensure_editors_py};

use crate::model::Model;
use crate::place;
use crate::support::Place;

/// Runs a client with the folders of the program in the workspace, and expects this exit code.
#[track_caller]
fn ends(place: &Place, mut client: Command, code: i32) -> Output {
    let output = client
        .current_dir(place.path(""))
        .env("HOME", place.path("home"))
        .env("XDG_CACHE_HOME", place.path("cache"))
        .env("XDG_CONFIG_HOME", place.path("user"))
        .env("XDG_STATE_HOME", place.path("state"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{text}");
    output
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/acp").join(name)
}

fn workspace(place: &Place) -> PathBuf {
    place.path("").canonicalize().unwrap()
}

#[test]
fn the_typescript_sdk_runs_sessions() {
    let model = Model::start();
    let place = place(&model);
    let mut client = Command::new("node");
    client.arg(source("client.mjs")).arg(workspace(&place)).args([env!("CARGO_BIN_EXE_tidegate"), "acp"]);
    client.env("TIDEGATE_TEST_NODE_MODULES", ensure_editors_js().unwrap());
    ends(&place, client, 0);
}

#[test]
fn the_python_sdk_runs_sessions() {
    let model = Model::start();
    let place = place(&model);
    let mut client = Command::new(ensure_editors_py().unwrap().join("bin/python"));
    client.arg(source("client.py")).arg(workspace(&place)).args([env!("CARGO_BIN_EXE_tidegate"), "acp"]);
    ends(&place, client, 0);
}

/// The Node of the lock file: `acpx` needs a newer one than other tests.
fn node(folder: &Path) -> PathBuf {
    let modules = std::fs::read_dir(folder.join("node_modules")).unwrap();
    let mut names = modules.map(|entry| entry.unwrap().path());
    let found = names.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("node-"));
    // Where there is none for the system, the one of the system must be new enough.
    found.map_or_else(|| "node".into(), |package| package.join("bin/node"))
}

/// `acpx` in a workspace, which ends with this code; returns the lines that it prints.
fn acpx(place: &Place, arguments: &[&str], code: i32) -> Vec<Value> {
    let folder = ensure_editors_js().unwrap();
    let mut client = Command::new(node(&folder));
    let agent = format!("{} acp", env!("CARGO_BIN_EXE_tidegate"));
    client.arg(folder.join("node_modules/acpx/dist/cli.js"));
    client.args(["--agent", &agent, "--format", "json", "--json-strict"]).args(arguments);
    let output = ends(place, client, code);
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The text of the agent's messages in lines of the protocol.
fn shown(lines: &[Value]) -> String {
    let updates = lines.iter().map(|line| &line["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[test]
fn acpx_runs_prompts_and_its_policies_decide_about_calls() {
    let model = Model::start();
    let place = place(&model);
    let lines = acpx(&place, &["exec", "say hello"], 0);
    assert_eq!(shown(&lines), "hello");
    assert!(lines.iter().any(|line| line["result"]["stopReason"] == "end_turn"), "{lines:?}");
    // Its code for a prompt in which all was denied.
    let lines = acpx(&place, &["--deny-all", "exec", "write denied.txt one"], 5);
    assert!(shown(&lines).contains("denied"), "{lines:?}");
    assert!(!place.path("denied.txt").exists());
    acpx(&place, &["--approve-all", "exec", "write approved.txt one"], 0);
    assert_eq!(std::fs::read_to_string(place.path("approved.txt")).unwrap(), "one");
}
