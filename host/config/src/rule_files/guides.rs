//! `AGENTS.md` of a workspace and of the folders in it, which many hosts read as instructions: entries of the rulebook, each
//! for the files below it. The system prompt gets their paths; their text is read on demand.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rules::{Rule, RuleOrigin, RuleSpec};

use super::file::RuleFile;
use super::folder::RuleFolder;
use super::listing::{Listing, MAX_DEPTH, MAX_FOLDERS, has_controls};
use super::stamp::FileStamp;
use crate::{Code, Diagnostic};

/// The name of these files.
pub(super) const GUIDE: &str = "AGENTS.md";

/// Folders that hold what a project did not write itself, in addition to hidden ones.
const OF_OTHERS: [&str; 8] =
    ["node_modules", "target", "vendor", "dist", "build", "site-packages", "venv", "__pycache__"];

/// The guides of a workspace, those of the upper folders first to be found. Links to folders are not followed.
///
/// # Errors
/// The workspace cannot be read.
pub(super) fn list(workspace: &Path) -> std::io::Result<Listing> {
    let mut listing = Listing::default();
    let mut queue = VecDeque::from(subfolders(workspace, Path::new(""), &mut listing)?);
    let mut left_out = None;
    while let Some(within) = queue.pop_front() {
        if within.components().count() > MAX_DEPTH || listing.folders.len() >= MAX_FOLDERS {
            left_out.get_or_insert(within);
            continue;
        }
        let folder = workspace.join(&within);
        listing.folders.push((folder.clone(), FileStamp::of_path(&folder)));
        // One that cannot be read has no guide that could be.
        queue.extend(subfolders(workspace, &within, &mut listing).unwrap_or_default());
    }
    listing.names.sort_unstable();
    // A project without guides does not miss any.
    if let Some(first) = left_out.filter(|_| !listing.names.is_empty()) {
        let message = format!(
            "`{GUIDE}` is not looked for in `{}` and further folders: {MAX_FOLDERS} folders, {MAX_DEPTH} levels deep, are read",
            first.display()
        );
        let help = format!("write what is needed into the `{GUIDE}` of a folder above it");
        listing.findings.push(Diagnostic::warning(Code::RuleFolderTooLarge, message).help(help));
    }
    Ok(listing)
}

/// The folders in a folder that guides are looked for in; its own guide goes to the listing.
fn subfolders(workspace: &Path, within: &Path, listing: &mut Listing) -> std::io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in workspace.join(within).read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if name.as_os_str() == GUIDE {
            listing.names.push(within.join(name).into_os_string());
        } else if !is_hidden && !has_controls(&name) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folders.extend((!OF_OTHERS.iter().any(|other| name == *other)).then(|| within.join(name)));
        }
    }
    folders.sort_unstable();
    Ok(folders)
}

/// The guide at the path `within` the workspace. None where it is empty.
pub(super) fn read(folder: &RuleFolder, within: &Path, text: &str) -> RuleFile {
    if text.trim().is_empty() {
        return RuleFile { rule: None, findings: Vec::new() };
    }
    let shown = within.to_string_lossy().replace('\\', "/");
    let below = shown.strip_suffix(GUIDE).unwrap_or_default();
    // What would be read as a pattern is described in words alone.
    let is_plain = !below.is_empty() && !below.contains(['*', '?', '{', '}', '"', '!']);
    let about = if below.is_empty() { "this project".to_owned() } else { format!("`{below}`") };
    let spec = RuleSpec {
        description: Some(format!("Instructions for work in {about}")),
        globs: is_plain.then(|| format!("\"/{below}\"")).into_iter().collect(),
        body: Some(text.to_owned()),
        ..RuleSpec::default()
    };
    let origin = RuleOrigin { layer: folder.layer.clone(), path: shown.clone() };
    let (rule, findings): (Option<Rule>, _) = Rule::from_spec(&shown, &origin, &spec, None);
    RuleFile { rule, findings }
}
