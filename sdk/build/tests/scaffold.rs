//! A new plugin passes its own test, becomes a component, and is refused where it cannot be created.
#![allow(clippy::unwrap_used, reason = "a test that cannot set up its files has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tidegate_build::{Options, ScaffoldError, build, create_plugin};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A path in a folder of this test, always the same, so that runs do not pile up what they build.
fn fresh(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scaffold").join(name);
    drop(fs::remove_dir_all(&folder));
    folder
}

#[test]
fn a_new_plugin_passes_its_test_and_becomes_a_component() {
    let folder = fresh("shout-louder");
    let files = create_plugin(&folder, Some(&root().join("sdk/rust"))).unwrap();
    assert!(files.iter().all(|file| file.is_file()), "{files:?}");
    // The locked versions of a guest of ours: no look at the registry.
    let lock = fs::read_to_string(root().join("tests/guests/pass-through/Cargo.lock")).unwrap();
    fs::write(folder.join("Cargo.lock"), lock.replace("\"pass-through\"", "\"shout-louder\"")).unwrap();

    let shared = root().join("target/guests");
    let mut test = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    test.args(["test", "--quiet", "--target-dir"]).arg(&shared).current_dir(&folder);
    let output = test.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));

    let built = build(&folder, &Options { target_dir: Some(shared), way: None }, &mut |_| ()).unwrap();
    assert!(built.bytes.starts_with(b"\0asm"));
    assert!(matches!(create_plugin(&folder, None), Err(ScaffoldError::Exists { .. })));
}

#[test]
fn the_sdk_is_found_above_the_folder_or_asked_for() {
    // Below this repository, which has the SDK.
    assert!(create_plugin(&fresh("inside"), None).is_ok());
    let elsewhere = std::env::temp_dir().join(format!("tidegate-scaffold-{}", std::process::id()));
    assert!(matches!(create_plugin(&elsewhere.join("a"), None), Err(ScaffoldError::NoSdk { .. })));
    assert!(create_plugin(&fresh("by-root"), Some(&root())).is_ok(), "the repository contains the SDK");
    let wrong = root().join("rules");
    assert!(matches!(create_plugin(&elsewhere.join("a"), Some(&wrong)), Err(ScaffoldError::NotSdk { .. })));
    assert!(!elsewhere.exists(), "nothing is written for a plugin that is refused");
}

#[test]
fn a_name_that_is_no_id_is_refused() {
    let refused = create_plugin(&fresh("two words"), None).unwrap_err();
    assert!(refused.to_string().contains("only letters, digits and hyphens"), "{refused}");
}
