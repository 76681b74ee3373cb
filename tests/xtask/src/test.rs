//! `cargo xtask test`: everything that tests need, then all tests.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use tidegate_servers::{ensure_model, ensure_node, ensure_python};

use crate::{guests, run};

pub(crate) fn test(filters: &[String]) -> Result<()> {
    prepare()?;
    let mut workspace = run::cargo(&["test", "--workspace", "--locked", "--no-fail-fast", "--"]);
    let of_workspace = run::step("tests of the workspace", workspace.args(filters));
    // The plugins' own tests run also where others failed: one run tells all.
    let of_plugins = guests::packages("plugins")?.iter().try_for_each(|plugin| test_plugin(plugin, filters));
    of_workspace.and(of_plugins)
}

/// Builds components and installs servers, so that no test waits for it or hides it.
fn prepare() -> Result<()> {
    ensure_node()?;
    ensure_python()?;
    ensure_model()?;
    guests::build_test_guests()?;
    guests::build_plugins()?;
    Ok(())
}

/// A plugin's tests are plain Rust, run natively.
fn test_plugin(plugin: &Path, filters: &[String]) -> Result<()> {
    let name = plugin.file_name().unwrap_or_default().to_string_lossy();
    let mut command = in_plugin(plugin, &["test", "--locked", "--no-fail-fast"]);
    run::step(&format!("tests of the plugin {name}"), command.arg("--").args(filters))
}

/// Cargo in a plugin's own workspace, natively; all plugins share one folder for what they build.
pub(crate) fn in_plugin(plugin: &Path, arguments: &[&str]) -> Command {
    let mut command = run::cargo(arguments);
    command.current_dir(plugin).env("CARGO_TARGET_DIR", run::target().join("plugins"));
    command
}
