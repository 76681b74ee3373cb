//! Runs programs as steps: what, how long, and which one failed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, anyhow, bail};
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

/// The cargo that runs us, started in the top folder. It does not inherit what that cargo says about the xtask: build scripts
/// that depend on these variables would run again each time a command is given with and without the xtask.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    let about_us = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(about_us)) {
        command.env_remove(name);
    }
    command
}

/// Runs a command as a step. Its output goes where ours goes; its failure is an error that shows the command.
pub(crate) fn step(heading: &str, command: &mut Command) -> Result<()> {
    say("");
    let step = Step::begin(heading);
    let status = command.status().with_context(|| format!("{heading}: cannot start {}", shown(command)))?;
    ended(heading, command, status)?;
    step.done();
    Ok(())
}

/// As [`step`], and shows each line of the command's standard output to `read` as it is passed on.
pub(crate) fn step_read(heading: &str, command: &mut Command, mut read: impl FnMut(&str)) -> Result<()> {
    say("");
    let step = Step::begin(heading);
    let mut child = command.stdout(Stdio::piped()).spawn();
    let child = child.as_mut().map_err(|error| anyhow!("{heading}: cannot start {}: {error}", shown(command)))?;
    let mut output = BufReader::new(child.stdout.take().context("the command has no standard output")?);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line).context("the command's output cannot be read")? > 0 {
        read(&String::from_utf8_lossy(&line));
        std::io::stdout().write_all(&line).context("standard output is closed")?;
        line.clear();
    }
    ended(heading, command, child.wait()?)?;
    step.done();
    Ok(())
}

fn ended(heading: &str, command: &Command, status: ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{heading} failed ({status}): {}", shown(command));
    }
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
    use super::{cargo, root, step, step_read};
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
        let mut lines = Vec::new();
        let mut command = Command::new("sh");
        let error =
            step_read("a step", command.args(["-c", "echo a; echo b; exit 4"]), |line| lines.push(line.to_owned()));
        assert_eq!(lines, ["a\n", "b\n"]);
        assert!(error.unwrap_err().to_string().starts_with("a step failed (exit status: 4)"));
    }
}
