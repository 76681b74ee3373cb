//! Runs the files of `tests/corpus/errors` (its README describes the format) through the reader of tables of error classes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use flow::{ErrorClass, FailureKind, ModelError, RetryTable, SourceFile};
use tidegate_config::errors::{FILE, of_layers, of_sources, project_file};
use tidegate_config::events::LayerFile;
use tidegate_config::{Layer, LayerKind, Operator};

use crate::support::Corpus;

const CORPUS: Corpus<RetryTable> = Corpus { name: "errors", read: |sources| of_sources(sources) };

#[test]
fn valid_files_load() {
    CORPUS.assert_valid(3);
}

#[test]
fn invalid_files_are_refused_in_these_words() {
    CORPUS.assert_invalid(15);
}

fn layer(text: &str) -> Arc<SourceFile> {
    SourceFile::new("errors.toml", format!("schema_version = \"1.0.0\"\n{text}"))
}

fn ids(table: &RetryTable) -> Vec<&str> {
    table.patterns().iter().map(|pattern| pattern.id.as_str()).collect()
}

fn overloaded() -> ModelError {
    ModelError { status: Some(503), ..ModelError::of_kind(FailureKind::Http, "the provider answered HTTP 503") }
}

/// Entries that match the same error: the first of a file wins, and the project's win over the user's.
#[test]
fn the_first_entry_of_the_highest_file_wins() {
    let entry = |id: &str, class: &str| format!("[[class]]\nid = \"{id}\"\nclass = \"{class}\"\nstatus = 503\n");
    let user = layer(&[entry("u1", "quota"), entry("u2", "budget")].concat());
    let project = layer(&[entry("p1", "limit_hit"), entry("p2", "cancelled"), entry("u2", "permanent")].concat());
    let first = |sources: &[Arc<SourceFile>]| {
        let table = of_sources(sources).unwrap();
        let classified = table.classify(&overloaded());
        (classified.class, classified.pattern.unwrap().to_owned())
    };
    assert_eq!(first(&[]), (ErrorClass::Transient, "server-errors".into()));
    assert_eq!(first(std::slice::from_ref(&user)), (ErrorClass::Quota, "u1".into()));
    assert_eq!(first(&[user.clone(), project.clone()]), (ErrorClass::LimitHit, "p1".into()));
    let table = of_sources(&[user, project]).unwrap();
    assert_eq!(ids(&table)[..4], ["p1", "p2", "u1", "u2"]);
    assert_eq!(table.patterns()[3].class, ErrorClass::Permanent, "an entry of a lower layer is changed in its place");
    assert_eq!(ids(&table)[4..], ids(&of_sources(&[]).unwrap()));
}

#[test]
fn an_error_that_no_entry_matches_is_permanent() {
    let table = of_sources(&[]).unwrap();
    for kind in [FailureKind::Unsupported, FailureKind::Limit, FailureKind::Request, FailureKind::Recording] {
        let error = ModelError::of_kind(kind, "no");
        let classified = table.classify(&error);
        assert_eq!((classified.class, classified.pattern), (ErrorClass::Permanent, None), "{kind}");
    }
    assert!(table.policy(ErrorClass::Permanent).is_none());
}

#[test]
fn a_project_has_one_file_inside_of_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let (workspace, outside) = (folder.path().join("work"), folder.path().join("outside.toml"));
    let own = workspace.join(".tidegate");
    fs::create_dir_all(&own).unwrap();
    assert_eq!(project_file(&workspace).unwrap(), None);

    fs::write(own.join(FILE), "schema_version = \"1.0.0\"\nretry.transient.max_retries = 2\n").unwrap();
    assert_eq!(project_file(&workspace).unwrap(), Some(own.join(FILE)));
    let most = |table: RetryTable, class| table.policy(class).unwrap().max_retries;
    assert_eq!(most(Operator::default().retry_table(None, &workspace).unwrap().0, ErrorClass::Transient), 2);
    let user = folder.path().join("user");
    fs::create_dir(&user).unwrap();
    fs::write(user.join(FILE), "schema_version = \"1.0.0\"\nretry.transient = {max_retries = 8, base = \"2s\"}\n")
        .unwrap();
    let (layered, _) = Operator::default().retry_table(Some(&user), &workspace).unwrap();
    assert_eq!(layered.policy(ErrorClass::Transient).unwrap().base.as_secs(), 2);
    assert_eq!(most(layered, ErrorClass::Transient), 2, "the project's file is above the user's");
    let with_turn = |text: &str| {
        let operator = Operator::of_source(&SourceFile::new("tidegate.toml", text)).unwrap();
        operator.retry_table(None, &workspace).unwrap().0
    };
    assert_eq!(most(with_turn(""), ErrorClass::Transient), 2);
    assert_eq!(most(with_turn("[turn]\nmax_retries = 1"), ErrorClass::Transient), 1);
    assert_eq!(most(with_turn("[turn]\nmax_retries = 1"), ErrorClass::RateLimited), 1);

    fs::remove_file(own.join(FILE)).unwrap();
    fs::write(&outside, "schema_version = \"1.0.0\"\n").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&outside, own.join(FILE)).unwrap();
        assert!(project_file(&workspace).unwrap_err().to_string().contains("leads out of the workspace"));
    }
}

/// The page for operators shows files that load, and names every class, condition, kind and policy.
#[test]
fn the_page_is_complete_and_its_examples_are_valid() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../ERRORS.md")).unwrap();
    let examples: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let layer = Layer { kind: LayerKind::User, source: SourceFile::new("example.toml", example) };
        if let Err(found) = of_layers(&[LayerFile::of_settings(&layer)]) {
            panic!("an example is not valid\n{found}");
        }
    }
    let kinds = FailureKind::ALL.iter().map(|kind| kind.as_str());
    let classes = ErrorClass::ALL.iter().map(|class| class.as_str());
    let waits = flow::RetryWait::ALL.iter().map(|wait| wait.as_str());
    let headers = flow::RetryHeader::ALL.iter().map(|header| header.as_str());
    for word in kinds.chain(classes).chain(waits).chain(headers) {
        assert!(page.contains(&format!("`{word}`")), "the page does not mention `{word}`");
    }
    let schema: serde_json::Value = serde_json::from_str(&tidegate_config::error_schema()).unwrap();
    let tables =
        ["ClassFile", "PolicyFile"].map(|table| schema["definitions"][table]["properties"].as_object().unwrap());
    for key in tables.into_iter().flat_map(|table| table.keys()) {
        let named = [format!("`{key}`"), format!("\n{key} = ")];
        assert!(named.iter().any(|named| page.contains(named)), "the page does not mention the key `{key}`");
    }
}
