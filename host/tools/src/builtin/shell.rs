//! `shell`: runs a command in the workspace.
//!
//! The command gets a process group of its own. The group is killed when the command has ended (nothing is left in the
//! background), when its time is over, when its result is no longer needed, and when the host itself is killed
//! (`watchdog`). A process that makes itself a new session leaves the group and is not found; such a process needs
//! intent.

mod environment;
mod group;
mod output;
mod watchdog;

use std::process::ExitStatus;
use std::time::Duration;

use flow::ports::{TerminalCommand, TerminalExit, Terminals};
use flow::{CallId, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use environment::OfTerminal;
pub use environment::{CommandVariables, looks_secret};
use output::Kept;

use crate::{Failure, Shared};

pub(crate) const ABOUT: &str = "Runs a command with sh in the workspace's folder and returns its output (standard \
                                output and standard error together) and its exit code. It has no input and no \
                                terminal. Of the environment it has only what builds need, such as PATH and HOME, \
                                and what the operator adds. When it ends or times out, every process it started is stopped, so it \
                                cannot leave a server running. The middle of long output is omitted.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The command, as for `sh -c`.
    pub(crate) command: String,
    /// Milliseconds it may run; the operator's limit when left out, and never more than that.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_ms: Option<u64>,
}

impl Arguments {
    /// The arguments as a question shows them.
    pub(super) fn shown(&self) -> Vec<(&'static str, String)> {
        let timeout = self.timeout_ms.map(|ms| ("timeout_ms", ms.to_string()));
        std::iter::once(("command", self.command.clone())).chain(timeout).collect()
    }
}

/// How a command ended.
enum End {
    /// The shell ended with this code.
    Code(u32),
    /// A signal ended it, such as `signal: 15 (SIGTERM)`.
    Signal(String),
    Timeout(Duration),
}

pub(crate) async fn run(
    shared: &Shared,
    arguments: &Arguments,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<ToolOutput, Failure> {
    let limit = checked(shared, arguments)?;
    let environment = environment::of_process(&shared.settings);
    let started = group::start(&arguments.command, shared.workspace.root(), environment);
    let mut running = started.map_err(|error| Failure(format!("`sh` cannot be started: {error}")))?;
    let mut kept = Kept::new(shared.settings.shell_output_bytes);
    let end = match tokio::time::timeout(limit, running.follow(&mut kept, progress)).await {
        Ok(status) => {
            of_status(status.map_err(|error| Failure(format!("the exit of the command cannot be observed: {error}")))?)
        }
        Err(_) => End::Timeout(limit),
    };
    // Kills the whole group; what it wrote until then is still in the pipe.
    running.finish(&mut kept).await;
    Ok(with_end(kept.text(), &end))
}

/// Runs a command in a terminal of the embedder.
pub(crate) async fn run_in_terminal(
    shared: &Shared,
    terminals: &dyn Terminals,
    arguments: &Arguments,
    call: &CallId,
) -> Result<ToolOutput, Failure> {
    let timeout = checked(shared, arguments)?;
    let mut command = TerminalCommand::new(call, &arguments.command, shared.workspace.root());
    let environment = OfTerminal::of(&shared.settings);
    (command.environment, command.kept, command.timeout) = (&environment.set, &environment.kept, timeout);
    command.output_bytes = shared.settings.shell_output_bytes;
    let ended = terminals.run(command).await.map_err(Failure)?;
    let mut kept = Kept::new(shared.settings.shell_output_bytes);
    kept.push(ended.output.as_bytes());
    let note = if ended.truncated { "[output is omitted]\n" } else { "" };
    let end = match ended.exit {
        TerminalExit::Timeout => End::Timeout(timeout),
        TerminalExit::Code(code) => End::Code(code),
        TerminalExit::Signal(name) => End::Signal(format!("signal: {name}")),
    };
    Ok(with_end(format!("{note}{}", kept.text()), &end))
}

/// Returns the time limit of a command.
///
/// # Errors
/// It cannot be run: it is empty or contains a NUL byte, its time is 0, or the workspace is gone.
fn checked(shared: &Shared, arguments: &Arguments) -> Result<Duration, Failure> {
    if arguments.command.trim().is_empty() {
        return Err(Failure::new("`command` is empty"));
    }
    if arguments.command.contains('\0') {
        return Err(Failure::new("`command` contains a NUL byte, which is not allowed in arguments"));
    }
    if arguments.timeout_ms == Some(0) {
        let limit = shared.settings.shell_timeout.as_millis();
        return Err(Failure(format!(
            "`timeout_ms` is 0; it is at least 1, and the operator's limit of {limit} ms when left out"
        )));
    }
    shared.workspace.check()?;
    let asked = arguments.timeout_ms.map(Duration::from_millis);
    Ok(asked.map_or(shared.settings.shell_timeout, |asked| asked.min(shared.settings.shell_timeout)))
}

/// How a process ended. One without a code was ended by a signal, which its status names.
fn of_status(status: ExitStatus) -> End {
    match status.code().map(u32::try_from) {
        Some(Ok(code)) => End::Code(code),
        Some(Err(_)) | None => End::Signal(status.to_string()),
    }
}

/// The output of a command, with a last line that says how it ended.
fn with_end(mut content: String, end: &End) -> ToolOutput {
    if !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    let last = match end {
        End::Code(0) if content.is_empty() => "[exit code 0, no output]".to_owned(),
        End::Code(code) => format!("[exit code {code}]"),
        End::Signal(name) => format!("[{name}]"),
        End::Timeout(limit) => {
            let ms = limit.as_millis();
            format!(
                "[stopped after {ms} ms, with everything it started; the operator's limit is `timeout_ms` of `[tools.shell]`]"
            )
        }
    };
    content.push_str(&last);
    ToolOutput { content, diff: None, is_error: !matches!(end, End::Code(0)) }
}
