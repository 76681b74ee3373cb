//! Which entries of a folder are rule files, and which only look so.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::file::{has_front_matter, text_of};
use crate::{Code, Diagnostic};

/// The most rule files of one folder. More than anybody keeps: the folder is the wrong one.
const MAX_RULE_FILES: usize = 4_096;

/// Files of a folder within a rule folder that are opened to see whether they are rules.
const MAX_LOOKED_INTO: usize = 64;

/// Extensions of rule files.
const EXTENSIONS: [&str; 2] = ["md", "mdc"];

/// Extensions of files that may have been meant as rules.
const NEAR: [&str; 6] = ["markdown", "mdown", "mkd", "mdx", "mdtxt", "txt"];

/// The rule files of a folder, sorted by name, and what was found on the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    pub(super) names: Vec<OsString>,
    pub(super) findings: Vec<Diagnostic>,
}

impl Listing {
    /// Lists a folder, which messages call `named`. Hidden entries are left out: editors keep their locks so.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn of(folder: &Path, named: &Path) -> std::io::Result<Self> {
        let mut names = Vec::new();
        for entry in folder.read_dir()? {
            names.push(entry?.file_name());
        }
        names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
        names.sort_unstable();
        let (steering, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| has_controls(name));
        let (names, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| has_extension(name, &EXTENSIONS));
        let mut listing = Self { names, findings: Vec::new() };
        listing.findings.extend(steering.iter().map(|name| {
            let message =
                format!("{name:?} in `{}` has control characters in its name and is not read", named.display());
            Diagnostic::error(Code::RuleFileName, message).help("rename it")
        }));
        listing.near_misses(folder, named, &others);
        listing.cut(named);
        Ok(listing)
    }

    fn cut(&mut self, named: &Path) {
        let Some(first) = self.names.get(MAX_RULE_FILES) else { return };
        let message = format!(
            "the rule folder `{}` has {} rule files, more than the limit of {MAX_RULE_FILES}",
            named.display(),
            self.names.len()
        );
        let help = format!("`{}` and the files after it are ignored; is this the right folder?", first.display());
        self.findings.push(Diagnostic::error(Code::RuleFolderTooLarge, message).help(help));
        self.names.truncate(MAX_RULE_FILES);
    }

    /// Files that look like rules but are not read. Reported once for each folder.
    fn near_misses(&mut self, folder: &Path, named: &Path, others: &[OsString]) {
        let begins = |name: &&OsString| has_extension(name, &NEAR) && begins_as_rule(&folder.join(name));
        let files: Vec<&OsString> = others.iter().filter(begins).collect();
        if !files.is_empty() {
            let (look, them) = if files.len() == 1 {
                ("looks like a rule but is not read", "it")
            } else {
                ("look like rules but are not read", "them")
            };
            let message = format!("{} in `{}` {look}", list(&files), named.display());
            let help = format!("rename {them}: the name of a rule file ends in `.md` or `.mdc`");
            self.findings.push(Diagnostic::warning(Code::RuleFileIgnored, message).help(help));
        }
        let folders: Vec<&OsString> = others.iter().filter(|name| holds_rules(&folder.join(name))).collect();
        if !folders.is_empty() {
            let message = format!("rule files in {} within `{}` are not read", list(&folders), named.display());
            let help = "rule files stand directly in a rule folder: move them up, or name their folder in `folders` \
                        under `[rules]` in tidegate.toml";
            self.findings.push(Diagnostic::warning(Code::RuleFileIgnored, message).help(help));
        }
    }
}

/// Whether a folder within a rule folder has rule files of its own: documents of another kind, whose names end alike, have no front matter.
fn holds_rules(folder: &Path) -> bool {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    let names = names.filter(|name| !name.as_encoded_bytes().starts_with(b".") && has_extension(name, &EXTENSIONS));
    names.take(MAX_LOOKED_INTO).any(|name| begins_as_rule(&folder.join(name)))
}

fn begins_as_rule(path: &Path) -> bool {
    path.is_file() && text_of(path, path).is_ok_and(|text| has_front_matter(&text))
}

/// Up to five names, and how many more there are.
fn list(names: &[&OsString]) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|name| format!("`{}`", name.display())).collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Whether a name would steer the terminal it is shown on.
fn has_controls(name: &OsStr) -> bool {
    name.to_string_lossy().chars().any(char::is_control)
}

fn has_extension(name: &OsStr, known: &[&str]) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| known.iter().any(|one| one.eq_ignore_ascii_case(extension)))
}
