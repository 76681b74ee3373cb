//! `run --metrics` and `--metrics-file`: the endpoint while a turn runs, the file at the end, and what can go wrong.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use tidegate_servers::{ensure_prometheus, get, promtool_check};

use crate::support::tmux::Terminal;
use crate::support::{AN_AI, Place, Say, Server, code, err, out, recording};

const STOPPED: &str = "+++\ncondition = 'STOP'\nscope = \"text\"\naction = \"stop\"\n+++\nStop.\n";

/// A workspace with two rules, whose model gives these answers.
fn place(answers: &[&[Say<'_>]]) -> Place {
    let place = Place::with(&[("no-ai", AN_AI), ("stop", STOPPED)]);
    place.write("answers.jsonl", &recording(answers));
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[rules]\nbuiltin_rules = false\n\
         retry_delay_ms = 0\n[tools.permission]\nwrite_file = \"allow\"\n",
    );
    place
}

fn start(place: &Place, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command
        .arg("--trust-workspace")
        .args(arguments)
        .current_dir(place.path(""))
        .env("XDG_CONFIG_HOME", place.path("user"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[cfg(not(feature = "otel"))]
#[test]
fn a_program_without_opentelemetry_says_so_where_an_endpoint_is_set() {
    let place = place(&[&[Say::Text("Fine.")]]);
    let run = |arguments: &[&str], endpoint: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command
            .arg("--trust-workspace")
            .args(arguments)
            .current_dir(place.path(""))
            .env("XDG_CONFIG_HOME", place.path("user"));
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).stdin(Stdio::null()).output().unwrap()
    };
    let output = run(&["run", "go"], "http://localhost:4318");
    let expected = "warning: OTEL_EXPORTER_OTLP_ENDPOINT is set, but this program was built without OpenTelemetry, so nothing is \
                    exported; build it with `--features otel`\n";
    assert_eq!((code(&output), out(&output).trim(), err(&output).as_str()), (0, "Fine.", expected));
    assert_eq!(err(&run(&["run", "go"], "")), "");
    assert_eq!(err(&run(&["rules", "list"], "http://localhost:4318")), "");
}

#[test]
fn the_endpoint_is_read_while_a_turn_runs_and_the_file_has_its_end() {
    let answers: &[&[Say<'_>]] = &[
        &[Say::Text("Well, as an AI language model I")],
        &[Say::Call("read_file", r#"{"path": "tidegate.toml"}"#), Say::Call("invented", "{}")],
        &[Say::Text("Done.")],
    ];
    let place = place(answers);
    let (release, held) = mpsc::channel::<()>();
    // The last answer is kept back until the endpoint was read.
    let server = Server::held(&recording(answers), move |number| {
        if number == 2 {
            held.recv().unwrap();
        }
    });
    let model = ["--provider", "anthropic", "--model", "m-1", "--api-key-env", "", "--base-url", &server.url];
    let measured = ["--metrics", "127.0.0.1:0", "--metrics-file", "metrics.txt"];
    let mut child = start(&place, &[&["run", "go"], &model[..], &measured].concat());
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("metrics: ")?.strip_suffix("/metrics")?.to_owned()));
    let address = address.unwrap();
    let read = || get(&address, "/metrics").unwrap().body;
    // The turn waits for the held answer: sooner or later everything before it has been counted.
    let call = "tool_call_total{tool=\"invented\",outcome=\"error\"} 1\n";
    let text = loop {
        let text = read();
        if text.contains(call) {
            break text;
        }
        assert_eq!(child.try_wait().unwrap(), None, "it ended before the call was counted:\n{text}");
        std::thread::yield_now();
    };
    for line in [
        "rule_fired_total{rule=\"no-ai\",action=\"interrupt\"} 1",
        "rule_tokens_discarded_total{rule=\"no-ai\"} ",
        "tool_call_total{tool=\"read_file\",outcome=\"ok\"} 1",
        "model_request_total{model=\"m-1\"} 2",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
    assert!(!text.contains("turn_total"), "the turn is not over: {text}");
    ensure_prometheus().unwrap();
    let found = promtool_check(&text).unwrap();
    assert!(found.iter().all(|line| line.ends_with("should not contain abbreviated units")), "{found:?}");
    assert_eq!(get(&address, "/").unwrap().status, 404);
    release.send(()).unwrap();
    let rest: Vec<String> = lines.collect();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((code(&ended), out(&ended).as_str()), (0, "Done.\n"), "{rest:?}");
    let file = std::fs::read_to_string(place.path("metrics.txt")).unwrap();
    for line in ["turn_total{status=\"completed\"} 1\n", "model_request_total{model=\"m-1\"} 3\n", "\n# EOF\n"] {
        assert!(file.contains(line), "no {line} in\n{file}");
    }
    assert!(get(&address, "/metrics").is_err(), "the endpoint ends with the program");
}

#[test]
fn the_file_is_written_however_the_turn_ended() {
    for (answers, status, exit) in [
        (&[&[Say::Text("and STOP it")][..]][..], "stopped_by_rule", 4),
        (&[][..], "failed", 1),
        (&[&[Say::Text("Done.")][..]][..], "completed", 0),
    ] {
        let place = place(answers);
        let output = place.run(&["run", "go", "--metrics-file", "metrics.txt"]);
        assert_eq!(code(&output), exit, "{status}: {}", err(&output));
        let file = std::fs::read_to_string(place.path("metrics.txt")).unwrap();
        assert!(file.contains(&format!("turn_total{{status=\"{status}\"}} 1\n")), "{file}");
    }
}

#[test]
fn a_chat_and_an_editor_have_metrics_too() {
    let place = place(&[]);
    let terminal = Terminal::start(&place, &["chat", "--metrics-file", "chat.txt"], &[]);
    terminal.shows("/help");
    terminal.enter("Hello");
    terminal.shows("failed:");
    terminal.enter("/quit");
    terminal.shows("exit code");
    let chat = std::fs::read_to_string(place.path("chat.txt")).unwrap();
    assert!(chat.contains("turn_total{status=\"failed\"} 1\n"), "{chat}");

    let mut command = place.command(&["acp", "--metrics", "127.0.0.1:0", "--metrics-file", "acp.txt"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find_map(|line| Some(line.strip_prefix("metrics: ")?.strip_suffix("/metrics")?.to_owned()));
    assert_eq!(get(&address.unwrap(), "/metrics").unwrap().status, 200);
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let acp = std::fs::read_to_string(place.path("acp.txt")).unwrap();
    assert!(acp.ends_with("# EOF\n"), "{acp}");
}

/// The turn makes a folder where the file is to be.
#[test]
fn a_file_that_cannot_be_written_is_reported_and_fails_only_a_run_that_did_not() {
    let taken = |end: &'static str| {
        let place = place(&[&[Say::Write("metrics.txt/x", "x")], &[Say::Text(end)]]);
        place.run(&["run", "go", "--metrics-file", "metrics.txt"])
    };
    let (completed, stopped) = (taken("Done."), taken("and STOP it"));
    assert_eq!((code(&completed), code(&stopped)), (1, 4), "{}{}", err(&completed), err(&stopped));
    assert_eq!(out(&completed), "Done.\n");
    for output in [completed, stopped] {
        assert!(err(&output).contains("error: cannot write the metrics to metrics.txt: "), "{}", err(&output));
    }
}

#[test]
fn what_cannot_work_is_an_error_before_the_turn() {
    let place = place(&[&[Say::Text("Done.")]]);
    place.write("folder/x", "x");
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    for (arguments, said) in [
        (["--metrics", &address], "stop it, or choose another port"),
        (["--metrics", "192.0.2.1:9464"], "no network interface of this machine has this address"),
        (["--metrics", "9464"], "invalid value '9464' for '--metrics <IP:PORT>'"),
        (["--metrics-file", "missing/metrics.txt"], "there is no folder missing; create it"),
        (["--metrics-file", "folder"], "this is a folder; add the name of a file"),
    ] {
        let output = place.run(&["run", "go", arguments[0], arguments[1]]);
        assert_eq!((code(&output), out(&output).as_str()), (2, ""), "{arguments:?}: {}", err(&output));
        assert!(err(&output).contains(said), "{arguments:?}: {}", err(&output));
    }
    assert!(
        err(&place.run(&["run", "go", "--metrics", &address]))
            .contains(&format!("cannot serve metrics at {address}: "))
    );
    let open = place.run(&["run", "go", "--metrics", "0.0.0.0:0"]);
    assert_eq!(code(&open), 0);
    assert!(err(&open).contains("warning: whoever can reach 0.0.0.0:"), "{}", err(&open));
}
