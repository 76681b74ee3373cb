//! `acpx`, a client for scripts: one-shot prompts, and named sessions that outlive each of its processes.
//!
//! It resumes a session with `session/resume` and has no command for `session/load`; of invalid parameters it can send a mode that does
//! not exist. The clients with the SDKs do both.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_servers::ensure_editors_js;

use crate::clients::ends;
use crate::model::Model;
use crate::place;
use crate::support::Place;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

/// How long the model is waited for before a test fails: no time that a test depends on.
const PATIENCE: Duration = Duration::from_secs(120);

/// The Node of the lock file: `acpx` needs a newer one than other tests.
fn node(folder: &Path) -> PathBuf {
    let modules = std::fs::read_dir(folder.join("node_modules")).unwrap();
    let mut names = modules.map(|entry| entry.unwrap().path());
    let found = names.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("node-"));
    // Where there is none for the system, the one of the system must be new enough.
    found.map_or_else(|| "node".into(), |package| package.join("bin/node"))
}

/// Runs `acpx` in a workspace, which ends with this code; returns the lines that it prints. The process that keeps a session's agent
/// ends with the session, and without a session to close after these seconds.
#[track_caller]
fn acpx(place: &Place, arguments: &[&str], code: i32) -> Vec<Value> {
    let folder = ensure_editors_js().unwrap();
    let mut client = Command::new(node(&folder));
    let agent = format!("{} acp", env!("CARGO_BIN_EXE_tidegate"));
    client.arg(folder.join("node_modules/acpx/dist/cli.js"));
    client.args(["--agent", &agent, "--format", "json", "--json-strict", "--ttl", "60"]).args(arguments);
    let output = ends(place, client, code);
    String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The text of the agent's messages in lines of the protocol.
fn shown(lines: &[Value]) -> String {
    let updates = lines.iter().map(|line| &line["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

fn stop(lines: &[Value]) -> Option<&str> {
    lines.iter().find_map(|line| line["result"]["stopReason"].as_str())
}

fn methods(lines: &[Value]) -> Vec<&str> {
    lines.iter().filter_map(|line| line["method"].as_str()).collect()
}

#[test]
fn acpx_runs_prompts_and_its_policies_decide_about_calls() {
    let model = Model::start();
    let place = place(&model);
    let lines = acpx(&place, &["exec", "say hello"], 0);
    assert_eq!((shown(&lines).as_str(), stop(&lines)), ("hello", Some("end_turn")));
    // Its code for a prompt in which all was denied.
    let lines = acpx(&place, &["--deny-all", "exec", "write denied.txt one"], 5);
    assert!(shown(&lines).contains("denied"), "{lines:?}");
    assert!(!place.path("denied.txt").exists());
    let lines = acpx(&place, &["--approve-all", "exec", "write approved.txt one"], 0);
    assert!(methods(&lines).contains(&"fs/write_text_file"), "{lines:?}");
    assert_eq!(std::fs::read_to_string(place.path("approved.txt")).unwrap(), "one");
    let lines = acpx(&place, &["exec", "read approved.txt"], 0);
    assert!(methods(&lines).contains(&"fs/read_text_file") && shown(&lines).contains("one"), "{lines:?}");
    let lines = acpx(&place, &["--approve-all", "exec", "run echo from a terminal"], 0);
    assert!(methods(&lines).contains(&"terminal/create"), "{lines:?}");
    assert!(shown(&lines).contains("from a terminal"), "{lines:?}");
    // A client without files and terminals gets those of the host.
    let lines = acpx(&place, &["--approve-all", "--no-fs", "--no-terminal", "exec", "write own.txt two"], 0);
    assert!(!methods(&lines).iter().any(|method| method.starts_with("fs/")), "{lines:?}");
    assert_eq!(std::fs::read_to_string(place.path("own.txt")).unwrap(), "two");
    let blocks =
        json!([{"type": "image", "mimeType": "image/png", "data": PNG}, {"type": "text", "text": "image"}]).to_string();
    place.write("blocks.json", &blocks);
    let lines = acpx(&place, &["exec", "--file", "blocks.json"], 0);
    assert_eq!(shown(&lines), format!("image/png {}", PNG.len()));
}

#[test]
fn acpx_resumes_its_named_sessions_in_other_processes() {
    let model = Model::start();
    let place = place(&model);
    let created = acpx(&place, &["sessions", "new", "--name", "one"], 0);
    let id = created[0]["acpxSessionId"].as_str().unwrap();
    let prompt = |text: &str| acpx(&place, &["prompt", "-s", "one", text], 0);
    let lines = prompt("say first");
    assert!(methods(&lines).contains(&"session/resume"), "{lines:?}");
    assert_eq!(shown(&lines), "first");
    // The same process of the agent, and after it has ended another one, which has the conversation.
    assert_eq!(shown(&prompt("history")), "3 messages");
    let pid = acpx(&place, &["status", "-s", "one"], 0)[0]["pid"].to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    waited(|| acpx(&place, &["status", "-s", "one"], 0)[0]["status"] != "alive");
    let lines = prompt("history");
    assert!(methods(&lines).contains(&"session/resume"), "{lines:?}");
    assert_eq!(shown(&lines), "5 messages");
    let listed = acpx(&place, &["sessions", "list"], 0);
    let sessions = listed[0]["sessions"].as_array().unwrap();
    assert!(sessions.iter().any(|one| one["sessionId"] == id && one["title"] == "say first"), "{listed:?}");
    acpx(&place, &["sessions", "close", "one"], 0);
    // The agent knows it although the client has closed it.
    acpx(&place, &["sessions", "new", "--name", "again", "--resume-session", id], 0);
    assert_eq!(shown(&acpx(&place, &["prompt", "-s", "again", "history"], 0)), "7 messages");
    acpx(&place, &["sessions", "close", "again"], 0);
    let unknown = acpx(&place, &["sessions", "new", "--name", "none", "--resume-session", "none"], 4);
    assert_eq!(unknown[0]["error"]["code"], -32002, "{unknown:?}");
}

#[test]
fn acpx_cancels_a_turn_and_changes_settings() {
    let model = Model::start();
    let place = place(&model);
    acpx(&place, &["sessions", "new", "--name", "one"], 0);
    assert_eq!(acpx(&place, &["cancel", "-s", "one"], 0)[0]["cancelled"], false);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| acpx(&place, &["prompt", "-s", "one", "hang"], 0));
        waited(|| !model.requests.lock().unwrap().is_empty());
        assert_eq!(acpx(&place, &["cancel", "-s", "one"], 0)[0]["cancelled"], true);
        assert_eq!(stop(&running.join().unwrap()), Some("cancelled"));
    });
    let lines = acpx(&place, &["prompt", "-s", "one", "say after"], 0);
    assert_eq!((shown(&lines).as_str(), stop(&lines)), ("after", Some("end_turn")));
    let refused = acpx(&place, &["set-mode", "-s", "one", "none"], 1);
    assert_eq!(refused[0]["error"]["code"], -32602, "{refused:?}");
    assert_eq!(acpx(&place, &["set-mode", "-s", "one", "deny"], 0)[0]["modeId"], "deny");
    // Its user would approve, and is not asked.
    let lines = acpx(&place, &["--approve-all", "prompt", "-s", "one", "write never.txt one"], 0);
    assert!(!methods(&lines).contains(&"session/request_permission"), "{lines:?}");
    assert!(!place.path("never.txt").exists());
    let set = acpx(&place, &["set", "-s", "one", "mode", "approve"], 0);
    assert!(set[0]["configOptions"].as_array().unwrap().iter().any(|one| one["currentValue"] == "approve"), "{set:?}");
    acpx(&place, &["sessions", "close", "one"], 0);
}

/// Waits until something is so.
#[track_caller]
fn waited(mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "it does not come to be");
        std::thread::sleep(Duration::from_millis(20));
    }
}
