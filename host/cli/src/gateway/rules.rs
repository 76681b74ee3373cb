//! The rules of a gateway: those of the workspace, as a session has them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate::Operator;
use tidegate::diagnostic::Diagnostics;
use tidegate::rule::RuleSet;
use trial::Catalogue;

use crate::exit::Failure;
use crate::say::{self, count};

/// Rules, and the folders that they are read from.
pub(crate) struct Loaded {
    pub(crate) set: Arc<RuleSet>,
    pub(crate) folders: Vec<PathBuf>,
}

/// Reads the rules. `command`: for which command, in messages.
///
/// # Errors
/// A rule that is required is not in force, or a plugin that is required would not act.
pub(crate) async fn load(operator: &Operator, workspace: &Path, command: &'static str) -> Result<Loaded, Failure> {
    let (operator, workspace) = (operator.clone(), workspace.to_owned());
    let cut_off = |error| Failure::setup(format_args!("the command was aborted: {error}"));
    tokio::task::spawn_blocking(move || read(&operator, &workspace, command)).await.map_err(cut_off)?
}

/// As [`load`], on this thread.
pub(crate) fn read(operator: &Operator, workspace: &Path, command: &'static str) -> Result<Loaded, Failure> {
    let plugins = operator.load_plugins()?;
    if let Some(required) = plugins.iter().find(|plugin| plugin.entry.required) {
        let id = &required.manifest.id;
        return Err(Failure::setup(format_args!(
            "the plugin `{id}` is required, and plugins do not act in `{command}`"
        )));
    }
    if !plugins.is_empty() {
        let ids: Vec<&str> = plugins.iter().map(|plugin| plugin.manifest.id.as_str()).collect();
        say::note(format_args!("warning: plugins do not act in `{command}`, only their rules: {}", ids.join(", ")));
    }
    let tools = tidegate::tool::tool_specs(operator, workspace)?;
    let catalogue = Catalogue::load(operator, workspace, tools)?;
    let unmet = catalogue.unmet_for_other_tools();
    if !unmet.is_empty() {
        return Err(Diagnostics(unmet).into());
    }
    let refused = catalogue.refused().len();
    if refused > 0 {
        let rules = count(refused as u64, "rule has errors and is", "rules have errors and are");
        say::note(format_args!("warning: {rules} not in force; `tidegate rules check` shows them"));
    }
    let set = Arc::clone(catalogue.set());
    set.prepare();
    Ok(Loaded { set, folders: catalogue.folders().to_vec() })
}

/// The rules that watch something.
pub(crate) fn watching(set: &RuleSet) -> usize {
    set.rules().filter(|info| set.active(&info.rule.name).is_some()).count()
}
