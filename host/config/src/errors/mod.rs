//! The table of error classes: which failed requests have which class, and how each class is retried.
//!
//! The table is data. The default of the program ([`defaults`]) is overridden by `[errors]` of the user's settings and then by that of the workspace:
//! entries by their `id`, policies by the name of their class, both key by key. Since the first entry that matches decides, entries that
//! a file adds come before those of the layers below it. The result is the [`RetryTable`] of a session. What a project says comes with what
//! somebody clones: it can only have fewer requests sent again.

mod entries;
mod layers;
mod policies;
mod project;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use flow::RetryTable;

pub(crate) use self::layers::Layers;
use crate::layer_files::Places;
use crate::layers::LayerFile;
use crate::{Diagnostic, Diagnostics, Operator, SourceFile, layer_files};

/// The version of the format, as `schema_version` has it.
pub const SCHEMA_VERSION: &str = "1.0.0";

/// The name of a file of its own with the table: in `tidegate` of the user's configuration folder, and in `.tidegate` of a workspace.
pub const FILE: &str = "errors.toml";

/// The default table, as TOML with comments.
pub fn defaults() -> &'static str {
    include_str!("errors.toml")
}

/// The file of a project; `None` where there is none.
///
/// # Errors
/// It is a link to a file outside of the workspace, which a project could use to show files of this machine.
pub fn project_file(workspace: &Path) -> Result<Option<PathBuf>, Diagnostics> {
    layer_files::project_file(workspace, &[FILE])
}

/// The default of the program with these files of the user on top of it, lowest first.
///
/// # Errors
/// Something in a file is wrong; all that is wrong is reported together.
pub fn of_sources(files: &[Arc<SourceFile>]) -> Result<RetryTable, Diagnostics> {
    let files: Vec<LayerFile> = files.iter().map(LayerFile::of_user).collect();
    of_layers(&files).map(|(table, _)| table)
}

/// The same with files of a project among them, and what of those was left out: a project has no request sent again that is not without it, nor
/// more often or sooner.
///
/// # Errors
/// Something in a file is wrong; all that is wrong is reported together.
pub fn of_layers(files: &[LayerFile]) -> Result<(RetryTable, Vec<Diagnostic>), Diagnostics> {
    layered(files).map(|(layers, table)| (table, layers.warnings))
}

/// The layers without what of a project's was left out, and the table that they make.
pub(crate) fn layered(files: &[LayerFile]) -> Result<(Layers<'_>, RetryTable), Diagnostics> {
    let mut layers = Layers::read(files)?;
    let mut table = resolve(&mut layers)?;
    let users = LayerFile::of_users(files);
    if users.len() < files.len() {
        let mut own = Layers::read(&users)?;
        let own_table = resolve(&mut own)?;
        project::refuse(&mut layers, &table, &own_table, own.merged_value());
        if layers.leave_out()? {
            table = resolve(&mut layers)?;
        }
    }
    layers.warnings.sort_by_key(place);
    Ok((layers, table))
}

fn resolve(layers: &mut Layers<'_>) -> Result<RetryTable, Diagnostics> {
    let patterns = entries::resolve(layers);
    let policies = policies::resolve(layers);
    let mut found = std::mem::take(&mut layers.found);
    found.sort_by_key(place);
    if found.is_empty() { Ok(RetryTable::new(patterns, policies)) } else { Err(Diagnostics(found)) }
}

fn place(one: &Diagnostic) -> Option<(PathBuf, usize)> {
    one.location().map(|at| (at.file.path.clone(), at.span.start))
}

impl Operator {
    /// The table of a session in a workspace: the default of the program with `[errors]` and the files of the user and of the project on top, as
    /// far as they exist, and `max_retries` of `[turn]` where the operator sets it. Returns what of the project's was left out, too. `user`: the
    /// folder of the user's files, `tidegate` in the configuration folder.
    ///
    /// # Errors
    /// A file cannot be read, or something in it is wrong; all that is wrong with one file is reported together.
    pub fn retry_table(
        &self,
        user: Option<&Path>,
        workspace: &Path,
    ) -> Result<(RetryTable, Vec<Diagnostic>), Diagnostics> {
        let places = Places { settings: &self.layers, user, workspace };
        let (table, left_out) = of_layers(&places.read(&[FILE], None)?)?;
        let table = match self.turn.max_retries {
            Some(max_retries) => table.with_max_retries(max_retries),
            None => table,
        };
        Ok((table, left_out))
    }
}
