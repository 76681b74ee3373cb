//! What a build of the library without its default features leaves out: `cargo tree` does not have it. That it compiles is checked by the gate.

use std::process::Command;

use crate::tree::root;

/// What a feature alone brings.
const BROUGHT: [(&str, &str); 3] = [("wasm", "wasmtime"), ("redis", "redis"), ("otel", "opentelemetry-proto")];

/// The crates that the library is built of with these features alone.
fn crates(features: &str) -> Vec<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "tree",
        "--offline",
        "--locked",
        "--package",
        "tidegate",
        "--no-default-features",
        "--edges",
        "normal",
    ]);
    let output = cargo.args(["--prefix", "none", "--features", features]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_library_without_features_is_built_without_what_they_bring() {
    let without = crates("");
    assert!(without.iter().any(|one| one == "tidegate-turn"), "{without:?}");
    for (feature, brought) in BROUGHT {
        assert!(!without.iter().any(|one| one == brought), "`{brought}` is built without the feature `{feature}`");
        assert!(crates(feature).iter().any(|one| one == brought), "the feature `{feature}` does not bring `{brought}`");
    }
}
