//! The cases of a guest that is compiled from its source, as its author's would be.
#![allow(clippy::unwrap_used, reason = "a test may")]

#[allow(clippy::duplicate_mod, reason = "the same cases run with another component")]
#[path = "cases/conformance.rs"]
mod cases;

use std::path::Path;
use std::sync::OnceLock;

/// The guest of `tests/guests/conformance`, built once.
fn component() -> Vec<u8> {
    static COMPONENT: OnceLock<Vec<u8>> = OnceLock::new();
    let build = || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/conformance");
        tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap().bytes
    };
    COMPONENT.get_or_init(build).clone()
}
