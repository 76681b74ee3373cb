//! Which entries of a folder are rule files, and which only look so.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::file::{has_front_matter, text_of};
use super::stamp::FileStamp;
use crate::{Code, Diagnostic};

/// The most rule files of one folder. More than anybody keeps: the folder is the wrong one.
const MAX_RULE_FILES: usize = 4_096;

/// Extensions of rule files.
const EXTENSIONS: [&str; 2] = ["md", "mdc"];

/// Extensions of data, which other hosts and scanners have rules in.
const DATA: [&str; 4] = ["toml", "yaml", "yml", "json"];

/// Extensions of files that may have been meant as rules.
const NEAR: [&str; 6] = ["markdown", "mdown", "mkd", "mdx", "mdtxt", "txt"];

/// The rule files of a folder and of the folders in it, sorted by their paths in it, and what was found on the way.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    pub(super) names: Vec<OsString>,
    pub(super) findings: Vec<Diagnostic>,
    /// The folders within, as they were before they were read.
    pub(super) folders: Vec<(PathBuf, FileStamp)>,
}

/// Folders that are read within a rule folder, and the levels of them.
pub(super) const MAX_FOLDERS: usize = 1_024;
pub(super) const MAX_DEPTH: usize = 8;

/// A folder that is being listed.
struct Walk<'a> {
    root: &'a Path,
    named: &'a Path,
    fence: Option<&'a Path>,
    /// Links can lead to a folder twice, or round in a circle.
    seen: HashSet<PathBuf>,
    listing: Listing,
}

impl Listing {
    /// Lists a folder, which messages call `named`. Hidden entries are left out: editors keep their locks so. No folder outside of
    /// `fence` is entered.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(super) fn of(folder: &Path, named: &Path, fence: Option<&Path>) -> std::io::Result<Self> {
        let seen = folder.canonicalize().into_iter().collect();
        let mut walk = Walk { root: folder, named, fence, seen, listing: Self::default() };
        walk.read(Path::new(""), 0)?;
        let mut listing = walk.listing;
        listing.names.sort_unstable();
        listing.cut(named);
        Ok(listing)
    }

    /// Whether nothing was added to the folders within, or taken away.
    pub(super) fn is_settled(&self) -> bool {
        self.folders.iter().all(|(path, before)| FileStamp::of_path(path).settled_since(before))
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
}

impl Walk<'_> {
    /// Lists the folder at the path `within` the rule folder.
    fn read(&mut self, within: &Path, depth: usize) -> std::io::Result<()> {
        let is_root = within.as_os_str().is_empty();
        let named = if is_root { self.named.to_owned() } else { self.named.join(within) };
        let folder = self.root.join(within);
        let mut names = Vec::new();
        for entry in folder.read_dir()? {
            names.push(entry?.file_name());
        }
        names.retain(|name| !name.as_encoded_bytes().starts_with(b"."));
        names.sort_unstable();
        let (steering, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| has_controls(name));
        let (rules, others): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| has_extension(name, &EXTENSIONS));
        self.listing.names.extend(rules.iter().map(|name| within.join(name).into_os_string()));
        self.listing.findings.extend(steering.iter().map(|name| {
            let message =
                format!("{name:?} in `{}` has control characters in its name and is not read", named.display());
            Diagnostic::error(Code::RuleFileName, message).help("rename it")
        }));
        self.near_misses(&folder, &named, &others);
        for name in others.iter().filter(|name| folder.join(name).is_dir()) {
            self.enter(&within.join(name), depth + 1);
        }
        Ok(())
    }

    fn enter(&mut self, within: &Path, depth: usize) {
        let (folder, named) = (self.root.join(within), self.named.join(within));
        let stamp = FileStamp::of_path(&folder);
        let refused = |code, why: String, help: &str| {
            Diagnostic::error(code, format!("the rule folder `{}` {why}", named.display())).help(help)
        };
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if self.fence.is_some_and(|fence| !real.starts_with(fence)) {
            let help = "copy the folder, or add it to `folders` under `[rules]` in tidegate.toml";
            let why = "is a link that leaves the workspace and is not read".to_owned();
            self.listing.findings.push(refused(Code::RuleFileOutside, why, help));
            return;
        }
        if !self.seen.insert(real) {
            return;
        }
        if depth > MAX_DEPTH || self.listing.folders.len() >= MAX_FOLDERS {
            let why = format!("is not read: it is deeper than {MAX_DEPTH} folders, or one of more than {MAX_FOLDERS}");
            self.listing.findings.push(refused(Code::RuleFolderTooLarge, why, "is this the right folder?"));
            return;
        }
        self.listing.folders.push((folder, stamp));
        if let Err(error) = self.read(within, depth) {
            let why = format!("cannot be read: {error}");
            self.listing.findings.push(refused(Code::RuleFolderUnreadable, why, "make it readable"));
        }
    }

    /// Files that look like rules but are not read. Reported once for each folder.
    fn near_misses(&mut self, folder: &Path, named: &Path, others: &[OsString]) {
        let begins = |name: &&OsString| has_extension(name, &NEAR) && begins_as_rule(&folder.join(name));
        let is_data = |name: &&OsString| has_extension(name, &DATA) && has_keys(&folder.join(name));
        let files: Vec<&OsString> = others.iter().filter(begins).collect();
        let them = if files.len() == 1 { "it" } else { "them" };
        self.near_miss(named, &files, &format!("rename {them}: the name of a rule file ends in `.md` or `.mdc`"));
        let write = "a rule file is Markdown, `NAME.md`: the keys between two lines `+++` (TOML) or `---` (YAML), and below them what the \
                     model gets; a rule set of a secret scanner is read by `tidegate rules import`";
        self.near_miss(named, &others.iter().filter(is_data).collect::<Vec<_>>(), write);
    }

    fn near_miss(&mut self, named: &Path, files: &[&OsString], help: &str) {
        if files.is_empty() {
            return;
        }
        let look =
            if files.len() == 1 { "looks like a rule but is not read" } else { "look like rules but are not read" };
        let message = format!("{} in `{}` {look}", list(files), named.display());
        self.listing.findings.push(Diagnostic::warning(Code::RuleFileIgnored, message).help(help));
    }
}

/// Whether a file of data has the keys of a rule, of several, or of the rules of a scanner.
fn has_keys(path: &Path) -> bool {
    let is_key = |line: &str| {
        let word = line.split([':', '=']).next().unwrap_or_default();
        let word = word.trim_matches([' ', '\t', '"', '\'', '{', '-']);
        line.contains([':', '=']) && matches!(word, "condition" | "regex")
    };
    path.is_file() && text_of(path, path).is_ok_and(|text| text.lines().any(is_key))
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
pub(super) fn has_controls(name: &OsStr) -> bool {
    name.to_string_lossy().chars().any(char::is_control)
}

fn has_extension(name: &OsStr, known: &[&str]) -> bool {
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    extension.is_some_and(|extension| known.iter().any(|one| one.eq_ignore_ascii_case(extension)))
}
