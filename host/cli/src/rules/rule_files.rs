//! Rule files of an imported rule set in their folder.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ::import::RuleText;

use super::count;
use crate::exit::Failure;

pub(super) fn file_of(rule: &RuleText) -> String {
    format!("{}.md", rule.name)
}

/// The folder `.tidegate/rules/NAME` of the workspace. A project can come with a link in its place: files would be written elsewhere.
pub(super) fn own_folder(workspace: &Path, name: &str) -> Result<PathBuf, Failure> {
    let mut folder = workspace.to_owned();
    for part in [".tidegate", "rules", name] {
        folder.push(part);
        if fs::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink()) {
            return Err(Failure::setup(format_args!(
                "`{}` is a link, and the rule files would be written where it leads. Remove it, or name a folder with --out",
                folder.display()
            )));
        }
    }
    Ok(folder)
}

/// The rule files of the folder that are none of these rules.
pub(super) fn others(folder: &Path, rules: &[RuleText]) -> Result<Vec<String>, Failure> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(Failure::setup(format_args!("cannot read the folder `{}`: {error}", folder.display())));
        }
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut others: Vec<String> = names
        .filter(|name| [".md", ".mdc"].iter().any(|end| name.ends_with(end)))
        .filter(|name| !rules.iter().any(|rule| file_of(rule) == *name))
        .collect();
    others.sort();
    Ok(others)
}

/// The files of these rules that exist.
pub(super) fn in_the_way(folder: &Path, rules: &[RuleText]) -> Vec<String> {
    rules.iter().map(file_of).filter(|file| fs::symlink_metadata(folder.join(file)).is_ok()).collect()
}

/// Why nothing is written where files are in the way.
pub(super) fn refused(folder: &Path, in_the_way: &[String]) -> Option<Failure> {
    in_the_way.first().map(|first| {
        Failure::setup(format_args!(
            "{} in the way, the first: `{}`. Give --replace to overwrite, or --out for another folder",
            count(in_the_way.len() as u64, "rule file is", "rule files are"),
            folder.join(first).display(),
        ))
    })
}

/// Writes the file of each rule.
pub(super) fn write(folder: &Path, rules: &[RuleText], replace: bool) -> Result<(), Failure> {
    let failed = |path: PathBuf| {
        move |error: std::io::Error| Failure::setup(format_args!("cannot write `{}`: {error}", path.display()))
    };
    if rules.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(failed(folder.to_owned()))?;
    for rule in rules {
        let path = folder.join(file_of(rule));
        let done = if replace { put(folder, &path, &rule.text) } else { create(&path, &rule.text) };
        done.map_err(failed(path))?;
    }
    Ok(())
}

fn create(path: &Path, text: &str) -> std::io::Result<()> {
    File::create_new(path)?.write_all(text.as_bytes())
}

/// Puts a complete file in the place of what has the name: the old one remains where writing fails. A link is replaced and not followed.
fn put(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = tempfile::Builder::new().make_in(folder, |path| File::create_new(path))?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}
