//! A workspace in a temporary folder, and the one way tests call a tool.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "arguments are written in place")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use flow::PermissionMode;
use flow::ports::Tools;
use flow::{CallId, Permission, ToolCall, ToolOutput};
use serde_json::Value;
use tempfile::TempDir;
use tidegate_tools::{BuiltinTools, PermissionRule, ToolSettings};

/// A folder that contains the workspace `inside` and the file `outside.txt`.
pub(crate) struct World {
    pub folder: TempDir,
    pub tools: BuiltinTools,
}

pub(crate) const SECRET: &str = "words from outside of the workspace";

impl World {
    pub(crate) fn new() -> Self {
        Self::with(ToolSettings::default())
    }

    pub(crate) fn with(settings: ToolSettings) -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("inside")).unwrap();
        fs::write(folder.path().join("outside.txt"), SECRET).unwrap();
        let tools = BuiltinTools::new(folder.path().join("inside"), settings).unwrap();
        Self { folder, tools }
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join("inside").join(relative)
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.folder.path().join("outside.txt")
    }

    /// Puts a file in place, with its folders.
    pub(crate) fn file(&self, relative: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        self.tools.prepare(&call(tool, arguments)).run(&|_| {}).await
    }

    /// The words of a call that must go well.
    pub(crate) async fn fine(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await;
        assert!(!output.is_error, "{}", output.content);
        output.content
    }

    /// The words of a call that must fail.
    pub(crate) async fn fails(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments.clone()).await;
        assert!(output.is_error, "{tool} {arguments} went well: {}", output.content);
        assert!(output.diff.is_none());
        // Messages for a model contain no path of the machine.
        let folder = self.folder.path().display().to_string();
        let given = arguments["path"].as_str().unwrap_or_default().contains(&folder);
        assert!(given || !output.content.contains(&folder), "{}", output.content);
        output.content
    }

    pub(crate) fn permission(&self, tool: &str, arguments: Value) -> Permission {
        self.tools.prepare(&call(tool, arguments)).permission()
    }
}

pub(crate) fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall { id: CallId::new("call-1"), name: tool.to_owned(), arguments: arguments.to_string() }
}

/// An entry as a file has it: `shell(git *)`.
pub(crate) fn rule(key: &str, mode: PermissionMode) -> PermissionRule {
    let (tool, pattern) = match key.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').unwrap().to_owned())),
        None => (key, None),
    };
    PermissionRule { tool: tool.to_owned(), pattern, mode, origin: "[tools.permission] in tidegate.toml".to_owned() }
}

/// Whether `text` is in a file of the folder, anywhere.
pub(crate) fn anywhere(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            anywhere(&path, text)
        } else {
            fs::read_to_string(&path).is_ok_and(|found| found.contains(text))
        }
    })
}

/// Whether permissions do not hold for this process.
#[cfg(unix)]
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|about| std::os::unix::fs::MetadataExt::uid(&about) == 0)
}

/// Runs a test of this program again in another way, with a folder that is prepared for it.
#[cfg(unix)]
pub(crate) fn again(test: &str, folder: &Path, mut program: Command, then: &str) {
    let me = std::env::current_exe().unwrap();
    let command = format!("{then} exec \"$0\" --exact {test} --nocapture");
    program.args(["sh", "-c", &command]).arg(me).env("TIDEGATE_TEST_AGAIN", folder).stdin(Stdio::null());
    let output = program.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}{err}");
}

/// A program that runs another one without the rights of a superuser.
#[cfg(unix)]
pub(crate) fn nobody() -> Command {
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    other
}

/// The folder of a test that runs again.
pub(crate) fn prepared() -> Option<BuiltinTools> {
    let folder = std::env::var_os("TIDEGATE_TEST_AGAIN")?;
    Some(BuiltinTools::new(folder, ToolSettings::default()).unwrap())
}
