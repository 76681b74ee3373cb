//! Who may depend on whom: the table of the map, held against what cargo reads from the manifests.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tree::root;
use crate::{bites, hold};

/// Our crates, without the `tidegate-` of their names, and which of ours each may depend on.
const MAP: [(&str, &[&str]); 34] = [
    ("flow", &[]),
    // The syntax of shells: for permissions, and for rules about commands.
    ("commands", &["flow"]),
    ("rules", &["flow", "commands"]),
    ("segments", &[]),
    ("record", &["flow"]),
    // One stream between a model and a reader. A loop is over it; a replay needs no loop.
    ("guard", &["flow", "rules", "segments"]),
    ("turn", &["flow", "guard", "record", "rules"]),
    // A second loop over it, for clients that have an agent of their own.
    ("gateway", &["flow", "guard", "rules", "wire"]),
    ("chat", &["flow"]),
    ("web", &["chat", "flow", "record"]),
    // The machine: its clock, the environment of its process.
    ("system", &["flow"]),
    ("sandbox", &["flow", "system", "secrets"]),
    ("net", &["flow"]),
    ("wire", &["flow"]),
    ("providers", &["flow", "net", "system", "secrets", "wire"]),
    ("tools", &["flow", "commands", "system", "secrets"]),
    ("store", &["flow", "record", "system"]),
    ("telemetry", &["flow", "net", "system"]),
    ("config", &["flow", "rules", "secrets"]),
    // `providers` for the reader of recordings.
    ("trial", &["flow", "guard", "record", "rules", "config", "providers"]),
    // Rule sets of others as rule files, which it loads and tries.
    ("import", &["flow", "rules", "config"]),
    ("report", &["record"]),
    (
        "tidegate",
        &[
            "flow",
            // Which conversation a request belongs to.
            "gateway",
            "guard",
            "record",
            "rules",
            "turn",
            "chat",
            "sandbox",
            "providers",
            "tools",
            "store",
            "telemetry",
            "config",
            "secrets",
            "system",
            "wire",
        ],
    ),
    // The lines of the shown stream have a schema.
    ("serve", &["tidegate", "chat", "gateway", "net", "record"]),
    // `tidegate plugin build` is the builder.
    ("cli", &["tidegate", "trial", "import", "build", "report", "serve"]),
    // Natively, for the tests of authors: an answer is split as the host splits it.
    ("sdk", &["segments"]),
    ("build", &[]),
    // What secrets look like: for plugins as for the host.
    ("secrets", &[]),
    // Neither the sandbox nor HTTP: the light crates test with it.
    ("kit", &["flow", "record", "rules", "turn"]),
    ("servers", &[]),
    // A host like that of an embedder, with a model of its own.
    ("load", &["tidegate", "flow", "turn", "wire", "build", "servers"]),
    ("xtask", &["build", "servers"]),
    ("fuzz", &["flow", "rules", "wire", "config"]),
    // The runners may look at anything.
    ("tests", &[]),
];

/// Crates of others that only one of ours may name. Tests may name all.
const OWNED: [(&str, &str); 14] = [
    ("wasmtime", "sandbox"),
    ("reqwest", "net"),
    ("rustls", "net"),
    ("redis", "store"),
    ("redb", "store"),
    ("hyper", "telemetry"),
    ("opentelemetry", "telemetry"),
    ("agent-client-protocol", "serve"),
    ("clap", "cli"),
    ("anstyle", "cli"),
    ("tracing-subscriber", "cli"),
    ("wit-component", "build"),
    ("wit-bindgen", "sdk"),
    ("shuck-parser", "commands"),
];

/// Exceptions from [`OWNED`]: the words of `flow`'s lists are values of flags, behind a feature that only `cli` switches on; requests
/// are sent with the client of `net`, by providers and by the gateway, which is a server as well; telemetry is made by a layer of the subscriber;
/// the client of Redis makes its own connections with TLS.
const ALSO: [(&str, &str); 7] = [
    ("clap", "flow"),
    ("reqwest", "providers"),
    ("reqwest", "telemetry"),
    ("reqwest", "serve"),
    ("hyper", "serve"),
    ("rustls", "store"),
    ("tracing-subscriber", "telemetry"),
];

/// A crate as cargo sees it.
#[derive(Debug)]
struct Package {
    name: String,
    /// Its dependencies outside of tests: name, and folder where it is one of a folder.
    dependencies: Vec<(String, Option<String>)>,
    /// Roots of its library, programs and build script.
    roots: Vec<String>,
}

fn short(name: &str) -> &str {
    name.strip_prefix("tidegate-").unwrap_or(name)
}

/// The crates of the workspace in `folder`, from the manifests alone.
fn packages(folder: &Path) -> Vec<Package> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(folder);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().iter().map(package).collect()
}

fn package(value: &Value) -> Package {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let list = |name: &str| value[name].as_array().unwrap().iter();
    let dependencies = list("dependencies").filter(|dependency| dependency["kind"] != "dev");
    let is_root = |target: &&Value| {
        let kinds = target["kind"].as_array().unwrap();
        kinds
            .iter()
            .any(|kind| ["lib", "bin", "cdylib", "rlib", "proc-macro", "custom-build"].iter().any(|k| kind == k))
    };
    Package {
        name: text(&value["name"]).unwrap(),
        dependencies: dependencies.map(|it| (text(&it["name"]).unwrap(), text(&it["path"]))).collect(),
        roots: list("targets").filter(is_root).filter_map(|target| text(&target["src_path"])).collect(),
    }
}

/// Findings about directions, and how many dependencies were looked at.
fn directions(packages: &[Package]) -> (usize, Vec<String>) {
    let mut read = 0;
    let mut findings = Vec::new();
    for package in packages {
        let name = short(&package.name);
        let Some((_, allowed)) = MAP.iter().find(|(known, _)| *known == name) else {
            findings.push(format!("{name} has no place in the map"));
            continue;
        };
        read += package.dependencies.len();
        if name == "tests" {
            continue;
        }
        for (dependency, folder) in &package.dependencies {
            let other = short(dependency);
            if folder.is_some() && !allowed.contains(&other) {
                findings.push(format!("{name} depends on {other}, and the map allows it {allowed:?}"));
            }
            let owner = OWNED.iter().find(|(thing, owner)| thing == dependency && *owner != name);
            let owner = owner.filter(|(thing, _)| !ALSO.contains(&(*thing, name)));
            findings
                .extend(owner.map(|(thing, owner)| format!("{name} depends on {thing}, which only {owner} may name")));
        }
    }
    (read, findings)
}

/// Plugins are built as a stranger would build them: of ours they see only `sdk`.
fn strangers(packages: &[Package], sdk: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for package in packages {
        let ours = package.dependencies.iter().filter_map(|(name, folder)| Some((name, folder.as_deref()?)));
        let outside = ours.filter(|(_, folder)| !Path::new(folder).starts_with(sdk));
        findings
            .extend(outside.map(|(name, _)| format!("plugin {} depends on {name}, which is not in sdk", package.name)));
    }
    findings
}

/// Roots that must hold another line than [`FORBID`], and why: one crate loads its own compiled code, and what the
/// generator of guests' bindings writes is unsafe.
const UNSAFE: [(&str, &str); 3] = [
    ("host/sandbox/src/lib.rs", "#![deny(unsafe_code)]"),
    ("sdk/js/wasm/src/lib.rs", "#![cfg_attr(not(target_arch = \"wasm32\"), forbid(unsafe_code))]"),
    ("sdk/rust/src/lib.rs", "#![cfg_attr(not(target_arch = \"wasm32\"), forbid(unsafe_code))]"),
];
const FORBID: &str = "#![forbid(unsafe_code)]";

fn unsafety(roots: &[(String, String)]) -> Vec<String> {
    let wanted = |path: &str| UNSAFE.iter().find(|(end, _)| path.ends_with(end)).map_or(FORBID, |(_, line)| line);
    let has = |text: &str, wanted: &str| text.lines().any(|line| line.starts_with(wanted));
    let bad = roots.iter().filter(|(path, text)| !has(text, wanted(path)));
    bad.map(|(path, _)| format!("{path} does not say {}", wanted(path))).collect()
}

/// The folders below `parent` that are cargo packages.
fn folders(parent: &str) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(root().join(parent)) else { return Vec::new() };
    let folders = entries.map(|entry| entry.unwrap().path());
    folders.filter(|folder| folder.join("Cargo.toml").is_file()).collect()
}

#[test]
fn dependencies_follow_the_map() {
    let packages = packages(&root());
    let (read, findings) = directions(&packages);
    hold("directions", read, 60, &findings);
    assert!(packages.len() >= 30, "only {} crates were seen", packages.len());
}

#[test]
fn the_map_has_no_more_than_there_is() {
    let packages = packages(&root());
    for (name, allowed) in MAP {
        let package = packages.iter().find(|package| short(&package.name) == name);
        let package = package.unwrap_or_else(|| panic!("the map has {name}, which is no crate"));
        for other in allowed {
            let is_used = package.dependencies.iter().any(|(name, folder)| folder.is_some() && short(name) == *other);
            assert!(is_used, "the map allows {name} to depend on {other}, and it does not");
        }
    }
}

#[test]
fn the_page_has_each_crate_of_the_host() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let folders = folders("host");
    assert!(folders.len() >= 19, "only {folders:?}");
    for folder in folders {
        let row = format!("| `host/{}` |", folder.file_name().unwrap().to_str().unwrap());
        assert!(page.contains(&row), "ARCHITECTURE.md has no row {row}");
    }
}

#[test]
fn each_owner_has_what_it_owns() {
    // A misspelt name in the table would forbid nothing.
    let packages = packages(&root());
    for (thing, owner) in OWNED {
        let package = packages.iter().find(|package| short(&package.name) == owner);
        let has = package.is_some_and(|package| package.dependencies.iter().any(|(name, _)| name == thing));
        assert!(has, "{owner} does not depend on {thing}");
    }
}

/// The crates that a program links with the library, as cargo resolves them.
fn linked(features: &[&str]) -> String {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["tree", "--package", "tidegate", "--edges", "normal", "--prefix", "none", "--offline"]).args(features);
    let output = cargo.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_embedder_links_redis_only_with_its_feature() {
    let is_redis = |line: &str| line.starts_with("redis v");
    assert!(linked(&["--features", "redis"]).lines().any(is_redis), "the feature `redis` has the client");
    let found = linked(&[]);
    assert!(found.contains("tidegate-store") && !found.lines().any(is_redis), "{found}");
}

#[test]
fn plugins_see_only_the_sdk() {
    let folders = folders("plugins");
    let packages: Vec<Package> = folders.iter().flat_map(|folder| packages(folder)).collect();
    let read = packages.iter().map(|package| package.dependencies.len()).sum();
    hold("plugins", read, 3, &strangers(&packages, &root().join("sdk")));
}

#[test]
fn unsafe_code_is_forbidden() {
    let workspaces = [vec![root()], folders("plugins")].concat();
    let packages = workspaces.iter().flat_map(|folder| packages(folder));
    let roots = packages.flat_map(|package| package.roots);
    let roots: Vec<_> = roots.map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect();
    hold("unsafe code", roots.len(), 17, &unsafety(&roots));
}

#[test]
fn wrong_directions_are_found() {
    let package = |name: &str, dependencies: &[(&str, Option<&str>)]| {
        let dependencies = dependencies.iter().map(|(name, path)| ((*name).to_owned(), path.map(str::to_owned)));
        [Package { name: name.to_owned(), dependencies: dependencies.collect(), roots: Vec::new() }]
    };
    let check = |packages: [Package; 1]| directions(&packages).1;
    bites(&check(package("tidegate-flow", &[("tidegate-rules", Some("r"))])), "flow depends on rules");
    bites(&check(package("tidegate-tools", &[("wasmtime", None)])), "which only sandbox may name");
    bites(&check(package("tidegate-new", &[])), "new has no place in the map");
    assert!(check(package("tidegate-tests", &[("wasmtime", None), ("tidegate-cli", Some("c"))])).is_empty());
    assert!(check(package("tidegate-turn", &[("tidegate-flow", Some("f")), ("serde_json", None)])).is_empty());

    let plugin = package("notes", &[("tidegate-sdk", Some("x/sdk/rust")), ("tidegate-turn", Some("x/host/turn"))]);
    bites(&strangers(&plugin, Path::new("x/sdk")), "plugin notes depends on tidegate-turn");
    let roots =
        [("x/host/sandbox/src/lib.rs", "#![deny(unsafe_code)]"), ("x/a/src/lib.rs", "//! #![forbid(unsafe_code)]\n")];
    bites(
        &unsafety(&roots.map(|(path, text)| (path.to_owned(), text.to_owned()))),
        "x/a/src/lib.rs does not say #![forbid(unsafe_code)]",
    );
}
