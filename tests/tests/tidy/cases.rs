//! The numbers of the specification's cases: each has a row in a `SPEC.md`, and each row names a test that exists.

use std::collections::BTreeSet;

use crate::tree::{File, files};
use crate::{bites, hold};

/// The pages with the cases, and whose tests refer to them: files below the first folder, and tests in the named files.
const PAGES: [(&str, &str, &[&str]); 2] = [
    ("tests/corpus/rules/SPEC.md", "tests/corpus/rules/", &["host/turn/tests/rules.rs"]),
    ("tests/corpus/segments/SPEC.md", "tests/corpus/segments/", &["host/turn/tests/extensions.rs"]),
];

/// A row: its number, the file it names and the test in it, if it is tested yet.
struct Row<'a> {
    number: u32,
    tested: Option<(&'a str, Option<&'a str>)>,
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let row = |line: &'_ str| -> Option<u32> { line.strip_prefix("| ")?.split(' ').next()?.parse().ok() };
    page.lines()
        .filter_map(|line| {
            let number = row(line)?;
            let last = line.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
            let mut names = last.split('`').skip(1).step_by(2);
            Some(Row { number, tested: names.next().map(|file| (file, names.next())) })
        })
        .collect()
}

/// Numbers after `spec = ` in a corpus file, and in the names `case_N_…` of tests.
fn referred(file: &File) -> BTreeSet<u32> {
    let numbers = |text: &str| -> Vec<u32> {
        text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
    };
    let of_line = |line: &str| -> Vec<u32> {
        if let Some(list) = line.strip_prefix("spec = ") {
            return numbers(list);
        }
        let case = line.split("fn case_").nth(1).and_then(|rest| rest.split('_').next());
        case.and_then(|number| number.parse().ok()).into_iter().collect()
    };
    file.text.lines().flat_map(of_line).collect()
}

fn check(files: &[File], page: &File, folder: &str, tests: &[&str]) -> Vec<String> {
    let rows = rows(&page.text);
    let mut findings = Vec::new();
    for row in &rows {
        let Some((path, test)) = row.tested else { continue };
        let found = files.iter().find(|file| file.path == path);
        let there = found.is_some_and(|file| test.is_none_or(|test| file.text.contains(&format!("fn {test}("))));
        if !there {
            findings.push(format!("{}: case {} names a test that does not exist", page.path, row.number));
        }
    }
    let known: BTreeSet<u32> = rows.iter().map(|row| row.number).collect();
    for file in files.iter().filter(|file| file.path.starts_with(folder) || tests.contains(&file.path.as_str())) {
        let unknown = referred(file).into_iter().filter(|number| !known.contains(number));
        findings.extend(unknown.map(|number| format!("{}: {} has no case {number}", file.path, page.path)));
    }
    findings
}

#[test]
fn cases_of_the_specification_can_be_looked_up() {
    let files = files();
    let (mut read, mut findings) = (0, Vec::new());
    for (path, folder, tests) in PAGES {
        let page = files.iter().find(|file| file.path == path).unwrap();
        read += rows(&page.text).len();
        findings.extend(check(&files, page, folder, tests));
    }
    hold("cases of the specification", read, 50, &findings);
}

#[test]
fn missing_cases_and_tests_are_found() {
    let page = File::sample(
        "SPEC.md",
        "| number | x | y |\n|---|---|---|\n| 1 | a → b | `t.rs` `one` |\n| 2 | c | not yet |\n",
    );
    let test = File::sample("t.rs", "fn one() {}\nfn case_2_two() {}\n");
    assert_eq!(check(&[test], &page, "corpus/", &["t.rs"]), Vec::<String>::new());
    bites(&check(&[File::sample("t.rs", "fn other() {}")], &page, "corpus/", &[]), "names a test that does not exist");
    let corpus = [File::sample("t.rs", "fn one() {}"), File::sample("corpus/a.toml", "spec = [1, 3]\n")];
    bites(&check(&corpus, &page, "corpus/", &[]), "has no case 3");
}
