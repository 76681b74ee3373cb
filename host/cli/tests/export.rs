//! The program as it is built for OpenTelemetry: what a receiver gets of a run, and what a run reports where there is none. A program of its
//! own, because it is built with that feature.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use support::{AN_AI, Place, Say, code, err, out, recording};
use tidegate_servers::OtelTap;

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

fn place(answers: &[&[Say<'_>]]) -> Place {
    let place = Place::with(&[("no-ai", AN_AI)]);
    place.write("answers.jsonl", &recording(answers));
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[rules]\nbuiltin_rules = false\n\
         retry_delay_ms = 0\n[tools.permission]\nwrite_file = \"allow\"\n",
    );
    place
}

fn run(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("--trust-workspace").args(arguments).current_dir(place.path("")).stdin(Stdio::null());
    for folder in ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
        command.env(folder, place.path("user"));
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn a_run_is_exported_before_the_program_ends() {
    let place = place(&[
        &[Say::Text("Well, as an AI language model I")],
        &[Say::Write("a.txt", "XYLOPHONE"), Say::Call("invented", "{}")],
        &[Say::Text("XYLOPHONE.")],
    ]);
    let tap = OtelTap::start().unwrap();
    let arguments = ["run", "XYLOPHONE?", "--metrics-file", "metrics.txt"];
    let output = run(&place, &arguments, &[(ENDPOINT, tap.base_url())]);
    assert_eq!((code(&output), out(&output).trim()), (0, "XYLOPHONE."));
    assert!(!err(&output).contains("warning"), "{}", err(&output));
    let received = tap.received().unwrap();
    let count = |name: &str| received.spans.iter().filter(|span| span["name"] == name).count();
    assert_eq!(
        (count("invoke_agent"), count("step"), count("chat recorded"), count("execute_tool write_file")),
        (1, 2, 3, 1),
        "{:?}",
        received.spans
    );
    let names = |list: &[serde_json::Value]| list.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    let metrics: Vec<String> = names(&received.metrics);
    for name in ["gen_ai.client.operation.duration", "rule.fired.total", "tool.call.duration_ms"] {
        assert!(metrics.iter().any(|metric| metric == name), "no {name} in {metrics:?}");
    }
    assert!(received.contains("tidegate").unwrap() && !received.contains("XYLOPHONE").unwrap());
    let file = std::fs::read_to_string(place.path("metrics.txt")).unwrap();
    assert!(file.contains("turn_total{status=\"completed\"} 1\n"), "the same numbers: {file}");
}

#[test]
fn without_a_receiver_the_run_is_the_same_and_says_once_what_was_lost() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let answers: &[&[Say<'_>]] = &[&[Say::Text("Fine.")], &[Say::Text("Fine too.")]];
    let endpoint = format!("http://{closed}");
    let output = run(&place(answers), &["run", "one", "two"], &[(ENDPOINT, &endpoint)]);
    assert_eq!(code(&output), 0);
    assert!(out(&output).contains("Fine.") && out(&output).contains("Fine too."));
    let told = err(&output);
    let told: Vec<&str> = told.lines().filter(|line| line.contains("OpenTelemetry")).collect();
    let [line] = told.as_slice() else { panic!("{told:?}") };
    assert!(
        line.starts_with("warning: OpenTelemetry: 6 of 6 spans and the metrics were not exported: cannot reach"),
        "{line}"
    );

    let output = run(&place(answers), &["run", "one"], &[(ENDPOINT, "localhost:4317")]);
    assert_eq!((code(&output), out(&output).trim()), (0, "Fine."));
    let expected = "warning: nothing is exported to OpenTelemetry: OTEL_EXPORTER_OTLP_ENDPOINT: ";
    assert!(err(&output).starts_with(expected), "{}", err(&output));
}

#[test]
fn what_runs_no_turn_exports_nothing() {
    let output = run(&place(&[]), &["plugin", "list"], &[(ENDPOINT, "localhost:4317")]);
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_exported_to_where_the_policy_of_the_machine_does_not_permit_it() {
    let place = place(&[&[Say::Text("Done.")]]);
    let mut command = place.command(&["run", "Go."]);
    // Nobody listens there: what was tried is reported.
    let endpoint = "http://127.0.0.1:9";
    command.env(ENDPOINT, endpoint);
    for (addresses, is_sent) in [(endpoint, true), ("https://127.0.0.1:9", false)] {
        let policy = format!("addresses = [\"{addresses}\"]\n");
        let ran = support::machine::under(&policy, &command).stdin(Stdio::null()).output().unwrap();
        let is_refused = err(&ran).contains("does not permit http://127.0.0.1:9 for telemetry");
        assert_eq!((is_refused, err(&ran).contains("cannot reach")), (!is_sent, is_sent), "{policy}: {}", err(&ran));
        assert_eq!(code(&ran), 0);
    }
}
