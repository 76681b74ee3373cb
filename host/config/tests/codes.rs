//! The page of diagnostic codes, and that each code is produced by a case of the corpus or by a test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use flow::DiagnosticCode;

const PAGE: &str = "DIAGNOSTICS.md";

const HEAD: &str = "\
# Diagnostic codes

Each diagnostic has a code: `error[rule-unknown-key]: …` on the terminal, `\"code\": \"rule-unknown-key\"` in JSON. A code
keeps its meaning in all versions and is never reused, so scripts should match on the code and not on the message. New
codes may be added. The severity is not part of the code: the same problem can be an error in one file and a warning in
another.

This page is generated from `host/flow/src/diagnostic/code.rs` by `TIDEGATE_BLESS=1 cargo test -p tidegate-config --test it codes::`.
";

const SECTIONS: [(&str, &str, &str); 10] = [
    ("agent", "Agent files", "`NAME.md` in a folder of agents."),
    ("config", "Configuration files", "`tidegate.toml`, `policy.toml` and `plugin.toml`: syntax, keys and values."),
    ("errors", "Tables of error classes", "`[errors]` of `tidegate.toml`, and `errors.toml`."),
    ("events", "Event catalogues", "`[events]` of `tidegate.toml`, `thread_events.toml` and `thread_events.yaml`."),
    ("limits", "Limits of sessions", "`[limits]` of `tidegate.toml`, and `thread_limits.toml`."),
    ("manifest", "Manifests", "What `plugin.toml` says of the plugin."),
    ("plugin", "Plugins", "A plugin together with its entry in `tidegate.toml`."),
    ("rule-f", "Rule files and folders", "Which files are rules, and whether they can be read."),
    ("rule", "Rules", "What a rule says, and whether it can fire."),
    ("host", "The host", "Why a host or a session cannot be opened, and what the host works without."),
];

fn section(code: DiagnosticCode) -> usize {
    let of = |(prefix, _, _): &(&str, &str, &str)| match *prefix {
        "rule-f" => ["rule-file-", "rule-folder-"].iter().any(|start| code.as_str().starts_with(start)),
        prefix => code.as_str().starts_with(&format!("{prefix}-")),
    };
    SECTIONS.iter().position(of).unwrap_or_else(|| panic!("{code} is in no section"))
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    for (at, (_, title, about)) in SECTIONS.iter().enumerate() {
        write!(page, "\n## {title}\n\n{about}\n\n| code | meaning |\n|---|---|\n").unwrap();
        for code in DiagnosticCode::ALL.iter().filter(|code| section(**code) == at) {
            writeln!(page, "| `{code}` | {} |", code.description()).unwrap();
        }
    }
    page
}

#[test]
fn every_code_is_on_the_page() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&file, page()).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(found, page(), "{PAGE} is out of date; its first lines say how to generate it");
}

/// The text files of a folder, with those of the folders in it.
fn texts(folder: &Path, into: &mut Vec<String>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            texts(&path, into);
        } else if !path.ends_with("diagnostic/code.rs") && !path.ends_with("tests/codes.rs") {
            into.extend(fs::read_to_string(&path));
        }
    }
}

#[test]
fn every_code_is_produced_by_a_case_or_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut read = Vec::new();
    for folder in [
        "tests/corpus/agents",
        "tests/corpus/config",
        "tests/corpus/errors",
        "tests/corpus/events",
        "tests/corpus/rules",
        "tests/corpus/thread_limits",
        "tests/tests",
        "rules/tests",
        "rules/src",
        "host",
    ] {
        let folder = root.join(folder);
        if folder.ends_with("host") {
            let crates = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            let folders = crates.flat_map(|one| [one.join("tests"), one.join("src")]).filter(|one| one.is_dir());
            folders.for_each(|folder| texts(&folder, &mut read));
        } else {
            texts(&folder, &mut read);
        }
    }
    assert!(read.len() > 200, "only {} files were read", read.len());
    let is_produced = |code: &&DiagnosticCode| {
        let shown = [format!("[{code}]"), format!("\"{code}\"")];
        read.iter().any(|text| shown.iter().any(|shown| text.contains(shown.as_str())))
    };
    let missing: Vec<&str> =
        DiagnosticCode::ALL.iter().filter(|code| !is_produced(code)).map(|code| code.as_str()).collect();
    assert_eq!(missing, [""; 0], "no case of the corpus and no test expects these codes");
}
