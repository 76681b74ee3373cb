//! Which rule files have to be in force, and what is reported where one is not.

use std::ffi::OsStr;
use std::path::Path;

use flow::Severity;
use rules::{Requirement, Rule};

use super::folder::{Entry, FolderState, Known, RuleFolder};
use super::{RuleFile, file, folder};
use crate::{Code, Diagnostic};

/// What the operator demands of rule files, apart from what their folders and the files themselves say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Names of rules that have to be in force, whichever file gives them.
    pub rules: Vec<String>,
    /// Every file that is meant as a rule has to be one.
    pub all: bool,
}

impl Demands {
    /// Whether a rule must not be lost: it or its folder says so, or the operator names it. Another file may give a rule of
    /// the same name, but not the same rule.
    pub(super) fn require(&self, rule: &Rule) -> bool {
        is_required(rule) || self.rules.contains(&rule.name)
    }
}

/// Whether the operator or a file itself demands that it gives its rule as written. What cannot be read can be a rule that is required;
/// what leads out of the workspace is none, whatever it says.
pub(super) fn is_demanded(
    folder: &RuleFolder,
    demands: &Demands,
    read: &RuleFile,
    text: Result<&str, &Diagnostic>,
) -> bool {
    let asks = match (&read.rule, text) {
        (Some(rule), _) => is_required(rule),
        (None, Ok(text)) => rules::asks_to_be_required(text),
        (None, Err(why)) => why.code != Code::RuleFileOutside,
    };
    folder.required || demands.all || asks
}

pub(super) fn is_required(rule: &Rule) -> bool {
    rule.required != Requirement::None
}

/// Whether a rule file gives the rule of this name.
pub(super) fn gives(file: &OsStr, rule: &str) -> bool {
    file::rule_name(Path::new(file)).is_some_and(|name| name == rule)
}

/// What is reported of a required rule whose file was deleted while the host runs. A model that can run commands can delete
/// files: only a new start, which is a person's decision, forgets the rule.
pub(super) fn deleted(shown: &str, rule: &Rule) -> Diagnostic {
    let message = format!("the file of a required rule was deleted: `{shown}`");
    rule.diagnostic(Severity::Error, Code::RuleFileDeleted, message)
        .help("restore it, or restart the host to run without the rule")
}

impl Entry {
    /// Something in the file is not used, and no earlier version of it is in force instead.
    fn is_broken(&self) -> bool {
        let whole = self.read.rule.as_ref().is_some_and(|rule| !rule.incomplete);
        !whole && self.kept.is_none() && !self.is_passed_over()
    }

    fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.read.findings.iter().filter(|one| one.is_error())
    }
}

impl Known {
    /// Why the host must not run, as far as this folder is concerned.
    pub(super) fn unmet(&self) -> impl Iterator<Item = Diagnostic> {
        // A folder that cannot be read can have rules that are required.
        let is_unread = self.state == FolderState::Unreadable && !self.folder.guides;
        let of_folder = if self.folder.required || is_unread { self.unmet_folder() } else { Vec::new() };
        let broken = self.files.values().filter(|entry| entry.demanded && entry.is_broken());
        of_folder.into_iter().chain(broken.flat_map(Entry::errors).cloned()).chain(self.lost.values().cloned())
    }

    /// Of a folder that was read before and cannot be read now, the rules are still in force.
    fn unmet_folder(&self) -> Vec<Diagnostic> {
        let about = self.about_folder().filter(|one| one.is_error()).cloned();
        match self.state {
            FolderState::Absent => vec![folder::absent(&self.folder)],
            FolderState::Unreadable if self.files.is_empty() => about.collect(),
            FolderState::Unreadable | FolderState::Twice => Vec::new(),
            FolderState::Read => about.collect(),
        }
    }

    /// The errors in files that would give the rule of this name and do not.
    pub(super) fn errors_of(&self, rule: &str) -> impl Iterator<Item = &Diagnostic> {
        let files = self.files.iter().filter(move |(name, entry)| gives(name, rule) && entry.is_broken());
        files.flat_map(|(_, entry)| entry.errors())
    }
}
