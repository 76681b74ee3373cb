//! Runs the files of `tests/corpus/events` (its README describes the format) through the reader of event catalogues.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use tidegate_config::Operator;
use tidegate_config::events::{Catalogue, FILE, FOREIGN_FOLDER, YAML_FILE, project_file};

use crate::support::Corpus;

const CORPUS: Corpus<Catalogue> = Corpus { name: "events", read: |sources| Catalogue::of_sources(sources) };

#[test]
fn valid_files_load() {
    CORPUS.assert_valid(4);
}

#[test]
fn invalid_files_are_refused_in_these_words() {
    CORPUS.assert_invalid(30);
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
    assert!(Catalogue::load(&Operator::default(), None, &workspace).is_ok());

    // The project's own file is on top of the one for another program.
    let foreign = workspace.join(FOREIGN_FOLDER);
    fs::create_dir_all(&foreign).unwrap();
    let throttle = |throttle: &str| format!("event_types: {{notice: {{emit_config: {{throttle: {throttle}}}}}}}\n");
    let droppable = "event_types: {extension_log: {emit_config: {throttle: 0s, async: false}, required: true}}\n";
    fs::write(foreign.join(YAML_FILE), droppable).unwrap();
    let (catalogue, left_out) = Catalogue::load(&Operator::default(), None, &workspace).unwrap();
    assert_eq!(catalogue.types["extension_log"].emit.is_async, Some(false));
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    let own_throttle = throttle("500ms").replace("notice", "tool_call_progress");
    fs::write(own.join(YAML_FILE), format!("schema_version: 1.0.0\n{own_throttle}")).unwrap();
    let (catalogue, _) = Catalogue::load(&Operator::default(), None, &workspace).unwrap();
    assert_eq!(catalogue.types["tool_call_progress"].emit.throttle.as_millis(), 500);
    // A critical event cannot be held back, by no project.
    fs::write(own.join(YAML_FILE), format!("schema_version: 1.0.0\n{}", throttle("2s"))).unwrap();
    let (catalogue, left_out) = Catalogue::load(&Operator::default(), None, &workspace).unwrap();
    assert!(catalogue.types["notice"].emit.throttle.is_zero());
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    fs::remove_dir_all(workspace.join(".ai")).unwrap();

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
