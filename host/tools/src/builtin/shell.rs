//! `shell`: runs a command in the workspace.
//!
//! The command gets a process group of its own. The group is killed when the command has ended (nothing is left in the
//! background), when its time is over, when its result is no longer needed, and when the host itself is killed
//! (`watchdog`). A process that makes itself a new session leaves the group and is not found; such a process needs
//! intent.

mod group;
mod output;
mod watchdog;

use std::ffi::OsStr;
use std::process::ExitStatus;
use std::time::Duration;

use flow::{CallId, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use turn::ports::{TerminalCommand, TerminalExit, Terminals};

use crate::{Failure, Shared, ToolSettings};
use output::Kept;

pub(crate) const ABOUT: &str = "Runs a command with sh in the workspace's folder and returns its output (standard \
                                output and standard error together) and its exit code. It has no input and no \
                                terminal. When it ends or times out, every process it started is stopped, so it \
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

/// What keeps programs from waiting for a person.
const UNATTENDED: [(&str, &str); 5] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

pub(crate) async fn run(
    shared: &Shared,
    arguments: &Arguments,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<ToolOutput, Failure> {
    let limit = checked(shared, arguments)?;
    let environment = environment(&shared.settings);
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
    let environment = terminal_environment(&shared.settings);
    (command.environment, command.timeout) = (&environment, timeout);
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
/// It cannot be run: it is empty, or contains a NUL byte.
fn checked(shared: &Shared, arguments: &Arguments) -> Result<Duration, Failure> {
    if arguments.command.trim().is_empty() {
        return Err(Failure::new("`command` is empty"));
    }
    if arguments.command.contains('\0') {
        return Err(Failure::new("`command` contains a NUL byte, which is not allowed in arguments"));
    }
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

/// The environment without what looks like a secret, and with what keeps programs from waiting for a person.
fn environment(settings: &ToolSettings) -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    let kept = std::env::vars_os().filter(|(name, value)| !is_hidden(settings, name, value));
    kept.chain(UNATTENDED.map(|(name, value)| (name.into(), value.into()))).collect()
}

/// The variables of a terminal that is not ours: it can have inherited the same secrets as this process, so those are emptied by name.
fn terminal_environment(settings: &ToolSettings) -> Vec<(String, String)> {
    let hidden = std::env::vars_os().filter(|(name, value)| is_hidden(settings, name, value));
    let named = settings.hidden_env.iter().map(ToString::to_string);
    let emptied = hidden.filter_map(|(name, _)| name.into_string().ok()).chain(named).map(|name| (name, String::new()));
    emptied.chain(UNATTENDED.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

fn is_hidden(settings: &ToolSettings, name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    settings.hidden_env.iter().any(|hidden| *hidden == name) || looks_secret(&name, &value)
}

/// By its name (`API_KEY`, `GITHUB_TOKEN`, `DB_PASS`), or by its value: an address with a password in it, or what begins
/// as keys of well-known services do.
fn looks_secret(name: &str, value: &str) -> bool {
    const WORDS: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "COOKIE"];
    // As a whole word at the end only: `PWD`, `GIT_ASKPASS` and `SSH_AUTH_SOCK` are none.
    const ENDS: [&str; 5] = ["_AUTH", "_PASS", "_PAT", "_PWD", "SSHPASS"];
    const KEYS: [&str; 9] = ["sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "-----BEGIN "];
    let name = name.to_ascii_uppercase();
    let is_key = || value.len() >= 20 && KEYS.iter().any(|start| value.starts_with(start));
    let with_password = || {
        let authority = value.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        authority.and_then(|authority| authority.rsplit_once('@')).is_some_and(|(user, _)| user.contains(':'))
    };
    let by_name = WORDS.iter().any(|word| name.contains(word)) || ENDS.iter().any(|end| name.ends_with(end));
    by_name || with_password() || is_key()
}

#[cfg(test)]
mod tests {
    use super::looks_secret;

    #[test]
    fn secrets_are_known_by_name_and_by_value() {
        for (name, value) in [
            ("ANTHROPIC_API_KEY", "x"),
            ("github_token", "x"),
            ("DB_PASSWORD", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("DATABASE_URL", "postgres://me:pass@host/db"),
            ("SMTP_PASS", "x"),
            ("MYSQL_PWD", "x"),
            ("GH_PAT", "x"),
            ("REDISCLI_AUTH", "x"),
            ("MY_MODEL", "sk-proj-0123456789abcdef"),
            ("DEPLOY", "-----BEGIN OPENSSH PRIVATE "),
        ] {
            assert!(looks_secret(name, value), "{name}");
        }
        for (name, value) in [
            ("PATH", "/bin"),
            ("HOME", "/home/me"),
            ("PWD", "/home/me"),
            ("OLDPWD", "/"),
            ("GIT_ASKPASS", "/bin/ask"),
            ("SSH_AUTH_SOCK", "/tmp/agent"),
            ("PREFIX", "sk-"),
            ("URL", "https://host/a:b@c"),
            ("REMOTE", "ssh://git@host"),
        ] {
            assert!(!looks_secret(name, value), "{name}");
        }
    }
}
