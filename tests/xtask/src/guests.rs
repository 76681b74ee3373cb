//! Builds the plugins and the test guests into components, each where its manifest expects it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tidegate_build::Options;
use tidegate_servers::{Step, say};

use crate::{run, wasm};

/// Builds every plugin and gives their folders.
pub(crate) fn build_plugins() -> Result<Vec<PathBuf>> {
    build_all("plugins")
}

/// Builds every guest of the tests and gives their folders.
pub(crate) fn build_test_guests() -> Result<Vec<PathBuf>> {
    build_all("tests/guests")
}

/// The packages below a folder, by name.
pub(crate) fn packages(parent: &str) -> Result<Vec<PathBuf>> {
    let folder = run::root().join(parent);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut packages = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.join("Cargo.toml").is_file() {
            packages.push(path);
        }
    }
    packages.sort();
    if packages.is_empty() {
        bail!("there is no package in {}: the checkout is not whole", folder.display());
    }
    Ok(packages)
}

fn build_all(parent: &str) -> Result<Vec<PathBuf>> {
    wasm::ensure_target()?;
    let packages = packages(parent)?;
    say("");
    let step = Step::begin(format!("components of {parent}"));
    for package in &packages {
        build(package)?;
    }
    step.done();
    Ok(packages)
}

fn build(package: &Path) -> Result<()> {
    let mut progress = |line: &str| {
        // Each of cargo's lines would be too much; the ones that name a package are the sign of life.
        if line.starts_with("building") || line.contains("Compiling tidegate") {
            say(&format!("  {line}"));
        }
    };
    let built = tidegate_build::build(package, &Options::default(), &mut progress)?;
    built.place_beside_manifest(package)?;
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    let note = if built.fresh { "fresh" } else { "built" };
    say(&format!("  {name}: {note}, {} KiB", built.bytes.len().div_ceil(1024)));
    Ok(())
}
