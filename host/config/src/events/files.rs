//! Where files that override the catalogue are.

use std::path::{Path, PathBuf};

use flow::Diagnostic;

use super::Catalogue;
use crate::layer_files::Places;
use crate::{Diagnostics, Operator, layer_files};

/// The name of a file that overrides the catalogue: in `tidegate` of the user's configuration folder, and in `.tidegate` of a
/// workspace.
pub const FILE: &str = "thread_events.toml";

/// The same in YAML, which is read where there is no [`FILE`].
pub const YAML_FILE: &str = "thread_events.yaml";

/// The names, in no order: there can be one file at most.
pub(crate) const NAMES: [&str; 2] = [FILE, YAML_FILE];

/// The folder of a workspace in which other programs with the same format have their [`YAML_FILE`].
pub const FOREIGN_FOLDER: &str = ".ai/config";

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

/// The file of a project for another program with the same format; `None` where there is none.
///
/// # Errors
/// It is a link to a file outside of the workspace.
pub fn foreign_file(workspace: &Path) -> Result<Option<PathBuf>, Diagnostics> {
    layer_files::file_in(workspace, FOREIGN_FOLDER, &[YAML_FILE])
}

impl Catalogue {
    /// The catalogue of a session in a workspace: the default of the program with `[events]` of the operator and the files of the user and of
    /// the project on top, as far as they exist, and what of the project's was left out. `user`: the folder of the user's files, `tidegate` in
    /// the configuration folder.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is wrong; all that is wrong with one file is reported together.
    pub fn load(
        operator: &Operator,
        user: Option<&Path>,
        workspace: &Path,
    ) -> Result<(Self, Vec<Diagnostic>), Diagnostics> {
        let places = Places { settings: &operator.layers, user, workspace };
        Self::of_layers(&places.read(&NAMES, foreign_file(workspace)?)?)
    }
}
