//! The rules of a gateway: those of the workspace, as in a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate::Operator;
use tidegate::config::GatewayRoute;
use tidegate::diagnostic::{Diagnostic, DiagnosticCode, Diagnostics};
use tidegate::plugin::ConfiguredPlugin;
use tidegate::rule::RuleSet;
use tidegate::text::nearest;
use trial::Catalogue;

use crate::exit::Failure;
use crate::say::{self, count};
use crate::screen::clean::flat;

/// Rules, and the folders that they are read from.
pub(crate) struct Loaded {
    pub(crate) set: Arc<RuleSet>,
    pub(crate) folders: Vec<PathBuf>,
    /// The diagnostics of rules and their files.
    findings: Vec<Diagnostic>,
    /// The names of the rules that have errors.
    refused: Vec<String>,
}

impl Loaded {
    /// Prints which rules have errors. Call it when these rules are the ones in force.
    pub(crate) fn report(&self) {
        if !self.refused.is_empty() {
            let rules = count(self.refused.len() as u64, "rule has errors and is", "rules have errors and are");
            let names: Vec<String> = self.refused.iter().map(|name| format!("`{}`", flat(name))).collect();
            let names = names.join(", ");
            say::note(format_args!("warning: {rules} not in force: {names}; `tidegate rules check` shows why"));
        }
    }

    /// Checks whether these rules can replace those in `before`, and whether they have the rules of the routes.
    ///
    /// # Errors
    /// A mistake has disabled a rule that was in force, or one that a route names.
    pub(crate) fn check(&self, before: Option<&RuleSet>, routes: &[GatewayRoute]) -> Result<(), Diagnostics> {
        let is_wanted = |name: &str| {
            let was_active = before.is_some_and(|before| before.active(name).is_some());
            was_active || routes.iter().flat_map(|route| route.rules.iter().flatten()).any(|named| named == name)
        };
        let is_gone = |name: &str| self.set.active(name).is_none();
        let was_lost = |before: &RuleSet| {
            before.rules().any(|info| before.active(&info.rule.name).is_some() && is_gone(&info.rule.name))
        };
        let counts = |finding: &&Diagnostic| match finding.rule() {
            Some(name) => is_wanted(name) && (finding.is_error() || is_gone(name)),
            // The rules of a file that cannot be read are unknown.
            None => finding.is_error() && before.is_some_and(was_lost),
        };
        let found: Vec<Diagnostic> = self.findings.iter().filter(counts).cloned().collect();
        if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
    }
}

/// Checks the plugins that routes name.
///
/// # Errors
/// The host has no such plugin.
pub(crate) fn check_plugins(operator: &Operator, plugins: &[ConfiguredPlugin]) -> Result<(), Diagnostics> {
    let known = || plugins.iter().map(|plugin| plugin.manifest.id.as_str());
    let mut found = Vec::new();
    for route in &operator.gateway.routes {
        for name in route.plugins.iter().flatten().filter(|name| !known().any(|id| id == *name)) {
            let help = match nearest(name, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`tidegate plugin list` prints the names".to_owned(),
            };
            let name = name.escape_debug();
            let message = format!("the route `{}` names the plugin `{name}`, which does not exist", route.path);
            let error = Diagnostic::error(DiagnosticCode::HostUnknownPlugin, message).help(help);
            found.push(match &route.place {
                Some(place) => error.at(place.clone(), ""),
                None => error,
            });
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

/// Reads the rules.
///
/// # Errors
/// A required rule is not in force.
pub(crate) async fn load(operator: &Operator, workspace: &Path) -> Result<Loaded, Failure> {
    let (operator, workspace) = (operator.clone(), workspace.to_owned());
    let cut_off = |error| Failure::setup(format_args!("the command was aborted: {error}"));
    tokio::task::spawn_blocking(move || read(&operator, &workspace)).await.map_err(cut_off)?
}

/// Loads the rules as [`load`] does, on this thread.
pub(crate) fn read(operator: &Operator, workspace: &Path) -> Result<Loaded, Failure> {
    let tools = tidegate::tool::tool_specs(operator, workspace)?;
    let catalogue = Catalogue::load(operator, workspace, tools)?;
    let unmet = catalogue.unmet_for_other_tools();
    if !unmet.is_empty() {
        return Err(Diagnostics(unmet).into());
    }
    let refused = catalogue.refused().iter().map(|(name, _)| (*name).to_owned()).collect();
    let set = Arc::clone(catalogue.set());
    set.prepare();
    Ok(Loaded { set, folders: catalogue.folders().to_vec(), findings: catalogue.warnings(), refused })
}

/// Returns the number of rules that watch something.
pub(crate) fn watching(set: &RuleSet) -> usize {
    set.rules().filter(|info| set.active(&info.rule.name).is_some()).count()
}
