//! Extensions in other languages, built from the contract with the tools of those languages: they import what they use.
//!
//! These toolchains keep every import of the world, used or not, and bring WASI unless it is stubbed out. A guest that imports
//! more than it uses could not be loaded without powers that it does not need.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tidegate_servers::{ensure_componentize_js, ensure_componentize_py};
use wit_component::DecodedWasm;
use wit_parser::{Resolve, WorldItem, WorldKey};

/// A folder with the world of the guests, and the contract below `deps`.
fn wit() -> TempDir {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let contract = folder.path().join("deps/tidegate");
    fs::create_dir_all(&contract).unwrap();
    fs::copy(here.join("guests/world.wit"), folder.path().join("world.wit")).unwrap();
    for file in fs::read_dir(here.join("../../sdk/wit/0.1.0")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), contract.join(file.file_name())).unwrap();
    }
    folder
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&text));
}

/// The names of what a component imports and exports.
fn surface(component: &Path) -> (BTreeSet<String>, BTreeSet<String>) {
    let DecodedWasm::Component(resolve, world) = wit_component::decode(&fs::read(component).unwrap()).unwrap() else {
        panic!("{} is not a component", component.display())
    };
    let names = |items: &mut dyn Iterator<Item = (&WorldKey, &WorldItem)>, resolve: &Resolve| {
        items.map(|(key, _)| resolve.name_world_key(key)).collect()
    };
    let world = &resolve.worlds[world];
    (names(&mut world.imports.iter(), &resolve), names(&mut world.exports.iter(), &resolve))
}

fn check(component: &Path) {
    let of_contract = |names: &[&str]| names.iter().map(|name| format!("tidegate:extension/{name}@0.1.0")).collect();
    let (imports, exports) = surface(component);
    assert_eq!(imports, of_contract(&["clock", "log", "types"]), "{}", component.display());
    // Each toolchain also exports something of its own, which it used at build time and the host never calls.
    let exports: BTreeSet<String> = exports.into_iter().filter(|name| name.starts_with("tidegate:")).collect();
    assert_eq!(exports, of_contract(&["on-plain-text", "on-tag", "registration"]), "{}", component.display());
}

#[test]
fn a_guest_in_javascript_imports_what_it_uses() {
    let (wit, out) = (wit(), tempfile::tempdir().unwrap());
    let (component, guests) = (out.path().join("guest.wasm"), Path::new(env!("CARGO_MANIFEST_DIR")).join("guests"));
    let mut build = Command::new(ensure_componentize_js().unwrap());
    build.args(["--stub-wasi", "--sync", "--world", "guest", "--wit"]).arg(wit.path());
    run(build.arg("--js").arg(guests.join("guest.js")).arg("--output").arg(&component));
    check(&component);
}

#[test]
fn a_guest_in_python_imports_what_it_uses() {
    let (wit, out) = (wit(), tempfile::tempdir().unwrap());
    let component = out.path().join("guest.wasm");
    // Python writes a folder of compiled modules next to the source.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/app.py");
    fs::copy(source, out.path().join("app.py")).unwrap();
    let mut build = Command::new(ensure_componentize_py().unwrap());
    build.args(["--quiet", "--world", "guest", "--wit-path"]).arg(wit.path());
    build.args(["componentize", "--stub-wasi", "app", "--python-path"]).arg(out.path());
    run(build.arg("--output").arg(&component));
    check(&component);
}
