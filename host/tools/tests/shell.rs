//! `shell`: output, limits, and that nothing it started outlives it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use flow::ports::{ProgressLine, Tools};
use serde_json::json;
use tidegate_tools::ToolSettings;

use crate::common::{World, call};

/// How long something may take before a test fails. What must not be waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

fn world(timeout_ms: u64, output: usize) -> World {
    let shell_timeout = Duration::from_millis(timeout_ms);
    World::with(ToolSettings { shell_timeout, shell_output_bytes: output, ..ToolSettings::default() })
}

/// A command whose grandchild, well away from the first shell, writes its own id and then sleeps for long.
const GRANDCHILD: &str = "sh -c 'sh -c \"echo \\$\\$ > pid; exec sleep 300\" & wait' & wait";

async fn pid(world: &World) -> String {
    let file = world.path("pid");
    let deadline = Instant::now() + PATIENCE;
    loop {
        match std::fs::read_to_string(&file) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => assert!(Instant::now() < deadline, "the grandchild never started"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Whether a process runs. A zombie does not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

async fn is_gone(pid: &str) {
    let deadline = Instant::now() + PATIENCE;
    while runs(pid) {
        assert!(Instant::now() < deadline, "process {pid} still runs");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn output_and_errors_come_in_order_with_the_exit_code() {
    let world = world(10_000, 1 << 16);
    let said = world.fine("shell", json!({"command": "echo one; echo two >&2; echo three"})).await;
    assert_eq!(said, "one\ntwo\nthree\n[exit code 0]");
    assert_eq!(world.fine("shell", json!({"command": "true"})).await, "[exit code 0, no output]");
    assert_eq!(world.fails("shell", json!({"command": "printf x; exit 3"})).await, "x\n[exit code 3]");
    assert_eq!(world.fails("shell", json!({"command": "kill -TERM $$"})).await, "[signal: 15 (SIGTERM)]");
    let said = world.fine("shell", json!({"command": "pwd; cat; printf '\\377'"})).await;
    assert_eq!(said, format!("{}\n\u{fffd}\n[exit code 0]", world.tools.workspace().display()));
    assert!(world.fails("shell", json!({"command": " "})).await.contains("empty"));
    assert!(world.fails("shell", json!({"command": "a\u{0}b"})).await.contains("NUL"));
}

#[tokio::test]
async fn of_long_output_both_ends_are_kept() {
    let world = world(20_000, 1000);
    let said =
        world.fine("shell", json!({"command": "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"})).await;
    assert!(said.starts_with("line 0\nline 1\n"), "{said}");
    assert!(said.ends_with("line 19999\n[exit code 0]"), "{said}");
    // 20,000 lines: 10 of 7 bytes, 90 of 8, 900 of 9, 9,000 of 10, 10,000 of 11.
    let all = 70 + 720 + 8100 + 90_000 + 110_000;
    assert!(said.contains(&format!("\n[… {} bytes omitted …]\n", all - 1000)), "{said}");
    assert!(said.len() < 1100, "{} bytes", said.len());
}

#[tokio::test]
async fn time_over_ends_the_whole_group() {
    let world = world(2000, 1 << 16);
    let before = Instant::now();
    let said = world.fails("shell", json!({"command": format!("echo first; {GRANDCHILD}")})).await;
    assert!(before.elapsed() < PATIENCE);
    assert!(said.starts_with("first\n[stopped after 2000 ms, with everything it started"), "{said}");
    assert!(said.contains("`timeout_ms` of `[tools.shell]`"), "{said}");
    is_gone(&pid(&world).await).await;
}

#[tokio::test]
async fn a_shorter_time_can_be_asked_for_and_a_longer_one_not() {
    let world = world(300, 1 << 16);
    assert!(world.fails("shell", json!({"command": "sleep 5", "timeout_ms": 50})).await.contains("after 50 ms"));
    assert!(world.fails("shell", json!({"command": "sleep 5", "timeout_ms": 60_000})).await.contains("after 300 ms"));
    assert_eq!(
        world.fails("shell", json!({"command": "touch made", "timeout_ms": 0})).await,
        "`timeout_ms` is 0; it is at least 1, and the operator's limit of 300 ms when left out"
    );
    assert!(!world.path("made").exists());
}

#[tokio::test]
async fn a_dropped_future_ends_the_whole_group() {
    let world = world(60_000, 1 << 16);
    let command = call("shell", json!({ "command": GRANDCHILD }));
    let mut prepared = world.tools.prepare(&command);
    let pid = tokio::select! {
        output = prepared.run(&|_| {}) => panic!("ended by itself: {}", output.content),
        pid = pid(&world) => pid,
    };
    is_gone(&pid).await;
}

#[tokio::test]
async fn a_command_that_ends_leaves_nothing_behind() {
    let world = world(60_000, 1 << 16);
    let before = Instant::now();
    let said = world
        .fine(
            "shell",
            json!({"command": "sh -c 'echo $$ > pid; exec sleep 300' & while [ ! -s pid ]; do :; done; echo done"}),
        )
        .await;
    assert_eq!(said, "done\n[exit code 0]");
    assert!(before.elapsed() < PATIENCE, "waited for the process in the background");
    is_gone(&pid(&world).await).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_answer() {
    let world = world(60_000, 1 << 16);
    let before = Instant::now();
    let command = "setsid sh -c 'echo $$ > pid; exec sleep 300' & while [ ! -s pid ]; do :; done; echo done";
    let said = world.fine("shell", json!({ "command": command })).await;
    assert_eq!(said, "done\n[exit code 0]");
    assert!(before.elapsed() < PATIENCE);
    std::process::Command::new("kill").arg(pid(&world).await).status().unwrap();
}

#[tokio::test]
async fn the_last_line_is_progress() {
    let world = world(30_000, 1 << 16);
    let lines = Mutex::new(Vec::new());
    // The command continues when it sees that a line was reported, so no clock decides.
    let folder = world.tools.workspace().to_owned();
    let progress = |line: ProgressLine<'_>| {
        lines.lock().unwrap().push(line.message.to_owned());
        std::fs::write(folder.join(line.message), "").unwrap();
    };
    let command = "for line in one two; do until [ -e $line ]; do echo $line; sleep 0.01; done; done";
    let call = call("shell", json!({ "command": command }));
    world.tools.prepare(&call).run(&progress).await;
    let mut lines = lines.into_inner().unwrap();
    lines.dedup();
    assert_eq!(lines, ["one", "two"]);
}

/// A host that cannot clean up: the test's program runs again, starts a command, and is killed with SIGKILL.
#[tokio::test]
async fn a_killed_host_takes_its_commands_with_it() {
    const FOLDER: &str = "TIDEGATE_TEST_KILLED";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let tools = tidegate_tools::BuiltinTools::new(folder, ToolSettings::default()).unwrap();
        let command = call("shell", json!({ "command": GRANDCHILD }));
        let output = tools.prepare(&command).run(&|_| {}).await;
        panic!("ended by itself: {}", output.content);
    }
    let world = World::new();
    let mut host = std::process::Command::new(std::env::current_exe().unwrap());
    host.args(["--exact", "shell::a_killed_host_takes_its_commands_with_it"]).env(FOLDER, world.path(""));
    let mut host = host.stdout(std::process::Stdio::null()).spawn().unwrap();
    let pid = pid(&world).await;
    assert!(runs(&pid));
    // SIGKILL: nothing in the host can run any more.
    host.kill().unwrap();
    host.wait().unwrap();
    is_gone(&pid).await;
}

/// Programs of a command do not wait for a person.
#[tokio::test]
async fn a_command_is_told_that_nobody_watches() {
    let world = world(10_000, 1 << 16);
    let said = world.fine("shell", json!({"command": "echo $TERM $NO_COLOR $PAGER $GIT_TERMINAL_PROMPT"})).await;
    assert_eq!(said, "dumb 1 cat 0\n[exit code 0]");
}
