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

/// Reads the rules.
///
/// # Errors
/// A rule that is required is not in force.
pub(crate) async fn load(operator: &Operator, workspace: &Path) -> Result<Loaded, Failure> {
    let (operator, workspace) = (operator.clone(), workspace.to_owned());
    let cut_off = |error| Failure::setup(format_args!("the command was aborted: {error}"));
    tokio::task::spawn_blocking(move || read(&operator, &workspace)).await.map_err(cut_off)?
}

/// As [`load`], on this thread.
pub(crate) fn read(operator: &Operator, workspace: &Path) -> Result<Loaded, Failure> {
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
