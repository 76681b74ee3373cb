//! One rule folder: what was read of it, and what changed since the last look.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rules::{Bucket, Requirement, Rule, RuleLayer};

use super::demands::{self, Demands};
use super::file::{RuleFile, has_front_matter, is_about_rules, text_of};
use super::guides::{self, GUIDE};
use super::listing::Listing;
use super::parallel;
use super::stamp::FileStamp;
use crate::{Code, Diagnostic, Location, SourceFile, presence};

/// A folder with rule files.
#[derive(Clone, Debug)]
pub struct RuleFolder {
    /// The layer of its rules.
    pub layer: RuleLayer,
    /// Where it is; diagnostics name its files so. A relative path begins in the working folder of the time it is given.
    pub path: PathBuf,
    /// Its name in messages and reminders: short, without the folders of this machine above it.
    pub shown: String,
    /// Its files must be inside this folder once all links are resolved; `None`: they may be anywhere.
    pub fence: Option<PathBuf>,
    /// Where the operator names it: then it has to be there.
    pub asked: Option<Location>,
    /// It comes with the workspace, and the operator has not named it: its rules replace none of their names.
    pub untrusted: bool,
    /// The host must not run without it, nor without any of its rules.
    pub required: bool,
    /// The policy of the machine requires it.
    pub by_policy: bool,
    /// It is a workspace, of which the files `AGENTS.md` are read, and no others.
    pub guides: bool,
}

impl RuleFolder {
    /// Why the host does not read this file, where it is in the folder and a link that leaves its fence.
    pub fn refuses(&self, file: &Path) -> Option<Diagnostic> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // However the folder is spelled, and also where it is itself a link.
        let is_here = parent.canonicalize().ok()?.starts_with(self.path.canonicalize().ok()?);
        let refused = is_here.then(|| fenced(file, file, self.fence.as_deref()))?;
        refused.err().map(|diagnostic| *diagnostic)
    }
}

/// What became of a rule file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file, as it is shown.
    pub file: String,
    /// What happened to it.
    pub kind: ChangeKind,
    /// It has no rule that can be used.
    pub refused: bool,
    /// It was refused, and its previous rule remains active.
    pub kept: bool,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// It reads otherwise.
    Edited,
    /// It is gone.
    Removed,
}

/// The state of a rule folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderState {
    /// It is not there.
    Absent,
    /// It was read.
    Read,
    /// It cannot be read; the findings say why.
    Unreadable,
    /// It is another folder, which was read before it.
    Twice,
}

/// A folder as it was last looked at.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) folder: RuleFolder,
    /// Where it is, wherever the process goes.
    pub(super) at: PathBuf,
    pub(super) state: FolderState,
    stamp: FileStamp,
    listing: Listing,
    /// What keeps the folder itself from being read.
    failed: Option<Diagnostic>,
    pub(super) files: BTreeMap<OsString, Entry>,
    demands: Arc<Demands>,
    /// By file: required rules whose files were deleted while the host runs.
    pub(super) lost: BTreeMap<OsString, Diagnostic>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    stamp: FileStamp,
    text: Result<String, Box<Diagnostic>>,
    pub(super) read: RuleFile,
    /// The last rule that could be used, while the file as it is now cannot.
    pub(super) kept: Option<Rule>,
    /// The host must not run without the rule as written.
    pub(super) demanded: bool,
}

impl Entry {
    /// Nobody meant it as a rule.
    pub(super) fn is_passed_over(&self) -> bool {
        self.read.rule.is_none() && self.read.findings.is_empty()
    }

    fn usable(&self) -> Option<&Rule> {
        self.kept.as_ref().or(self.read.rule.as_ref())
    }
}

impl Known {
    /// Whether it is this folder, with the same demands.
    pub(super) fn is(&self, folder: &RuleFolder, demands: &Demands) -> bool {
        let same = |own: &RuleFolder| {
            let place = |of: &RuleFolder| (of.layer.clone(), of.path.clone(), of.fence.clone());
            let flags = |of: &RuleFolder| (of.untrusted, of.required, of.by_policy, of.guides);
            place(own) == place(folder) && flags(own) == flags(folder)
        };
        same(&self.folder) && *self.demands == *demands
    }

    pub(super) fn new(folder: RuleFolder, demands: Arc<Demands>) -> Self {
        Self {
            // Only an empty path has no absolute form, and there is nothing at it.
            at: std::path::absolute(&folder.path).unwrap_or_default(),
            folder,
            state: FolderState::Absent,
            stamp: FileStamp::never(),
            listing: Listing::default(),
            failed: None,
            files: BTreeMap::new(),
            demands,
            lost: BTreeMap::new(),
        }
    }

    /// Looks at the folder and reads what changed.
    pub(super) fn look(&mut self, changes: &mut Vec<FileChange>) {
        let about = self.at.metadata();
        let stamp = FileStamp::of(about.as_ref().ok());
        let settled = self.state == FolderState::Read && stamp.settled_since(&self.stamp) && self.listing.is_settled();
        self.stamp = stamp;
        match about {
            Ok(about) if !about.is_dir() => {
                self.fail("it is not a folder", "give the folder that contains the rule files");
            }
            Ok(_) if settled => {}
            Ok(_) => match self.list() {
                Ok(listing) => {
                    (self.state, self.listing, self.failed) = (FolderState::Read, listing, None);
                }
                Err(error) => self.fail(error, "make it readable"),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => match presence::is_there(&self.at) {
                Ok(false) => self.leave(FolderState::Absent),
                Ok(true) => self.fail("it is a link that leads nowhere", "correct the link, or remove it"),
                Err(error) => self.fail(error, "correct the link, or remove it"),
            },
            Err(error) => self.fail(error, "make it readable"),
        }
        // A folder that cannot be read keeps its rules: that it broke is not what the operator decided.
        if self.state != FolderState::Unreadable {
            self.forget_gone(changes);
            self.read_changed(changes);
        }
    }

    fn list(&self) -> std::io::Result<Listing> {
        let RuleFolder { path, fence, guides, .. } = &self.folder;
        if *guides { guides::list(&self.at) } else { Listing::of(&self.at, path, fence.as_deref()) }
    }

    /// The folder is not to be read, and has no rules.
    pub(super) fn leave(&mut self, state: FolderState) {
        let path = self.folder.path.display();
        self.failed = match state {
            // A folder that is required has to be named where it is read, too.
            FolderState::Twice if self.folder.required => None,
            FolderState::Twice => {
                let message = format!("the rule folder `{path}` is listed twice");
                let warning = Diagnostic::warning(Code::RuleFolderDuplicate, message).help("remove it from `folders`");
                Some(asked(&self.folder, warning))
            }
            _ if self.folder.required || self.folder.asked.is_some() => Some(absent(&self.folder)),
            _ => None,
        };
        (self.state, self.listing) = (state, Listing::default());
    }

    fn fail(&mut self, cause: impl Display, help: &str) {
        let message = format!("cannot read the rule folder `{}`: {cause}", self.folder.path.display());
        self.state = FolderState::Unreadable;
        self.failed = Some(asked(&self.folder, Diagnostic::error(Code::RuleFolderUnreadable, message).help(help)));
    }

    pub(super) fn forget_gone(&mut self, changes: &mut Vec<FileChange>) {
        let (files, names, folder) = (&mut self.files, &self.listing.names, &self.folder.shown);
        let (lost, demands) = (&mut self.lost, &self.demands);
        files.retain(|name, entry| {
            // Both are sorted by name.
            let stays = names.binary_search(name).is_ok();
            if !stays && !entry.is_passed_over() {
                changes.push(FileChange::of(folder, name, ChangeKind::Removed));
            }
            if !stays && let Some(rule) = entry.usable().filter(|rule| demands.require(rule)) {
                lost.insert(name.clone(), demands::deleted(&shown(folder, name), rule));
            }
            stays
        });
    }

    fn read_changed(&mut self, changes: &mut Vec<FileChange>) {
        let mut changed = Vec::new();
        for name in &self.listing.names {
            let path = self.at.join(name);
            let stamp = FileStamp::of(path.metadata().ok().as_ref());
            let before = self.files.get_mut(name);
            if before.as_ref().is_some_and(|before| stamp.settled_since(&before.stamp)) {
                continue;
            }
            let named = self.folder.path.join(name);
            let text = fenced(&path, &named, self.folder.fence.as_deref()).and_then(|()| text_of(&path, &named));
            match before {
                Some(before) if before.text == text => before.stamp = stamp,
                before => {
                    let good = before.and_then(|before| before.usable().cloned());
                    changed.push((name.clone(), stamp, text, good));
                }
            }
        }
        let (folder, demands) = (&self.folder, &self.demands);
        let read = parallel::map(changed, |(name, stamp, text, good)| {
            let entry = entry(folder, demands, &name, stamp, text, good);
            (name, entry)
        });
        read.into_iter().for_each(|(name, entry)| self.take(name, entry, changes));
    }

    fn take(&mut self, name: OsString, entry: Entry, changes: &mut Vec<FileChange>) {
        let before = self.files.get(&name);
        let known = before.is_some_and(|before| !before.is_passed_over());
        if known || !entry.is_passed_over() {
            let kind = if before.is_some() { ChangeKind::Edited } else { ChangeKind::Added };
            let kept = entry.kept.is_some();
            let refused = kept || (entry.read.rule.is_none() && !entry.is_passed_over());
            changes.push(FileChange { refused, kept, ..FileChange::of(&self.folder.shown, &name, kind) });
        }
        if entry.usable().is_some() {
            self.lost.remove(&name);
        }
        self.files.insert(name, entry);
    }

    /// The rules in force, in order of their files.
    pub(super) fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.files.values().filter_map(Entry::usable)
    }

    /// All that is wrong with the folder and its files.
    pub(super) fn findings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.about_folder().chain(self.files.values().flat_map(|entry| &entry.read.findings))
    }

    /// What is wrong with the folder itself.
    pub(super) fn about_folder(&self) -> impl Iterator<Item = &Diagnostic> {
        self.failed.iter().chain(&self.listing.findings)
    }

    /// Files that are meant as rules, how many of them were refused, and files that were passed over.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        let passed_over = self.files.values().filter(|entry| entry.is_passed_over()).count();
        let without = self.files.values().filter(|entry| entry.read.rule.is_none()).count();
        (self.files.len() - passed_over, without - passed_over, passed_over)
    }
}

impl FileChange {
    fn of(folder: &str, name: &OsStr, kind: ChangeKind) -> Self {
        Self { file: shown(folder, name), kind, refused: false, kept: false }
    }
}

/// A guide is named by its path in the workspace.
fn shown(folder: &str, name: &OsStr) -> String {
    if folder == GUIDE { name.display().to_string() } else { format!("{folder}/{}", name.display()) }
}

/// What is reported where a folder is not there that has to be.
pub(super) fn absent(folder: &RuleFolder) -> Diagnostic {
    let message = format!("the rule folder `{}` does not exist", folder.path.display());
    let help = "the path is relative to this file; `~` is not expanded";
    let found = match folder.required {
        true => Diagnostic::error(Code::RuleFolderMissing, format!("{message}, and it is required")),
        false => Diagnostic::warning(Code::RuleFolderMissing, message),
    };
    asked(folder, found.help(help))
}

fn asked(folder: &RuleFolder, diagnostic: Diagnostic) -> Diagnostic {
    match &folder.asked {
        Some(place) => diagnostic.at(place.clone(), "named here"),
        None => diagnostic,
    }
}

fn entry(
    folder: &RuleFolder,
    demands: &Demands,
    name: &OsStr,
    stamp: FileStamp,
    text: Result<String, Box<Diagnostic>>,
    good: Option<Rule>,
) -> Entry {
    if folder.guides {
        let mut read = match &text {
            Ok(text) => guides::read(folder, Path::new(name), text),
            Err(diagnostic) => RuleFile::refused(Diagnostic::clone(diagnostic)),
        };
        read.rule.iter_mut().for_each(|rule| rule.untrusted = folder.untrusted);
        return Entry { stamp, text, read, kept: None, demanded: false };
    }
    let mut read = match &text {
        Ok(text) if is_about_rules(name, text) => {
            let read = RuleFile { rule: None, findings: Vec::new() };
            return Entry { stamp, read, kept: None, demanded: false, text: Ok(text.clone()) };
        }
        Ok(text) if good.as_ref().is_some_and(|good| good.bucket == Bucket::Stream) && !has_front_matter(text) => {
            let message = "the file has lost its front matter, and with it the condition of its rule";
            let source = SourceFile::new(folder.path.join(name), text.as_str());
            let lost = Diagnostic::error(Code::RuleFrontMatter, message).at(Location::new(&source, 0..0), "");
            RuleFile::refused(
                lost.help("write it again, or delete the file, and give a text without a condition another name"),
            )
        }
        Ok(text) => {
            let source = SourceFile::new(folder.path.join(name), text.as_str());
            RuleFile::of_source(&source, &folder.layer, &shown(&folder.shown, name), Path::new(name))
        }
        Err(diagnostic) => RuleFile::refused(Diagnostic::clone(diagnostic)),
    };
    if let Some(rule) = read.rule.as_mut().filter(|_| folder.required) {
        rule.required = if folder.by_policy { Requirement::Policy } else { Requirement::Operator };
    }
    read.rule.iter_mut().for_each(|rule| rule.untrusted = folder.untrusted);
    let demanded = demands::is_demanded(folder, demands, &read, text.as_deref().map_err(|one| &**one));
    let kept = good.filter(|good| match &read.rule {
        None => true,
        // Of a rule that is required no part is lost by an edit.
        Some(rule) => {
            let named = demands.rules.iter().any(|rule| demands::gives(name, rule));
            rule.incomplete && !good.incomplete && (demanded || named || demands::is_required(good))
        }
    });
    if let Some(first) = read.findings.first_mut().filter(|_| kept.is_some()) {
        let stays = "the previous version of the rule remains active until the file is fixed or deleted";
        let help = first.help.take().map(|help| format!("{help}; {stays}"));
        first.help = Some(help.unwrap_or_else(|| stays.to_owned()));
    }
    Entry { stamp, text, read, kept, demanded }
}

/// A project comes from somebody else: a link in it must not send files of this machine to the model.
fn fenced(path: &Path, named: &Path, fence: Option<&Path>) -> Result<(), Box<Diagnostic>> {
    let Some(fence) = fence else { return Ok(()) };
    // What cannot be resolved cannot be read either, and says so itself.
    let Ok(real) = path.canonicalize() else { return Ok(()) };
    if real.starts_with(fence) {
        return Ok(());
    }
    let message = format!("the rule file `{}` is a link that leaves the workspace and is not read", named.display());
    let help = "copy the file, or add its folder to `folders` under `[rules]` in tidegate.toml";
    Err(Diagnostic::error(Code::RuleFileOutside, message).help(help).into())
}
