//! Built-in tools, confined to the workspace, and the permissions in front of them.
//!
//! A call goes through three steps: its arguments are parsed strictly (`arguments`), its path is resolved to a real
//! place inside the workspace (`workspace`), and the tool does one thing and answers in words made for a model
//! (`builtin`). Whether it may run at all is decided before, without asking anybody (`permission`).
//!
//! The workspace is a fence for paths, not a jail: `shell` runs with the rights of the host, which is why it asks by
//! default. Hard links are not recognised: what is written to a file is there under its other names, too.
#![forbid(unsafe_code)]

mod arguments;
mod blocking;
mod builtin;
mod ceiling;
mod change;
mod disk;
mod glob;
mod guard;
mod permission;
mod prepared;
mod replace;
mod text;
mod workspace;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use flow::ports::{Files, PreparedCall, Terminals, Tools};
use flow::{ToolCall, ToolSpec};

use builtin::Builtin;
pub use builtin::{CommandVariables, files_of, looks_secret};
use ceiling::Permissions;
pub use disk::DiskFiles;
pub use guard::GuardedPath;
use guard::Guards;
pub use permission::PermissionRule;
use permission::Policy;
use prepared::Prepared;
use workspace::Workspace;

/// What an operator decides about the tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSettings {
    /// Who may run what; what no entry is about follows the tool's own default: tools that only read are allowed,
    /// `write_file`, `edit_file` and `shell` ask.
    pub permissions: Vec<PermissionRule>,
    /// The most that calls are permitted, whatever `permissions` say and a person answers: `ask` asks about each call. `allow` decides nothing.
    pub ceiling: Vec<PermissionRule>,
    /// How long a command of `shell` may run.
    pub shell_timeout: Duration,
    /// Bytes of a command's output that are kept: half from its beginning, half from its end.
    pub shell_output_bytes: usize,
    /// Variables that commands get in addition to the short list of those that builds need: names, and starts of names that end
    /// with `*`.
    pub shell_env: Vec<String>,
    /// Names of the variables that contain keys of the host: commands get one only where `shell_env` has its whole name.
    pub own_keys: Vec<String>,
    /// Files and folders that the embedder trusts: writing one asks, as for the paths listed in `guarded.toml`.
    pub guarded: Vec<GuardedPath>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            permissions: Vec::new(),
            ceiling: Vec::new(),
            shell_timeout: Duration::from_secs(120),
            shell_output_bytes: 64 << 10,
            shell_env: Vec::new(),
            own_keys: Vec::new(),
            guarded: Vec::new(),
        }
    }
}

/// Why the tools cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolsError {
    /// The workspace does not exist, or is not a folder.
    #[error("the workspace `{}` cannot be used: {cause}; name a folder that exists", .path.display())]
    Workspace {
        /// The path as it was given.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// A permission is about a tool that does not exist.
    #[error("the permission `{key}` names no tool ({origin}); the tools are {known}")]
    UnknownTool {
        /// The permission's key.
        key: String,
        /// Where it was set.
        origin: String,
        /// Names of all tools.
        known: String,
    },
    /// A permission's pattern is not a valid glob.
    #[error("the permission `{key}` has an invalid pattern ({origin}): {cause}")]
    Pattern {
        /// The permission's key.
        key: String,
        /// Where it was set.
        origin: String,
        /// The error message.
        cause: String,
    },
}

/// The tools `read_file`, `write_file`, `edit_file`, `list_dir`, `find`, `grep`, `shell` and `plan` over one workspace.
pub struct BuiltinTools {
    shared: Arc<Shared>,
    files: Arc<dyn Files>,
    /// Where commands of `shell` run; `None`: in processes of the host.
    terminals: Option<Arc<dyn Terminals>>,
}

impl std::fmt::Debug for BuiltinTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BuiltinTools").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// Returns the names of all built-in tools.
pub fn builtin_names() -> impl Iterator<Item = &'static str> {
    Builtin::ALL.into_iter().map(Builtin::name)
}

/// Whether there is a built-in tool of this name.
pub fn is_builtin(name: &str) -> bool {
    Builtin::of_name(name).is_some()
}

/// What a running tool needs.
#[derive(Debug)]
struct Shared {
    workspace: Workspace,
    policy: Permissions,
    settings: ToolSettings,
}

impl BuiltinTools {
    /// Sets the tools up for a workspace, which must be an existing folder.
    ///
    /// # Errors
    /// The folder cannot be used, or a permission names no tool or has a pattern that is not a valid glob.
    pub fn new(workspace: impl AsRef<Path>, settings: ToolSettings) -> Result<Self, ToolsError> {
        let path = workspace.as_ref();
        let failed = |cause| ToolsError::Workspace { path: path.to_owned(), cause };
        let workspace = Workspace::open(path).map_err(failed)?;
        let policy = Policy::new(&settings.permissions, Guards::new(&workspace, &settings.guarded))?;
        let policy = Permissions::new(policy, &settings.ceiling)?;
        let shared = Arc::new(Shared { workspace, policy, settings });
        Ok(Self { shared, files: Arc::new(DiskFiles), terminals: None })
    }

    /// The same tools, which read and write these files instead of those on the disk. Paths, links and guards are still those of the
    /// disk, and so is what commands of `shell` see.
    #[must_use]
    pub fn with_files(&self, files: Arc<dyn Files>) -> Self {
        Self { shared: Arc::clone(&self.shared), files, terminals: self.terminals.clone() }
    }

    /// The same tools, whose commands of `shell` run in these terminals.
    #[must_use]
    pub fn with_terminals(&self, terminals: Arc<dyn Terminals>) -> Self {
        Self { shared: Arc::clone(&self.shared), files: Arc::clone(&self.files), terminals: Some(terminals) }
    }

    /// Which variables of this process commands get.
    pub fn command_variables(&self) -> CommandVariables {
        CommandVariables::of(&self.shared.settings)
    }

    /// The workspace's folder: absolute, with all links resolved.
    pub fn workspace(&self) -> &Path {
        self.shared.workspace.root()
    }
}

impl Tools for BuiltinTools {
    fn specs(&self) -> Vec<ToolSpec> {
        Builtin::ALL.iter().map(|tool| tool.spec()).collect()
    }

    fn prepare<'a>(&'a self, call: &'a ToolCall) -> Box<dyn PreparedCall + 'a> {
        Box::new(Prepared::new(&self.shared, (&self.files, self.terminals.as_ref()), call))
    }
}

/// A tool failed; the words go to the model and say what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Failure(String);

impl Failure {
    fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}
