//! `cargo xtask bench`: the benches, optimised, with their guests built first.

use anyhow::Result;

use crate::{guests, run};

/// Above this many bytes the C library may copy with `rep movsb`, which is 20 times slower on some machines. Out of reach, it
/// keeps native baselines honest.
const COPY_THRESHOLD: &str = "glibc.cpu.x86_rep_movsb_threshold=1000000000";

pub(crate) fn bench(filters: &[String]) -> Result<()> {
    guests::build_test_guests()?;
    guests::build_plugins()?;
    let mut command = run::cargo(&["bench", "--package", "tidegate-tests", "--locked", "--benches", "--"]);
    command.args(filters).env("GLIBC_TUNABLES", COPY_THRESHOLD);
    run::step("benches", &mut command)
}
