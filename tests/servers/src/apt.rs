//! Installs packages of the system, for servers that neither npm nor pip has.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::progress::Step;

/// Installs `package` with the system's package manager unless `program` is there.
pub(crate) fn ensure_installed(package: &str, program: &str) -> Result<()> {
    ensure_starts(package, || check(package, program))
}

/// Installs `package` with the system's package manager unless `check` passes.
pub(crate) fn ensure_starts(package: &str, check: impl Fn() -> Result<()>) -> Result<()> {
    if check().is_ok() {
        return Ok(());
    }
    let step = Step::begin(format!("installing {package} (apt)"));
    let apt =
        |arguments: &[&str]| Command::new("apt-get").args(arguments).output().is_ok_and(|done| done.status.success());
    let install = ["install", "--yes", "--no-install-recommends", package];
    // On a fresh machine the list of packages is not there yet.
    let installed = apt(&install) || (apt(&["update"]) && apt(&install));
    ensure!(installed, "{package} is missing and cannot be installed here; {}", remedy(package));
    check()?;
    step.done();
    Ok(())
}

/// Fails unless `program` of `package` starts.
pub(crate) fn check(package: &str, program: &str) -> Result<()> {
    check_with(package, program, "--version")
}

/// Fails unless `program` of `package` prints its version with `flag`.
pub(crate) fn check_with(package: &str, program: &str, flag: &str) -> Result<()> {
    let output = Command::new(program).arg(flag).output();
    let output = output.with_context(|| format!("{program} is missing or does not start; {}", remedy(package)))?;
    ensure!(output.status.success(), "{program} does not start; {}", remedy(package));
    Ok(())
}

fn remedy(package: &str) -> String {
    format!("install it with: apt-get install -y {package}")
}
