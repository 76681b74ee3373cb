//! How long the program takes to start with three plugins that were compiled before: from the start of the process to its
//! end, as its parent sees it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::support::guests::place_plugins;
use crate::support::{Aim, Lane, Table, criterion, race};

const PLUGINS: [&str; 3] = ["redact-secrets", "session-notes", "team-guard"];

pub(crate) fn bench() {
    let program = program();
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-start");
    let cache = place.join("cache");
    std::fs::remove_dir_all(&place).ok();
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("tidegate.toml"), place_plugins(&place, &PLUGINS)).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(&place).env("XDG_CACHE_HOME", &cache).stdin(Stdio::null());
        command
    };

    let first = Instant::now();
    let output = command(&["--trust-workspace", "plugin", "list"]).output().unwrap();
    let first = first.elapsed();
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(PLUGINS.iter().all(|name| listed.contains(name)), "{listed}");
    assert!(output.stderr.is_empty(), "no warning: {}", String::from_utf8_lossy(&output.stderr));

    let run = |arguments: &'static [&'static str]| {
        let command = &command;
        move || assert!(command(arguments).stdout(Stdio::null()).status().unwrap().success())
    };
    let lanes = vec![
        Lane::waiting("plugin list, cached", run(&["--trust-workspace", "plugin", "list"])),
        Lane::waiting("--version", run(&["--version"])),
    ];
    let times = race(&mut criterion(), "start", 101, lanes);
    let mut table = Table::new("start");
    table.row(
        "`tidegate plugin list` with three cached plugins, start to end",
        Aim::AtMost(15.0),
        times.of(0) / 1e6,
        "ms",
    );
    table.row("– of that, a process that does nothing (`--version`)", Aim::None, times.of(1) / 1e6, "ms");
    table.row("– the first time, when plugins are compiled", Aim::None, first.as_secs_f64() * 1e3, "ms");
    table.finish();
}

/// The program, built as shipped: next to the folder of cargo for files of benches.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("release/tidegate");
    assert!(program.is_file(), "there is no {}: cargo build --release --package tidegate-cli", program.display());
    program
}
