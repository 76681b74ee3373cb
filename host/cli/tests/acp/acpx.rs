//! `acpx`, a client for scripts: one-shot prompts, and named sessions that outlive each of its processes.
//!
//! All that its commands can express: new sessions, prompts (one-shot, named, queued, with images), questions that its policies approve
//! and deny, files and terminals of the client, cancels in flight and idle, `session/resume`, a choice of the model, MCP servers. It takes
//! `session/load` only from an agent that cannot resume, for which one test hides that. Of invalid parameters it sends a mode, an option and a
//! value that do not exist, and an unknown session. It cannot send a folder that is not absolute, malformed messages, steering, `$/cancel_request` or
//! `session/delete`: the clients with the SDKs and the other tests do.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tidegate_servers::{ensure_editors_js, node_of};

use super::clients::{ends, source};
use super::model::Model;
use super::place;
use crate::support::Place;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

/// How long the model is waited for before a test fails: no time that a test depends on.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs `acpx` in a workspace, which ends with this code; returns the lines that it prints. The process that keeps a session's agent
/// ends with the session, and without a session to close after these seconds.
#[track_caller]
fn acpx(place: &Place, arguments: &[&str], code: i32) -> Vec<Value> {
    acpx_with(&format!("{} acp --trust-workspace", env!("CARGO_BIN_EXE_tidegate")), place, arguments, code)
}

/// The same with an agent of another command.
#[track_caller]
fn acpx_with(agent: &str, place: &Place, arguments: &[&str], code: i32) -> Vec<Value> {
    let folder = ensure_editors_js().unwrap();
    let mut client = Command::new(node_of(&folder));
    client.arg(folder.join("node_modules/acpx/dist/cli.js"));
    client.args(["--agent", agent, "--format", "json", "--json-strict", "--ttl", "60"]).args(arguments);
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
    stop_owner("one", |arguments, code| acpx(&place, arguments, code));
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

#[test]
fn acpx_loads_a_session_of_an_agent_that_cannot_resume_it() {
    let model = Model::start();
    let place = place(&model);
    let agent = format!(
        "python3 {} {} acp --trust-workspace",
        source("no-resume.py").display(),
        env!("CARGO_BIN_EXE_tidegate")
    );
    let acpx = |arguments: &[&str], code| acpx_with(&agent, &place, arguments, code);
    acpx(&["sessions", "new", "--name", "one"], 0);
    for (prompt, answer) in [("say first", "first"), ("history", "3 messages")] {
        let lines = acpx(&["prompt", "-s", "one", prompt], 0);
        assert!(methods(&lines).contains(&"session/load") && !methods(&lines).contains(&"session/resume"), "{lines:?}");
        assert!(shown(&lines).ends_with(answer), "{lines:?}");
        stop_owner("one", acpx);
    }
    acpx(&["sessions", "close", "one"], 0);
    let unknown = acpx(&["sessions", "new", "--name", "none", "--resume-session", "none"], 4);
    assert_eq!(unknown[0]["error"]["code"], -32002, "{unknown:?}");
}

#[test]
fn acpx_decides_and_serves_files_in_a_named_session() {
    let model = Model::start();
    let place = place(&model);
    let created = acpx(&place, &["sessions", "ensure", "--name", "one"], 0);
    let again = acpx(&place, &["sessions", "ensure", "--name", "one"], 0);
    assert_eq!((&again[0]["created"], &again[0]["acpxSessionId"]), (&json!(false), &created[0]["acpxSessionId"]));
    let prompt = |policy: &str, text: &str| acpx(&place, &[policy, "prompt", "-s", "one", text], 0);
    let lines = prompt("--approve-all", "write a.txt one");
    assert!(methods(&lines).contains(&"fs/write_text_file"), "{lines:?}");
    assert_eq!(std::fs::read_to_string(place.path("a.txt")).unwrap(), "one");
    let lines = prompt("--deny-all", "write b.txt two");
    assert!(methods(&lines).contains(&"session/request_permission") && shown(&lines).contains("denied"), "{lines:?}");
    assert!(!place.path("b.txt").exists());
    let lines = prompt("--approve-reads", "read a.txt");
    assert!(methods(&lines).contains(&"fs/read_text_file") && shown(&lines).contains("one"), "{lines:?}");
    // Nobody is there to be asked: a closed question is a denial.
    let unasked = ["--non-interactive-permissions", "fail", "exec", "write c.txt three"];
    let lines = acpx(&place, &unasked, 5);
    assert!(shown(&lines).contains("closed the question"), "{lines:?}");
    assert!(!place.path("c.txt").exists());
    let blocks =
        json!([{"type": "image", "mimeType": "image/png", "data": PNG}, {"type": "text", "text": "image"}]).to_string();
    place.write("blocks.json", &blocks);
    let lines = acpx(&place, &["prompt", "-s", "one", "--file", "blocks.json"], 0);
    assert_eq!(shown(&lines), format!("image/png {}", PNG.len()));
    acpx(&place, &["sessions", "close", "one"], 0);
}

#[test]
fn acpx_queues_prompts_and_is_refused_what_is_not_there() {
    let model = Model::start();
    let place = place(&model);
    let file = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", &file.replace("[rules]", "models = [\"claude-other\"]\n[rules]"));
    place.write("mcp.json", &json!({"mcpServers": [{"name": "one", "command": "/bin/true", "args": []}]}).to_string());
    let lines = acpx(&place, &["--mcp-config", "mcp.json", "--model", "claude-other", "exec", "say hello"], 0);
    assert!(
        lines.iter().any(|line| line.to_string().contains("The MCP servers of the editor are not used")),
        "{lines:?}"
    );
    assert_eq!(model.requests.lock().unwrap()[0]["model"], "claude-other");
    for option in ["mode=none", "none=deny"] {
        let lines = acpx(&place, &["exec", "--config-option", option, "say hello"], 1);
        assert!(lines.iter().any(|line| line["error"]["code"] == -32602), "{option}: {lines:?}");
    }
    acpx(&place, &["sessions", "new", "--name", "one"], 0);
    for (option, value) in [("none", "deny"), ("mode", "none")] {
        let refused = acpx(&place, &["set", "-s", "one", option, value], 1);
        assert_eq!(refused[0]["error"]["code"], -32602, "{refused:?}");
    }
    std::thread::scope(|scope| {
        let running = scope.spawn(|| acpx(&place, &["prompt", "-s", "one", "hang"], 0));
        waited(|| model.requests.lock().unwrap().len() == 2);
        let queued = acpx(&place, &["prompt", "-s", "one", "--no-wait", "say queued"], 0);
        assert_eq!(queued[0]["action"], "prompt_queued", "{queued:?}");
        acpx(&place, &["cancel", "-s", "one"], 0);
        assert_eq!(stop(&running.join().unwrap()), Some("cancelled"));
    });
    waited(|| model.requests.lock().unwrap().len() == 3);
    assert!(model.requests.lock().unwrap()[2]["messages"].to_string().contains("say queued"));
    acpx(&place, &["sessions", "close", "one"], 0);
}

/// Ends the process that keeps the agent of a session.
#[track_caller]
fn stop_owner(name: &str, acpx: impl Fn(&[&str], i32) -> Vec<Value>) {
    let status = || acpx(&["status", "-s", name], 0);
    let pid = status()[0]["pid"].to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    waited(|| status()[0]["status"] != "alive");
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
