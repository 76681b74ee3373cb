//! `redact-secrets` as an operator configures it: secrets in a call of a tool, in the question about one and in a result are on no screen, in no
//! event, in no file and in no request.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::script::Model;
use crate::support::tmux::Terminal;
use crate::support::{Place, err, out};

/// The password that the model writes into a call.
const IN_CALL: &str = "hunter2hunter";
/// The password in the file that is edited and read.
const IN_FILE: &str = "Tr0ub4dor3x";
/// What is shown instead.
const MARKER: &str = "[redacted password]";

const SETTINGS: &str = "port = 1\npassword = \"Tr0ub4dor3x\"\n";

/// The plugin, built from its source.
fn plugin() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/redact-secrets").canonicalize().unwrap();
    let built = tidegate_build::build(&folder, &tidegate_build::Options::default(), &mut |_| {}).unwrap();
    built.place_beside_manifest(&folder).unwrap();
    folder
}

fn open() -> (Place, Model) {
    let (place, model) = (Place::new(), Model::start());
    let file = format!(
        "[tools.permission]\nedit_file = \"ask\"\nshell = \"allow\"\n[transcript]\nenabled = true\nfolder = \"sessions\"\n\
         [[plugin]]\npath = {:?}\ngrants = [\"state\"]\nrequired = true\n",
        plugin().display().to_string()
    );
    place.write("tidegate.toml", &model.settings(&file));
    place.write("settings.toml", SETTINGS);
    (place, model)
}

/// The model's side of a turn. `asked`: the person's, where the model has called a tool that asks.
fn answer(model: &Model, asked: impl FnOnce()) {
    let command = format!("curl -u bob:{IN_CALL} https://example.org > out.txt");
    model.request().call("c1", "shell", &json!({"command": command})).end();
    let mut denied = model.request();
    let text = denied.text();
    assert!(text.contains("the arguments contain a secret (password)") && has_none(&text), "{text}");
    let edit = json!({"path": "settings.toml", "old_text": "port = 1", "new_text": "port = 2"});
    denied.call("c2", "edit_file", &edit).end();
    asked();
    model.request().call("c3", "read_file", &json!({"path": "settings.toml"})).end();
    let mut read = model.request();
    let text = read.text();
    assert!(text.contains(&format!("password = \\\"{MARKER}\\\"")) && has_none(&text), "{text}");
    read.say(&format!("It is set up. The password is {IN_FILE}.\n")).end();
}

fn has_none(text: &str) -> bool {
    !text.contains(IN_CALL) && !text.contains(IN_FILE)
}

/// Fails where one of the secrets is in a file below the workspace, but for the one that has it from the start.
fn check_files(place: &Place) {
    let mut folders = vec![place.path("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (kind, path) = (entry.file_type().unwrap(), entry.path());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && !path.ends_with("settings.toml") {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                assert!(has_none(&text), "{}: {text}", path.display());
            }
        }
    }
}

fn transcripts(place: &Place) -> usize {
    std::fs::read_dir(place.path("sessions")).unwrap().count()
}

#[test]
fn secrets_are_on_no_screen() {
    let (place, model) = open();
    let terminal = Terminal::start(&place, &[], &[]);
    terminal.shows("· /help");
    terminal.enter("Set it up.");
    answer(&model, || {
        let question = terminal.screen_is("the question", |text| text.contains("y: yes"));
        assert!(question.contains(MARKER) && question.contains("port = 2") && has_none(&question), "{question}");
        terminal.answers("y");
    });
    let shown = terminal.shows("It is set up.");
    assert!(shown.contains(&format!("The password is {MARKER}.")) && has_none(&shown), "{shown}");
    terminal.enter("/quit");
    let shown = terminal.shows("exit code 0");
    assert!(has_none(&shown), "{shown}");
    check_files(&place);
    assert!(transcripts(&place) > 0 && !place.path("out.txt").exists());
    // What the question showed is what ran, and nothing is lost of the file.
    let left = std::fs::read_to_string(place.path("settings.toml")).unwrap();
    assert_eq!(left, SETTINGS.replace("port = 1", "port = 2"));
}

#[test]
fn secrets_are_in_no_event() {
    let (place, model) = open();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| place.run(&["run", "Set it up.", "--output", "stream-json"]));
        answer(&model, || ());
        let output = run.join().unwrap();
        let (events, messages) = (out(&output), err(&output));
        assert!(output.status.success() && events.matches(MARKER).count() >= 3, "{events}{messages}");
        assert!(has_none(&events) && has_none(&messages), "{events}{messages}");
    });
    check_files(&place);
    assert!(transcripts(&place) > 0);
    assert_eq!(std::fs::read_to_string(place.path("settings.toml")).unwrap(), SETTINGS);
}
