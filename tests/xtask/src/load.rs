//! `cargo xtask load` and `cargo xtask crash`: the long forms of tests that run briefly in `cargo xtask test`.

use anyhow::{Result, ensure};
use std::process::Command;

use tidegate_servers::ensure_redis;

use crate::{run, wasm};

/// Builds the load program, optimized as it is shipped where `release` is set, and runs it with these flags.
pub(crate) fn load(release: bool, flags: &[String]) -> Result<()> {
    wasm::ensure_target()?;
    if flags.iter().any(|flag| flag == "redis") {
        ensure_redis()?;
    }
    // Without `release`, with the features of the tests, so that little is built again.
    let what: &[&str] = if release { &["--release", "--package", "tidegate-load"] } else { &["--workspace"] };
    let build = [&["build", "--locked", "--bin", "tidegate-load"], what].concat();
    run::step("the load program", &mut run::cargo(&build))?;
    let program = run::target().join(if release { "release" } else { "debug" }).join("tidegate-load");
    run::step("load", Command::new(program).args(flags))
}

/// Kills writers to each backend, writers of transcripts, whole sessions and hosts this often.
pub(crate) fn crash(kills: u32) -> Result<()> {
    ensure!(kills > 0, "nothing is killed 0 times");
    ensure_redis()?;
    let mut test = run::cargo(&["test", "--package", "tidegate-store", "--locked", "--test", "processes"]);
    test.args(["--", "crash::", "--nocapture"]);
    run::step("writers that are killed", test.env("TIDEGATE_KILLS", kills.to_string()))?;
    let mut inputs = run::cargo(&["test", "--workspace", "--locked", "--test", "killed", "--", "killed_inputs::"]);
    run::step("sessions with inputs that wait, killed", inputs.env("TIDEGATE_KILLS", kills.to_string()))?;
    let mut hosts =
        run::cargo(&["test", "--workspace", "--locked", "--test", "it", "--", "serve::killed", "--nocapture"]);
    run::step("hosts of one server, killed", hosts.env("TIDEGATE_KILLS", kills.to_string()))
}
