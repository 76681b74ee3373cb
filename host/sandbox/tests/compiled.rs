//! The same cases with a component that was compiled before: every later host runs what was built for a released contract.
//!
//! `tests/corpus/components/VERSION` has the component for each version of the contract. Until the version is released, the component is
//! replaced with `TIDEGATE_BLESS=1 cargo test --package tidegate-sandbox --test it compiled::` when the contract or the guest changes.
#![allow(clippy::unwrap_used, reason = "a test may")]

#[allow(clippy::duplicate_mod, reason = "the same cases run with another component")]
#[path = "cases/conformance.rs"]
mod cases;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The version whose component is used.
const VERSION: &str = "0.1.0";

fn stored() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/components").join(VERSION).join("conformance.wasm")
}

/// Whether the changelog of the contract calls the version released.
fn is_released() -> bool {
    let changelog = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/wit/CHANGELOG.md");
    let text = std::fs::read_to_string(changelog).unwrap();
    let heading = text.lines().find(|line| line.starts_with(&format!("## {VERSION}"))).unwrap();
    !heading.contains("unreleased")
}

fn component() -> Vec<u8> {
    static COMPONENT: OnceLock<Vec<u8>> = OnceLock::new();
    let load = || {
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            assert!(!is_released(), "contract {VERSION} is released: its component never changes");
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/conformance");
            let built = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
            std::fs::create_dir_all(stored().parent().unwrap()).unwrap();
            std::fs::write(stored(), built.bytes).unwrap();
        }
        std::fs::read(stored()).unwrap()
    };
    COMPONENT.get_or_init(load).clone()
}
