//! `cargo xtask test`: everything that tests need, then all tests.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use tidegate_servers::{
    ensure_ag_ui, ensure_componentize_js, ensure_componentize_py, ensure_conventions_js, ensure_editors_js,
    ensure_editors_py, ensure_fuzz, ensure_judge, ensure_model, ensure_node, ensure_otel, ensure_prometheus,
    ensure_proxy, ensure_python, ensure_redis, ensure_sdks_js, ensure_tmux,
};

use crate::crates::{self, Tested};
use crate::{guests, run, web};

/// Tests of all crates, plugins and packages for web front ends, or of the named ones. One run reports all failures.
pub(crate) fn test(crates: &[String], filters: &[String]) -> Result<()> {
    let tested = crates::named(crates)?;
    if tested.iter().any(|one| !matches!(one, Tested::Web(_))) || tested.is_empty() {
        prepare()?;
    }
    if tested.iter().any(|one| matches!(one, Tested::Web(_))) || tested.is_empty() {
        // Before the program, which embeds the page.
        web::build()?;
    }
    let mut counts = Counts::default();
    let results = if tested.is_empty() { all(filters, &mut counts)? } else { some(&tested, filters, &mut counts) };
    writeln!(std::io::stdout(), "\n{} passed, {} failed, {} skipped", counts.passed, counts.failed, counts.ignored)?;
    results.into_iter().collect::<Result<()>>()?;
    ensure!(counts.passed > 0, "no test ran: no name contains any of {filters:?}");
    ensure!(counts.ignored == 0, "{} tests are marked to be ignored, and none may be", counts.ignored);
    Ok(())
}

/// The plugins' own tests, which are quick, then those of the workspace. Its examples are built by no step of their own: tests include and run
/// them.
fn all(filters: &[String], counts: &mut Counts) -> Result<Vec<Result<()>>> {
    let plugins = guests::packages("plugins")?;
    let mut results: Vec<_> = plugins.iter().map(|plugin| test_plugin(plugin, filters, counts)).collect();
    for (what, targets) in [("tests of the workspace", "--tests"), ("examples in the documentation", "--doc")] {
        let mut command = run::cargo(&["test", "--workspace", targets, "--locked", "--no-fail-fast", "--"]);
        results.push(run::step_read(what, command.args(filters), |line| counts.read(line)));
    }
    let program = web::program_of_workspace();
    results.extend(web::test(&web::TESTED, filters, program, |line| counts.read_vitest(line)));
    // Last, because it is the same file with other features.
    results.push(test_export(filters, counts));
    Ok(results)
}

fn some(tested: &[Tested], filters: &[String], counts: &mut Counts) -> Vec<Result<()>> {
    let tests = tested.iter().flat_map(|one| match one {
        Tested::Plugin(folder) => vec![test_plugin(folder, filters, counts)],
        Tested::Web(folder) => web::test(&[folder], filters, web::program(), |line| counts.read_vitest(line)),
        Tested::Crate(package) => {
            let mut command = run::cargo(&["test", "--package", package, "--locked", "--no-fail-fast", "--"]);
            let what = format!("tests of {package}");
            vec![run::step_read(&what, command.args(filters), |line| counts.read(line))]
        }
    });
    tests.collect()
}

/// What the closing lines of test programs say, added up.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Counts {
    /// Takes `Tests  1 failed | 47 passed (48)` of Vitest; other lines are passed over.
    fn read_vitest(&mut self, line: &str) {
        let Some(result) = line.trim().strip_prefix("Tests ") else { return };
        for part in result.split(['|', '(']) {
            let (number, word) = part.trim().split_once(' ').unwrap_or_default();
            self.add(number, word);
        }
    }

    fn add(&mut self, number: &str, word: &str) {
        let number = number.parse().unwrap_or(0);
        match word {
            "passed" => self.passed += number,
            "failed" => self.failed += number,
            "ignored" | "skipped" | "todo" => self.ignored += number,
            _ => {}
        }
    }

    /// Takes `test result: ok. 3 passed; 0 failed; 1 ignored; …`; other lines are passed over.
    fn read(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let (_, numbers) = result.split_once(". ").unwrap_or_default();
        for part in numbers.split("; ") {
            let (number, word) = part.trim().split_once(' ').unwrap_or_default();
            self.add(number, word);
        }
    }
}

/// Builds components and installs servers, so that no test waits for it or hides it.
fn prepare() -> Result<()> {
    ensure_node()?;
    ensure_python()?;
    ensure_model()?;
    ensure_fuzz()?;
    ensure_judge()?;
    ensure_otel()?;
    ensure_proxy()?;
    ensure_componentize_js()?;
    ensure_componentize_py()?;
    ensure_editors_js()?;
    ensure_editors_py()?;
    ensure_sdks_js()?;
    ensure_conventions_js()?;
    ensure_ag_ui()?;
    ensure_redis()?;
    ensure_prometheus()?;
    ensure_tmux()?;
    guests::build_test_guests()?;
    guests::build_plugins()?;
    Ok(())
}

/// The program as it is built for OpenTelemetry. Everything else of it is tested as it is built by default; the library is the same in
/// both, so that no more than the program is built again.
fn test_export(filters: &[String], counts: &mut Counts) -> Result<()> {
    let arguments = ["test", "--workspace", "--locked", "--features", "tidegate-cli/otel", "--test", "export", "--"];
    let mut command = run::cargo(&arguments);
    run::step_read("tests of the program with the feature otel", command.args(filters), |line| counts.read(line))
}

/// A plugin's tests are plain Rust, run natively.
fn test_plugin(plugin: &Path, filters: &[String], counts: &mut Counts) -> Result<()> {
    let name = plugin.file_name().unwrap_or_default().to_string_lossy();
    let mut command = in_plugin(plugin, &["test", "--locked", "--no-fail-fast"]);
    let command = command.arg("--").args(filters);
    run::step_read(&format!("tests of the plugin {name}"), command, |line| counts.read(line))
}

/// Cargo in a plugin's own workspace, natively; all plugins share one folder for what they build.
pub(crate) fn in_plugin(plugin: &Path, arguments: &[&str]) -> Command {
    let mut command = run::cargo(arguments);
    command.current_dir(plugin).env("CARGO_TARGET_DIR", run::target().join("plugins"));
    command
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn closing_lines_are_added_up() {
        let mut counts = Counts::default();
        counts.read("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.05s\n");
        counts
            .read("test result: FAILED. 2 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.2s\n");
        counts.read("test result is no result ... ok\n");
        assert_eq!(counts, Counts { passed: 14, failed: 5, ignored: 1 });
        counts.read_vitest("      Tests  1 failed | 47 passed (48)\n");
        counts.read_vitest(" Test Files  3 passed (3)\n");
        assert_eq!(counts, Counts { passed: 61, failed: 6, ignored: 1 });
    }
}
