//! The TOML examples on the pages for operators, newcomers and authors are valid.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use flow::SourceFile;
use tidegate_config::{Manifest, Operator, Policy};

/// The `toml` blocks of a page, each with the line on which it begins.
fn examples(page: &str) -> Vec<(usize, String)> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page)).unwrap();
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        match (inside, line) {
            (false, "```toml") => {
                inside = true;
                found.push((number + 2, String::new()));
            }
            (true, "```") => inside = false,
            (true, line) => found.last_mut().unwrap().1.extend([line, "\n"]),
            (false, _) => {}
        }
    }
    assert!(!inside, "{page} has a block without an end");
    found
}

/// What every manifest has, for examples that show a part of one.
const MANIFEST: &str = "id = \"a\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"A.\"\nbuild.kind = \"rust\"\n";

/// Reads an example as what it is: a manifest has an id, and a part of one begins with what it requests. Returns what is wrong with it.
fn problem(example: &str) -> Option<String> {
    let (is_manifest, is_part) = (example.starts_with("id = "), example.starts_with("[capabilities]"));
    let text = if is_part { format!("{MANIFEST}{example}") } else { example.to_owned() };
    let source = SourceFile::new(Path::new("example.toml"), text);
    let read = if example.starts_with("# /etc/tidegate/policy.toml\n") {
        Policy::of_source(&source).map(drop)
    } else if is_manifest || is_part {
        Manifest::of_source(&source).map(drop)
    } else {
        Operator::of_source(&source).map(drop)
    };
    read.err().map(|found| found.render(false))
}

#[test]
fn the_examples_of_the_pages_are_valid() {
    for (page, at_least) in [
        ("host/CONFIGURATION.md", 1),
        ("host/OPERATORS.md", 6),
        ("host/GATEWAY_OPERATORS.md", 2),
        ("host/TOOLS.md", 1),
        ("README.md", 1),
        ("host/FIRST_STEPS.md", 1),
        ("sdk/rust/docs/powers/prompt.md", 1),
    ] {
        let examples = examples(page);
        assert!(examples.len() >= at_least, "{page}: only {} examples", examples.len());
        for (line, example) in examples {
            if let Some(found) = problem(&example) {
                panic!("{page}:{line}: the example is not valid\n{found}");
            }
        }
    }
}

#[test]
fn an_example_with_a_wrong_key_is_found() {
    assert!(problem("[limits]\nturn_s = 1\n").is_some());
    assert!(problem("id = \"a\"\n").is_some());
    assert!(problem("[capabilities]\npromt = \"a\"\n").is_some());
}
