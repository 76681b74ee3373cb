//! The latest session of a workspace where it cannot be read: no command takes another one for it, and none says that there is none.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::support::{Place, Say, code, err, out, recording};

/// Sets the time of a file's last write, so that no clock decides which is the later.
fn written(file: &PathBuf, hours_ago: u64) {
    let time = SystemTime::now() - Duration::from_secs(3600 * hours_ago);
    fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
}

fn transcript(place: &Place, id: &str) -> PathBuf {
    place.path(&format!("state/tidegate/sessions/{id}/transcript.jsonl"))
}

/// A workspace with the sessions `older` and `newer`, whose file was written later.
fn place() -> Place {
    let place = Place::new();
    place.write("op.toml", "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n");
    for (id, hours) in [("older", 2), ("newer", 1)] {
        place.write("answers.jsonl", &recording(&[&[Say::Text("Done.")]]));
        let ran = place.run(&["run", "go", "--session", id, "--config", "op.toml"]);
        assert_eq!(code(&ran), 0, "{}", err(&ran));
        written(&transcript(&place, id), hours);
    }
    place.write("answers.jsonl", &recording(&[&[Say::Text("Continued.")]]));
    place
}

type Damage = fn(&str) -> String;

/// What can be wrong with a transcript: how it comes to be so, and what is said of it.
const DAMAGES: [(&str, Damage, &str); 7] = [
    ("a newer version", |text| text.replacen("\"version\":1", "\"version\":9", 1), "format version 9"),
    ("no header", |text| text.split_once('\n').unwrap().1.to_owned(), "line 1"),
    ("a header of something else", |text| format!("hello\n{text}"), "line 1"),
    ("NUL bytes", |text| text.replacen('\n', "\n\0\0\0\0\n", 1), "line 2"),
    ("nothing", |_| String::new(), "the header is missing"),
    ("the start of its header", |text| text[..20].to_owned(), "the header is missing"),
    ("a last line that is no record", |text| format!("{text}{{}}\n"), "its last line"),
];

const COMMANDS: [&[&str]; 4] = [
    &["run", "--continue", "go on", "--config", "op.toml"],
    &["run", "--continue", "go on", "--output", "json", "--config", "op.toml"],
    &["run", "--continue", "--config", "op.toml"],
    &["explain", "--config", "op.toml"],
];

#[test]
fn no_other_session_is_taken_for_one_that_cannot_be_read() {
    for (what, damage, said) in DAMAGES {
        let place = place();
        let (older, newer) = (transcript(&place, "older"), transcript(&place, "newer"));
        let before = fs::read(&older).unwrap();
        fs::write(&newer, damage(&fs::read_to_string(&newer).unwrap())).unwrap();
        for command in COMMANDS {
            let refused = place.run(command);
            let message = err(&refused);
            assert_eq!((code(&refused), out(&refused).as_str()), (2, ""), "{what}, {command:?}: {message}");
            for part in
                ["\"newer\"", "cannot be read", said, "`--resume older` continues", "`tidegate session rm newer`"]
            {
                assert!(message.contains(part), "{what}, {command:?}: {part} is not in {message}");
            }
        }
        assert_eq!(fs::read(&older).unwrap(), before, "{what}: nothing was added to another session");
        // It is the only one, and there is one.
        fs::remove_dir_all(older.parent().unwrap()).unwrap();
        let refused = place.run(COMMANDS[0]);
        assert!(code(&refused) == 2 && err(&refused).contains("\"newer\""), "{what}: {}", err(&refused));
        let listed = place.run(&["session", "list", "--config", "op.toml"]);
        let all = format!("{}{}", out(&listed), err(&listed));
        assert!(all.contains("can be read") && all.contains(said) && !all.contains("is recorded"), "{what}: {all}");
        // The remedies work.
        let removed = place.run(&["session", "rm", "newer", "--config", "op.toml"]);
        assert_eq!(code(&removed), 0, "{what}: {}", err(&removed));
        let none = place.run(COMMANDS[0]);
        assert!(err(&none).contains("no session of this workspace is recorded"), "{what}: {}", err(&none));
    }
}

#[test]
fn what_cannot_be_read_and_is_not_the_latest_here_keeps_nobody_from_the_latest() {
    // It was written before.
    let old = place();
    fs::write(transcript(&old, "newer"), "").unwrap();
    written(&transcript(&old, "newer"), 3);
    // It is of another workspace, or of a child agent, as far as its lines can be read.
    let elsewhere = place();
    let text = fs::read_to_string(transcript(&elsewhere, "newer")).unwrap();
    let here = elsewhere.path(".").canonicalize().unwrap().display().to_string();
    let moved = text.replace(&here, "/somewhere/else").replacen("\"version\":1", "\"version\":9", 1);
    assert_ne!(moved, text);
    fs::write(transcript(&elsewhere, "newer"), moved).unwrap();
    let child = place();
    let spawned = "\"version\":9,\"spawned_by\":{\"thread_id\":\"older\",\"call_id\":\"c\",\"agent\":\"a\"}";
    fs::write(transcript(&child, "newer"), text.replacen("\"version\":1", spawned, 1)).unwrap();
    for place in [old, elsewhere, child] {
        let continued = place.run(COMMANDS[0]);
        assert_eq!((code(&continued), out(&continued).as_str()), (0, "Continued.\n"), "{}", err(&continued));
        assert!(fs::read_to_string(transcript(&place, "older")).unwrap().contains("Continued."));
    }
}

#[test]
fn a_fork_whose_parent_is_gone_is_not_passed_over() {
    let place = place();
    let forked = place.run(&["session", "fork", "newer", "--id", "fork", "--config", "op.toml"]);
    assert_eq!(code(&forked), 0, "{}", err(&forked));
    fs::remove_dir_all(transcript(&place, "newer").parent().unwrap()).unwrap();
    let refused = place.run(COMMANDS[0]);
    assert!(code(&refused) == 2 && err(&refused).contains("\"fork\""), "{}", err(&refused));
}
