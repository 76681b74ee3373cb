//! `cargo xtask demo`: builds the plugins and the program, makes a workspace in a temporary folder and runs one turn in it.
//!
//! What is shown lives in `tests/demo`: `workspace` is copied; `recorded.toml` and `live.toml` say how the program runs, with
//! paths relative to themselves; `recorded.txt` and `live.txt` are what the user says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow, ensure};
use tidegate_servers::{RealModel, say};

use crate::{clients, editor, guests, run};

/// Explains how the times of the summary were measured.
const TIMES: &str = "\
The times above are of single calls, far apart, in a development build, of which plugins and the sandbox are optimised. What the shipped
program takes is in tests/benches/README.md; `cargo xtask bench callback` measures it here.";

pub(crate) fn demo(live: bool) -> Result<()> {
    build()?;
    let source = run::root().join("tests/demo");
    let workspace = Workspace::copy_of(&source.join("workspace"))?;
    let name = if live { "live" } else { "recorded" };
    let model = if live { Some(RealModel::start()?) } else { None };
    let mut program = program(&workspace.0, &source.join(name))?;
    if let Some(model) = &model {
        program.args(["--provider", "openai-chat", "--model", "smollm2", "--base-url", model.base_url()]);
        program.env("OPENAI_API_KEY", "none-is-needed");
    }
    say(&format!("\nA turn in a copy of tests/demo/workspace ({name}):\n"));
    let status = program.status().context("cannot start the program")?;
    ensure!(status.success(), "the program ended with {status}");
    let changed = workspace.changed_since(&source.join("workspace"))?;
    for path in &changed {
        say(&format!("changed in the workspace: {}", path.display()));
    }
    ensure!(live || !changed.is_empty(), "the turn was to edit a file, and none has changed");
    if live {
        return Ok(());
    }
    say(TIMES);
    drop(workspace);
    let workspace = Workspace::copy_of(&source.join("workspace"))?;
    say("\nAn editor's session in a new copy, over the Agent Client Protocol (tidegate acp):\n");
    editor::session(acp(&workspace.0, &source.join("editor.toml")), &workspace.0)?;
    say("\nAn agent that is not ours, with rules between it and its model (tidegate guard):\n");
    clients::act()
}

/// `tidegate acp` in the workspace, with this configuration.
fn acp(workspace: &Path, config: &Path) -> Command {
    let mut command = run::cargo(&["run", "--quiet", "--locked", "--package", "tidegate-cli", "--manifest-path"]);
    command.arg(run::root().join("Cargo.toml")).args(["--", "acp", "--config"]).arg(config);
    command.current_dir(workspace);
    command
}

/// Builds the plugins and the program at the same time: link-time optimization of one small plugin after another leaves a
/// core idle, which the program's many dependencies use.
fn build() -> Result<()> {
    std::thread::scope(|scope| {
        let plugins = scope.spawn(guests::build_plugins);
        let program = run::step("the program", &mut run::cargo(&["build", "--package", "tidegate-cli", "--locked"]));
        let plugins = plugins.join().map_err(|_| anyhow!("the build of the plugins panicked"))?;
        program.and(plugins.map(drop))
    })
}

/// `tidegate run` in the workspace, with `NAME.toml` as configuration and `NAME.txt` as what the user says, turn by turn.
fn program(workspace: &Path, name: &Path) -> Result<Command> {
    let input = name.with_extension("txt");
    let input = fs::read_to_string(&input).with_context(|| format!("cannot read {}", input.display()))?;
    let mut command = run::cargo(&["run", "--quiet", "--locked", "--package", "tidegate-cli", "--manifest-path"]);
    command
        .arg(run::root().join("Cargo.toml"))
        .args(["--", "run", "--summary", "--config"])
        .arg(name.with_extension("toml"));
    command.args(input.split("\n---\n").map(str::trim));
    command.current_dir(workspace).stdin(Stdio::null());
    Ok(command)
}

/// A folder of this process, removed at its end.
struct Workspace(PathBuf);

impl Workspace {
    fn copy_of(source: &Path) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("tidegate-demo-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let workspace = Self(folder);
        for file in files(source)? {
            let target = workspace.0.join(&file);
            fs::create_dir_all(target.parent().unwrap_or(&workspace.0))?;
            fs::copy(source.join(&file), &target).with_context(|| format!("cannot copy {}", file.display()))?;
        }
        Ok(workspace)
    }

    /// Files that are new or differ from the source's.
    fn changed_since(&self, source: &Path) -> Result<Vec<PathBuf>> {
        let mut changed = files(&self.0)?;
        changed.retain(|file| fs::read(self.0.join(file)).ok() != fs::read(source.join(file)).ok());
        Ok(changed)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The files below a folder, relative to it, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(inside) = open.pop() {
        let here = folder.join(&inside);
        for entry in fs::read_dir(&here).with_context(|| format!("cannot read {}", here.display()))? {
            let entry = entry?;
            let path = inside.join(entry.file_name());
            if entry.file_type()?.is_dir() { open.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::Workspace;
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn a_workspace_is_a_copy_that_knows_its_changes_and_goes_away() {
        let source = std::env::temp_dir().join(format!("tidegate-demo-source-{}", std::process::id()));
        fs::create_dir_all(source.join("a/b")).unwrap();
        fs::write(source.join("a/b/one"), "1").unwrap();
        fs::write(source.join("two"), "2").unwrap();
        let workspace = Workspace::copy_of(&source).unwrap();
        assert_eq!(workspace.changed_since(&source).unwrap(), Vec::<PathBuf>::new());
        fs::write(workspace.0.join("a/b/one"), "other").unwrap();
        fs::write(workspace.0.join("new"), "").unwrap();
        assert_eq!(workspace.changed_since(&source).unwrap(), [PathBuf::from("a/b/one"), PathBuf::from("new")]);
        let folder = workspace.0.clone();
        drop(workspace);
        assert!(!folder.exists());
        fs::remove_dir_all(source).unwrap();
    }
}
