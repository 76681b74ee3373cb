//! The rules of this repository, enforced by a test. Each rule is a function from files to findings, is shown to
//! bite on a sample, and says how much it read, so that a rule that reads nothing fails. A program of its own, because it links no crate of
//! the workspace and is what one runs most often.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod cases;
mod contract;
mod crates;
mod facade;
mod features;
mod front_page;
mod imports;
mod links;
mod openings;
mod programs;
mod prose;
mod purity;
mod released;
mod sizes;
mod stages;
mod terminal;
mod top;
mod tree;
mod words;

/// Fails with all findings, one a line; passes only where at least `floor` things were read.
#[track_caller]
fn hold(rule: &str, read: usize, floor: usize, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}: {} findings\n  {}\n", findings.len(), findings.join("\n  "));
    assert!(
        read >= floor,
        "{rule}: only {read} things were read, and there are at least {floor}: the rule looks past them"
    );
}

/// Fails unless exactly one finding is there and holds `words`.
#[track_caller]
fn bites(findings: &[String], words: &str) {
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].contains(words), "{:?} does not say {words:?}", findings[0]);
}
