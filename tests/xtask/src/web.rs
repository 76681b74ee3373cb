//! The packages for web front ends: what they are built from, and their tests.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use tidegate_servers::ensure_web_js;

use crate::{run, wasm};

/// Builds `@tidegate/client` as it is packed: the primitives embedded, JavaScript and types in `dist`.
pub(crate) fn build() -> Result<()> {
    let package = run::root().join("sdk/js/client");
    link(&ensure_web_js()?.join("node_modules"), &package.join("node_modules"))?;
    let module = wasm::build_web()?;
    run::step("embedding the primitives", in_package("node").arg("embed.mjs").arg(module))?;
    run::step("@tidegate/client", in_package("npm").args(["run", "--silent", "check"]))?;
    run::step("@tidegate/client as it is packed", in_package("npm").args(["run", "--silent", "build"]))
}

/// Builds the packages and runs their tests, those whose names contain one of the filters if there are any. `read` is shown each line.
pub(crate) fn test(filters: &[String], read: impl FnMut(&str)) -> Result<()> {
    build()?;
    let mut command = in_package("npx");
    command.args(["vitest", "run", "--passWithNoTests"]).env("NO_COLOR", "1");
    if !filters.is_empty() {
        command.arg("-t").arg(filters.join("|"));
    }
    run::step_read("tests of @tidegate/client", &mut command, read)
}

fn in_package(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(run::root().join("sdk/js/client"));
    command
}

/// Puts installed packages where programs look for them. What a person has installed there stays.
fn link(installed: &Path, at: &Path) -> Result<()> {
    if at.exists() {
        return Ok(());
    }
    // A link to what is not there any more.
    drop(std::fs::remove_file(at));
    std::os::unix::fs::symlink(installed, at).with_context(|| format!("cannot make {}", at.display()))
}
