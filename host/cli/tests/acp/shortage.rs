//! A process that runs out of what open sessions need: new sessions are refused, and those that are open continue.

use std::fs::File;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use super::editor::Editor;
use super::model::Model;
use super::place;

/// Limits the memory that the process writes to little more than what it has.
fn limit(process: Pid, more: impl Fn(u64) -> Option<u64>) -> Rlimit {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let used = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    let used = used.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10;
    prlimit(Some(process), Resource::Data, Rlimit { current: more(used), maximum: None }).unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn without_memory_new_sessions_are_refused_and_open_ones_continue() {
    let model = Model::start();
    let place = place(&model);
    place.write("a.txt", "the end");
    let log = place.path("log");
    let mut editor = Editor::logging(place.command(&["acp"]), File::create(&log).unwrap().into());
    let session = editor.open(json!({}), &place.path(""));
    let process = editor.process();
    // Less than what is kept for open sessions: 64 MiB, or an eighth of a smaller limit.
    limit(process, |used| Some(used + (used / 10).min(48 << 20)));
    for _ in 0..3 {
        let error = editor.refused("session/new", json!({"cwd": place.path(""), "mcpServers": []})).to_string();
        let expected =
            ["no session can be opened now", "MiB of memory that the process (`ulimit -d`) may have", "close sessions"];
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    }
    let (stop, text) = editor.ask(&session, "flood 100 a.txt");
    assert!(stop == "end_turn" && text.contains("the end"), "{stop}: {text}");
    limit(process, |_| None);
    editor.new_session(&place.path(""));
    assert!(editor.close().success());
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("no session can be opened now").count(), 1, "it is logged once: {log}");
}
