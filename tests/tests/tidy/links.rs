//! Links between the repository's own pages, and paths that a page gives as evidence, lead to something.

use crate::tree::{File, files};
use crate::{bites, hold};

/// Pages on which every path between backticks that begins with one of [`ROOTS`] must exist.
const EVIDENCE: [&str; 1] = ["SECURITY.md"];

/// How paths of the repository begin.
const ROOTS: [&str; 5] = ["host/", "rules/", "tests/", "plugins/", "sdk/"];

/// Targets of `[text](target)` outside of code, without anchors and addresses.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for (place, _) in line.match_indices("](") {
            let target = line[place + 2..].split(')').next().unwrap_or_default();
            let target = target.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !in_code(&line[..place]) {
                found.push(target);
            }
        }
    }
    found
}

/// Whether the end of this part of a line is inside of a code span.
fn in_code(before: &str) -> bool {
    before.matches('`').count() % 2 == 1
}

/// `path` seen from the folder of `page`, without `.` and `..`.
fn resolved(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn exists(files: &[File], path: &str) -> bool {
    files.iter().any(|file| file.path == path || file.path.starts_with(&format!("{}/", path.trim_end_matches('/'))))
}

fn dead(files: &[File]) -> (usize, Vec<String>) {
    let (mut read, mut findings) = (0, Vec::new());
    // Rule files have conditions, and the corpus has pages that are samples of what others write.
    let rule = |file: &File| file.text.starts_with("+++") || file.text.starts_with("---");
    let own = |file: &&File| {
        file.path.ends_with(".md") && !rule(file) && (!file.path.starts_with("tests/corpus/") || is_page(&file.path))
    };
    for page in files.iter().filter(own) {
        for link in links(&page.text) {
            read += 1;
            if !exists(files, &resolved(&page.path, link)) {
                findings.push(format!("{} links to {link}, which does not exist", page.path));
            }
        }
        if EVIDENCE.contains(&page.path.as_str()) {
            let paths =
                page.text.split('`').skip(1).step_by(2).filter(|code| ROOTS.iter().any(|root| code.starts_with(root)));
            for path in paths {
                read += 1;
                if !exists(files, path) {
                    findings.push(format!("{} names {path}, which does not exist", page.path));
                }
            }
        }
    }
    (read, findings)
}

fn is_page(path: &str) -> bool {
    path.ends_with("README.md") && !path.contains("/rules/README.md") || path.ends_with("SPEC.md")
}

#[test]
fn links_lead_somewhere() {
    let (read, findings) = dead(&files());
    hold("links", read, 40, &findings);
}

#[test]
fn dead_links_and_paths_are_found() {
    let page = |path: &str, text: &str| File::sample(path, text);
    bites(&dead(&[page("a/b.md", "see [c](../c.md#x)")]).1, "a/b.md links to ../c.md");
    assert!(dead(&[page("a/b.md", "see [c](../c.md#x), `[x](y)`"), page("c.md", "")]).1.is_empty());
    bites(&dead(&[page("SECURITY.md", "by `host/x.rs`")]).1, "SECURITY.md names host/x.rs");
}
