//! Mutation tests: changes in the code of a crate that the crate's own tests have to notice. Not part of the gate: a crate
//! takes an hour and more.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use tidegate_servers::say;

use crate::run;

/// The crates that are tested so when none is named, and their packages.
const CRATES: [(&str, &str); 4] = [
    ("rules", "tidegate-rules"),
    ("guard", "tidegate-guard"),
    ("turn", "tidegate-turn"),
    ("sandbox", "tidegate-sandbox"),
];

/// Packages that are tested with the tests of others too: whole turns show what callbacks and segments do.
const TESTED_BY: [(&str, &str); 1] = [("tidegate-guard", "tidegate-turn")];

/// Of 100 mutants that compile, so many have to be noticed.
const LEAST: usize = 90;

/// Runs cargo-mutants on the named crates, or on all of [`CRATES`]; `more` are arguments of cargo-mutants.
pub(crate) fn mutants(names: &[String], more: &[String]) -> Result<()> {
    let packages = packages(names)?;
    let installed = run::cargo(&["mutants", "--version"]).output().is_ok_and(|output| output.status.success());
    ensure!(installed, "cargo-mutants is not installed; `cargo install --locked cargo-mutants` installs it");
    let mut weak = Vec::new();
    for (name, package) in packages {
        let folder = run::target().join("mutants").join(name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mut command = run::cargo(&["mutants", "--package", package, "--output"]);
        command.arg(&folder).args(more);
        if let Some((_, by)) = TESTED_BY.iter().find(|(own, _)| *own == package) {
            command.args(["--test-package", package, "--test-package", by]);
        }
        say(&format!("\nmutants of {package}"));
        let status = command.status().context("cargo mutants cannot be started")?;
        // 2 and 3: mutants were missed, or ran too long. Anything else kept it from finding out.
        ensure!(matches!(status.code(), Some(0 | 2 | 3)), "cargo mutants failed for {package} ({status})");
        let count = Count::read(&folder.join("mutants.out"))?;
        say(&format!("{package}: {count}"));
        if !count.is_enough() {
            weak.push(name);
        }
    }
    ensure!(weak.is_empty(), "fewer than {LEAST} % of the mutants were noticed in {}", weak.join(", "));
    Ok(())
}

fn packages(names: &[String]) -> Result<Vec<(&'static str, &'static str)>> {
    let mut packages = Vec::new();
    for name in names {
        match CRATES.iter().find(|(known, package)| known == name || package == name) {
            Some(one) => packages.push(*one),
            None => bail!("mutants: there is no crate {name:?}; known are {}", CRATES.map(|(name, _)| name).join(", ")),
        }
    }
    Ok(if packages.is_empty() { CRATES.to_vec() } else { packages })
}

/// What became of the mutants that compile.
#[derive(Debug, PartialEq, Eq)]
struct Count {
    noticed: usize,
    missed: usize,
}

impl Count {
    /// Reads the lists that cargo-mutants writes, a mutant a line. A test that runs for ever has noticed.
    fn read(folder: &Path) -> Result<Self> {
        let lines = |name: &str| -> Result<usize> {
            let file = folder.join(name);
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            Ok(text.lines().filter(|line| !line.trim().is_empty()).count())
        };
        Ok(Self { noticed: lines("caught.txt")? + lines("timeout.txt")?, missed: lines("missed.txt")? })
    }

    fn is_enough(&self) -> bool {
        self.noticed * 100 >= (self.noticed + self.missed) * LEAST
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} mutants were noticed", self.noticed, self.noticed + self.missed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_are_enough() {
        assert!(Count { noticed: 9, missed: 1 }.is_enough());
        assert!(!Count { noticed: 89, missed: 11 }.is_enough());
        assert!(Count { noticed: 0, missed: 0 }.is_enough());
        assert_eq!(Count { noticed: 9, missed: 1 }.to_string(), "9 of 10 mutants were noticed");
    }

    #[test]
    fn lists_are_counted_by_their_lines() {
        let folder = std::env::temp_dir().join(format!("tidegate-mutants-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (name, text) in [("caught.txt", "a\nb\n"), ("timeout.txt", "c\n"), ("missed.txt", "d\n\n")] {
            fs::write(folder.join(name), text).unwrap();
        }
        assert_eq!(Count::read(&folder).unwrap(), Count { noticed: 3, missed: 1 });
        fs::remove_dir_all(&folder).unwrap();
        assert!(Count::read(&folder).is_err());
    }

    #[test]
    fn crates_are_named_by_folder_or_package() {
        let names = |names: &[&str]| packages(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&[]).unwrap(), CRATES);
        assert_eq!(names(&["turn", "tidegate-rules"]).unwrap(), [CRATES[2], CRATES[0]]);
        assert!(names(&["cli"]).unwrap_err().to_string().contains("known are rules, guard, turn, sandbox"));
    }
}
