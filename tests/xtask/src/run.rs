//! Runs programs as steps: what, how long, and which one failed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use tidegate_servers::{Step, say};

/// The top folder of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// The folder that cargo builds the workspace into.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// The cargo that runs us, started in the top folder.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command as a step. Its output goes where ours goes; its failure is an error that shows the command.
pub(crate) fn step(heading: &str, command: &mut Command) -> Result<()> {
    say("");
    let step = Step::begin(heading);
    let status = command.status().with_context(|| format!("{heading}: cannot start {}", shown(command)))?;
    if !status.success() {
        bail!("{heading} failed ({status}): {}", shown(command));
    }
    step.done();
    Ok(())
}

/// The command as one would type it, without the folder of its program.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default().to_string_lossy();
    let arguments = command.get_args().map(|word| word.to_string_lossy());
    std::iter::once(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use super::{cargo, root, step};
    use std::process::Command;

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("rustfmt.toml").is_file() && root().join("Cargo.lock").is_file());
    }

    #[test]
    fn a_failing_step_shows_its_command() {
        let error = step("a step that fails", Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "a step that fails failed (exit status: 3): sh -c exit 3");
        assert!(step("a step that passes", &mut cargo(&["--version"])).is_ok());
    }
}
