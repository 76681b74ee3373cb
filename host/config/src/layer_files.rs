//! Where what overrides a default of the program is: in a table of `tidegate.toml`, and in a file of its own, of the user and of each project.

use std::path::{Path, PathBuf};

use crate::layers::{LayerFile, LayerOrigin};
use crate::{Code, Diagnostic, Diagnostics, Layer, LayerKind, OPERATOR_FILE, operator_files, presence};

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

/// Where the layers of a workspace are.
pub(crate) struct Places<'p> {
    /// The settings of the user, and those that somebody named, with their tables.
    pub(crate) settings: &'p [Layer],
    /// The folder with the user's other files.
    pub(crate) user: Option<&'p Path>,
    /// The workspace. Its own `tidegate.toml` is read here: a session can be in another workspace than the settings.
    pub(crate) workspace: &'p Path,
}

impl Places<'_> {
    /// What overrides a default of the program, as far as it exists, lowest layer first: of the user, of the file that somebody named, of
    /// the project, and of the environment. `names`: of files of their own. `foreign`: a file of the project for another program, which is below its others.
    ///
    /// # Errors
    /// As for each of the files; or one cannot be read.
    pub(crate) fn read(&self, names: &[&str], foreign: Option<PathBuf>) -> Result<Vec<LayerFile>, Diagnostics> {
        let of = |kind| self.settings.iter().find(|layer| layer.kind == kind).map(LayerFile::of_settings);
        let user = own(user_file(self.user, names)?, LayerOrigin::User)?;
        let named = of(LayerKind::Named);
        let project = own(project_file(self.workspace, names)?, LayerOrigin::Project)?;
        // A named file is in the place of that of the workspace.
        let of_workspace = if named.is_some() { None } else { self.of_workspace()? };
        let all = [
            LayerFile::of_both(user, of(LayerKind::User)),
            named,
            own(foreign, LayerOrigin::Foreign)?,
            LayerFile::of_both(project, of_workspace),
            of(LayerKind::Environment),
        ];
        Ok(all.into_iter().flatten().collect())
    }

    fn of_workspace(&self) -> Result<Option<LayerFile>, Diagnostics> {
        let file = self.workspace.strip_prefix(".").unwrap_or(self.workspace).join(OPERATOR_FILE);
        if !presence::is_there(&file).map_err(|error| unreadable(&file, &error))? {
            return Ok(None);
        }
        let source = operator_files::of_workspace(self.workspace, &file)?;
        Ok(Some(LayerFile::of_settings(&Layer { kind: LayerKind::Workspace, source })))
    }
}

fn own(file: Option<PathBuf>, origin: LayerOrigin) -> Result<Option<LayerFile>, Diagnostics> {
    let read = |file: PathBuf| crate::read(&file, "check who is allowed to read it");
    Ok(file.map(read).transpose()?.map(|source| LayerFile::new(&source, origin)))
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
