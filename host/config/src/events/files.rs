//! Where files that override the catalogue are.

use std::path::{Path, PathBuf};

use super::Catalogue;
use crate::{Code, Diagnostic, Diagnostics};

/// The name of a file that overrides the catalogue: in `tidegate` of the user's configuration folder, and in `.tidegate` of a
/// workspace.
pub const FILE: &str = "thread_events.toml";

/// The same in YAML, which is read where there is no [`FILE`].
pub const YAML_FILE: &str = "thread_events.yaml";

/// The folder of a workspace with the files of Tidegate.
const PROJECT_FOLDER: &str = ".tidegate";

/// The user's file; `None` where there is none.
///
/// # Errors
/// There are two of them.
pub fn user_file() -> Result<Option<PathBuf>, Diagnostics> {
    crate::rule_sources::user_folder()
        .and_then(|rules| Some(rules.parent()?.to_owned()))
        .map_or(Ok(None), |at| find(&at))
}

/// The file of a project; `None` where there is none.
///
/// # Errors
/// There are two of them, or it is a link to a file outside of the workspace, which a project could use to show files of this machine.
pub fn project_file(workspace: &Path) -> Result<Option<PathBuf>, Diagnostics> {
    let Some(file) = find(&workspace.join(PROJECT_FOLDER))? else { return Ok(None) };
    let is_inside = file.canonicalize().and_then(|file| Ok(file.starts_with(workspace.canonicalize()?)));
    if is_inside.unwrap_or_default() {
        return Ok(Some(file));
    }
    let message = format!("cannot read `{}`: it leads out of the workspace", file.display());
    Err(Diagnostic::error(Code::ConfigUnreadable, message).help("replace the link by the file itself").into())
}

fn find(folder: &Path) -> Result<Option<PathBuf>, Diagnostics> {
    let files = [folder.join(FILE), folder.join(YAML_FILE)];
    match files.each_ref().map(|file| file.symlink_metadata().is_ok()) {
        [true, true] => {
            let message = format!("`{}` contains both `{FILE}` and `{YAML_FILE}`", folder.display());
            Err(Diagnostic::error(Code::ConfigDuplicate, message).help("remove one of them").into())
        }
        [true, false] => Ok(files.into_iter().next()),
        [false, true] => Ok(files.into_iter().next_back()),
        [false, false] => Ok(None),
    }
}

impl Catalogue {
    /// The default of the program with the files of the user and of the project on top, as far as they exist.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is wrong; all that is wrong with one file is reported together.
    pub fn load(workspace: &Path) -> Result<Self, Diagnostics> {
        let mut sources = Vec::new();
        for file in [user_file()?, project_file(workspace)?].into_iter().flatten() {
            sources.push(crate::read(&file, "check who is allowed to read it")?);
        }
        Self::of_sources(&sources)
    }
}
