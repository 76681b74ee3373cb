//! Where the operator's files of a workspace are: that of the user, that of the workspace or the one that somebody named, and the variable with
//! settings on top of them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{
    Code, Diagnostic, Diagnostics, Layer, LayerKind, OPERATOR_FILE, Operator, SourceFile, layer_files, presence,
};

/// The variable of the environment with settings: text as in `tidegate.toml`, such as `provider.model = "claude-haiku-4-5"`.
pub const SETTINGS_VARIABLE: &str = "TIDEGATE_SETTINGS";

/// Where the settings of hosts are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorFiles {
    user: Option<PathBuf>,
    named: Option<PathBuf>,
    environment: Option<OsString>,
}

/// The operator's files of a workspace, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundFiles {
    /// The files, the lowest layer first.
    pub layers: Vec<Layer>,
    /// Files that would be layers if they were there.
    pub absent: Vec<PathBuf>,
}

impl OperatorFiles {
    /// The user's file, `tidegate/tidegate.toml` in the configuration folder, and on top of it that of a workspace.
    pub fn new() -> Self {
        Self { user: layer_files::user_folder(), named: None, environment: None }
    }

    /// Reads the user's file in this folder instead; `None`: there is none.
    #[must_use]
    pub fn user_folder(mut self, folder: Option<PathBuf>) -> Self {
        self.user = folder;
        self
    }

    /// Reads this file in the place of that of a workspace. It must be there.
    #[must_use]
    pub fn named(mut self, file: Option<PathBuf>) -> Self {
        self.named = file;
        self
    }

    /// Puts the text of [`SETTINGS_VARIABLE`] on top of the files; relative paths in it are relative to the current folder. The
    /// environment of this process is not read by itself: an embedder's users may know nothing of it.
    #[must_use]
    pub fn environment(mut self, text: Option<&OsStr>) -> Self {
        self.environment = text.map(OsStr::to_owned);
        self
    }

    /// The file in the place of that of a workspace, where there is one.
    pub fn named_file(&self) -> Option<&Path> {
        self.named.as_deref()
    }

    /// The place of the user's file; `None` where the user has no home.
    pub fn user_file(&self) -> Option<PathBuf> {
        self.user.as_ref().map(|folder| folder.join(OPERATOR_FILE))
    }

    /// Reads the files of a workspace, each once.
    ///
    /// # Errors
    /// One of them is there and cannot be read, that of the workspace is a link that leads out of it, or the text of the environment is not
    /// UTF-8. Only a file that is absent counts as none.
    pub fn read(&self, workspace: &Path) -> Result<FoundFiles, Diagnostics> {
        let mut found = FoundFiles { layers: Vec::new(), absent: Vec::new() };
        if let Some(file) = self.user_file() {
            found
                .add(LayerKind::User, file, |file| crate::read(file, "it has the user's settings: make it readable"))?;
        }
        match &self.named {
            Some(file) => {
                let source = crate::read(file, "check the path of `--config`")?;
                found.layers.push(Layer { kind: LayerKind::Named, source });
            }
            None => {
                // Messages show `tidegate.toml`, not `./tidegate.toml`.
                let file = workspace.strip_prefix(".").unwrap_or(workspace).join(OPERATOR_FILE);
                found.add(LayerKind::Workspace, file, |file| of_workspace(workspace, file))?;
            }
        }
        if let Some(text) = &self.environment {
            found.layers.push(Layer { kind: LayerKind::Environment, source: of_environment(text)? });
        }
        Ok(found)
    }
}

impl Default for OperatorFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl FoundFiles {
    fn add(
        &mut self,
        kind: LayerKind,
        file: PathBuf,
        read: impl Fn(&Path) -> Result<Arc<SourceFile>, Diagnostics>,
    ) -> Result<(), Diagnostics> {
        let is_there = presence::is_there(&file).map_err(|error| layer_files::unreadable(&file, &error))?;
        if is_there {
            self.layers.push(Layer { kind, source: read(&file)? });
        } else {
            self.absent.push(file);
        }
        Ok(())
    }

    /// The settings that the files make.
    ///
    /// # Errors
    /// Something in a file is wrong; all that is wrong is reported together.
    pub fn operator(&self) -> Result<Operator, Diagnostics> {
        Ok(Operator { absent: self.absent.clone(), ..Operator::of_layers(&self.layers)? })
    }
}

fn of_environment(text: &OsStr) -> Result<Arc<SourceFile>, Diagnostics> {
    let text = text.to_str().ok_or_else(|| {
        let message = format!("cannot read the variable `{SETTINGS_VARIABLE}`: it is not UTF-8");
        Diagnostic::error(Code::ConfigUnreadable, message).help("write it in UTF-8, or unset it")
    })?;
    Ok(SourceFile::new(SETTINGS_VARIABLE, text))
}

/// The file of a workspace.
///
/// # Errors
/// It cannot be read, or is a link that leads out of the workspace.
pub(crate) fn of_workspace(workspace: &Path, file: &Path) -> Result<Arc<SourceFile>, Diagnostics> {
    let source = crate::read(file, "replace it by a file that can be read, or remove it")?;
    let is_inside = file.canonicalize().and_then(|file| Ok(file.starts_with(workspace.canonicalize()?)));
    match is_inside {
        Ok(true) => Ok(source),
        Ok(false) => {
            let message = format!("cannot read `{}`: it leads out of the workspace", file.display());
            let help = "replace the link by the file itself, or name the file with `--config`";
            Err(Diagnostic::error(Code::ConfigUnreadable, message).help(help).into())
        }
        Err(error) => Err(layer_files::unreadable(file, &error)),
    }
}
