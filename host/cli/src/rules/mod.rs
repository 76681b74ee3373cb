//! `tidegate rules`: what rules are, whether they can be trusted, and what they would have done. Text and JSON; what is
//! said is decided by `trial`.

mod check;
mod explain;
mod import;
mod json;
mod kinds;
mod list;
mod replay;
mod rule_files;
mod test;

use std::sync::Arc;

use tidegate::rule::BuiltRules;
use trial::{Catalogue, NotFound, Subject};

use crate::args::{Common, RulesCommand, RulesList};
use crate::exit::{Exit, Failure};
use crate::say::count;
use crate::{open, say};

/// Runs one of the commands. Their work is the disk's and the processor's, so it goes on a thread of its own.
pub(crate) async fn run(common: &Common, command: RulesCommand) -> Result<Exit, Failure> {
    let workspace = common.workspace.clone();
    if let RulesCommand::Import(args) = command {
        // Nothing of the host is needed, so its settings need not be in order.
        return off_thread(move || import::run(&workspace, &args)).await;
    }
    let operator = open::under_policy(open::operator(common)?)?;
    let work = move || {
        let tools = tidegate::tool::tool_specs(&operator, &workspace)?;
        let catalogue = Catalogue::load(&operator, &workspace, tools)?;
        match command {
            RulesCommand::List(args) => {
                list::run(&catalogue, &args, "--verbose shows more, `tidegate rules explain RULE` everything")
            }
            RulesCommand::Check(args) => check::run(&catalogue, &args),
            RulesCommand::Test(args) => test::run(&catalogue, &workspace, &args),
            RulesCommand::Replay(args) => replay::run(&catalogue, &args),
            RulesCommand::Explain(args) => explain::run(&catalogue, &args),
            RulesCommand::Import(args) => import::run(&workspace, &args),
        }
    };
    off_thread(work).await
}

async fn off_thread(work: impl FnOnce() -> Result<Exit, Failure> + Send + 'static) -> Result<Exit, Failure> {
    let cut_off = |error| Failure::setup(format_args!("the command was aborted: {error}"));
    tokio::task::spawn_blocking(work).await.map_err(cut_off)?
}

/// Lists rules that are in force, as `tidegate rules list` does those of the files.
pub(crate) fn in_force(rules: Arc<BuiltRules>) -> Result<Exit, Failure> {
    let list = RulesList { json: false, verbose: false };
    list::run(&Catalogue::of(rules), &list, "`tidegate rules explain RULE` shows all of a rule")
}

/// The rule of this name or file; what is wrong with it is told.
fn find(catalogue: &Catalogue, wanted: &str) -> Result<Subject, Failure> {
    match catalogue.find(wanted) {
        Ok(subject) => {
            warn(&subject.entry.findings);
            Ok(subject)
        }
        Err(error) => {
            if let NotFound::File { findings, .. } | NotFound::Refused { findings, .. } = &error {
                warn(findings);
            }
            Err(Failure::setup(error))
        }
    }
}

/// Findings on standard error, a blank line after each.
fn warn(findings: &[tidegate::diagnostic::Diagnostic]) {
    for finding in findings {
        say::block(say::diagnostic(finding));
        say::note("");
    }
}
