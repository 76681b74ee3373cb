//! Rule folders: which files are rules, what they say, and what changed since they were last looked at.
//!
//! Rules are the files `*.md` and `*.mdc` in a folder and in the folders within, in order of their paths, which are their
//! names. Nothing is skipped without a word, but for two kinds: hidden files, and a `README.md` without front
//! matter, which is about the rules. Links are followed, but not out of a workspace.
//!
//! A file that was good and is broken by an edit keeps its last good rule in force: protection does not end because
//! a user is editing the file. Deleting the file, or `enabled = false` in it, ends it.
//!
//! Of a required rule an edit must not take a part away either, and its file must not be deleted while the host runs:
//! [`RuleFiles::unmet`].

mod demands;
mod file;
mod folder;
mod guides;
mod listing;
mod parallel;
mod stamp;

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rules::{Rule, RuleLayer};

use crate::Diagnostic;
pub use demands::Demands;
pub use file::{MAX_RULE_BYTES, RuleFile};
use file::{is_about_rules, text_of};
use folder::Known;
pub use folder::{ChangeKind, FileChange, FolderState, RuleFolder};
use listing::Listing;
pub use stamp::FileStamp;

/// The rule files in a folder and in the folders within, each as its path there, in order, and what is wrong with the folder: files that look like rules and are not
/// read. A `README.md` without front matter is in neither.
///
/// # Errors
/// The folder cannot be read.
pub fn list_rule_files(folder: &Path) -> io::Result<(Vec<PathBuf>, Vec<Diagnostic>)> {
    let Listing { names, findings, .. } = Listing::of(folder, folder, None)?;
    let is_about = |name: &OsString, file: &Path| text_of(file, file).is_ok_and(|text| is_about_rules(name, &text));
    let files = names.iter().filter(|name| !is_about(name, &folder.join(name)));
    Ok((files.map(PathBuf::from).collect(), findings))
}

/// Rule folders as they were last looked at, highest priority first.
#[derive(Clone, Debug)]
pub struct RuleFiles {
    folders: Vec<Known>,
}

/// What a look came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// What became of rule files since the last look.
    pub changes: Vec<FileChange>,
    /// Something else is wrong with a folder itself than before.
    pub folders_differ: bool,
}

impl Look {
    /// There is nothing to report about it.
    pub fn is_quiet(&self) -> bool {
        self.changes.is_empty() && !self.folders_differ
    }

    /// Whether other rules may be in force now. A file that was refused changes nothing.
    pub fn changes_rules(&self) -> bool {
        self.changes.iter().any(|change| !change.refused)
    }
}

/// What is known of one folder.
#[derive(Clone, Debug)]
pub struct FolderReport {
    /// How it is named.
    pub shown: String,
    /// The layer of its rules.
    pub layer: RuleLayer,
    /// How it stands.
    pub state: FolderState,
    /// Files that are meant as rules.
    pub files: usize,
    /// How many of them cannot be used.
    pub refused: usize,
    /// Files that are about rules, and none themselves.
    pub passed_over: usize,
}

impl RuleFiles {
    /// Reads nothing yet: [`RuleFiles::look`] does.
    pub fn new(folders: Vec<RuleFolder>, demands: Demands) -> Self {
        let demands = Arc::new(demands);
        Self { folders: folders.into_iter().map(|folder| Known::new(folder, Arc::clone(&demands))).collect() }
    }

    /// The same folders, or others, of which those that were known stay known: a file that an edit broke keeps its last good rule.
    /// A folder that is new, or of which something else is demanded now, is read at the next [`RuleFiles::look`].
    #[must_use]
    pub fn successor(&self, folders: Vec<RuleFolder>, demands: Demands) -> Self {
        let demands = Arc::new(demands);
        let known = |folder: RuleFolder| match self.folders.iter().find(|known| known.is(&folder, &demands)) {
            Some(known) => known.clone(),
            None => Known::new(folder, Arc::clone(&demands)),
        };
        Self { folders: folders.into_iter().map(known).collect() }
    }

    /// Why the host must not run: required files and folders that cannot be used, each with its place. A file whose last
    /// good rule is in force is not among them.
    pub fn unmet(&self) -> impl Iterator<Item = Diagnostic> {
        self.folders.iter().flat_map(Known::unmet)
    }

    /// The errors in files that would give the rule of this name and do not.
    pub fn about(&self, rule: &str) -> impl Iterator<Item = &Diagnostic> {
        self.folders.iter().flat_map(move |known| known.errors_of(rule))
    }

    /// Looks at all folders and reads what was touched. Gives what changed since the last look; at the first look that
    /// is everything. Where nothing was touched this costs one question to the system for each file, and two for each
    /// folder.
    pub fn look(&mut self) -> Look {
        let mut changes = Vec::new();
        let before: Vec<Diagnostic> = self.about_folders().cloned().collect();
        let mut seen: HashSet<PathBuf> = HashSet::new();
        for known in &mut self.folders {
            let real = known.at.canonicalize().unwrap_or_else(|_| known.at.clone());
            // A folder that leads out of its fence is not read, and must not count as the one that it leads to.
            let is_outside = known.folder.fence.as_ref().is_some_and(|fence| !real.starts_with(fence));
            if known.folder.guides || is_outside || seen.insert(real) {
                known.look(&mut changes);
            } else {
                known.leave(FolderState::Twice);
                known.forget_gone(&mut changes);
            }
        }
        let folders_differ = !self.about_folders().eq(&before);
        Look { changes, folders_differ }
    }

    fn about_folders(&self) -> impl Iterator<Item = &Diagnostic> {
        self.folders.iter().flat_map(Known::about_folder)
    }

    /// The rules in force: folders in their order, files by name.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.folders.iter().flat_map(Known::rules)
    }

    /// All that is wrong with folders and files.
    pub fn findings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.folders.iter().flat_map(Known::findings)
    }

    /// The folders, in order.
    pub fn folders(&self) -> impl Iterator<Item = FolderReport> {
        // A workspace without guides is nothing to report.
        let listed = self.folders.iter().filter(|known| !known.folder.guides || !known.files.is_empty());
        listed.map(|known| {
            let (files, refused, passed_over) = known.counts();
            let (shown, layer) = (known.folder.shown.clone(), known.folder.layer.clone());
            FolderReport { shown, layer, state: known.state.clone(), files, refused, passed_over }
        })
    }
}
