//! Runs the files of `tests/corpus/config` (its README describes the format) through the readers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use flow::SourceFile;
use tidegate_config::{Diagnostics, Manifest, Operator, Policy};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/config")
}

/// The files (or folders) of a folder of the corpus, sorted; each as its path relative to the corpus.
fn entries(folder: &str, extension: Option<&str>) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(corpus().join(folder)).unwrap().map(|entry| Path::new(folder).join(entry.unwrap().file_name()));
    let mut found: Vec<_> = entries.filter(|path| path.extension().and_then(|e| e.to_str()) == extension).collect();
    found.sort();
    found
}

fn read(kind: &str, file: &Path) -> Result<(), Diagnostics> {
    let source = SourceFile::new(file, fs::read_to_string(corpus().join(file)).unwrap());
    match kind {
        "operator" => Operator::of_source(&source).map(drop),
        "policy" => Policy::of_source(&source).map(drop),
        _ => Manifest::of_source(&source).map(drop),
    }
}

/// Holds `text` against the expected file, or writes the file when blessing. Gives what differs.
fn golden(text: &str, expected: &Path) -> Option<String> {
    let file = corpus().join(expected);
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(file, format!("{text}\n")).unwrap();
        return None;
    }
    let wanted = fs::read_to_string(&file).unwrap_or_default();
    let same = wanted.trim_end() == text;
    (!same).then(|| format!("== {}\n-- expected\n{wanted}\n-- found\n{text}\n", expected.display()))
}

fn invalid(kind: &str, at_least: usize) {
    let files = entries(&format!("{kind}/invalid"), Some("toml"));
    assert!(files.len() >= at_least, "only {} files read", files.len());
    let mut wrong = String::new();
    for file in files {
        match read(kind, &file) {
            Ok(()) => wrong.push_str(&format!("== {} was accepted\n", file.display())),
            Err(found) => wrong.extend(golden(&found.render(false), &file.with_extension("stderr"))),
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn valid(kind: &str, at_least: usize) {
    let files = entries(&format!("{kind}/valid"), Some("toml"));
    assert!(files.len() >= at_least, "only {} files read", files.len());
    for file in files {
        if let Err(found) = read(kind, &file) {
            panic!("{} was refused:\n{}", file.display(), found.render(false));
        }
    }
}

#[test]
fn valid_operator_files_load() {
    valid("operator", 3);
}

#[test]
fn valid_policies_load() {
    valid("policy", 3);
}

#[test]
fn invalid_policies_are_refused_in_these_words() {
    invalid("policy", 20);
}

#[test]
fn valid_manifests_load() {
    valid("manifest", 3);
}

#[test]
fn invalid_operator_files_are_refused_in_these_words() {
    invalid("operator", 35);
}

#[test]
fn invalid_manifests_are_refused_in_these_words() {
    invalid("manifest", 40);
}

#[test]
fn rules_of_no_use_are_said_in_these_words() {
    let files = entries("manifest/findings", Some("toml"));
    assert!(files.len() >= 8, "only {} files read", files.len());
    let mut wrong = String::new();
    for file in files {
        let source = SourceFile::new(&file, fs::read_to_string(corpus().join(&file)).unwrap());
        let manifest = Manifest::of_source(&source).unwrap();
        assert!(!manifest.findings.is_empty(), "{} has no findings", file.display());
        wrong.extend(golden(&Diagnostics(manifest.findings).render(false), &file.with_extension("stderr")));
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn plugins_that_do_not_fit_together_are_refused_in_these_words() {
    let cases = entries("plugins", None);
    assert!(cases.len() >= 5, "only {} cases read", cases.len());
    let mut wrong = String::new();
    for case in cases {
        let operator = Operator::load(&corpus().join(&case).join("tidegate.toml")).unwrap();
        match operator.load_plugins() {
            Ok(_) => wrong.push_str(&format!("== {} was accepted\n", case.display())),
            Err(found) => {
                let shown = found.render(false).replace(&format!("{}/", corpus().display()), "");
                wrong.extend(golden(&shown, &case.join("expected.stderr")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
