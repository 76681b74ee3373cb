//! What the workspace depends on: nothing that is unused, nothing that must not be used, and no known vulnerability.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};
use tidegate_servers::say;

use crate::run;

/// The programs that check dependencies, and the versions that are installed.
const MACHETE: Program = Program { name: "cargo-machete", version: "0.9.2", features: true };
const DENY: Program = Program { name: "cargo-deny", version: "0.20.2", features: false };

struct Program {
    name: &'static str,
    version: &'static str,
    /// Whether its default features are needed.
    features: bool,
}

impl Program {
    /// Returns its path; installs it below the target folder if this version is not there yet.
    fn ensure(&self) -> Result<PathBuf> {
        let root = run::target().join("tools").join(format!("{}-{}", self.name, self.version));
        let program = root.join("bin").join(self.name);
        if !program.is_file() {
            let mut install =
                run::cargo(&["install", "--locked", "--profile", "dev", "--version", self.version, "--root"]);
            install.arg(&root).arg("--target-dir").arg(run::target().join("tools/build"));
            // Nobody debugs them, and of several hundred crates it is a good part of the work.
            install.env("CARGO_PROFILE_DEV_DEBUG", "false");
            if !self.features {
                install.arg("--no-default-features");
            }
            run::step(&format!("install {} {}", self.name, self.version), install.arg(self.name))?;
        }
        Ok(program)
    }
}

pub(crate) fn check() -> Result<()> {
    let machete = MACHETE.ensure()?;
    run::step("unused dependencies", Command::new(machete).arg("--skip-target-dir").current_dir(run::root()))?;
    let deny = DENY.ensure()?;
    let check = |what: &[&str]| {
        let mut command = Command::new(&deny);
        command.args(["--locked", "check", "--hide-inclusion-graph"]).args(what).current_dir(run::root());
        command
    };
    run::step("licences, bans and sources of dependencies", &mut check(&["licenses", "bans", "sources"]))?;
    // The database of advisories is a repository elsewhere; without it the rest of the gate still counts.
    let mut fetch = Command::new(&deny);
    let fetched = fetch.args(["fetch", "db"]).current_dir(run::root()).output().context("cannot start cargo-deny")?;
    if !fetched.status.success() {
        let words = String::from_utf8_lossy(&fetched.stderr);
        let cause = words.lines().next().unwrap_or("cargo-deny gives no reason");
        say(&format!("  known vulnerabilities: NOT CHECKED, the advisory database cannot be fetched: {cause}"));
        return Ok(());
    }
    run::step("known vulnerabilities", &mut check(&["advisories"]))
}
