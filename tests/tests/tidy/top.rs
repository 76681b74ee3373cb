//! The top level of the repository is fixed: a new folder or a stray file there is a decision, not an accident.

use std::collections::BTreeSet;

use crate::tree::{File, files};
use crate::{bites, hold};

/// The allowed entries of the top folder, in addition to names that begin with a dot.
const TOP: [&str; 15] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "host",
    "plugins",
    "rules",
    "rustfmt.toml",
    "sdk",
    "tests",
];

fn top(files: &[File]) -> (usize, Vec<String>) {
    let names: BTreeSet<&str> = files.iter().filter_map(|file| file.path.split('/').next()).collect();
    let strange = names.iter().filter(|name| !name.starts_with('.') && !TOP.contains(name));
    (names.len(), strange.map(|name| format!("{name} has no place in the top folder")).collect())
}

#[test]
fn the_top_folder_holds_what_it_should() {
    let (read, findings) = top(&files());
    hold("top folder", read, 10, &findings);
}

#[test]
fn a_stray_file_is_found() {
    let files = ["host/a.rs", "notes.txt", ".ci/run", "Cargo.toml"].map(|path| File::sample(path, ""));
    bites(&top(&files).1, "notes.txt has no place");
}
