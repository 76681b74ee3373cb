//! The tools, one file each, and the one place that lists them.

mod edit_file;
mod find;
mod grep;
mod list_dir;
mod read_file;
mod shell;
mod walk;
mod write_file;

use std::sync::Arc;

use flow::{ToolCall, ToolOutput, ToolSpec};

use crate::arguments::{parse, schema};
use crate::{Failure, Shared, blocking};

/// The built-in tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    ReadFile,
    WriteFile,
    EditFile,
    ListDir,
    Find,
    Grep,
    Shell,
}

/// What a call is about, for permissions.
pub(crate) enum Subject {
    /// A path as the model wrote it.
    Path(String),
    /// A command.
    Command(String),
}

impl Builtin {
    /// All of them, in the order they are offered.
    pub(crate) const ALL: [Self; 7] =
        [Self::ReadFile, Self::WriteFile, Self::EditFile, Self::ListDir, Self::Find, Self::Grep, Self::Shell];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::ListDir => "list_dir",
            Self::Find => "find",
            Self::Grep => "grep",
            Self::Shell => "shell",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// All names, for messages.
    pub(crate) fn names() -> String {
        Self::ALL.map(|tool| format!("`{}`", tool.name())).join(", ")
    }

    /// Whether it can change something; then it asks by default.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::WriteFile | Self::EditFile | Self::Shell)
    }

    pub(crate) fn spec(self) -> ToolSpec {
        let (description, parameters) = match self {
            Self::ReadFile => (read_file::ABOUT, schema::<read_file::Arguments>()),
            Self::WriteFile => (write_file::ABOUT, schema::<write_file::Arguments>()),
            Self::EditFile => (edit_file::ABOUT, schema::<edit_file::Arguments>()),
            Self::ListDir => (list_dir::ABOUT, schema::<list_dir::Arguments>()),
            Self::Find => (find::ABOUT, schema::<find::Arguments>()),
            Self::Grep => (grep::ABOUT, schema::<grep::Arguments>()),
            Self::Shell => (shell::ABOUT, schema::<shell::Arguments>()),
        };
        ToolSpec { name: self.name().to_owned(), description: description.to_owned(), parameters }
    }

    /// What a call with these arguments is about.
    pub(crate) fn subject(self, text: &str) -> Result<Subject, Failure> {
        let name = self.name();
        Ok(match self {
            Self::ReadFile => Subject::Path(parse::<read_file::Arguments>(name, text)?.path),
            Self::WriteFile => Subject::Path(parse::<write_file::Arguments>(name, text)?.path),
            Self::EditFile => Subject::Path(parse::<edit_file::Arguments>(name, text)?.path),
            Self::ListDir => Subject::Path(parse::<list_dir::Arguments>(name, text)?.path),
            Self::Find => Subject::Path(parse::<find::Arguments>(name, text)?.path),
            Self::Grep => Subject::Path(parse::<grep::Arguments>(name, text)?.path),
            Self::Shell => Subject::Command(parse::<shell::Arguments>(name, text)?.command),
        })
    }
}

/// Runs a call.
pub(crate) async fn run(
    shared: &Arc<Shared>,
    call: &ToolCall,
    progress: &(dyn Fn(&str) + Send + Sync),
) -> Result<ToolOutput, Failure> {
    let Some(tool) = Builtin::of_name(&call.name) else {
        return Err(Failure(format!("there is no tool `{}`; the tools are {}", call.name, Builtin::names())));
    };
    let (name, text) = (tool.name(), call.arguments.as_str());
    let shared = Arc::clone(shared);
    match tool {
        Builtin::ReadFile => {
            let arguments = parse(name, text)?;
            blocking::run(move |_| read_file::run(&shared.workspace, &arguments)).await
        }
        Builtin::WriteFile => {
            let arguments = parse(name, text)?;
            blocking::run(move |_| write_file::run(&shared.workspace, &arguments)).await
        }
        Builtin::EditFile => {
            let arguments = parse(name, text)?;
            blocking::run(move |_| edit_file::run(&shared.workspace, &arguments)).await
        }
        Builtin::ListDir => {
            let arguments = parse(name, text)?;
            blocking::run(move |_| list_dir::run(&shared.workspace, &arguments)).await
        }
        Builtin::Find => {
            let arguments = parse(name, text)?;
            blocking::run(move |stop| find::run(&shared.workspace, &arguments, stop)).await
        }
        Builtin::Grep => {
            let arguments = parse(name, text)?;
            blocking::run(move |stop| grep::run(&shared, &arguments, stop)).await
        }
        Builtin::Shell => shell::run(&shared, &parse(name, text)?, progress).await,
    }
}

/// A plain answer.
fn said(content: impl Into<String>) -> ToolOutput {
    ToolOutput { content: content.into(), diff: None, is_error: false }
}

/// The workspace itself: what a search without a path is about.
fn here() -> String {
    ".".to_owned()
}
