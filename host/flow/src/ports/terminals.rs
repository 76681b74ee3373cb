//! The port of the tool `shell`: where its commands run.

use std::path::Path;
use std::time::Duration;

use crate::{CallId, SessionId};

use super::BoxFuture;

/// Runs the commands of `shell` somewhere else than in a process of the host: in the terminals of an editor, where its user sees them.
pub trait Terminals: Send + Sync {
    /// Runs a command until it ends or its time is over. It is stopped then, with everything it started, and also where the future is
    /// dropped.
    ///
    /// # Errors
    /// It cannot be started or observed: the reason, for the model.
    fn run<'a>(&'a self, command: TerminalCommand<'a>) -> BoxFuture<'a, Result<TerminalEnd, String>>;
}

/// A command of `shell`.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TerminalCommand<'a> {
    /// The call that runs it.
    pub call: &'a CallId,
    /// The child agent's session whose call it is; `None`: that of the session that the terminals were given to. Ids of calls can be the
    /// same in both.
    pub child: Option<&'a SessionId>,
    /// The command, as for `sh -c`.
    pub command: &'a str,
    /// The folder in which it runs: that of the workspace, absolute.
    pub folder: &'a Path,
    /// Variables to set: they keep programs from waiting for a person.
    pub environment: &'a [(String, String)],
    /// Names of the variables that the command gets from the terminal, in addition. It must get no others: what the embedder has in its
    /// own environment is not for the model.
    pub kept: &'a [String],
    /// How long it may run.
    pub timeout: Duration,
    /// Bytes of output that are kept.
    pub output_bytes: usize,
}

impl<'a> TerminalCommand<'a> {
    /// A command of a call, with 120 seconds and 64 KiB of output.
    pub fn new(call: &'a CallId, command: &'a str, folder: &'a Path) -> Self {
        Self {
            call,
            child: None,
            command,
            folder,
            environment: &[],
            kept: &[],
            timeout: Duration::from_secs(120),
            output_bytes: 64 << 10,
        }
    }
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminalEnd {
    /// Its output, standard output and standard error together.
    pub output: String,
    /// The output is not all of it.
    pub truncated: bool,
    /// What ended it.
    pub exit: TerminalExit,
}

impl TerminalEnd {
    /// The end of a command with all of its output.
    pub fn new(output: impl Into<String>, exit: TerminalExit) -> Self {
        Self { output: output.into(), truncated: false, exit }
    }
}

/// What ended a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TerminalExit {
    /// It ended by itself, with this code.
    Code(u32),
    /// A signal ended it: its name, or `unknown`.
    Signal(String),
    /// Its time was over.
    Timeout,
}
