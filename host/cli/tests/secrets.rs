//! What a rule with `secret = true` matched is in nothing that leaves the program: one secret, written into reasoning, text and calls and cut
//! over deltas, is looked for in every output, every file and every request.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::acp::editor::Editor;
use crate::support::script::{Model, Request};
use crate::support::{Place, err, out};

/// The secret. No four characters in a row of what follows the mark may be anywhere.
const SECRET: &str = "CANARY-q7w8e9r0t1y2";
const MARK: &str = "CANARY-";

const GUARD: &str = "+++\ncondition = 'CANARY-[a-z0-9]{12}'\nsecret = true\n\
                     action = \"block\"\n+++\nDo not write keys.\n";

/// Matches a part of the secret before the guard does, and one that contains all of it.
const NEIGHBOUR: &str = "+++\ncondition = ['CANARY-[a-z0-9]{4}', 'now CANARY-[a-z0-9]{12}']\nscope = [\"text\", \"thinking\", \"tool\"]\n\
                         interrupt = \"never\"\nrepeat = \"always\"\n+++\nA reminder.\n";

/// Where the secret is looked for: names of sinks with what they contain.
#[derive(Default)]
struct Sinks(Vec<(String, String)>);

impl Sinks {
    fn add(&mut self, name: impl Into<String>, text: impl Into<String>) {
        self.0.push((name.into(), text.into()));
    }

    fn of_output(&mut self, name: &str, output: &Output) {
        self.add(format!("{name}: standard output"), out(output));
        self.add(format!("{name}: standard error"), err(output));
    }

    /// All files below a folder.
    fn of_files(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (kind, path) = (entry.file_type().unwrap(), entry.path());
            if kind.is_dir() {
                self.of_files(&path);
            } else if kind.is_file() {
                let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
                self.add(format!("the file {}", path.display()), text);
            }
        }
    }

    /// Fails for each sink that contains a part of the secret, with the text around it.
    fn check(&self) {
        let mut wrong = String::new();
        for (name, text) in &self.0 {
            let found = parts().find_map(|part| text.find(part));
            if let Some(at) = found {
                let (from, to) = (text.floor_char_boundary(at.saturating_sub(160)), text.ceil_char_boundary(at + 60));
                writeln!(wrong, "{name}: …{}…", &text[from..to.min(text.len())]).unwrap();
            }
        }
        assert!(wrong.is_empty(), "the secret is in\n{wrong}");
    }

    fn names(&self, what: &str) -> usize {
        self.0.iter().filter(|(name, _)| name.contains(what)).count()
    }
}

fn parts() -> impl Iterator<Item = &'static str> {
    let tail = &SECRET[MARK.len()..];
    (0..=tail.len() - 4).map(move |at| &tail[at..at + 4])
}

/// Three characters a delta.
fn cut(text: &str) -> Vec<String> {
    text.chars().collect::<Vec<_>>().chunks(3).map(|chunk| chunk.iter().collect()).collect()
}

fn say(request: &mut Request, text: &str) {
    for part in cut(text) {
        request.say(&part);
    }
}

/// The model's side of a turn: the secret in reasoning, in text, in the path and the content of a call, and in a command.
/// Returns the bodies of the requests.
fn converse(model: &Model) -> String {
    let mut sent = String::new();
    let mut next = || {
        let request = model.request();
        writeln!(sent, "{}", request.body).unwrap();
        request
    };
    let mut one = next();
    one.think(&cut(&format!("I look now {SECRET} and on")));
    say(&mut one, "Here.");
    one.end();
    let mut two = next();
    say(&mut two, &format!("It is here.\nThe key is now {SECRET} and more."));
    two.end();
    let mut three = next();
    say(&mut three, "I write it.");
    let arguments =
        json!({"path": format!("{SECRET}.txt"), "content": format!("a\nnow {SECRET}\n"), "n": 1}).to_string();
    three.call_cut("c1", "write_file", &cut(&arguments));
    three.call_cut("c2", "shell", &cut(&json!({"command": format!("echo now {SECRET}")}).to_string()));
    three.end();
    let mut four = next();
    say(&mut four, "Done.");
    four.end();
    sent
}

fn open(context: &str) -> (Place, Model) {
    let (place, model) = (Place::with(&[("keys", GUARD), ("near", NEIGHBOUR)]), Model::start());
    let more = format!(
        "context_mode = \"{context}\"\nmax_interrupts_per_turn = 10\n[tools.permission]\nwrite_file = \"allow\"\nshell = \"allow\"\n\
         [transcript]\nenabled = true\n"
    );
    place.write("tidegate.toml", &model.settings(&more));
    (place, model)
}

/// Runs the program while the model answers. Returns what was sent to the model.
fn run<T: Send>(model: &Model, program: impl FnOnce() -> T + Send) -> (T, String) {
    std::thread::scope(|scope| {
        let running = scope.spawn(program);
        let sent = converse(model);
        (running.join().unwrap(), sent)
    })
}

/// Everything that can be printed about the recorded sessions.
fn of_sessions(place: &Place, sinks: &mut Sinks) {
    let listed = place.run(&["session", "list", "--json"]);
    let sessions: Value = serde_json::from_slice(&listed.stdout).unwrap();
    sinks.of_output("session list", &listed);
    for session in sessions["sessions"].as_array().unwrap() {
        let id = session["session"].as_str().unwrap();
        let commands: [&[&str]; 9] = [
            &["session", "show", id],
            &["session", "show", id, "--json"],
            &["session", "show", id, "--rules"],
            &["session", "show", id, "--rules", "--json"],
            &["session", "export", id, "--format", "markdown"],
            &["session", "export", id, "--format", "html"],
            &["session", "export", id, "--format", "jsonl"],
            &["explain", "--session", id],
            &["rules", "replay", id, "--verbose"],
        ];
        for command in commands {
            let output = place.run(command);
            sinks.of_output(&command.join(" "), &output);
        }
    }
}

#[test]
fn a_secret_is_in_no_output_no_file_and_no_request() {
    for context in ["discard", "keep", "rewind"] {
        let (place, model) = open(context);
        let mut sinks = Sinks::default();
        let formats: [&[&str]; 3] = [&["--output", "stream-json"], &["--output", "json"], &[]];
        for format in formats {
            let arguments = [&["run", "Go.", "--metrics-file", "metrics.txt"], format].concat();
            let mut command = place.command(&arguments);
            command.env("TIDEGATE_LOG", "trace").stdin(std::process::Stdio::null());
            let (output, sent) = run(&model, || command.output().unwrap());
            assert!(output.status.success() && out(&output).contains("Done."), "{}{}", out(&output), err(&output));
            sinks.of_output(&format!("run {format:?}"), &output);
            sinks.add(format!("requests of run {format:?}"), sent);
        }
        of_sessions(&place, &mut sinks);
        sinks.of_files(&place.path(""));
        assert!(sinks.names("transcript.jsonl") >= 3 && sinks.names("metrics.txt") == 1);
        assert!(sinks.0.iter().any(|(_, text)| text.contains("[hidden]")), "the rule fired");
        sinks.check();
    }
}

/// Arguments in which no rule finds the secret, because they cannot be decoded or end within it: nothing is kept of them.
#[test]
fn arguments_that_cannot_be_read_are_hidden_where_a_rule_about_secrets_watches_the_tool() {
    let guard = GUARD.replace("{12}'", "{12}\\b'");
    let place = Place::with(&[("keys", &guard)]);
    let model = Model::start();
    let more = "[tools.permission]\nwrite_file = \"allow\"\n[transcript]\nenabled = true\n";
    place.write("tidegate.toml", &model.settings(more));
    let mut sinks = Sinks::default();
    for arguments in [
        r#"{"path":"a","content":"KEY"#,
        r#"["KEY"]"#,
        r#""KEY""#,
        "{'content':'KEY'}",
        r#"{"path":"a","content":KEY}"#,
        r#"{"path":"a","content":"KEY\q"}"#,
        r#"{"path":"a","content":"x"} KEY"#,
        r#"KEY {"path":"a"}"#,
    ] {
        let mut command = place.command(&["run", "Go.", "--output", "stream-json"]);
        command.stdin(std::process::Stdio::null());
        let (output, sent) = std::thread::scope(|scope| {
            let running = scope.spawn(|| command.output().unwrap());
            let mut one = model.request();
            one.call_cut("c1", "write_file", &cut(&arguments.replace("KEY", SECRET)));
            one.end();
            let mut two = model.request();
            say(&mut two, "Done.");
            two.end();
            (running.join().unwrap(), format!("{}{}", one.body, two.body))
        });
        assert!(output.status.success() && out(&output).contains("Done."), "{}{}", out(&output), err(&output));
        sinks.of_output(arguments, &output);
        sinks.add(format!("requests after {arguments}"), sent);
    }
    // The answer is cut off within the secret.
    let mut command = place.command(&["run", "Go.", "--output", "stream-json"]);
    command.stdin(std::process::Stdio::null());
    let output = std::thread::scope(|scope| {
        let running = scope.spawn(|| command.output().unwrap());
        let mut one = model.request();
        say(&mut one, &format!("The key is {}", &SECRET[..SECRET.len() - 1]));
        one.end_cut_off();
        running.join().unwrap()
    });
    assert!(out(&output).contains("The key is "), "{}{}", out(&output), err(&output));
    sinks.of_output("cut off", &output);
    of_sessions(&place, &mut sinks);
    sinks.of_files(&place.path(""));
    sinks.check();
}

#[test]
fn a_secret_is_on_no_screen() {
    let (place, model) = open("keep");
    let (screen, sent) = run(&model, || place.at_terminal(&["run", "Go."], &mut |_| "n"));
    assert!(screen.contains("Done."), "{screen}");
    let mut sinks = Sinks::default();
    sinks.add("the terminal", screen);
    sinks.add("requests", sent);
    sinks.check();
}

#[test]
fn a_secret_is_in_no_message_to_an_editor() {
    let (place, model) = open("rewind");
    let mut command = place.command(&["acp"]);
    command.env("TIDEGATE_LOG", "trace");
    let mut editor = Editor::logging(command, std::fs::File::create(place.path("log.txt")).unwrap().into());
    let session = editor.open(json!({}), &place.path(""));
    let mut sinks = Sinks::default();
    let id = editor.prompt(&session, "Go.");
    sinks.add("requests", converse(&model));
    editor.response(id).unwrap();
    let id = editor.send("session/load", json!({"sessionId": session, "cwd": place.path(""), "mcpServers": []}));
    let _loaded = editor.response(id);
    sinks.add("messages to the editor", format!("{:?}", editor.traffic));
    assert!(sinks.0[1].1.contains("Done."), "{}", sinks.0[1].1);
    editor.close();
    sinks.of_files(&place.path(""));
    sinks.check();
}
