//! The packages for web front ends and the page that is made of them: what they are built from, and their tests.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use tidegate_servers::{ensure_chromium, ensure_examples_js, ensure_react_18, ensure_web_js};

use crate::{run, wasm};

/// The packages in the order in which they are built: the latter use the former.
const PACKAGES: [&str; 3] = [CLIENT, "react", PAGE];
const CLIENT: &str = "client";
const PAGE: &str = "page";
/// The folders of `sdk/js` that have tests: the packages, and applications that they are installed in as they are packed.
pub(crate) const TESTED: [&str; 4] = [CLIENT, "react", PAGE, EXAMPLES];
const EXAMPLES: &str = "examples";

/// The environment variable that names the program.
const PROGRAM: &str = "TIDEGATE";

/// Builds the packages as they are packed: JavaScript and types in `dist`, and the primitives embedded in `@tidegate/client`.
pub(crate) fn build() -> Result<()> {
    let folder = run::root().join("sdk/js");
    link(&ensure_web_js()?.join("node_modules"), &folder.join("node_modules"))?;
    link(&ensure_react_18()?.join("node_modules"), &folder.join("react/react-18/node_modules"))?;
    for (used, by) in [("client", "react"), ("client", "page"), ("react", "page")] {
        link(&folder.join(used), &folder.join(by).join("node_modules/@tidegate").join(used))?;
    }
    let module = wasm::build_web()?;
    run::step("embedding the primitives", in_folder("client", "node").arg("embed.mjs").arg(module))?;
    for package in PACKAGES {
        let mut check = in_folder(package, "npm");
        run::step(&format!("@tidegate/{package}"), check.args(["run", "--silent", "check"]))?;
        let mut build = in_folder(package, "npm");
        run::step(&format!("@tidegate/{package} as it is packed"), build.args(["run", "--silent", "build"]))?;
    }
    embed(&folder.join("page/dist"), &run::root().join("target/page"))
}

/// Puts the page where the program embeds it. Files that did not change are not written, so that nothing is compiled again for them.
fn embed(built: &Path, at: &Path) -> Result<()> {
    for folder in ["", "assets"] {
        let (built, at) = (built.join(folder), at.join(folder));
        fs::create_dir_all(&at)?;
        let (new, old) = (files(&built)?, files(&at)?);
        for name in old.iter().filter(|name| !new.contains(name)) {
            fs::remove_file(at.join(name))?;
        }
        for name in new {
            let content = fs::read(built.join(&name))?;
            if fs::read(at.join(&name)).ok().as_ref() != Some(&content) {
                fs::write(at.join(&name), content)?;
            }
        }
    }
    Ok(())
}

/// Returns the names of the files in a folder.
fn files(folder: &Path) -> Result<Vec<OsString>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name());
        }
    }
    Ok(names)
}

/// Runs the tests of some folders after [`build`], those whose names contain one of the filters if there are any. `program`: what they talk
/// with. `read` is shown each line.
pub(crate) fn test(
    folders: &[&str],
    filters: &[String],
    program: Result<PathBuf>,
    mut read: impl FnMut(&str),
) -> Vec<Result<()>> {
    match program {
        Ok(program) => folders.iter().map(|folder| test_folder(folder, &program, filters, &mut read)).collect(),
        Err(error) => vec![Err(error)],
    }
}

/// The program that tests talk with: that of the environment, or the one that is built for them.
pub(crate) fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(PROGRAM) {
        return Ok(program.into());
    }
    run::step("the program", &mut run::cargo(&["build", "--package", "tidegate-cli", "--locked"]))?;
    Ok(built())
}

/// The program as the tests of the workspace have built it. To build it alone would build most of it again, with fewer features.
pub(crate) fn program_of_workspace() -> Result<PathBuf> {
    let is_given = std::env::var_os(PROGRAM).is_some();
    if is_given || !built().is_file() { program() } else { Ok(built()) }
}

fn built() -> PathBuf {
    run::target().join("debug/tidegate")
}

fn test_folder(folder: &str, program: &Path, filters: &[String], read: impl FnMut(&str)) -> Result<()> {
    let mut command = in_folder(folder, "npx");
    command.args(["vitest", "run", "--passWithNoTests"]).env("NO_COLOR", "1");
    command.env(PROGRAM, program);
    if [PAGE, EXAMPLES].contains(&folder) {
        command.env("CHROMIUM", ensure_chromium()?);
    }
    if folder == CLIENT {
        // An export of a package without a comment is an error.
        let mut typedoc = in_folder("", "npx");
        run::step("reference of the packages (TypeDoc)", typedoc.args(["typedoc", "--logLevel", "Warn"]))?;
    }
    if folder == EXAMPLES {
        run::step("types of the examples' tests", in_folder(folder, "npx").arg("tsc"))?;
        command.env("EXAMPLES", ensure_examples_js()?);
    }
    if !filters.is_empty() {
        command.arg("-t").arg(filters.join("|"));
    }
    run::step_read(&format!("tests of sdk/js/{folder}"), &mut command, read)
}

fn in_folder(folder: &str, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(run::root().join("sdk/js").join(folder));
    command
}

/// Puts installed packages where programs look for them. What a person has installed there stays.
fn link(installed: &Path, at: &Path) -> Result<()> {
    if at.exists() {
        return Ok(());
    }
    // A link to what is not there any more.
    drop(fs::remove_file(at));
    let folder = at.parent().context("a link needs a folder")?;
    let linked = fs::create_dir_all(folder).and_then(|()| std::os::unix::fs::symlink(installed, at));
    linked.with_context(|| format!("cannot make {}", at.display()))
}
