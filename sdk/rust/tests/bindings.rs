//! The bindings in `src/bindings` are what `wit-bindgen` generates from the contract.
//!
//! `TIDEGATE_BLESS=1 cargo test -p tidegate-sdk --test it bindings::` rewrites them. They are checked in because the generator would take
//! most of the time of a plugin's first build.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use wit_bindgen_core::wit_parser::{Resolve, World, WorldId};
use wit_bindgen_core::{Files, WorldGenerator as _};
use wit_bindgen_rust::{Opts, WithOption};

const COMMAND: &str = "TIDEGATE_BLESS=1 cargo test -p tidegate-sdk --test it bindings::";

/// The lints that are not for generated code. Its authors check it, and its unsafe code is what lifts and lowers values.
const ALLOWED: &str = "\
#![allow(unsafe_code, reason = \"generated bindings read and write the guest's memory by the canonical ABI\")]
#![allow(clippy::unwrap_used, missing_debug_implementations, unreachable_pub, unused_qualifications, reason = \"generated code\")]
";

/// The version of the contract, which is the name of its folder.
const VERSION: &str = "0.1.0";

fn folder(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The contract, and its worlds in the order in which they are written.
fn contract() -> (Resolve, Vec<WorldId>) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(folder("../wit").join(VERSION)).unwrap();
    let worlds = resolve.packages[package].worlds.values().copied().collect();
    (resolve, worlds)
}

/// The text of one module.
fn module(mut resolve: Resolve, world: WorldId, options: Opts) -> String {
    let mut files = Files::default();
    let name = resolve.worlds[world].name.clone();
    Opts { format: true, ..options }.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, code) = files.iter().next().unwrap();
    let code = std::str::from_utf8(code).unwrap();
    let opening =
        format!("//! Bindings of the world `{name}`, generated from `sdk/wit/{VERSION}` by\n//! `{COMMAND}`.\n");
    format!("{opening}\n{ALLOWED}\n{code}")
}

/// Types that several worlds use are those of the base world.
fn with_types_of_base() -> Vec<(String, WithOption)> {
    let types = "crate::__guest::base::tidegate::extension::types".to_owned();
    vec![(format!("tidegate:extension/types@{VERSION}"), WithOption::Path(types))]
}

/// Options of a world whose exports an extension can leave out: it invokes the macro of each that it has.
fn exported_by_macro(module: &str, export: &str) -> Opts {
    Opts {
        pub_export_macro: true,
        export_macro_name: Some(format!("export_{export}")),
        default_bindings_module: Some(format!("tidegate_sdk::__guest::{module}")),
        ..Opts::default()
    }
}

/// Registration and the log, which every extension has, and all types.
fn base() -> String {
    let (resolve, worlds) = contract();
    let world = worlds.into_iter().find(|world| resolve.worlds[*world].name == "extension").unwrap();
    let options = Opts { generate_unused_types: true, ..exported_by_macro("base", "registration") };
    module(resolve, world, options)
}

/// The imports of all worlds that have no export; the linker drops those that are not called.
fn powers() -> String {
    let (mut resolve, worlds) = contract();
    let worlds = worlds.into_iter().map(|world| &resolve.worlds[world]).filter(|world| world.exports.is_empty());
    let includes: String =
        worlds.map(|world| format!("include tidegate:extension/{}@{VERSION};\n", world.name)).collect();
    let text = format!("package tidegate:sdk;\nworld powers {{\n{includes}}}\n");
    let package = resolve.push_str("powers.wit", &text).unwrap();
    let world = resolve.packages[package].worlds["powers"];
    module(resolve, world, Opts { generate_all: true, with: with_types_of_base(), ..Opts::default() })
}

/// The name of the module for a world with one export that not every extension has.
fn callback(world: &World) -> Option<String> {
    let name = world.name.strip_prefix("with-")?;
    (!world.exports.is_empty()).then(|| name.replace('-', "_"))
}

/// All modules, by the names of their files.
fn generated() -> BTreeMap<String, String> {
    let mut modules = BTreeMap::from([("base.rs".to_owned(), base()), ("powers.rs".to_owned(), powers())]);
    let (resolve, worlds) = contract();
    for world in worlds {
        let Some(name) = callback(&resolve.worlds[world]) else { continue };
        let options = Opts { with: with_types_of_base(), ..exported_by_macro(&name, &name) };
        modules.insert(format!("{name}.rs"), module(resolve.clone(), world, options));
    }
    modules
}

fn checked_in() -> BTreeMap<String, String> {
    let files = fs::read_dir(folder("src/bindings")).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.map(|path| (name(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// Names of files that are missing, not wanted, or of another text.
fn different<'a>(is: &'a BTreeMap<String, String>, wanted: &'a BTreeMap<String, String>) -> Vec<&'a str> {
    let all = wanted.keys().chain(is.keys().filter(|name| !wanted.contains_key(*name)));
    all.filter(|name| is.get(*name) != wanted.get(*name)).map(String::as_str).collect()
}

#[test]
fn the_bindings_are_those_of_the_contract() {
    let wanted = generated();
    assert!(wanted.len() >= 9, "only {:?}", wanted.keys());
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        for name in different(&checked_in(), &wanted) {
            let path = folder("src/bindings").join(name);
            match wanted.get(name) {
                Some(text) => fs::write(path, text).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }
    }
    let is = checked_in();
    let different = different(&is, &wanted);
    assert!(
        different.is_empty(),
        "sdk/rust/src/bindings is not what wit-bindgen generates from sdk/wit/{VERSION}: {different:?}; `{COMMAND}` \
         rewrites it"
    );
}

/// The types that a module defines; those that it takes from another are aliases.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start).filter_map(|line| {
        let rest = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum "))?;
        rest.split(|c: char| !c.is_alphanumeric()).next()
    })
}

#[test]
fn each_type_of_the_contract_is_generated_once() {
    let modules = generated();
    let mut places = BTreeMap::new();
    for (file, text) in &modules {
        for name in defined(text) {
            let before = places.insert(name, file);
            assert!(before.is_none(), "{name} is in {before:?} and in {file}: map its interface in `with`");
        }
    }
    assert!(places.len() >= 60, "only {places:?}");
}

#[test]
fn a_difference_is_found() {
    let files = |files: &[(&str, &str)]| files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    let is = files(&[("a.rs", "1"), ("b.rs", "1"), ("c.rs", "1")]);
    let wanted = files(&[("a.rs", "1"), ("b.rs", "2"), ("d.rs", "1")]);
    assert_eq!(different(&is, &wanted), ["b.rs", "d.rs", "c.rs"]);
    assert_eq!(different(&wanted, &wanted), Vec::<&str>::new());
}
