//! Limits at the command line: a session is suspended, decided about by another process or before it continues, and continued.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Place, Say, code, err, out, recording};

/// A workspace whose sessions make two steps at most, and wait so long for an approval.
fn place(answers: &[&[Say<'_>]], timeout: &str) -> Place {
    let place = Place::new();
    place.write("answers.jsonl", &recording(answers));
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[tools.permission]\nwrite_file = \"allow\"\n",
    );
    let limits = format!("schema_version = \"1.0.0\"\n[limits]\nsteps = 2\n[approval]\ntimeout = \"{timeout}\"\n");
    place.write(".tidegate/thread_limits.toml", &limits);
    place
}

fn session(place: &Place) -> String {
    let listed = place.json(&["session", "list", "--json"]);
    listed["sessions"][0]["session"].as_str().unwrap().to_owned()
}

fn records(place: &Place, kind: &str) -> Vec<Value> {
    let text = out(&place.run(&["session", "show", &session(place), "--json"]));
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.filter(|record| record["type"] == kind).map(|record| record["payload"].clone()).collect()
}

const STEPS: [&[Say<'_>]; 3] = [&[Say::Write("a.txt", "1")], &[Say::Write("b.txt", "2")], &[Say::Text("Written.")]];

#[test]
fn a_suspended_session_is_approved_and_continues_in_another_process() {
    let place = place(&STEPS, "1s");
    let first = place.run(&["run", "Write"]);
    assert_eq!(code(&first), 6, "{}", err(&first));
    for part in ["`steps` of 2: 2 spent", "waiting for a decision", "suspended:", "nobody has decided in time"] {
        assert!(err(&first).contains(part), "{part}: {}", err(&first));
    }
    assert!(!place.path("c.txt").exists());
    assert_eq!(records(&place, "thread_suspended")[0]["suspend_reason"], "limit");

    assert!(out(&place.run(&["session", "list"])).contains("suspended"));
    let id = session(&place);
    let low = place.run(&["session", "approve", &id, "--max", "2"]);
    assert!(code(&low) == 2 && err(&low).contains("does not raise the limit"), "{}", err(&low));
    let wrong = place.run(&["session", "approve", &id, "--max", "5m"]);
    assert!(code(&wrong) == 2 && err(&wrong).contains("`5m` is not a whole number"), "{}", err(&wrong));
    let approved = place.run(&["session", "approve", &id[..id.len() - 1]]);
    assert!(code(&approved) == 0 && err(&approved).contains("run --resume"), "{}", err(&approved));

    place.write("answers.jsonl", &recording(&STEPS[2..]));
    let second = place.run(&["run", "--resume", &id]);
    assert_eq!((code(&second), out(&second).as_str()), (0, "Written.\n"), "{}", err(&second));
    let resumed = &records(&place, "thread_resumed")[0];
    assert_eq!((&resumed["resumed_by"], &resumed["previous_suspend_reason"]), (&"approval".into(), &"limit".into()));
    let decided = records(&place, "limit_escalation_resolved");
    let decided: Vec<_> = decided.iter().map(|one| (one["decision"].as_str().unwrap(), &one["decided_by"])).collect();
    assert_eq!(decided, [("timed_out", &"".into()), ("approved", &"tidegate session".into())]);
    assert_eq!(records(&place, "input_received").len(), 1, "it went on without another input");

    let none = place.run(&["session", "approve", &id]);
    assert!(code(&none) == 1 && err(&none).contains("no open request"), "{}", err(&none));
    let done = place.run(&["run", "--resume", &id]);
    assert!(code(&done) == 1 && err(&done).contains("nothing to continue"), "{}", err(&done));
}

/// The process that waits takes the decision of another one.
#[test]
fn another_process_decides_while_the_session_waits() {
    for (arguments, exit, said) in [
        (&["approve", "--max", "5"][..], 0, "approved by tidegate session: up to 5"),
        (&["deny", "--reason", "enough"][..], 6, "it was denied: enough"),
    ] {
        let place = place(&STEPS, "5m");
        let mut running =
            place.command(&["run", "Write"]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(running.stderr.take().unwrap()).lines().map(|line| line.unwrap());
        assert!(lines.any(|line| line.contains("waiting for a decision")));
        assert!(out(&place.run(&["session", "list"])).contains("waits for a decision about a limit"));
        let id = session(&place);
        let decide = [&["session", arguments[0], &id], &arguments[1..]].concat();
        let decided = place.run(&decide);
        assert!(err(&decided).contains("it takes the decision now"), "{}", err(&decided));
        let rest: Vec<String> = lines.collect();
        assert!(rest.iter().any(|line| line.contains(said)), "{rest:#?}");
        assert_eq!(running.wait().unwrap().code(), Some(exit));
    }
}

#[test]
fn a_limit_of_time_is_raised_with_a_unit() {
    let place = place(&STEPS, "1s");
    place.write(
        ".tidegate/thread_limits.toml",
        "schema_version = \"1.0.0\"\n[limits]\nduration = \"1ms\"\n[approval]\ntimeout = \"1s\"\n",
    );
    assert_eq!(code(&place.run(&["run", "Write"])), 6);
    let id = session(&place);
    let wrong = place.run(&["session", "approve", &id, "--max", "1d"]);
    assert!(code(&wrong) == 2 && err(&wrong).contains("`1d` is not a time, such as `90s`"), "{}", err(&wrong));
    let approved = place.run(&["session", "approve", &id, "--max", "5m"]);
    assert!(code(&approved) == 0 && err(&approved).contains("up to 300 s"), "{}", err(&approved));
}

/// A limit of money that could not be kept is refused before anything is spent.
#[test]
fn a_limit_of_money_needs_a_price() {
    let place = place(&STEPS, "1s");
    place.write(".tidegate/thread_limits.toml", "schema_version = \"1.0.0\"\n[limits]\nspend = 0.5\n");
    let refused = place.run(&["run", "Write"]);
    assert_eq!(code(&refused), 2, "{}", err(&refused));
    assert!(
        err(&refused).contains("limits-unknown-price") && err(&refused).contains("spend = 0.5"),
        "{}",
        err(&refused)
    );
}

#[test]
fn without_a_prompt_only_a_recorded_session_continues() {
    let place = place(&STEPS, "1s");
    let refused = place.run(&["run"]);
    assert!(code(&refused) == 2 && err(&refused).contains("PROMPT"), "{}", err(&refused));
}
