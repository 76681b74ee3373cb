//! The environment of commands: `tests/corpus/shell/variables.toml`, each variable in a process that has it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the counts of the corpus, and what a process tells the one that started it")]
#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use serde_json::json;
use tidegate_tools::ToolSettings;

use crate::common::World;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    variable: Vec<Variable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    value: String,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    own_key: bool,
    passes: bool,
}

fn corpus() -> Vec<Variable> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/shell/variables.toml");
    toml::from_str::<Corpus>(&std::fs::read_to_string(file).unwrap()).unwrap().variable
}

/// The variable with the index of the case that this process is.
const CASE: &str = "TIDEGATE_TEST_CASE";

/// The test's own environment has what cargo sets, and a process cannot change it safely: each case runs in a process of its own.
#[test]
fn commands_get_what_builds_need_and_what_the_operator_names() {
    let corpus = corpus();
    if let Ok(index) = std::env::var(CASE) {
        return inside(&corpus[index.parse::<usize>().unwrap()]);
    }
    let (mut passed, mut wrong) = (0, Vec::new());
    for (index, case) in corpus.iter().enumerate() {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args([
            "--exact",
            "environment::commands_get_what_builds_need_and_what_the_operator_names",
            "--nocapture",
        ]);
        again.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        let output = again.env(CASE, index.to_string()).env(&case.name, &case.value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{}: {said}", case.name);
        let got = said.contains(&format!("\n{}={}\n", case.name, case.value));
        let mentioned = said.contains(&format!("\n{}=", case.name));
        if got != case.passes || mentioned != case.passes {
            wrong.push(format!("{}={} with {:?}: {said}", case.name, case.value, case.env));
        }
        passed += usize::from(case.passes);
    }
    println!("{} variables: {passed} are passed, {} are not", corpus.len(), corpus.len() - passed);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(passed >= 20 && corpus.len() - passed >= 50, "{passed} of {}", corpus.len());
}

/// Prints the environment of a command.
fn inside(case: &Variable) {
    let own_keys = if case.own_key { vec![case.name.clone()] } else { Vec::new() };
    let world = World::with(ToolSettings { shell_env: case.env.clone(), own_keys, ..ToolSettings::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = runtime.block_on(world.fine("shell", json!({"command": "env"})));
    // The doctor tells of the same variables.
    let variables = world.tools.command_variables();
    assert_eq!(variables.passed.contains(&case.name), case.passes);
    assert_eq!(variables.left_out.contains(&case.name), !case.passes);
    println!("\n{said}");
}
