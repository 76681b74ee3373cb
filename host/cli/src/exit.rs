//! How the program ends: exit codes, and failures before anything ran.

use std::process::ExitCode;

use tidegate::diagnostic::{DiagnosticCode, Diagnostics};
use tidegate::transcript::TranscriptError;
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
    Suspended,
    NoProgress,
    Cancelled,
    /// A command that was run has ended with this code.
    Child(u8),
}

impl Exit {
    pub(crate) fn of(status: &TurnStatus) -> Self {
        match status {
            TurnStatus::Completed => Self::Completed,
            TurnStatus::Failed { .. } => Self::Failed,
            TurnStatus::Rejected { .. } => Self::Rejected,
            TurnStatus::StoppedByRule { .. } => Self::StoppedByRule,
            TurnStatus::StepLimit { .. } => Self::StepLimit,
            TurnStatus::Suspended { .. } => Self::Suspended,
            TurnStatus::NoProgress { .. } => Self::NoProgress,
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
            Self::Suspended => 6,
            Self::NoProgress => 7,
            // The exit code of a program that was stopped with Ctrl-C, as shells report it.
            Self::Cancelled => 130,
            Self::Child(code) => code,
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
    /// Whole lines, as they are to be printed; none: there is nothing to say.
    lines: Vec<String>,
    /// The same in one line, without styles, for where it is one of several things to say.
    line: String,
    exit: Exit,
}

impl Failure {
    /// A failure before anything ran, in one sentence. Further lines explain it; they are indented, because a name in the
    /// message can contain line ends and must not begin a line that looks like another message.
    pub(crate) fn setup(message: impl std::fmt::Display) -> Self {
        let message = message.to_string();
        let (first, more) = message.split_once('\n').unwrap_or((&message, ""));
        let indented = |line: &str| format!("  {line}");
        let first = format!("{} {first}", style::err(style::BAD, "error:"));
        let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { lines: std::iter::once(first).chain(more.lines().map(indented)).collect(), line, exit: Exit::Wrong }
    }

    /// Adds the code by which the failure is documented.
    pub(crate) fn coded(mut self, code: Option<DiagnosticCode>) -> Self {
        if let (Some(code), Some(first)) = (code, self.lines.first_mut()) {
            *first = first.replacen("error:", &format!("error[{code}]:"), 1);
        }
        self
    }

    /// A failure of what ran, in one sentence.
    pub(crate) fn late(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Failed, ..Self::setup(message) }
    }

    /// Whether there is nothing to say: the reader of the output is gone.
    pub(crate) fn is_silent(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns it in one line.
    pub(crate) fn into_line(self) -> String {
        self.line
    }

    /// Prints it and returns how the program ends.
    pub(crate) fn report(&self) -> ExitCode {
        self.say();
        self.exit.into()
    }

    /// Prints it, where something else decides how the program ends.
    pub(crate) fn say(&self) {
        self.lines.iter().for_each(say::note);
    }
}

impl From<Diagnostics> for Failure {
    fn from(diagnostics: Diagnostics) -> Self {
        let rendered: Vec<String> = diagnostics.0.iter().map(say::diagnostic).collect();
        let lines = rendered.join("\n\n").lines().map(str::to_owned).collect();
        Self { lines, line: diagnostics.in_one_line(), exit: Exit::Wrong }
    }
}

/// Standard output is gone. A reader that closes early, such as `head`, is not a failure.
impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self { lines: Vec::new(), line: String::new(), exit: Exit::Completed },
            _ => Self::late(format_args!("cannot write to standard output: {error}")),
        }
    }
}

impl From<TranscriptError> for Failure {
    fn from(error: TranscriptError) -> Self {
        HostError::from(error).into()
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        match error {
            HostError::Config(diagnostics) => diagnostics.into(),
            other => match flag(&other) {
                Some(flag) => Self::setup(format_args!("{}, or give {flag}", other.with_hint())).coded(other.code()),
                None => Self::setup(other.with_hint()).coded(other.code()),
            },
        }
    }
}

/// The flag that helps against an error of the library, which knows of none.
fn flag(error: &HostError) -> Option<&'static str> {
    match error {
        HostError::NoProvider { .. } => Some("--provider"),
        HostError::NoModel => Some("--model"),
        HostError::NoRecording => Some("--recording"),
        _ => None,
    }
}
