//! Runs the files of `tests/corpus/events` (its README describes the format) through the reader of event catalogues.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use flow::SourceFile;
use tidegate_config::Diagnostics;
use tidegate_config::events::{Catalogue, FILE, YAML_FILE, project_file};

fn corpus(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/events").join(folder)
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(corpus(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = entries.filter(|path| path.extension().is_none_or(|end| end != "stderr")).collect();
    found.sort();
    found
}

fn load(file: &Path) -> Result<Catalogue, Diagnostics> {
    let shown = Path::new("events").join(file.file_name().unwrap());
    Catalogue::of_sources(&[SourceFile::new(shown, fs::read_to_string(file).unwrap())])
}

#[test]
fn valid_files_load() {
    let files = files("valid");
    assert!(files.len() >= 4, "only {} files read", files.len());
    for file in files {
        if let Err(found) = load(&file) {
            panic!("{} was refused:\n{found}", file.display());
        }
    }
}

#[test]
fn invalid_files_are_refused_in_these_words() {
    let files = files("invalid");
    assert!(files.len() >= 30, "only {} files read", files.len());
    let mut wrong = String::new();
    for file in files {
        let Err(found) = load(&file) else {
            wrong.push_str(&format!("== {} was accepted\n", file.display()));
            continue;
        };
        for one in &found.0 {
            let place = one.location().unwrap_or_else(|| panic!("{one} has no place"));
            assert!(place.file.path.starts_with("events"), "{one} blames {}", place.file.path.display());
            assert!(
                one.help.is_some() || one.code.as_str().starts_with("config-"),
                "{one} says nothing about what to do"
            );
        }
        let expected = file.with_added_extension("stderr");
        let found = format!("{}\n", found.render(false));
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&expected, &found).unwrap();
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        if wanted != found {
            wrong.push_str(&format!("== {}\n-- expected\n{wanted}\n-- found\n{found}\n", expected.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_project_has_one_file_inside_of_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let (workspace, outside) = (folder.path().join("work"), folder.path().join("outside.toml"));
    let own = workspace.join(".tidegate");
    fs::create_dir_all(&own).unwrap();
    assert_eq!(project_file(&workspace).unwrap(), None);

    fs::write(own.join(YAML_FILE), "schema_version: 1.0.0\n").unwrap();
    assert_eq!(project_file(&workspace).unwrap(), Some(own.join(YAML_FILE)));
    assert!(Catalogue::load(&workspace).is_ok());

    fs::write(own.join(FILE), "schema_version = \"1.0.0\"\n").unwrap();
    assert!(project_file(&workspace).unwrap_err().to_string().contains("contains both"));

    fs::remove_file(own.join(YAML_FILE)).unwrap();
    assert_eq!(project_file(&workspace).unwrap(), Some(own.join(FILE)));
    #[cfg(unix)]
    {
        fs::write(&outside, "schema_version = \"1.0.0\"\n").unwrap();
        fs::remove_file(own.join(FILE)).unwrap();
        std::os::unix::fs::symlink(&outside, own.join(FILE)).unwrap();
        assert!(project_file(&workspace).unwrap_err().to_string().contains("leads out of the workspace"));
    }
}
