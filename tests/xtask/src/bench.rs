//! `cargo xtask bench`: the benches, optimised, with what they run built first, and one table of all that they reached.

use std::fs;

use anyhow::{Context as _, Result, bail};
use tidegate_servers::{ensure_redis, say};

use crate::{guests, run};

/// Above this many bytes the C library may copy with `rep movsb`, which is 20 times slower on some machines. Out of reach, it
/// keeps native baselines honest.
const COPY_THRESHOLD: &str = "glibc.cpu.x86_rep_movsb_threshold=1000000000";

/// The benches, as `tests/benches/main.rs` names them.
const BENCHES: [&str; 12] = [
    "callback",
    "extensions",
    "state",
    "rules",
    "rule-sets",
    "segments",
    "turn",
    "backlog",
    "start",
    "front-ends",
    "editors",
    "gateway",
];

/// Runs the benches of these names; of no names, all of them.
pub(crate) fn bench(names: &[String]) -> Result<()> {
    if let Some(unknown) = names.iter().find(|name| !BENCHES.contains(&name.as_str())) {
        bail!("there is no bench `{unknown}`: there are {}", BENCHES.join(", "));
    }
    guests::build_test_guests()?;
    guests::build_plugins()?;
    ensure_redis()?;
    let program = ["build", "--profile", "bench", "--package", "tidegate-cli", "--locked"];
    run::step("the program, optimised", &mut run::cargo(&program))?;
    let chosen = BENCHES.iter().filter(|name| names.is_empty() || names.iter().any(|chosen| chosen == *name));
    let mut table = String::new();
    for name in chosen {
        let rows = run::target().join("tmp").join(format!("bench-{name}.md"));
        if rows.exists() {
            fs::remove_file(&rows).with_context(|| format!("cannot remove {}", rows.display()))?;
        }
        let mut command = run::cargo(&["bench", "--package", "tidegate-tests", "--locked", "--bench", "all"]);
        run::step(
            &format!("bench {name}"),
            command.env("GLIBC_TUNABLES", COPY_THRESHOLD).env("TIDEGATE_BENCHES", name),
        )?;
        table += &fs::read_to_string(&rows).with_context(|| format!("bench {name} left no {}", rows.display()))?;
    }
    say(&format!("\n| what | aim | reached | met |\n|---|---|---|---|\n{table}"));
    Ok(())
}
