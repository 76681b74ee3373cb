//! Where files that override a default of the program are: one of the user, and one of each project.

use std::path::{Path, PathBuf};

use crate::layers::{LayerFile, LayerOrigin};
use crate::{Code, Diagnostic, Diagnostics, presence};

/// The folder of a workspace with the files of Tidegate.
const PROJECT_FOLDER: &str = ".tidegate";

/// The user's folder of Tidegate: `tidegate` in the configuration folder. `None` where the user has no home.
pub(crate) fn user_folder() -> Option<PathBuf> {
    crate::rule_sources::user_folder().and_then(|rules| Some(rules.parent()?.to_owned()))
}

/// The user's file of one of these names; `None` where there is none.
///
/// # Errors
/// There are several of them.
pub(crate) fn user_file(folder: Option<&Path>, names: &[&str]) -> Result<Option<PathBuf>, Diagnostics> {
    folder.map_or(Ok(None), |folder| find(folder, names))
}

/// The file of a project of one of these names, in `.tidegate` of the workspace; `None` where there is none.
///
/// # Errors
/// There are several of them, or it is a link to a file outside of the workspace, which a project could use to show files of this
/// machine.
pub(crate) fn project_file(workspace: &Path, names: &[&str]) -> Result<Option<PathBuf>, Diagnostics> {
    file_in(workspace, PROJECT_FOLDER, names)
}

/// The same in another folder of the workspace.
///
/// # Errors
/// As for [`project_file`].
pub(crate) fn file_in(workspace: &Path, folder: &str, names: &[&str]) -> Result<Option<PathBuf>, Diagnostics> {
    let Some(file) = find(&workspace.join(folder), names)? else { return Ok(None) };
    let is_inside = file.canonicalize().and_then(|file| Ok(file.starts_with(workspace.canonicalize()?)));
    if is_inside.map_err(|error| unreadable(&file, &error))? {
        return Ok(Some(file));
    }
    let message = format!("cannot read `{}`: it leads out of the workspace", file.display());
    Err(Diagnostic::error(Code::ConfigUnreadable, message).help("replace the link by the file itself").into())
}

/// The files of the user, in this folder, and of the project, as far as they exist, lowest layer first.
///
/// # Errors
/// As for each of them; or one cannot be read.
pub(crate) fn read(user: Option<&Path>, workspace: &Path, names: &[&str]) -> Result<Vec<LayerFile>, Diagnostics> {
    let files = [(user_file(user, names)?, LayerOrigin::User), (project_file(workspace, names)?, LayerOrigin::Project)];
    let read = |(file, origin): (Option<PathBuf>, LayerOrigin)| {
        let source = crate::read(&file?, "check who is allowed to read it");
        Some(source.map(|source| LayerFile { source, origin }))
    };
    files.into_iter().filter_map(read).collect()
}

/// The file that is there, whatever it is; only what is absent is not.
fn find(folder: &Path, names: &[&str]) -> Result<Option<PathBuf>, Diagnostics> {
    let mut found = Vec::new();
    for name in names {
        let file = folder.join(name);
        if presence::is_there(&file).map_err(|error| unreadable(&file, &error))? {
            found.push(*name);
        }
    }
    match found.as_slice() {
        [one, other, ..] => {
            let message = format!("`{}` contains both `{one}` and `{other}`", folder.display());
            Err(Diagnostic::error(Code::ConfigDuplicate, message).help("remove one of them").into())
        }
        found => Ok(found.first().map(|name| folder.join(name))),
    }
}

/// The error about a file that is there, or of which that cannot be found out.
pub(crate) fn unreadable(file: &Path, error: &std::io::Error) -> Diagnostics {
    let message = format!("cannot read `{}`: {error}", file.display());
    Diagnostic::error(Code::ConfigUnreadable, message).help("make it readable, or remove it").into()
}
