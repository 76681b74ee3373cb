//! `[rules]` of the operator's file as used, as far as it is about rule files: where they are and which have to be in force.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::document::{Document, steps};
use crate::typed::RulesFile;
use crate::{Code, Diagnostic, Location};

/// Where rule files are. The project's and the user's folder have fixed places; the program that opens the host knows
/// them.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleFolders {
    /// Whether the rule files of the workspace are read.
    pub project: bool,
    /// Whether the user's own rule files are read.
    pub user: bool,
    /// Further folders, in order; their rules count as the project's, after its own.
    pub more: Vec<NamedFolder>,
    /// Where each name of `required` is written; the names themselves are in the settings of stream rules.
    pub required: Vec<(String, Location)>,
    /// Where each name of `disabled_rules` is written.
    pub disabled: Vec<(String, Location)>,
    /// What a rule that cannot be used as written does.
    pub on_problem: OnProblem,
}

/// What a rule that cannot be used as written does, whether it is required or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnProblem {
    /// It is reported.
    #[default]
    Warn,
    /// The host does not run.
    Refuse,
}

/// A folder that the operator names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFolder {
    /// The folder, joined to the place of the file that names it.
    pub path: PathBuf,
    /// The folder as the operator wrote it, for messages.
    pub typed: String,
    /// Where it is named; `None` where the embedder did.
    pub place: Option<Location>,
    /// The host does not run without it and all its rules.
    pub required: bool,
    /// The policy of the machine requires it.
    pub by_policy: bool,
}

impl RuleFolders {
    /// Whether the other ones say the same, wherever in a file they are.
    pub fn is_same(&self, other: &Self) -> bool {
        let folder = |one: &NamedFolder| (one.path.clone(), one.required, one.by_policy);
        let more = |of: &Self| of.more.iter().map(folder).collect::<Vec<_>>();
        let names = |of: &[(String, Location)]| of.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        (self.project, self.user, self.on_problem) == (other.project, other.user, other.on_problem)
            && more(self) == more(other)
            && names(&self.required) == names(&other.required)
            && names(&self.disabled) == names(&other.disabled)
    }
}

impl Default for RuleFolders {
    fn default() -> Self {
        let (required, disabled, on_problem) = (Vec::new(), Vec::new(), OnProblem::Warn);
        Self { project: true, user: true, more: Vec::new(), required, disabled, on_problem }
    }
}

impl RuleFolders {
    /// As the operator's files have them. Each is named relative to the file that names it.
    pub(crate) fn read(document: &mut Document<'_>, typed: &RulesFile) -> Self {
        let (settings, typed) = (&typed.settings, &typed.folders);
        let mut more: Vec<NamedFolder> = Vec::new();
        for (key, names) in [("folders", &typed.folders), ("required_folders", &typed.required_folders)] {
            let required = key == "required_folders";
            for (index, name) in names.iter().enumerate() {
                let at = steps!["rules", key, index];
                let (place, path) = (document.place(&at), document.folder(&at).join(name));
                let is_of_one_file = |known: &NamedFolder| known.place.as_ref().is_some_and(|at| at.file == place.file);
                let is_same = |one: &&mut NamedFolder| match is_of_one_file(one) {
                    true => one.typed == *name,
                    false => one.path == path,
                };
                match more.iter_mut().find(is_same) {
                    // Naming a folder under both keys is how one of the middle is required.
                    Some(known) if required && !known.required => known.required = true,
                    Some(known) if is_of_one_file(known) => {
                        document.error(Code::ConfigDuplicate, &at, format!("`{name}` is named twice"), "remove one");
                    }
                    // Two layers can agree.
                    Some(_) => {}
                    None => {
                        let (typed, place) = (name.clone(), Some(place));
                        more.push(NamedFolder { path, typed, place, required, by_policy: false });
                    }
                }
            }
        }
        let written = |key: &str, names: &[String]| -> Vec<(String, Location)> {
            let names = names.iter().enumerate();
            names.map(|(index, name)| (name.trim().to_owned(), document.place(&steps!["rules", key, index]))).collect()
        };
        let required = written("required", &settings.required);
        let disabled = written("disabled_rules", &settings.disabled_rules);
        for (name, place) in &required {
            if name.is_empty() {
                let error = Diagnostic::error(Code::ConfigEmptyValue, "`required` contains an empty name");
                document.found.push(error.at(place.clone(), "").help("remove it"));
            }
        }
        let (project, user, on_problem) = (typed.project_rules, typed.user_rules, typed.on_problem);
        Self { project, user, more, required, disabled, on_problem }
    }
}
