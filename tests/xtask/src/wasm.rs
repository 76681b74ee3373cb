//! A toolchain for wasm on a machine that has none yet, and the check that needs it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use tidegate_build::{BuildError, wasm_cargo};
use tidegate_servers::say;

use crate::run;

/// Debian's packages that provide one independent of rustup.
const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// Makes sure that guests can be compiled. Where neither the toolchain at hand nor rustup has the target, Debian's packages
/// are installed, if we may.
pub(crate) fn ensure_target() -> Result<()> {
    cargo("build").map(drop)
}

/// Builds the chat primitives for web front ends, and returns the module.
pub(crate) fn build_web() -> Result<PathBuf> {
    let folder = run::target().join("web");
    let mut command = cargo("build")?;
    command.args(["--package", "tidegate-web", "--profile", "web", "--locked", "--target-dir"]).arg(&folder);
    run::step("chat primitives as WebAssembly", &mut command)?;
    Ok(folder.join(tidegate_build::TARGET).join("web/tidegate_web.wasm"))
}

/// `flow`, `record`, `rules`, `wire` and `chat` compile where there is no file, no network, no clock: they can have none.
pub(crate) fn check_pure_crates() -> Result<()> {
    let mut command = cargo("check")?;
    command.args([
        "--package",
        "tidegate-flow",
        "--package",
        "tidegate-record",
        "--package",
        "tidegate-rules",
        "--package",
        "tidegate-wire",
        "--package",
        "tidegate-chat",
        "--locked",
    ]);
    command.arg("--target-dir").arg(run::target().join("wasm-check"));
    run::step("flow, record, rules, wire and chat without a system", &mut command)
}

/// Cargo with a subcommand for the wasm target.
fn cargo(subcommand: &str) -> Result<Command> {
    let find = || wasm_cargo(&run::root(), subcommand, &mut |line| say(&format!("  {line}")));
    match find() {
        Ok(command) => Ok(command),
        Err(BuildError::NoToolchain { .. }) if may_install() => {
            install()?;
            find().context("the installed packages did not help")
        }
        Err(error) => Err(error.into()),
    }
}

/// We are root on a system with `apt-get`.
fn may_install() -> bool {
    let id = Command::new("id").arg("-u").output();
    let root = id.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    root && Command::new("apt-get").arg("--version").output().is_ok_and(|output| output.status.success())
}

fn install() -> Result<()> {
    let mut update = Command::new("apt-get");
    run::step("apt-get update", update.args(["--quiet", "update"]))?;
    let mut install = Command::new("apt-get");
    install.args(["--quiet", "install", "--yes", "--no-install-recommends"]).args(PACKAGES);
    install.env("DEBIAN_FRONTEND", "noninteractive");
    if let Err(error) = run::step("installing a toolchain for wasm", &mut install) {
        bail!("{error:#}; or make `rustup target add {}` work", tidegate_build::TARGET);
    }
    Ok(())
}
