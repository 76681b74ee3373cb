//! Recorded sessions: `run` records and continues them, and `session` lists, shows, follows, forks, repairs and removes them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate::state::{DiskStore, StateBatch, StateChange, StateEntry, StateLifetime, StateStore, StoreOptions};
use tidegate::{SessionId, SystemClock};

use crate::support::{Place, Say, code, err, out, recording};

/// A workspace with a recorded model that gives these answers.
fn place(answers: &[&[Say<'_>]]) -> Place {
    let place = Place::new();
    answer(&place, answers);
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[tools.permission]\nwrite_file = \"allow\"\n",
    );
    place
}

fn answer(place: &Place, answers: &[&[Say<'_>]]) {
    place.write("answers.jsonl", &recording(answers));
}

/// The ids of the recorded sessions, the latest first.
fn sessions(place: &Place) -> Vec<String> {
    let listed = place.json(&["session", "list", "--json"]);
    listed["sessions"].as_array().unwrap().iter().map(|one| one["session"].as_str().unwrap().to_owned()).collect()
}

fn transcript(place: &Place, id: &str) -> PathBuf {
    place.path(&format!("state/tidegate/sessions/{id}/transcript.jsonl"))
}

fn lines(place: &Place, id: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(transcript(place, id)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn types(place: &Place, id: &str) -> Vec<String> {
    lines(place, id)[1..].iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_is_recorded_and_continues() {
    let place = place(&[&[Say::Write("a.txt", "one")], &[Say::Text("Written.")]]);
    let first = place.run(&["run", "Write one"]);
    assert_eq!((code(&first), out(&first).as_str()), (0, "Written.\n"), "{}", err(&first));
    let [id] = &sessions(&place)[..] else { panic!("one session") };

    answer(&place, &[&[Say::Text("Again.")]]);
    let second = place.run(&["run", "--continue", "And again"]);
    assert_eq!((code(&second), out(&second).as_str()), (0, "Again.\n"), "{}", err(&second));
    answer(&place, &[&[Say::Text("Third.")]]);
    let third = place.run(&["run", "--resume", &id[..id.len() - 1], "More"]);
    assert_eq!((code(&third), out(&third).as_str()), (0, "Third.\n"), "{}", err(&third));
    assert_eq!(sessions(&place), std::slice::from_ref(id), "it is still one session");

    let records = lines(&place, id);
    assert_eq!((&records[0]["format"], &records[0]["version"]), (&"tidegate-transcript".into(), &1.into()));
    let numbers: Vec<u64> = records[1..].iter().map(|record| record["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no gaps");
    let events: Vec<u64> = records[1..].iter().map(|record| record["event"].as_u64().unwrap()).collect();
    assert!(events.windows(2).all(|pair| pair[0] < pair[1]), "{events:?}");
    let of = |kind: &str| records.iter().filter(|record| record["type"] == kind).collect::<Vec<_>>();
    assert_eq!((of("thread_started").len(), of("thread_resumed").len(), of("turn_finish").len()), (1, 2, 3));
    let steps: Vec<u64> = of("step_start").iter().map(|one| one["payload"]["turn_number"].as_u64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 3, 4], "steps are counted over all turns");
    assert_eq!(of("thread_completed").last().unwrap()["payload"]["cost"]["turns"], 3);

    let shown = out(&place.run(&["session", "show", id]));
    for part in ["Turn 1", "› Write one", "● write_file", "Written.", "Turn 3", "› More", "Third.", "Resumed by input"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let turn = out(&place.run(&["session", "show", id, "--turn", "2"]));
    assert!(turn.contains("Again.") && !turn.contains("Written."), "{turn}");
    assert_eq!(code(&place.run(&["session", "show", id, "--turn", "9"])), 2);
    let json = out(&place.run(&["session", "show", id, "--json"]));
    assert_eq!(json.lines().count(), records.len() - 1, "a line for each record, without the header");
}

#[test]
fn what_cannot_be_continued_is_refused_with_what_can() {
    let place = place(&[&[Say::Text("Hello.")]]);
    let none = place.run(&["run", "--continue", "go"]);
    assert_eq!(code(&none), 2);
    assert!(err(&none).contains("no session of this workspace is recorded"), "{}", err(&none));
    assert_eq!(code(&place.run(&["run", "--session", "alpha", "Say hello\nand more"])), 0);
    let missing = place.run(&["run", "--resume", "beta", "go"]);
    assert_eq!(code(&missing), 2);
    for part in ["error[host-transcript-unavailable]", "\"beta\"", "\"alpha\""] {
        assert!(err(&missing).contains(part), "{part}: {}", err(&missing));
    }
    let both = place.run(&["run", "--continue", "--resume", "alpha", "go"]);
    assert!(code(&both) == 2 && err(&both).contains("cannot be used with"), "{}", err(&both));

    let listed = out(&place.run(&["session", "list"]));
    assert!(listed.contains("alpha") && listed.contains("Say hello") && !listed.contains("and more"), "{listed}");
    let elsewhere = Place::new();
    let outside = elsewhere.run(&["session", "list"]);
    assert!(out(&outside).contains("no session of this workspace is recorded"), "{}", out(&outside));
}

#[test]
fn a_session_is_exported_and_its_turns_are_explained() {
    let place = place(&[&[Say::Write("a.txt", "one")], &[Say::Text("Written <b>.")]]);
    assert_eq!(code(&place.run(&["run", "--session", "alpha", "Write one"])), 0);
    let markdown = out(&place.run(&["session", "export", "al"]));
    for part in ["# Session `alpha`", "## Turn 1", "Write one", "**Tool write\\_file: ", "Written <b>."] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    std::fs::write(place.path("page.html"), "an older page that others can read").unwrap();
    std::fs::set_permissions(place.path("page.html"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let written = place.run(&["session", "export", "alpha", "--format", "html", "-o", "page.html"]);
    assert_eq!((code(&written), out(&written).as_str()), (0, ""), "{}", err(&written));
    assert_eq!(std::fs::metadata(place.path("page.html")).unwrap().permissions().mode() & 0o777, 0o600);
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("Written &lt;b&gt;."), "{page}");
    assert_eq!(out(&place.run(&["session", "export", "alpha", "--format", "html"])), page, "nothing of it is cleaned");
    let exported = |id: &str| {
        let text = out(&place.run(&["session", "export", id, "--format", "jsonl"]));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    assert_eq!(exported("alpha"), lines(&place, "alpha"), "the transcript as it is on disk");
    assert_eq!(code(&place.run(&["session", "fork", "alpha", "--id", "beta"])), 0);
    let fork = exported("beta");
    assert_eq!((&fork[0]["thread_id"], &fork[0]["parent"]), (&"beta".into(), &Value::Null), "it needs no parent");
    assert!(fork.len() > 5 && exported("alpha")[1..].starts_with(&fork[1..]));
    assert_eq!(code(&place.run(&["session", "rm", "beta", "beta"])), 0);
    let folder = place.run(&["session", "export", "alpha", "-o", "."]);
    assert!(code(&folder) == 1 && err(&folder).contains("cannot write `.`"), "{}", err(&folder));

    let last = out(&place.run(&["explain"]));
    assert_eq!(last, "session alpha, turn 1: completed\n\nNo extension and no rule changed anything.\n");
    assert_eq!(out(&place.run(&["explain", "1", "--session", "alpha"])), last);
    let json = place.json(&["explain", "--json"]);
    assert_eq!(
        (&json["session"], &json["turn"], &json["changes"]),
        (&"alpha".into(), &1.into(), &Value::Array(vec![]))
    );
    let missing = place.run(&["explain", "7"]);
    assert!(code(&missing) == 2 && err(&missing).contains("has no turn 7"), "{}", err(&missing));
    let both = place.run(&["explain", "1", "--prompt", "x"]);
    assert!(code(&both) == 2 && err(&both).contains("cannot be used with"), "{}", err(&both));
    let elsewhere = Place::new().run(&["explain"]);
    assert!(
        code(&elsewhere) == 2 && err(&elsewhere).contains("no session of this workspace is recorded"),
        "{}",
        err(&elsewhere)
    );
}

#[test]
fn nothing_is_recorded_where_that_is_asked_for() {
    let place = place(&[&[Say::Text("Hello.")]]);
    assert_eq!(code(&place.run(&["run", "--no-transcript", "go"])), 0);
    assert!(!place.path("state/tidegate/sessions").exists());
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[transcript]\nenabled = false\n",
    );
    assert_eq!(code(&place.run(&["run", "go"])), 0);
    assert!(!place.path("state/tidegate/sessions").exists());
    for refused in [&["run", "--continue", "go"][..], &["session", "list"]] {
        let output = place.run(refused);
        assert_eq!(code(&output), 2);
        assert!(err(&output).contains("`enabled = false` under `[transcript]`"), "{}", err(&output));
    }
}

#[test]
fn a_fork_shares_the_turns_before_it_and_keeps_its_parent() {
    let place = place(&[&[Say::Text("One.")], &[Say::Text("Two.")]]);
    assert_eq!(code(&place.run(&["run", "--session", "parent", "first", "second"])), 0);
    let forked = place.run(&["session", "fork", "parent", "--turn", "1", "--id", "child"]);
    assert_eq!((code(&forked), out(&forked).as_str()), (0, "child\n"), "{}", err(&forked));
    answer(&place, &[&[Say::Text("Other.")]]);
    assert_eq!(code(&place.run(&["run", "--resume", "child", "third"])), 0);
    assert!(!types(&place, "child").contains(&"thread_started".to_owned()), "no record is copied");
    let shown = out(&place.run(&["session", "show", "child"]));
    assert!(shown.contains("One.") && shown.contains("Other.") && !shown.contains("Two."), "{shown}");
    assert!(out(&place.run(&["session", "list"])).contains("fork of parent at turn 1"));

    let refused = place.run(&["session", "rm", "parent"]);
    assert_eq!(code(&refused), 2);
    assert!(err(&refused).contains("\"child\""), "{}", err(&refused));
    assert_eq!(code(&place.run(&["session", "rm", "child", "parent"])), 0);
    assert!(sessions(&place).is_empty());
}

#[test]
fn sessions_of_a_folder_whose_path_is_not_utf_8_are_found() {
    let place = place(&[&[Say::Text("One.")], &[Say::Text("Two.")]]);
    let folder = place.path("").join(OsStr::from_bytes(b"caf\xe9"));
    std::fs::create_dir(&folder).unwrap();
    for file in ["tidegate.toml", "answers.jsonl"] {
        std::fs::copy(place.path(file), folder.join(file)).unwrap();
    }
    let run = |arguments: &[&str]| place.command(arguments).current_dir(&folder).output().unwrap();
    assert_eq!(code(&run(&["run", "--session", "demo", "first"])), 0);
    assert!(out(&run(&["session", "list"])).contains("demo"));
    let removed = run(&["session", "rm", "demo"]);
    assert_eq!((code(&removed), out(&removed).as_str()), (0, "demo is removed\n"), "{}", err(&removed));
}

/// Otherwise a later session with the same id would find it.
#[tokio::test]
async fn a_removed_session_leaves_no_state_of_plugins() {
    let place = place(&[&[Say::Text("One.")]]);
    assert_eq!(code(&place.run(&["run", "--session", "demo", "first"])), 0);
    let folder = place.path("state/tidegate/state");
    let store = DiskStore::new(folder, StoreOptions::default(), Arc::new(SystemClock)).unwrap();
    let state = store.open(&SessionId::new("demo")).await.unwrap();
    let entry = StateEntry::written("todo", *b"\"milk\"", StateLifetime::Session, 0);
    let changes = vec![StateChange::Set(entry)];
    state.apply(&"notes".parse().unwrap(), StateBatch { changes, version: None });
    state.close(Duration::from_secs(5)).await.unwrap();
    assert_eq!(place.json(&["state", "list", "--json"])["sessions"][0]["session"], "demo");

    // Another workspace may keep its state elsewhere: the session's own settings count.
    place.write("elsewhere/tidegate.toml", "[state]\nbackend = \"redis\"\nurl_env = \"NOT_SET\"\n");
    let removed = place.run(&["session", "rm", "demo", "--workspace", "elsewhere"]);
    assert_eq!((code(&removed), out(&removed).as_str()), (1, "demo is removed, with the state of its plugins\n"));
    assert!(
        err(&removed).replace('\n', " ").contains("`tidegate state clear demo --workspace elsewhere`"),
        "{}",
        err(&removed)
    );
    assert!(place.json(&["state", "list", "--json"])["sessions"].as_array().unwrap().is_empty());
}

#[test]
fn state_that_cannot_be_removed_with_its_session_is_reported() {
    let place = place(&[&[Say::Text("One.")]]);
    assert_eq!(code(&place.run(&["run", "--session", "demo", "first"])), 0);
    let settings = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", &format!("{settings}[state]\nbackend = \"redis\"\nurl_env = \"NOT_SET\"\n"));
    let removed = place.run(&["session", "rm", "demo"]);
    assert_eq!((code(&removed), out(&removed).as_str()), (1, "demo is removed\n"));
    let warning = err(&removed);
    assert!(warning.contains("keep for the session `demo` was not removed"), "{warning}");
    assert!(
        warning.contains("`NOT_SET`") && warning.contains("`tidegate state clear demo --workspace .`"),
        "{warning}"
    );
}

/// The state of plugins is stored as it is now: it is that of the end of a turn where no other has begun since.
#[tokio::test]
async fn a_fork_has_the_state_of_the_end_of_its_turn_or_none() {
    let place = place(&[&[Say::Text("One.")], &[Say::Text("Two.")]]);
    assert_eq!(code(&place.run(&["run", "--session", "parent", "first", "second"])), 0);
    let plain = place.run(&["session", "fork", "parent", "--id", "plain"]);
    assert!(code(&plain) == 0 && !err(&plain).contains("state"), "{}", err(&plain));

    let folder = place.path("state/tidegate/state");
    let store = DiskStore::new(folder, StoreOptions::default(), Arc::new(SystemClock)).unwrap();
    let state = store.open(&SessionId::new("parent")).await.unwrap();
    let entry = StateEntry::written("todo", *b"\"milk\"", StateLifetime::Session, 0);
    let changes = vec![StateChange::Set(entry)];
    state.apply(&"notes".parse().unwrap(), StateBatch { changes, version: Some(3) });
    state.close(Duration::from_secs(5)).await.unwrap();

    let last = place.run(&["session", "fork", "parent", "--id", "last"]);
    assert_eq!(code(&last), 0, "{}", err(&last));
    assert!(err(&last).contains("the state of notes is copied"), "{}", err(&last));
    let kept = |id: &str| place.json(&["state", "show", id, "--json"])["plugins"].clone();
    assert_eq!(kept("last")[0]["entries"][0]["text"], "\"milk\"");
    assert_eq!((kept("last"), kept("last")[0]["state_version"].clone()), (kept("parent"), 3.into()));

    let early = place.run(&["session", "fork", "parent", "--turn", "1", "--id", "early"]);
    assert_eq!(code(&early), 0, "{}", err(&early));
    let expected =
        "the fork begins without the state of notes: it is stored as turn 2 has left it, and not as turn 1 has";
    assert!(err(&early).replace('\n', " ").contains(expected), "{}", err(&early));
    assert_eq!(code(&place.run(&["state", "show", "early"])), 1);

    // Where the state cannot be written, there is no fork.
    let _open = store.open(&SessionId::new("refused")).await.unwrap();
    let refused = place.run(&["session", "fork", "parent", "--id", "refused"]);
    assert_ne!(code(&refused), 0);
    assert!(err(&refused).contains("is open in process"), "{}", err(&refused));
    assert_eq!(sessions(&place).len(), 4);
}

/// The process ends while a question is open: without a prompt, the next one asks it again; with one, the call is settled.
#[test]
fn a_question_whose_process_ended_is_asked_again() {
    let command = r#"{"command": "touch made"}"#;
    for (prompt, questions, result) in
        [(None, 2, "nobody to ask"), (Some("Go on"), 1, "continued with another message")]
    {
        let place = place(&[&[Say::Call("shell", command)], &[Say::Text("Not run.")]]);
        assert_eq!(code(&place.run(&["run", "--session", "s", "Run it"])), 0);
        let file = transcript(&place, "s");
        let text = std::fs::read_to_string(&file).unwrap();
        let asked = text.lines().position(|line| line.contains("\"tool_confirmation_requested\"")).unwrap();
        let kept: Vec<&str> = text.lines().take(asked + 1).collect();
        std::fs::write(&file, kept.join("\n") + "\n").unwrap();
        answer(&place, &[&[Say::Text("Done.")]]);
        let arguments: Vec<&str> = ["run", "--resume", "s"].into_iter().chain(prompt).collect();
        let output = place.run(&arguments);
        assert_eq!((code(&output), out(&output).as_str()), (0, "Done.\n"), "{}", err(&output));
        let lines = lines(&place, "s");
        let of = |name: &'static str| lines.iter().filter(move |line| line["type"] == name);
        let ids: Vec<&str> =
            of("tool_confirmation_requested").map(|line| line["payload"]["question_id"].as_str().unwrap()).collect();
        assert_eq!(ids, vec!["question-1"; questions]);
        let results: Vec<&str> =
            of("tool_call_result").map(|line| line["payload"]["output"].as_str().unwrap()).collect();
        assert!(results.len() == 1 && results[0].contains(result), "{results:?}");
    }
}

#[test]
fn a_damaged_transcript_is_refused_until_it_is_repaired() {
    let place = place(&[&[Say::Text("One.")]]);
    assert_eq!(code(&place.run(&["run", "--session", "s", "first"])), 0);
    let file = transcript(&place, "s");
    let whole = std::fs::read_to_string(&file).unwrap();
    let count = whole.lines().count();

    // A line that a crash has cut is removed, and the session continues.
    let mut torn = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
    torn.write_all(br#"{"seq": 99, "ev"#).unwrap();
    drop(torn);
    answer(&place, &[&[Say::Text("Two.")]]);
    let output = place.run(&["run", "--resume", "s", "second"]);
    assert_eq!((code(&output), out(&output).as_str()), (0, "Two.\n"), "{}", err(&output));
    assert!(
        err(&output).contains("the last record of the transcript was not complete: 15 bytes were removed"),
        "{}",
        err(&output)
    );

    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[count - 2] = "{\"seq\": oops";
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let refused = place.run(&["run", "--resume", "s", "third"]);
    assert_eq!(code(&refused), 2);
    let line = format!("line {}", count - 1);
    assert!(err(&refused).contains(&line) && err(&refused).contains("session repair"), "{}", err(&refused));
    let repaired = place.run(&["session", "repair", "s"]);
    assert_eq!(code(&repaired), 0, "{}", err(&repaired));
    assert!(out(&repaired).contains(&format!("{line} is removed")), "{}", out(&repaired));
    answer(&place, &[&[Say::Text("Three.")]]);
    let output = place.run(&["run", "--resume", "s", "third"]);
    assert_eq!((code(&output), out(&output).as_str()), (0, "Three.\n"), "{}", err(&output));
}

#[test]
fn a_session_can_be_followed_while_it_runs() {
    let place = place(&[&[Say::Text("One.")]]);
    assert_eq!(code(&place.run(&["run", "--session", "s", "first"])), 0);
    let mut following = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("--trust-workspace")
        .args(["session", "follow", "s", "--json"])
        .current_dir(place.path(""))
        .env("XDG_STATE_HOME", place.path("state"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut followed = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut until = |wanted: &str| {
        loop {
            let record: Value = serde_json::from_str(&followed.next().unwrap().unwrap()).unwrap();
            if record["type"] == wanted {
                return record;
            }
        }
    };
    until("thread_completed");
    answer(&place, &[&[Say::Text("Two.")]]);
    assert_eq!(code(&place.run(&["run", "--resume", "s", "second"])), 0);
    assert_eq!(until("input_received")["payload"]["text"], "second");
    assert_eq!(until("cognition_out")["payload"]["text"], "Two.");
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn another_process_cancels_the_turn() {
    let place = Place::new();
    let (release, held) = std::sync::mpsc::channel::<()>();
    let server = crate::support::Server::held(&recording(&[&[Say::Text("Never.")]]), move |_| _ = held.recv());
    place.write(
        "tidegate.toml",
        &format!(
            "[provider]\nkind = \"anthropic\"\nmodel = \"m\"\nbase_url = \"{}\"\napi_key_env = \"\"\n",
            server.url
        ),
    );
    let mut running = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("--trust-workspace")
        .args(["run", "--session", "s", "go", "and more"])
        .current_dir(place.path(""))
        .env("XDG_STATE_HOME", place.path("state"))
        .env("XDG_CACHE_HOME", place.path("cache"))
        .env("XDG_CONFIG_HOME", place.path("user"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let asks = || std::fs::read_to_string(transcript(&place, "s")).is_ok_and(|text| text.contains("step_start"));
    while !asks() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let cancelled = place.run(&["session", "cancel", "s", "--reason", "it is \"stuck\""]);
    assert_eq!(code(&cancelled), 0, "{}", err(&cancelled));
    assert!(err(&cancelled).contains(&format!("process {}", running.id())), "{}", err(&cancelled));
    assert_eq!(running.wait().unwrap().code(), Some(130));
    drop(release);
    let last = lines(&place, "s").pop().unwrap();
    assert_eq!(last["type"], "thread_cancelled");
    assert_eq!(last["payload"], serde_json::json!({"cancelled_by": "tidegate session", "reason": "it is \"stuck\""}));
    let started = &lines(&place, "s")[1]["payload"];
    assert_eq!((&started["thread_mode"], &started["inputs"]["text"]), (&"conversation".into(), &"go".into()));
    let again = place.run(&["session", "cancel", "s"]);
    assert!(code(&again) == 1 && err(&again).contains("is not open"), "{}", err(&again));
    assert!(!place.path("state/tidegate/sessions/s/cancel").exists());
}
