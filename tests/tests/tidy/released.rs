//! A released version of the contract never changes: its folder has the digest that was recorded at its release.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::bites;
use crate::tree::{File, files};

/// Released versions of `sdk/wit` and the digests of their folders. A version is added here when `CHANGELOG.md` says that it
/// is released (a heading `## VERSION`); the failing test prints its digest.
const RELEASED: &[(&str, &str)] = &[];

/// The files of each version of the contract.
fn versions(files: &[File]) -> BTreeMap<&str, Vec<&File>> {
    let mut versions: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
    for file in files {
        let inside = file.path.strip_prefix("sdk/wit/").and_then(|inside| inside.split_once('/'));
        if let Some((version, _)) = inside {
            versions.entry(version).or_default().push(file);
        }
    }
    versions
}

/// Over names, lengths and contents, in order of names.
fn digest(files: &[&File]) -> String {
    let mut files = files.to_vec();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut hash = Sha256::new();
    for file in files {
        hash.update(format!("{}\0{}\0{}", file.path, file.text.len(), file.text));
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The versions that the changelog calls released: headings `## 1.2.3 …` without the word `unreleased`.
fn announced(changelog: &str) -> Vec<&str> {
    let headings = changelog.lines().filter_map(|line| line.strip_prefix("## "));
    let released = headings.filter(|heading| !heading.to_lowercase().contains("unreleased"));
    released.filter_map(|heading| heading.split_whitespace().next()).collect()
}

fn frozen(files: &[File], changelog: &str, released: &[(&str, &str)]) -> Vec<String> {
    let versions = versions(files);
    let mut findings = Vec::new();
    for (version, recorded) in released {
        match versions.get(version).map(|files| digest(files)) {
            None => findings.push(format!("sdk/wit/{version} was released and is gone")),
            Some(now) if now != *recorded => {
                findings.push(format!("sdk/wit/{version} was released and changed: {now}"));
            }
            Some(_) => {}
        }
    }
    for version in announced(changelog) {
        if let Some(files) = versions.get(version)
            && !released.iter().any(|(known, _)| *known == version)
        {
            findings.push(format!("sdk/wit/{version} is released: record it with digest {}", digest(files)));
        }
    }
    findings
}

#[test]
fn a_released_contract_is_frozen() {
    let files = files();
    assert!(!versions(&files).is_empty(), "there is no version of the contract");
    for changelog in ["CHANGELOG.md", "sdk/wit/CHANGELOG.md"] {
        let text = files.iter().find(|file| file.path == changelog);
        let text = text.unwrap_or_else(|| panic!("{changelog} is missing: it says what is released"));
        assert_eq!(frozen(&files, &text.text, RELEASED), Vec::<String>::new());
    }
}

#[test]
fn a_changed_contract_is_found() {
    let files = [File::sample("sdk/wit/9.0.0/a.wit", "package a:b;"), File::sample("sdk/wit/9.0.0/b.wit", "")];
    let recorded = digest(&[&files[0], &files[1]]);
    let released = [("9.0.0", recorded.as_str())];
    assert!(frozen(&files, "## 9.0.0 of today\n", &released).is_empty());
    assert!(frozen(&files, "## 9.0.0 (unreleased)\n", &[]).is_empty());
    bites(&frozen(&files, "## 9.0.0\n", &[]), &format!("record it with digest {recorded}"));
    let changed = [File::sample("sdk/wit/9.0.0/a.wit", "package a:c;"), File::sample("sdk/wit/9.0.0/b.wit", "")];
    bites(&frozen(&changed, "", &released), "was released and changed");
    bites(&frozen(&files[..1], "", &released), "was released and changed");
    bites(&frozen(&[], "", &released), "was released and is gone");
}
