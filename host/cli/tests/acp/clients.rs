//! Independent clients: each runs sessions of its own against the program, and says what was not as expected.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tidegate_servers::{ensure_editors_js, ensure_editors_py};

use super::model::Model;
use super::place;
use crate::support::Place;

/// Runs a client with the folders of the program in the workspace, and expects this exit code.
#[track_caller]
pub(crate) fn ends(place: &Place, mut client: Command, code: i32) -> Output {
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

/// A client or an agent in the folder of these tests.
pub(crate) fn source(name: &str) -> PathBuf {
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
    client.arg(source("client.mjs")).arg(workspace(&place)).args([
        env!("CARGO_BIN_EXE_tidegate"),
        "acp",
        "--trust-workspace",
    ]);
    client.env("TIDEGATE_TEST_NODE_MODULES", ensure_editors_js().unwrap());
    ends(&place, client, 0);
}

#[test]
fn the_python_sdk_runs_sessions() {
    let model = Model::start();
    let place = place(&model);
    let mut client = Command::new(ensure_editors_py().unwrap().join("bin/python"));
    client.arg(source("client.py")).arg(workspace(&place)).args([
        env!("CARGO_BIN_EXE_tidegate"),
        "acp",
        "--trust-workspace",
    ]);
    ends(&place, client, 0);
}
