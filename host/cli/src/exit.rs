//! How the program ends: exit codes, and failures before anything ran.

use std::process::ExitCode;

use tidegate::{HostError, TurnStatus};

use crate::{say, style};

/// How it went. The codes are documented in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Completed,
    Failed,
    Wrong,
    Rejected,
    StoppedByRule,
    StepLimit,
    Cancelled,
}

impl Exit {
    pub(crate) fn of(status: &TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => Self::Completed,
            TurnStatus::Failed { .. } => Self::Failed,
            TurnStatus::Rejected { .. } => Self::Rejected,
            TurnStatus::StoppedByRule { .. } => Self::StoppedByRule,
            TurnStatus::StepLimit { .. } => Self::StepLimit,
            TurnStatus::Cancelled => Self::Cancelled,
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Wrong => 2,
            Self::Rejected => 3,
            Self::StoppedByRule => 4,
            Self::StepLimit => 5,
            // As a shell tells a program that was stopped with Ctrl-C.
            Self::Cancelled => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// The program ends without having done what was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Whole lines, as they are to be printed; empty: there is nothing to say.
    text: String,
    exit: Exit,
}

impl Failure {
    /// A failure before anything ran, in one sentence.
    pub(crate) fn setup(message: impl std::fmt::Display) -> Self {
        let text = format!("{}error:{} {message}", style::stderr(style::BAD), style::stderr_reset());
        Self { text, exit: Exit::Wrong }
    }

    /// A failure of what ran, in one sentence.
    pub(crate) fn late(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Failed, ..Self::setup(message) }
    }

    /// Prints it and says how the program ends.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.text.is_empty() {
            say::note(self.text.trim_end());
        }
        self.exit.into()
    }
}

impl From<config::Diagnostics> for Failure {
    fn from(diagnostics: config::Diagnostics) -> Self {
        Self { text: diagnostics.render(style::stderr_has_colour()), exit: Exit::Wrong }
    }
}

/// Standard output is gone. A reader that had enough, such as `head`, is no failure.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self { text: String::new(), exit: Exit::Completed },
            _ => Self::late(format_args!("cannot write to standard output: {error}")),
        }
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Config(diagnostics) => diagnostics.into(),
            other => Self::setup(other),
        }
    }
}
