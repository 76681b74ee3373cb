//! Test programs: each file of tests is in one, one program a crate unless a file says why not, and none is built to run nothing.

use std::collections::BTreeSet;

use serde::Deserialize;
use syn::Item;

use crate::tree::{File, files};
use crate::{bites, hold};

/// The words with which a program next to a crate's `it` gives its reason.
const REASON: &str = "program of its own";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Manifest {
    package: Option<Package>,
    workspace: Option<toml::Table>,
    lib: Library,
    test: Vec<Program>,
    bin: Vec<Program>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Package {
    autotests: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Library {
    test: Option<bool>,
    doctest: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Program {
    name: String,
    path: Option<String>,
}

/// The manifests of packages, each with its folder, which is empty or ends with `/`.
fn manifests(files: &[File]) -> Vec<(&str, Manifest)> {
    let manifests = files.iter().filter_map(|file| {
        let folder = file.path.strip_suffix("Cargo.toml")?;
        (folder.is_empty() || folder.ends_with('/')).then(|| (folder, toml::from_str::<Manifest>(&file.text).unwrap()))
    });
    manifests.filter(|(_, manifest)| manifest.package.is_some()).collect()
}

/// The roots of a package's test programs, and of its own programs that are below `tests`.
fn roots(folder: &str, manifest: &Manifest, files: &[File]) -> Vec<String> {
    let tests = format!("{folder}tests/");
    let declared = manifest.test.iter().chain(&manifest.bin);
    let mut roots: Vec<String> = declared
        .map(|program| match &program.path {
            Some(path) => format!("{folder}{path}"),
            None => {
                let folder = format!("{tests}{}/main.rs", program.name);
                let is_folder = files.iter().any(|file| file.path == folder);
                if is_folder { folder } else { format!("{tests}{}.rs", program.name) }
            }
        })
        .collect();
    if manifest.package.as_ref().is_some_and(|package| package.autotests != Some(false)) {
        let found = files.iter().filter(|file| {
            let inside = file.path.strip_prefix(&tests);
            inside.is_some_and(|inside| match inside.split_once('/') {
                None => inside.ends_with(".rs"),
                Some((_, rest)) => rest == "main.rs",
            })
        });
        roots.extend(found.map(|file| file.path.clone()));
    }
    roots.retain(|root| root.starts_with(&tests));
    roots
}

/// Adds a file and the modules in files of their own that it declares, and theirs.
fn reach(path: &str, is_root: bool, files: &[File], reached: &mut BTreeSet<String>) {
    let Some(file) = files.iter().find(|file| file.path == path) else { return };
    if !reached.insert(path.to_owned()) {
        return;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let own = if is_root || name == "mod.rs" { folder.to_owned() } else { path.trim_end_matches(".rs").to_owned() };
    for item in syn::parse_file(&file.text).unwrap().items {
        let Item::Mod(module) = item else { continue };
        if module.content.is_some() {
            continue;
        }
        let named = module.attrs.iter().find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        });
        match named {
            Some(named) => reach(&joined(folder, &named), false, files, reached),
            None => {
                reach(&format!("{own}/{}.rs", module.ident), false, files, reached);
                reach(&format!("{own}/{}/mod.rs", module.ident), false, files, reached);
            }
        }
    }
}

/// `../x` of a folder.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Whether the opening comment of a file gives the reason of a program.
fn has_reason(text: &str) -> bool {
    let opening = text.lines().map_while(|line| line.strip_prefix("//!"));
    opening.map(str::trim).collect::<Vec<_>>().join(" ").contains(REASON)
}

fn programs(files: &[File]) -> (usize, Vec<String>) {
    let mut findings = Vec::new();
    let mut reached = BTreeSet::new();
    let manifests = manifests(files);
    for (folder, manifest) in &manifests {
        let tests = format!("{folder}tests/main.rs");
        let roots = roots(folder, manifest, files);
        roots.iter().for_each(|root| reach(root, true, files, &mut reached));
        let programs = || roots.iter().filter(|root| !manifest.bin.iter().any(|bin| is_at(bin, folder, root)));
        let more = programs().filter(|root| programs().count() > 1 && **root != tests);
        let unfounded = more.filter(|root| !files.iter().any(|file| file.path == **root && has_reason(&file.text)));
        findings.extend(unfounded.map(|root| {
            format!(
                "{root} is one more test program of its crate: make it a module of {tests}, or say why it is a {REASON}"
            )
        }));
    }
    let of_tests = || files.iter().filter(|file| file.is_rust() && is_of_tests(file, &manifests));
    let forgotten = of_tests().filter(|file| !reached.contains(&file.path));
    findings.extend(forgotten.map(|file| format!("{} is in no test program", file.path)));
    (of_tests().count(), findings)
}

fn is_at(program: &Program, folder: &str, path: &str) -> bool {
    program.path.as_ref().is_some_and(|own| format!("{folder}{own}") == path)
}

/// Whether the innermost package around a file has it below its folder `tests`.
fn is_of_tests(file: &File, manifests: &[(&str, Manifest)]) -> bool {
    let around = manifests.iter().map(|(folder, _)| *folder).filter(|folder| file.path.starts_with(folder));
    let inmost = around.max_by_key(|folder| folder.len());
    inmost.is_some_and(|folder| file.path[folder.len()..].starts_with("tests/"))
}

/// Libraries whose tests, or examples in documentation, are run without there being one, or not run although there are.
fn libraries(files: &[File]) -> (usize, Vec<String>) {
    let mut read = 0;
    let mut findings = Vec::new();
    for (folder, manifest) in manifests(files) {
        let source = format!("{folder}src/");
        // Guests and plugins are built as third parties build them.
        if manifest.workspace.is_some() || !files.iter().any(|file| file.path == format!("{source}lib.rs")) {
            continue;
        }
        read += 1;
        let texts = || files.iter().filter(|file| file.path.starts_with(&source)).map(|file| file.text.as_str());
        let tests =
            texts().any(|text| ["#[test]", "#[tokio::test", "proptest!"].iter().any(|mark| text.contains(mark)));
        let examples = texts().any(has_example);
        for (key, is_on, there) in [
            ("test", manifest.lib.test != Some(false), tests),
            ("doctest", manifest.lib.doctest != Some(false), examples),
        ] {
            if is_on != there {
                let found = if there { "and there are some" } else { "and there is none to run" };
                findings.push(format!("{folder}Cargo.toml has `{key} = {is_on}` for its library, {found}"));
            }
        }
    }
    (read, findings)
}

/// Whether documentation in a file has a code block that rustdoc runs or compiles.
fn has_example(text: &str) -> bool {
    let mut inside = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        if line.starts_with("#[doc = include_str!(") {
            return true;
        }
        let comment = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
        let Some(info) = comment.and_then(|comment| comment.trim().strip_prefix("```")) else { return false };
        inside = !inside;
        inside && ["", "rust", "no_run", "should_panic", "compile_fail"].contains(&info)
    })
}

#[test]
fn every_file_of_tests_is_in_a_program() {
    let (read, findings) = programs(&files());
    hold("programs", read, 300, &findings);
}

#[test]
fn no_library_is_tested_for_nothing() {
    let (read, findings) = libraries(&files());
    hold("libraries", read, 25, &findings);
}

#[test]
fn a_forgotten_file_and_an_unfounded_program_are_found() {
    let one = |manifest: &str, more: &[(&str, &str)]| {
        let mut files = vec![
            File::sample("a/Cargo.toml", &format!("[package]\nname = \"a\"\n{manifest}")),
            File::sample("a/tests/main.rs", "//! All.\nmod b;\nmod c;\n#[path = \"../../e/tests/f.rs\"]\nmod f;\n"),
            File::sample("a/tests/b.rs", "mod inside {}\nmod d;"),
            File::sample("a/tests/b/d.rs", ""),
            File::sample("a/tests/c/mod.rs", ""),
            File::sample("e/tests/f.rs", ""),
        ];
        files.extend(more.iter().map(|(path, text)| File::sample(path, text)));
        programs(&files)
    };
    let it = "autotests = false\n[[test]]\nname = \"it\"\npath = \"tests/main.rs\"\n";
    assert_eq!(one(it, &[]), (4, Vec::new()));
    bites(&one(it, &[("a/tests/g.rs", "")]).1, "a/tests/g.rs is in no test program");
    let more = format!("{it}[[test]]\nname = \"g\"\n");
    bites(&one(&more, &[("a/tests/g.rs", "//! For speed.")]).1, "a/tests/g.rs is one more test program");
    assert_eq!(
        one(&more, &[("a/tests/g.rs", "//! A program\n//! of its own: it counts threads.")]).1,
        Vec::<String>::new()
    );
}

#[test]
fn a_library_that_is_tested_for_nothing_is_found() {
    let of = |manifest: &str, source: &str| {
        let files = [
            File::sample("a/Cargo.toml", &format!("[package]\nname = \"a\"\n[lib]\n{manifest}")),
            File::sample("a/src/lib.rs", source),
        ];
        libraries(&files).1
    };
    let both = "/// ```\n/// a();\n/// ```\nfn a() {}\n#[test]\nfn b() {}\n";
    assert_eq!(of("", both), Vec::<String>::new());
    bites(&of("doctest = false", both), "a/Cargo.toml has `doctest = false` for its library, and there are some");
    bites(&of("test = false", both), "`test = false`");
    assert_eq!(of("", "/// ```text\n/// ```\nfn a() {}").len(), 2);
    assert_eq!(of("test = false\ndoctest = false", "/// ```text\n/// ```\nfn a() {}"), Vec::<String>::new());
}
