//! `cargo xtask ci`: what a change must pass. Quick checks come first.

use std::path::Path;

use anyhow::Result;
use tidegate_servers::{has_clients, say};

use crate::{book, clients, deps, guests, run, test, wasm};

pub(crate) fn ci() -> Result<()> {
    let folders = ["plugins", "tests/guests", "tests/benches"];
    let packages = folders.map(guests::packages).into_iter().collect::<Result<Vec<_>>>()?.concat();
    format(&packages)?;
    clippy(&guests::packages("plugins")?)?;
    docs()?;
    book::book()?;
    deps::check()?;
    wasm::check_pure_crates()?;
    test::test(&[], &[])?;
    if has_clients() {
        return clients::clients();
    }
    say("agents behind the gateway: not installed, and so not run; `cargo xtask clients` installs them (1.3 GB)");
    Ok(())
}

fn format(packages: &[std::path::PathBuf]) -> Result<()> {
    run::step("format", &mut run::cargo(&["fmt", "--all", "--check"]))?;
    packages.iter().try_for_each(|package| {
        let mut command = run::cargo(&["fmt", "--check"]);
        run::step(&format!("format of {}", name(package)), command.current_dir(package))
    })
}

fn clippy(plugins: &[std::path::PathBuf]) -> Result<()> {
    let arguments = ["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"];
    run::step("clippy, warnings denied", &mut run::cargo(&arguments))?;
    let with = ["--workspace", "--all-targets", "--features", "tidegate-cli/otel"];
    let arguments = [&["clippy"], &with[..], &["--locked", "--", "--deny", "warnings"]].concat();
    run::step("clippy with the feature otel", &mut run::cargo(&arguments))?;
    let lean =
        ["clippy", "--package", "tidegate", "--lib", "--no-default-features", "--locked", "--", "--deny", "warnings"];
    run::step("clippy of the library without features", &mut run::cargo(&lean))?;
    plugins.iter().try_for_each(|plugin| {
        let arguments = ["clippy", "--all-targets", "--locked", "--", "--deny", "warnings"];
        run::step(&format!("clippy of the plugin {}", name(plugin)), &mut test::in_plugin(plugin, &arguments))
    })
}

/// The library and the program have the same name, so their docs would be the same files: they are made one after the other.
fn docs() -> Result<()> {
    let program = "tidegate-cli";
    let libraries = ["doc", "--workspace", "--exclude", program, "--no-deps", "--locked"];
    let mut libraries = run::cargo(&libraries);
    run::step("docs, warnings denied", libraries.env("RUSTDOCFLAGS", "--deny warnings"))?;
    let mut program = run::cargo(&["doc", "--package", program, "--no-deps", "--locked"]);
    run::step("docs of the program", program.env("RUSTDOCFLAGS", "--deny warnings"))
}

fn name(package: &Path) -> String {
    package.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
