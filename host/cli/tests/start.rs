//! What keeps the program from starting is reported with what to do, before anything runs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Place, Say, code, err, out, recording};

#[test]
fn what_keeps_run_from_starting_is_a_failed_check_with_a_remedy() {
    let place = Place::new();
    place.write("answers.jsonl", &recording(&[&[Say::Text("One.")]]));
    let provider = "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n";
    place.write("file", "");
    // Below a file there is no folder, for the superuser neither.
    let settings = "[transcript]\nfolder = \"file/sessions\"\n[state]\nbackend = \"disk\"\nfolder = \"file/state\"\n";
    place.write("tidegate.toml", &format!("{provider}{settings}"));
    let doctor = place.run(&["doctor"]);
    assert_eq!(code(&doctor), 1, "{}", out(&doctor));
    let line = |what: &str| {
        let found = out(&doctor).lines().find(|line| line.starts_with(what)).map(str::to_owned);
        found.unwrap_or_else(|| panic!("{what}: {}", out(&doctor)))
    };
    assert!(line("fail transcripts").contains("`tidegate run --no-transcript`"), "{}", line("fail transcripts"));
    assert!(out(&doctor).contains("choose another place under `[state]`"), "{}", out(&doctor));

    place.write("tidegate.toml", &format!("{provider}[transcript]\nfolder = \"file/sessions\"\n"));
    let run = place.run(&["run", "hi"]);
    assert_eq!(code(&run), 2);
    assert!(err(&run).contains("`tidegate run --no-transcript`"), "{}", err(&run));
    place.write("tidegate.toml", provider);
    let doctor = place.run(&["doctor"]);
    assert!(out(&doctor).contains("ok   transcripts: a file was written"), "{}", out(&doctor));
    let left = std::fs::read_dir(place.path("state/tidegate/sessions")).unwrap().count();
    assert_eq!(left, 0, "the check leaves nothing");
}

#[test]
fn files_that_are_named_by_flags_and_missing_are_reported_before_anything_starts() {
    let place = Place::new();
    for (arguments, message) in [
        (&["acp", "--config", "nope.toml"][..], "nope.toml"),
        (&["acp", "--recording", "nope.jsonl"], "cannot read nope.jsonl"),
        (&["acp", "--recording", "."], "cannot read .: it is a folder"),
        (&["acp", "--recording", "nope.jsonl", "--model", "m"], "remove --model"),
        (&["acp", "--permission", "shell=maybe"], "--permission shell=maybe"),
        (&["acp", "--grant", "state"], "no --plugin was given"),
        (&["run", "hi", "--plugin", "nope"], "name the folder that contains the plugin's `plugin.toml`"),
        (&["plugin", "build", "nope"], "there is no folder nope"),
    ] {
        let output = place.run(arguments);
        assert!(err(&output).contains(message), "{arguments:?}: {}", err(&output));
        assert_eq!(code(&output), 2, "{arguments:?}: {}", err(&output));
    }
}

#[test]
fn an_operators_file_above_the_workspace_is_named_once() {
    let place = Place::new();
    place.write(".git/HEAD", "");
    place.write("tidegate.toml", "");
    place.write("src/main.rs", "");
    let below = place.run(&["plugin", "list", "--workspace", "src"]);
    let said = err(&below);
    assert_eq!(said.matches("tidegate.toml is not used").count(), 1, "{said}");
    let (above, here) = (place.path("").canonicalize().unwrap(), place.path("src").canonicalize().unwrap());
    let expected =
        format!("the workspace is {}; give `--workspace {}` to work in that folder", here.display(), above.display());
    assert!(said.contains(&expected), "{said}");
    for arguments in [&["plugin", "list"][..], &["plugin", "list", "--workspace", "src", "--config", "tidegate.toml"]] {
        assert_eq!(err(&place.run(arguments)), "", "{arguments:?}");
    }
}

#[test]
fn the_doctor_counts_built_in_rules_without_a_problem() {
    let place = Place::new();
    place.write("tidegate.toml", "[rules]\ndisabled_rules = [\"ts-as-any\"]\n");
    // It has the name of a built-in rule, which stays, and of which that is reported.
    place.write(".tidegate/rules/stub-left.md", "+++\ncondition = 'x'\nscope = \"tool:nowhere\"\n+++\nNo.\n");
    let report = place.json(&["doctor", "--json"]);
    let is_built_in = |check: &&serde_json::Value| check["detail"].as_str().unwrap().contains("(built-in, ");
    let checks: Vec<&serde_json::Value> = report["checks"].as_array().unwrap().iter().filter(is_built_in).collect();
    let good = checks.iter().filter(|check| check["health"] == "good").count();
    assert!(good > 40, "{report}");
    let text = out(&place.run(&["doctor"]));
    assert!(text.contains(&format!("ok   built-in rules: {good} without a problem")), "{text}");
    let told = text.lines().filter(|line| line.contains("(built-in, ")).count();
    assert_eq!(told, checks.len() - good, "{text}");
}

#[test]
fn the_licenses_of_what_is_bundled_are_printed() {
    let output = Place::new().run(&["licenses"]);
    let text = out(&output);
    assert_eq!(code(&output), 0);
    // Each with the work that it is of, and its text.
    assert!(text.matches("\n== ").count() > 20 && text.contains("Permission is hereby granted"), "{text}");
}
