//! Installs packages of the system, for servers that neither npm nor pip has.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::progress::Step;

/// Installs `package` with the system's package manager unless `program` is there.
pub(crate) fn ensure_installed(package: &str, program: &str) -> Result<()> {
    if check(package, program).is_ok() {
        return Ok(());
    }
    let step = Step::begin(format!("installing {package} (apt)"));
    let apt =
        |arguments: &[&str]| Command::new("apt-get").args(arguments).output().is_ok_and(|done| done.status.success());
    let install = ["install", "--yes", "--no-install-recommends", package];
    // On a fresh machine the list of packages is not there yet.
    let installed = apt(&install) || (apt(&["update"]) && apt(&install));
    ensure!(installed, "{package} is missing and cannot be installed here; {}", remedy(package));
    check(package, program)?;
    step.done();
    Ok(())
}

/// Fails unless `program` of `package` starts.
pub(crate) fn check(package: &str, program: &str) -> Result<()> {
    let output = Command::new(program).arg("--version").output();
    let output = output.with_context(|| format!("{program} is missing or does not start; {}", remedy(package)))?;
    ensure!(output.status.success(), "{program} does not start; {}", remedy(package));
    Ok(())
}

fn remedy(package: &str) -> String {
    format!("install it with: apt-get install -y {package}")
}
