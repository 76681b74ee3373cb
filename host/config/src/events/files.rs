//! Where files that override the catalogue are.

use std::path::{Path, PathBuf};

use super::Catalogue;
use crate::{Diagnostics, layer_files};

/// The name of a file that overrides the catalogue: in `tidegate` of the user's configuration folder, and in `.tidegate` of a
/// workspace.
pub const FILE: &str = "thread_events.toml";

/// The same in YAML, which is read where there is no [`FILE`].
pub const YAML_FILE: &str = "thread_events.yaml";

/// The names, in no order: there can be one file at most.
const NAMES: [&str; 2] = [FILE, YAML_FILE];

/// The user's file; `None` where there is none.
///
/// # Errors
/// There are two of them.
pub fn user_file() -> Result<Option<PathBuf>, Diagnostics> {
    layer_files::user_file(layer_files::user_folder().as_deref(), &NAMES)
}

/// The file of a project; `None` where there is none.
///
/// # Errors
/// There are two of them, or it is a link to a file outside of the workspace, which a project could use to show files of this machine.
pub fn project_file(workspace: &Path) -> Result<Option<PathBuf>, Diagnostics> {
    layer_files::project_file(workspace, &NAMES)
}

impl Catalogue {
    /// The default of the program with the files of the user and of the project on top, as far as they exist.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is wrong; all that is wrong with one file is reported together.
    pub fn load(workspace: &Path) -> Result<Self, Diagnostics> {
        Self::of_sources(&layer_files::read(layer_files::user_folder().as_deref(), workspace, &NAMES)?)
    }
}
