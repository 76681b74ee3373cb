//! The tools, one file each, and the one place that lists them.

mod edit_file;
mod find;
mod grep;
mod list_dir;
mod plan;
mod read_file;
mod shell;
mod skipped;
mod walk;
mod write_file;

use std::path::Path;
use std::sync::Arc;

use flow::ports::{Files, Progress};
use flow::{Argument, PlanEntry, Preview, ToolCall, ToolOutput, ToolSpec};

pub(crate) use shell::run_in_terminal;
pub use shell::{CommandVariables, looks_secret};
pub use walk::files_of;

use crate::arguments::{parse, schema};
use crate::blocking::{self, Access};
use crate::change::Change;
use crate::workspace::Workspace;
use crate::{Failure, Shared};

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
    Plan,
}

/// What a call is about, for permissions.
pub(crate) enum Subject {
    /// A path as the model wrote it.
    Path(String),
    /// The command line that `shell` would run.
    Command(String),
    /// Nothing that a pattern could name.
    Nothing,
}

impl Builtin {
    /// All of them, in the order they are offered.
    pub(crate) const ALL: [Self; 8] = [
        Self::ReadFile,
        Self::WriteFile,
        Self::EditFile,
        Self::ListDir,
        Self::Find,
        Self::Grep,
        Self::Shell,
        Self::Plan,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::ListDir => "list_dir",
            Self::Find => "find",
            Self::Grep => "grep",
            Self::Shell => "shell",
            Self::Plan => "plan",
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
            Self::Plan => (plan::ABOUT, schema::<plan::Arguments>()),
        };
        ToolSpec { name: self.name().to_owned(), description: description.to_owned(), parameters }
    }
}

/// The arguments of a call, decoded by its tool.
#[derive(Debug)]
pub(crate) enum Decoded {
    ReadFile(read_file::Arguments),
    WriteFile(write_file::Arguments),
    EditFile(edit_file::Arguments),
    ListDir(list_dir::Arguments),
    Find(find::Arguments),
    Grep(grep::Arguments),
    Shell(shell::Arguments),
    Plan(plan::Arguments),
}

/// Finds the tool of a call and decodes its arguments.
pub(crate) fn decode(call: &ToolCall) -> Result<(Builtin, Decoded), Failure> {
    let Some(tool) = Builtin::of_name(&call.name) else { return Err(Failure(unknown(&call.name))) };
    let (name, text) = (tool.name(), call.arguments.as_str());
    let decoded = match tool {
        Builtin::ReadFile => Decoded::ReadFile(parse(name, text)?),
        Builtin::WriteFile => Decoded::WriteFile(parse(name, text)?),
        Builtin::EditFile => Decoded::EditFile(parse(name, text)?),
        Builtin::ListDir => Decoded::ListDir(parse(name, text)?),
        Builtin::Find => Decoded::Find(parse(name, text)?),
        Builtin::Grep => Decoded::Grep(parse(name, text)?),
        Builtin::Shell => Decoded::Shell(parse(name, text)?),
        Builtin::Plan => Decoded::Plan(parse(name, text)?),
    };
    Ok((tool, decoded))
}

/// Reports an unknown tool.
pub(crate) fn unknown(name: &str) -> String {
    format!("there is no tool `{name}`; the tools are {}", Builtin::names())
}

impl Decoded {
    /// What the call is about, for permissions.
    pub(crate) fn subject(&self) -> Subject {
        match self {
            Self::ReadFile(arguments) => Subject::Path(arguments.path.clone()),
            Self::WriteFile(arguments) => Subject::Path(arguments.path.clone()),
            Self::EditFile(arguments) => Subject::Path(arguments.path.clone()),
            Self::ListDir(arguments) => Subject::Path(arguments.path.clone()),
            Self::Find(arguments) => Subject::Path(arguments.path.clone()),
            Self::Grep(arguments) => Subject::Path(arguments.path.clone()),
            Self::Shell(arguments) => Subject::Command(arguments.command.clone()),
            Self::Plan(_) => Subject::Nothing,
        }
    }

    /// The arguments as a question shows them: for tools that change something the decoded values themselves, for the
    /// others the members of the JSON object, of which each key occurs once.
    pub(crate) fn arguments(&self, call: &ToolCall) -> Vec<Argument> {
        let shown = match self {
            Self::WriteFile(arguments) => arguments.shown(),
            Self::EditFile(arguments) => arguments.shown(),
            Self::Shell(arguments) => arguments.shown(),
            Self::ReadFile(_) | Self::ListDir(_) | Self::Find(_) | Self::Grep(_) | Self::Plan(_) => {
                return Preview::of_arguments(&call.arguments).unwrap_or_default().arguments;
            }
        };
        shown.into_iter().map(|(name, value)| Argument { name: name.to_owned(), value }).collect()
    }

    /// The change to a file that the call would make; `None` for tools that change no file by themselves.
    pub(crate) fn change(&self, shared: &Shared, access: &Access) -> Option<Result<Change, Failure>> {
        let workspace = &shared.workspace;
        match self {
            Self::WriteFile(arguments) => Some(write_file::plan(workspace, access, arguments)),
            Self::EditFile(arguments) => {
                Some(edit_file::plan(workspace, access, arguments, |name| shared.policy.hides(name)))
            }
            Self::ReadFile(_) | Self::ListDir(_) | Self::Find(_) | Self::Grep(_) | Self::Shell(_) | Self::Plan(_) => {
                None
            }
        }
    }

    /// The plan that the call shows.
    pub(crate) fn plan(&self) -> Option<Vec<PlanEntry>> {
        if let Self::Plan(arguments) = self { Some(arguments.entries()) } else { None }
    }

    /// What a question adds to the arguments.
    pub(crate) fn note(&self, workspace: &Workspace) -> Option<String> {
        match self.subject() {
            Subject::Nothing => None,
            Subject::Command(_) => Some(format!("runs with sh in {}", workspace.root().display())),
            Subject::Path(path) => {
                let real = workspace.resolve(&path).ok()?.relative;
                (workspace.by_name(&path)? != real)
                    .then(|| format!("the path `{path}` leads to `{}`", crate::text::shown(&real)))
            }
        }
    }
}

/// Runs a call.
pub(crate) async fn run(
    shared: &Arc<Shared>,
    files: &Arc<dyn Files>,
    decoded: &Arc<Decoded>,
    progress: Progress<'_>,
) -> Result<ToolOutput, Failure> {
    if let Decoded::Plan(arguments) = &**decoded {
        return plan::run(arguments);
    }
    if let Decoded::Shell(arguments) = &**decoded {
        return shell::run(shared, arguments, &|line: &str| progress(line.into())).await;
    }
    let (shared, decoded) = (Arc::clone(shared), Arc::clone(decoded));
    blocking::run(files, progress, move |access| on_files(&shared, &decoded, access)).await
}

/// Runs a call that only works on files.
fn on_files(shared: &Shared, decoded: &Decoded, access: &Access) -> Result<ToolOutput, Failure> {
    let workspace = &shared.workspace;
    match decoded {
        Decoded::ReadFile(arguments) => read_file::run(workspace, access, arguments),
        Decoded::WriteFile(_) | Decoded::EditFile(_) => match decoded.change(shared, access) {
            Some(change) => change?.apply(workspace, access),
            None => Err(Failure::new("the tool changes no file")),
        },
        Decoded::ListDir(arguments) => list_dir::run(workspace, access, arguments),
        Decoded::Find(arguments) => find::run(workspace, access, arguments),
        Decoded::Grep(arguments) => grep::run(shared, access, arguments),
        Decoded::Shell(_) | Decoded::Plan(_) => Err(Failure::new("the tool does not work on files")),
    }
}

/// A plain answer.
fn said(content: impl Into<String>) -> ToolOutput {
    ToolOutput { content: content.into(), diff: None, is_error: false }
}

/// Whether a search by name with nothing to show left files out, in words.
fn left_out(access: &Access, folder: &Path, seen: usize) -> Result<Option<&'static str>, Failure> {
    let said = "[files that .gitignore leaves out were not searched; `include_ignored` adds them]";
    // There are more places when nothing is ignored.
    Ok(walk::places(access, folder, true)?.nth(seen).map(|_| said))
}

/// The workspace itself: what a search without a path is about.
fn here() -> String {
    ".".to_owned()
}
