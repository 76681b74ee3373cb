//! Every source file opens with a sentence that says what it is for; every folder of the corpus has a README.

use std::collections::BTreeSet;

use crate::tree::{File, files};
use crate::{bites, hold};

/// What a file's opening comment begins with, by the end of its name.
const OPENINGS: [(&str, &[&str]); 6] = [
    (".rs", &["//! ", "// "]),
    (".py", &["\"\"\"", "# "]),
    (".js", &["// "]),
    (".mjs", &["// "]),
    (".sh", &["# "]),
    (".ci/run", &["# "]),
];

fn openings(files: &[File]) -> (usize, Vec<String>) {
    let mut read = 0;
    let mut findings = Vec::new();
    for file in files {
        let Some((_, marks)) = OPENINGS.iter().find(|(end, _)| file.path.ends_with(end)) else { continue };
        read += 1;
        if !opens_with_sentence(&file.text, marks) {
            findings.push(format!("{} does not open with a sentence that says what it is for", file.path));
        }
    }
    (read, findings)
}

/// The first line (after `#!program` and `#![attribute]` lines) is a comment of at least three words.
fn opens_with_sentence(text: &str, marks: &[&str]) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with("#!"));
    let sentence = first.and_then(|line| marks.iter().find_map(|mark| line.strip_prefix(mark)));
    sentence.is_some_and(|sentence| sentence.split_whitespace().count() >= 3)
}

fn corpus(files: &[File]) -> (usize, Vec<String>) {
    let inside = |file: &File| Some(file.path.strip_prefix("tests/corpus/")?.split_once('/')?.0.to_owned());
    let folders: BTreeSet<String> = files.iter().filter_map(inside).collect();
    let has_readme = |folder: &String| files.iter().any(|file| file.path == format!("tests/corpus/{folder}/README.md"));
    let missing = folders.iter().filter(|folder| !has_readme(folder));
    let findings =
        missing.map(|folder| format!("tests/corpus/{folder} has no README.md that tells its format")).collect();
    (folders.len(), findings)
}

#[test]
fn every_file_says_what_it_is_for() {
    let (read, findings) = openings(&files());
    hold("openings", read, 60, &findings);
}

#[test]
fn every_corpus_tells_its_format() {
    let (read, findings) = corpus(&files());
    hold("corpus", read, 1, &findings);
}

#[test]
fn an_opening_is_missed() {
    for text in ["use std::fs;\n", "//! x\n", "", "//!\n//! Too late to be read.\n"] {
        bites(&openings(&[File::sample("a/b.rs", text)]).1, "a/b.rs does not open");
    }
    bites(&openings(&[File::sample("x.py", "import os\n")]).1, "x.py");
    let good = [
        File::sample("a.rs", "#![no_std]\n//! Counts the boats.\n"),
        File::sample(".ci/run", "#!/bin/sh\n# Runs it all.\n"),
    ];
    assert_eq!(openings(&good), (2, Vec::new()));
}

#[test]
fn a_readme_is_missed() {
    let files =
        ["tests/corpus/a/x.json", "tests/corpus/b/README.md", "tests/corpus/b/c/x.json", "tests/corpus/README.md"];
    let (read, findings) = corpus(&files.map(|path| File::sample(path, "")));
    assert_eq!(read, 2);
    bites(&findings, "tests/corpus/a has no README.md");
}
