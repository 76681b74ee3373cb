//! No source file that somebody wrote has more than 500 net lines: without blanks, comments and test modules.

use crate::tree::{File, files};
use crate::{bites, hold};

/// The maximum number of net lines of a file. Generated files are the only exception: split the file.
const MOST: usize = 500;

fn sizes(files: &[File]) -> (usize, Vec<String>) {
    let rust = || files.iter().filter(|file| file.is_rust() && !file.is_generated());
    let long = rust().map(|file| (file, net_lines(&file.text))).filter(|(_, lines)| *lines > MOST);
    let findings =
        long.map(|(file, lines)| format!("{} has {lines} net lines, {MOST} is the most", file.path)).collect();
    (rust().count(), findings)
}

/// Counts lines that are neither blank nor comment nor inside a test module at the file's top level (as rustfmt lays it out).
fn net_lines(text: &str) -> usize {
    let mut count = 0;
    let (mut marked, mut inside) = (false, false);
    for line in text.lines() {
        if inside {
            inside = line != "}";
            continue;
        }
        if line == "#[cfg(test)]" {
            marked = true;
            continue;
        }
        if marked && line.starts_with("mod ") && line.ends_with('{') {
            (marked, inside) = (false, true);
            continue;
        }
        marked = marked && line.starts_with("#[");
        let line = line.trim();
        count += usize::from(!line.is_empty() && !line.starts_with("//"));
    }
    count
}

#[test]
fn no_file_is_too_long() {
    let (read, findings) = sizes(&files());
    hold("sizes", read, 60, &findings);
}

#[test]
fn a_long_file_is_found() {
    let lines = |count: usize| "let a = 1;\n".repeat(count);
    bites(&sizes(&[File::sample("a.rs", &lines(501))]).1, "a.rs has 501 net lines");
    assert_eq!(sizes(&[File::sample("sdk/rust/src/bindings/base.rs", &lines(501))]), (0, Vec::new()));
    let tests = format!("#[cfg(test)]\n#[allow(x)]\nmod tests {{\n{}}}\n", lines(300));
    let text = format!("//! What for.\n\n{}{tests}", lines(499));
    // The attribute between mark and module counts as the one line more.
    assert_eq!(net_lines(&text), 500);
    assert_eq!(net_lines(&format!("#[cfg(test)]\nuse a;\n{}", lines(3))), 4);
}
