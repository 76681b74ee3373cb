//! Tools: those of an embedder, the files and terminals that built-in tools use, and permissions.
//!
//! [`SessionOptions::tools`](crate::SessionOptions::tools) adds [`Tools`], [`SessionOptions::files`](crate::SessionOptions::files) replaces
//! the disk by [`Files`] such as an editor's unsaved buffers.

pub use crate::host::assemble::tool_specs;
pub use config::{BadPermission, PermissionRule};
pub use flow::ports::{
    FileKind, FileStatus, Files, PreparedCall, Progress, ProgressLine, TerminalCommand, TerminalEnd, TerminalExit,
    Terminals, Tools,
};
pub use flow::{
    CallId, Called, Permission, PermissionMode, ToolArguments, ToolCall, ToolOutcome, ToolOutput, ToolReport,
    ToolResult, ToolSpec,
};
pub use tools::{DiskFiles, ToolsError, files_of};
