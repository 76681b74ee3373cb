//! What prose must not be: a doc comment of one or two words, which says no more than the name under it, and a glossary that
//! defines a word twice.

use std::collections::BTreeMap;

use crate::tree::{File, files};
use crate::{bites, hold};

/// Doc comments that say no more than the name: their only line has at most two words.
fn short_docs(file: &File) -> Vec<String> {
    let doc = |line: &str| {
        let line = line.trim_start();
        let marks = ["///", "//!"];
        marks.iter().find_map(|mark| line.strip_prefix(mark)).map(|text| text.trim().to_owned())
    };
    let lines: Vec<Option<String>> = file.text.lines().map(doc).collect();
    let at = |index: usize| lines.get(index).and_then(Option::as_ref);
    let alone = |index: usize| (index == 0 || at(index - 1).is_none()) && at(index + 1).is_none();
    let short = |text: &String| !text.is_empty() && text.split_whitespace().count() <= 2;
    (0..lines.len())
        .filter(|index| at(*index).is_some_and(short) && alone(*index))
        .map(|index| format!("{}:{} has a doc of two words: {:?}", file.path, index + 1, at(index).unwrap()))
        .collect()
}

/// Words that the glossary of a page defines more than once. An entry is a table row below the heading "Glossary".
fn defined_twice(page: &File) -> (usize, Vec<String>) {
    let (mut rows, mut seen, mut findings) = (0, BTreeMap::new(), Vec::new());
    let below = page.text.lines().enumerate().skip_while(|(_, line)| *line != "## Glossary").skip(1);
    for (number, line) in below.take_while(|(_, line)| !line.starts_with("## ")) {
        let Some(word) = line.strip_prefix("| ").and_then(|row| row.split(" | ").next()) else { continue };
        rows += 1;
        for word in word.split(", ") {
            if let Some(first) = seen.insert(word.to_owned(), number + 1) {
                findings.push(format!("{}:{} defines {word:?} again, after line {first}", page.path, number + 1));
            }
        }
    }
    (rows, findings)
}

#[test]
fn docs_say_more_than_a_name() {
    let files = files();
    let rust: Vec<&File> = files.iter().filter(|file| file.is_rust() && !file.is_generated()).collect();
    let findings: Vec<String> = rust.iter().flat_map(|file| short_docs(file)).collect();
    hold("docs of two words", rust.len(), 200, &findings);
}

#[test]
fn the_glossary_defines_a_word_once() {
    let files = files();
    let page = files.iter().find(|file| file.path == "ARCHITECTURE.md").unwrap();
    let (read, findings) = defined_twice(page);
    hold("glossary", read, 20, &findings);
}

#[test]
fn short_docs_and_double_entries_are_found() {
    bites(&short_docs(&File::sample("a.rs", "struct A {\n    /// Which.\n    a: u8,\n}\n")), "a.rs:2");
    bites(&short_docs(&File::sample("a.rs", "/// The clock.\nstruct A;\n")), "a.rs:1");
    let enough = "/// The clock of the host.\nstruct A;\n/// Two\n/// lines.\nstruct B;\n";
    assert_eq!(short_docs(&File::sample("a.rs", enough)), Vec::<String>::new());
    let twice = "## Glossary\n| word | meaning |\n|---|---|\n| layer | one |\n| turn | x |\n| layer | two |\n## Next\n| turn | y |\n";
    bites(&defined_twice(&File::sample("A.md", twice)).1, "defines \"layer\" again, after line 4");
}
