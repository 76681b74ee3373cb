//! Builds real guests: the component, when it is rebuilt, and the errors.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its files has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidegate_build::{BuildError, Built, Options, TARGET, Way, build};
use wit_parser::decoding::{DecodedWasm, decode};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pass_through() -> PathBuf {
    root().join("tests/guests/pass-through")
}

fn quietly(dir: &Path, options: &Options) -> Result<Built, BuildError> {
    build(dir, options, &mut |_| ())
}

/// The names of what a component imports and exports, without package and version.
fn interfaces(component: &[u8]) -> (BTreeSet<String>, BTreeSet<String>) {
    let DecodedWasm::Component(resolve, world) = decode(component).unwrap() else { panic!("this is no component") };
    let short = |name: String| name.trim_start_matches("tidegate:extension/").trim_end_matches("@0.1.0").to_owned();
    let world = &resolve.worlds[world];
    let imports = world.imports.keys().map(|key| short(resolve.name_world_key(key))).collect();
    let exports = world.exports.keys().map(|key| short(resolve.name_world_key(key))).collect();
    (imports, exports)
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

/// A package in a folder of its own (always the same, so that runs do not pile up what they build) that depends on the
/// SDK, with this code. All have the same name.
fn package(folder: &str, code: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guests").join(folder);
    fs::create_dir_all(dir.join("src")).unwrap();
    let sdk = root().join("sdk/rust");
    let manifest = format!(
        "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
         [dependencies]\ntidegate-sdk = {{ path = {sdk:?} }}\n[workspace]\n"
    );
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    // The locked versions of a guest of ours: no look at the registry.
    let lock = fs::read_to_string(pass_through().join("Cargo.lock")).unwrap();
    fs::write(dir.join("Cargo.lock"), lock.replace("\"pass-through\"", "\"sample\"")).unwrap();
    fs::write(dir.join("src/lib.rs"), code).unwrap();
    dir.canonicalize().unwrap()
}

fn shared() -> Options {
    Options { target_dir: Some(root().join("target/guests")), way: None }
}

#[test]
fn a_component_exports_what_is_named_and_imports_what_is_used() {
    let built = quietly(&pass_through(), &Options::default()).unwrap();
    assert!(built.component.starts_with(root().join("target/guests")), "{}", built.component.display());
    assert_eq!(fs::read(&built.component).unwrap(), built.bytes);
    let (imports, exports) = interfaces(&built.bytes);
    assert_eq!(exports, set(&["registration", "on-plain-text"]));
    assert_eq!(imports, set(&["types", "log"]), "only the panic hook's log");
}

#[test]
fn an_extension_may_have_every_callback_and_every_power() {
    let built = quietly(&root().join("tests/guests/conformance"), &shared()).unwrap();
    let (imports, exports) = interfaces(&built.bytes);
    let callbacks = [
        "on-input-messages",
        "on-plain-text",
        "on-tag",
        "on-llm-output",
        "ttsr-triggered",
        "on-tool-call",
        "on-tool-result",
    ];
    let text = String::from_utf8_lossy(&built.bytes);
    assert!(text.contains("/source/sdk/rust/src/"), "panic messages of the SDK name its files");
    for folder in [root(), std::env::home_dir().unwrap_or_default().join(".cargo")] {
        assert!(!text.contains(&folder.display().to_string()), "{} is in the component", folder.display());
    }
    assert_eq!(exports, &set(&["registration", "tool-provider"]) | &set(&callbacks));
    let powers =
        ["clock", "events", "history", "log", "random", "session", "settings", "state", "tool-progress", "tools"];
    assert_eq!(imports, &set(&["types"]) | &set(&powers));
}

#[test]
fn our_plugins_import_the_powers_that_their_manifests_ask_for() {
    let plugins = [
        ("redact-secrets", &["on-plain-text", "on-tool-call", "on-tool-result"][..]),
        ("session-notes", &["on-input-messages", "on-tag", "tool-provider"]),
        ("team-guard", &["on-llm-output", "ttsr-triggered"]),
    ];
    for (name, callbacks) in plugins {
        let dir = root().join("plugins").join(name);
        let built = quietly(&dir, &shared()).unwrap();
        let (imports, exports) = interfaces(&built.bytes);
        assert_eq!(exports, &set(&["registration"]) | &set(callbacks), "{name}");
        let manifest: toml::Table = fs::read_to_string(dir.join("plugin.toml")).unwrap().parse().unwrap();
        let asked: BTreeSet<String> = manifest["capabilities"].as_table().unwrap().keys().cloned().collect();
        // Log and settings are always granted; prompt text is a power without an interface, and tools are an export.
        let without = set(&["types", "log", "settings", "prompt", "provide-tools"]);
        assert_eq!(asked.contains("provide-tools"), exports.contains("tool-provider"), "{name}");
        assert_eq!(&imports - &without, &asked - &without, "{name}");
    }
}

#[test]
fn a_power_that_is_used_is_imported() {
    let dir = package(
        "keeper",
        "use tidegate_sdk::prelude::*;\n#[derive(Default)]\nstruct Keeper;\nimpl OnTag for Keeper {\n\
         fn tag_options(&self) -> TagOptions {\nTagOptions::new([\"note\"])\n}\n\
         fn on_tag(&mut self, tag: &Tag, _: &TagPlace) -> Result<TagAnswer> {\n\
         state::set(&tag.name, &tag.content)?;\nOk(TagAnswer::Keep)\n}\n}\ntidegate_sdk::export!(Keeper: OnTag);\n",
    );
    let built = quietly(&dir, &shared()).unwrap();
    let (imports, exports) = interfaces(&built.bytes);
    assert_eq!(exports, set(&["registration", "on-tag"]));
    assert_eq!(imports, set(&["types", "log", "state"]));
}

#[test]
fn nothing_is_built_twice_and_everything_that_changed_is() {
    let code = |word: &str| {
        format!(
            "use tidegate_sdk::prelude::*;\n#[derive(Default)]\nstruct Word;\nimpl OnPlainText for Word {{\n\
             fn on_plain_text(&mut self, _: &str, _: &TextPlace) -> Result<TextAnswer> {{\n\
             Ok(TextAnswer::replace({word:?}))\n}}\n}}\ntidegate_sdk::export!(Word: OnPlainText);\n"
        )
    };
    let dir = package("word", &code(&format!("first-{:?}", std::time::SystemTime::now())));
    let first = quietly(&dir, &shared()).unwrap();
    assert!(!first.fresh);

    let mut lines = Vec::new();
    let again = build(&dir, &shared(), &mut |line| lines.push(line.to_owned())).unwrap();
    assert!(again.fresh && lines.is_empty(), "{lines:?}");
    assert_eq!((again.bytes, &again.digest), (first.bytes.clone(), &first.digest));

    fs::write(dir.join("src/lib.rs"), code("other-word")).unwrap();
    let changed = quietly(&dir, &shared()).unwrap();
    assert!(!changed.fresh);
    assert_eq!(changed.component, first.component);
    assert_ne!(changed.digest, first.digest);

    fs::write(&changed.component, b"not what was built").unwrap();
    let repaired = quietly(&dir, &shared()).unwrap();
    assert!(!repaired.fresh);
    assert_eq!(repaired.digest, changed.digest);
}

#[test]
fn an_error_of_the_compiler_is_shown() {
    let dir = package("missing", "tidegate_sdk::export!(Missing: OnPlainText);\n");
    let error = quietly(&dir, &shared()).unwrap_err();
    let BuildError::Cargo { stderr, .. } = &error else { panic!("{error}") };
    assert!(stderr.contains("cannot find type `Missing`") && stderr.contains("src/lib.rs:1:"), "{stderr}");
}

#[test]
fn a_callback_that_is_none_is_named() {
    let dir = package("typo", "#[derive(Default)]\nstruct Typo;\ntidegate_sdk::export!(Typo: OnPlaintext);\n");
    let error = quietly(&dir, &shared()).unwrap_err().to_string();
    assert!(
        error.contains("`OnPlaintext` is not a callback; the callbacks are OnInputMessages, OnPlainText"),
        "{error}"
    );
}

#[test]
fn a_library_that_exports_nothing_is_no_extension() {
    let dir = package("plain", "pub fn nothing() {}\n");
    assert!(matches!(quietly(&dir, &shared()), Err(BuildError::NoExport { .. })));
}

/// Before anything is compiled: a build that makes no module takes as long as one that does.
#[test]
fn a_package_without_a_module_is_refused_at_once() {
    for lib in ["", "[lib]\ncrate-type = [\"rlib\"]\n"] {
        let dir = package("no-module", "pub fn nothing() {}\n");
        let manifest = fs::read_to_string(dir.join("Cargo.toml")).unwrap();
        fs::write(dir.join("Cargo.toml"), manifest.replace("[lib]\ncrate-type = [\"cdylib\"]\n", lib)).unwrap();
        let mut told = Vec::new();
        let error = build(&dir, &shared(), &mut |line| told.push(line.to_owned())).unwrap_err();
        assert!(matches!(error, BuildError::NoModule { .. }), "{error}");
        assert!(error.to_string().ends_with("[lib]\ncrate-type = [\"cdylib\"]"), "{error}");
        assert!(!told.iter().any(|line| line.contains("building")), "{told:?}");
    }
}

#[test]
fn a_folder_without_a_package_is_named() {
    let dir = Path::new("no-such-folder");
    let error = quietly(dir, &shared()).unwrap_err();
    assert!(matches!(error, BuildError::NoFolder { .. }));
    assert!(error.to_string().starts_with("there is no folder no-such-folder"), "{error}");
    let empty = Path::new("src");
    let error = quietly(empty, &shared()).unwrap_err();
    assert!(matches!(error, BuildError::NoPackage { .. }));
    assert!(error.to_string().starts_with("src contains no `Cargo.toml`"), "{error}");
}

#[test]
fn without_a_toolchain_each_way_is_named() {
    let dir = package("empty", "");
    let nowhere = dir.join("nowhere");
    let options = Options { way: Some(Way::At(nowhere.clone())), ..shared() };
    let error = quietly(&dir, &options).unwrap_err().to_string();
    assert!(error.contains(TARGET) && error.contains(&nowhere.join("bin/cargo").display().to_string()), "{error}");
}
