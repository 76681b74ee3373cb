//! How the program ends: exit codes, and failures before anything ran.

use std::process::ExitCode;

use tidegate::{HostError, TurnStatus};

use crate::style;

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

/// Something is wrong before anything ran.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Whole lines, as they are to be printed.
    text: String,
}

impl Failure {
    /// A failure in one sentence.
    pub(crate) fn setup(message: impl std::fmt::Display) -> Self {
        Self { text: format!("{}error:{} {message}", style::stderr(style::BAD), style::stderr_reset()) }
    }

    /// Prints it; the exit code says that nothing ran.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("{}", self.text.trim_end());
        Exit::Wrong.into()
    }
}

impl From<config::Diagnostics> for Failure {
    fn from(diagnostics: config::Diagnostics) -> Self {
        Self { text: diagnostics.render(style::stderr_has_colour()) }
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
