//! The program as a person or a script meets it: what goes to which stream, exit codes, the three outputs, errors.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with a recording, an operator's file and a plugin of rules alone.
struct Place(TempDir);

/// One answer of the recorded model: text blocks and tool calls.
enum Say<'a> {
    Text(&'a str),
    Call(&'a str, Value),
}

impl Place {
    fn new(answers: &[&[Say<'_>]], more: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("recording.jsonl", &recording(answers));
        place.write(
            "rules/plugin.toml",
            "id = \"rules\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Rules of the test.\"\n\
             [[rule]]\nname = \"no-secret-word\"\ncondition = 'SECRETWORD'\nscope = \"text\"\nbody = \"Do not say it.\"\n\
             [[rule]]\nname = \"no-end-word\"\ncondition = 'ENDWORD'\nscope = \"text\"\naction = \"stop\"\nbody = \"Stop.\"\n",
        );
        place.write(
            "tidegate.toml",
            &format!(
                "[provider]\nkind = \"recording\"\nrecording = \"recording.jsonl\"\n{more}\n[rules]\nretry_delay_ms = 0\n\
                 [[plugin]]\npath = \"rules\"\n"
            ),
        );
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        tidegate(self.0.path(), arguments, "")
    }
}

fn tidegate(folder: &Path, arguments: &[&str], input: &str) -> Output {
    use std::io::Write;
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("--trust-workspace")
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .env_remove("ANTHROPIC_API_KEY")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// Anthropic's wire format, an event a chunk.
fn recording(answers: &[&[Say<'_>]]) -> String {
    let mut lines = vec![json!({"tidegate_recording": 1, "wire": "anthropic", "model": "recorded"})];
    for answer in answers {
        lines.push(json!({"request": {}}));
        lines.push(json!({"response": 200, "headers": {"content-type": "text/event-stream"}, "at_ms": 0}));
        let mut event = |event: Value| {
            let text = format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
            lines.push(json!({"text": text, "at_ms": 0}));
        };
        event(
            json!({"type": "message_start", "message": {"model": "recorded", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
        );
        let mut stop = "end_turn";
        for (index, block) in answer.iter().enumerate() {
            let (start, deltas) = match block {
                Say::Text(text) => {
                    let piece = |text: &str| json!({"type": "text_delta", "text": text});
                    (json!({"type": "text", "text": ""}), text.split_inclusive(' ').map(piece).collect::<Vec<_>>())
                }
                Say::Call(name, arguments) => {
                    stop = "tool_use";
                    let delta = json!({"type": "input_json_delta", "partial_json": arguments.to_string()});
                    (json!({"type": "tool_use", "id": format!("call-{index}"), "name": name, "input": {}}), vec![delta])
                }
            };
            event(json!({"type": "content_block_start", "index": index, "content_block": start}));
            for delta in deltas {
                event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            event(json!({"type": "content_block_stop", "index": index}));
        }
        event(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}));
        event(json!({"type": "message_stop"}));
        lines.push(json!({"end": "complete", "at_ms": 0}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_answer_goes_to_standard_output_and_the_rest_to_standard_error() {
    let place = Place::new(
        &[
            &[Say::Text("Looking. "), Say::Call("read_file", json!({"path": "tidegate.toml"}))],
            &[Say::Text("Before the SECRETWORD and after.")],
            &[Say::Text("All is well.")],
        ],
        "",
    );
    let output = place.run(&["run", "go", "--summary"]);
    assert_eq!(
        (out(&output).as_str(), output.status.code()),
        ("Looking. \nAll is well.\n", Some(0)),
        "{}",
        err(&output)
    );
    let said = err(&output);
    for part in [
        "● read_file",
        "▲ rule no-secret-word stopped the model",
        "Do not say it.",
        "interrupts  1",
        "tokens      15 in",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn several_prompts_are_turns_of_one_session() {
    let place = Place::new(&[&[Say::Text("one")], &[Say::Text("two")]], "");
    let output = place.run(&["run", "first", "second", "--output", "json"]);
    let reports: Vec<Value> = out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&reports[0]["text"], &reports[1]["text"]), (&json!("one"), &json!("two")), "{}", err(&output));
    assert_eq!(reports[1]["status"], json!({"status": "completed"}));
    assert_eq!(reports[1]["usage"], json!({"input_tokens": 5, "output_tokens": 7}));
}

#[test]
fn every_event_is_a_line_of_json() {
    let place = Place::new(&[&[Say::Text("Before the SECRETWORD.")], &[Say::Text("Fine.")]], "");
    let output = tidegate(place.0.path(), &["run", "-", "--output", "stream-json"], "from standard input");
    let records: Vec<Value> = out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (seq, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], seq, "{record}");
    }
    let types: Vec<&str> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    for kind in [
        "thread_started",
        "turn_start",
        "cognition_in",
        "rule_fired",
        "ttsr_injection",
        "cognition_out",
        "turn_finish",
        "thread_completed",
    ] {
        assert!(types.contains(&kind), "{kind} is not in {types:?}");
    }
    let said: String = out(&output);
    assert!(said.contains("from standard input"), "{said}");
    let shown = records.iter().filter(|record| record["type"] == "cognition_out_delta");
    assert!(!shown.map(|record| record["payload"]["text"].as_str().unwrap()).collect::<String>().contains("SECRET"));
}

#[test]
fn exit_codes_say_how_it_went() {
    let read = || Say::Call("read_file", json!({"path": "tidegate.toml"}));
    let stopped = Place::new(&[&[Say::Text("the ENDWORD is said")]], "");
    assert_eq!(stopped.run(&["run", "go"]).status.code(), Some(4));
    let endless = Place::new(&[&[read()], &[read()], &[read()]], "[turn]\nmax_steps = 2");
    let output = endless.run(&["run", "go"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(err(&output).contains("raise `max_steps`"), "{}", err(&output));
    let failed = Place::new(&[], "");
    let output = failed.run(&["run", "go"]);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    assert_eq!(failed.run(&["run"]).status.code(), Some(2));
    assert_eq!(failed.run(&["run", "go", "--recording", "nowhere"]).status.code(), Some(2));
}

#[test]
fn what_may_not_run_is_refused_with_the_reason() {
    let call = || Say::Call("shell", json!({"command": "touch made"}));
    let place = Place::new(&[&[call()], &[Say::Text("ok")]], "");
    let output = place.run(&["run", "go"]);
    assert!(err(&output).contains("nobody to ask") && !place.path("made").exists(), "{}", err(&output));
    let output = place.run(&["run", "go", "--permission", "shell(touch *)=allow"]);
    assert!(place.path("made").exists(), "{}", err(&output));
    let output = place.run(&["run", "go", "--permission", "shel=allow"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("--permission") && err(&output).contains("`shell`"), "{}", err(&output));
}

#[test]
fn a_mistake_is_shown_with_its_place() {
    let place = Place::new(&[], "");
    place.write("tidegate.toml", "[provider]\nknd = \"recording\"\n");
    let output = place.run(&["run", "go"]);
    assert_eq!(output.status.code(), Some(2));
    for part in ["tidegate.toml:2:1", "knd = \"recording\"", "^^^", "did you mean `kind`?"] {
        assert!(err(&output).contains(part), "{part:?} is not in {}", err(&output));
    }
    place.write("tidegate.toml", "");
    assert!(err(&place.run(&["run", "go"])).contains("no provider is chosen"));
}

#[test]
fn lists_and_the_doctor_tell_what_is_loaded() {
    let place = Place::new(&[&[Say::Text("hi")]], "");
    let rules = out(&place.run(&["rules", "list", "--verbose"]));
    assert!(
        rules.contains("no-secret-word  active") && rules.contains("action stop") && rules.contains("built-in"),
        "{rules}"
    );
    let plugins = out(&place.run(&["plugin", "list"]));
    assert!(plugins.contains("rules 0.1.0") && plugins.contains("stream rules: 2"), "{plugins}");
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(0), "{}", out(&doctor));
    assert!(
        out(&doctor).contains("recording of 1 request to") && out(&doctor).contains("rule no-secret-word"),
        "{}",
        out(&doctor)
    );
    let away = place.run(&["doctor", "--provider", "openai-chat", "--model", "m", "--base-url", "http://127.0.0.1:9"]);
    assert_eq!(away.status.code(), Some(1), "{}", err(&away));
    assert!(out(&away).contains("fail provider"), "{}", out(&away));
}

#[test]
fn rule_files_are_found_and_a_broken_one_is_shown_with_its_line_and_caret() {
    let place = Place::new(&[&[Say::Text("mine, theirs")], &[Say::Text("fine")]], "");
    place.write(".tidegate/rules/mine.md", "+++\ncondition = 'mine'\nscope = \"text\"\n+++\nDo not say it.\n");
    place.write(".tidegate/rules/broken.md", "+++\ncondition = 'a(b'\n+++\nNever used.\n");
    place.write("config/tidegate/rules/no-end-word.md", "+++\ncondition = 'theirs'\n+++\nDo not say it.\n");
    let listed = place.run(&["rules", "list", "--verbose"]);
    assert_eq!(listed.status.code(), Some(0), "{}", err(&listed));
    assert!(out(&listed).contains("mine  active") && out(&listed).contains("no-end-word  shadowed: user, "));
    let shown = " --> .tidegate/rules/broken.md:2:15\n  |\n2 | condition = 'a(b'\n  |               ^";
    assert!(err(&listed).contains(shown), "{}", err(&listed));
    let run = place.run(&["run", "go"]);
    assert_eq!(out(&run), "fine\n", "{}", err(&run));
    assert!(err(&run).contains("▲ rule mine stopped the model") && err(&run).contains(shown), "{}", err(&run));
}

#[test]
fn the_doctor_goes_on_without_a_provider_and_past_a_plugin_that_cannot_be_loaded() {
    let place = Place::new(&[], "");
    place.write("empty.toml", "");
    let doctor = place.run(&["doctor", "--config", "empty.toml", "--plugin", "nowhere", "--plugin", "rules"]);
    let said = out(&doctor);
    assert_eq!(doctor.status.code(), Some(1), "{said}{}", err(&doctor));
    for part in [
        "fail provider: no provider is chosen",
        "fail plugin nowhere: cannot read",
        "ok   plugin rules: 0.1.0",
        "ok   rule no-end-word",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_panic_and_ends_the_turn() {
    let place = Place::new(&[&[Say::Text("one")], &[Say::Text("two")], &[Say::Text("three")]], "");
    for arguments in [
        &["rules", "list"][..],
        &["plugin", "list"],
        &["doctor"],
        &["run", "a", "b", "c"],
        &["run", "a", "b", "c", "--output", "json"],
        &["run", "a", "b", "c", "--output", "stream-json"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .arg("--trust-workspace")
            .args(arguments)
            .current_dir(place.0.path())
            .env("XDG_CACHE_HOME", place.path("cache"))
            .env("XDG_CONFIG_HOME", place.path("config"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = err(&output);
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
        assert!(matches!(output.status.code(), Some(0 | 130)), "{arguments:?}: {:?} {said}", output.status);
    }
}

#[test]
fn an_empty_key_variable_means_no_key_and_a_key_is_never_repeated() {
    let place = Place::new(&[], "");
    let local = ["doctor", "--provider", "openai-chat", "--model", "m", "--base-url", "http://127.0.0.1:9"];
    let without = place.run(&[&local[..], &["--api-key-env", ""]].concat());
    assert!(out(&without).contains("cannot reach") || out(&without).contains("127.0.0.1:9"), "{}", out(&without));
    let secret = place.run(&[&local[..], &["--api-key-env", "sk-not-to-be-shown"]].concat());
    assert_eq!(secret.status.code(), Some(2));
    assert!(
        err(&secret).contains("--api-key-env: this is not the name of an environment variable"),
        "{}",
        err(&secret)
    );
    place.write("tidegate.toml", "[provider]\napi_key = \"sk-not-to-be-shown\"\n");
    let typed = place.run(&["run", "go"]);
    assert!(err(&typed).contains("keep secrets out of this file"), "{}", err(&typed));
    for output in [secret, typed] {
        assert!(!format!("{}{}", out(&output), err(&output)).contains("not-to-be-shown"));
    }
}

#[test]
fn a_cancelled_answer_is_not_lost_in_a_pipe() {
    let place = Place::new(&[&[Say::Text("said before the end ")], &[Say::Text("never")]], "");
    // The first answer stays open: its last lines come after a minute.
    let recording = std::fs::read_to_string(place.path("recording.jsonl")).unwrap();
    let late: String = recording
        .lines()
        .map(|line| match line.contains("\"text\":\"event: content_block_stop") {
            true => line.replace("\"at_ms\":0", "\"at_ms\":60000") + "\n",
            false => line.to_owned() + "\n",
        })
        .collect();
    assert_ne!(late, recording);
    place.write("recording.jsonl", &late);
    for (format, expected) in
        [("text", "said before the end \n"), ("json", "\"partial_text\":\"said before the end \"")]
    {
        // It cannot be seen from outside when the text has arrived: where it had not, the program is asked to end later.
        let said = [300, 1000, 3000, 10_000, 30_000].into_iter().any(|wait| {
            let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
                .arg("--trust-workspace")
                .args(["run", "go", "--output", format])
                .current_dir(place.0.path())
                .env("XDG_CACHE_HOME", place.path("cache"))
                .env("XDG_CONFIG_HOME", place.path("config"))
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            std::thread::sleep(std::time::Duration::from_millis(wait));
            assert!(child.try_wait().unwrap().is_none(), "it did not wait");
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
            let output = child.wait_with_output().unwrap();
            output.status.code() == Some(130) && out(&output).contains(expected)
        });
        assert!(said, "{format}: never {expected:?}");
    }
}

#[test]
fn the_doctor_and_the_plugins_are_told_as_json() {
    let place = Place::new(&[&[Say::Text("hi")]], "");
    let json = |arguments: &[&str]| -> Value {
        let output = place.run(arguments);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", out(&output), err(&output)))
    };
    let doctor = json(&["doctor", "--json"]);
    assert_eq!((&doctor["bad"], &doctor["checks"][0]["health"]), (&json!(0), &json!("good")), "{doctor}");
    let plugins = json(&["plugin", "list", "--json"]);
    assert_eq!((&plugins["plugins"][0]["id"], &plugins["plugins"][0]["rules"]), (&json!("rules"), &json!(2)));
    assert_eq!(plugins["chains"]["on_tag"], json!([]));
}

#[test]
fn a_plugins_setting_can_be_given_on_the_command_line() {
    let place = Place::new(&[&[Say::Text("hi")]], "");
    place.write(
        "more/plugin.toml",
        "id = \"more\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Settings.\"\n[tools]\npreferred_tools = [\"grep\"]\n\
         [settings.limit]\ntype = \"number\"\ndescription = \"How many.\"\n",
    );
    let list = |more: &[&str]| place.run(&[&["plugin", "list", "--plugin", "more"], more].concat());
    let missing = list(&[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).contains("`--set more.limit=VALUE`"), "{}", err(&missing));
    assert_eq!(list(&["--set", "more.limit=5"]).status.code(), Some(0));
    for (wrong, why) in [
        ("more.limit=many", "`limit` of plugin `more` must be a number; How many."),
        ("more.limt=5", "plugin `more` has no setting `limt`; it has `limit`"),
        ("less.limit=5", "no plugin `less` is loaded; the plugins are `rules`, `more`"),
        ("more", "--set expects PLUGIN.KEY=VALUE"),
    ] {
        let output = list(&["--set", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(err(&output).contains(why), "{wrong}: {}", err(&output));
    }
}

#[test]
fn completions_know_the_commands_and_are_scripts() {
    let place = Place::new(&[], "");
    for shell in ["bash", "zsh", "fish"] {
        let output = place.run(&["completions", shell]);
        assert!(out(&output).contains("stream-json") && out(&output).contains("doctor"), "{shell}: {}", err(&output));
    }
    let script = out(&place.run(&["completions", "bash"]));
    place.write("complete.bash", &script);
    assert!(Command::new("bash").args(["-n", "complete.bash"]).current_dir(place.0.path()).status().unwrap().success());
}

#[test]
fn colours_follow_the_flag_the_environment_and_the_terminal() {
    let place = Place::new(&[&[Say::Text("hi")]], "");
    let coloured = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(["--trust-workspace", "plugin", "list"]).args(arguments).current_dir(place.0.path());
        command.env("XDG_CACHE_HOME", place.path("cache")).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(out(&output).contains("rules"), "{}", err(&output));
        out(&output).contains('\u{1b}')
    };
    assert!(!coloured(&[], &[]));
    assert!(coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[], &[("CLICOLOR_FORCE", "0")]));
    assert!(!coloured(&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(coloured(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(!coloured(&["--color=never"], &[("CLICOLOR_FORCE", "1")]));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let place = Place::new(&[&[Say::Text("hi")]], "");
    let both = place.run(&["run", "go", "--provider", "anthropic", "--recording", "recording.jsonl"]);
    assert!(both.status.code() == Some(2) && err(&both).contains("remove --provider"), "{}", err(&both));
    let both = place.run(&["run", "go", "--model", "m", "--recording", "recording.jsonl"]);
    assert!(both.status.code() == Some(2) && err(&both).contains("remove --model"), "{}", err(&both));
    for prompt in ["", "  "] {
        let output = place.run(&["run", prompt]);
        assert!(output.status.code() == Some(2) && err(&output).contains("a prompt is empty"), "{}", err(&output));
    }
}

#[test]
fn what_is_wrong_with_rules_is_told_in_every_output() {
    let place = Place::new(&[&[Say::Text("hi")]], "");
    let more = "disabled_rules = [\"ts-as-ayn\"]\n[[plugin]]\npath = \"rules\"\n";
    let file = std::fs::read_to_string(place.path("tidegate.toml")).unwrap();
    place.write("tidegate.toml", &file.replace("[[plugin]]\npath = \"rules\"\n", more));
    let broken = "[[rule]]\nname = \"broken\"\ncondition = '(open'\nbody = \"B.\"\n\
                  [[rule]]\nname = \"elsewhere\"\ncondition = 'x'\nscope = \"tool:no_such_tool\"\nbody = \"B.\"\n\
                  [[rule]]\nname = \"of-others\"\ncondition = 'x'\nagents = \"reviewer\"\nbody = \"B.\"\n";
    let manifest = std::fs::read_to_string(place.path("rules/plugin.toml")).unwrap();
    place.write("rules/plugin.toml", &(manifest + broken));
    let told = |text: &str| {
        for part in
            ["`disabled_rules` contains `ts-as-ayn`", "`broken`", "the tool no_such_tool", "do not include `main`"]
        {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    };
    for output in ["text", "json", "stream-json"] {
        told(&err(&place.run(&["run", "go", "--output", output])));
    }
    let listed = err(&place.run(&["rules", "list"]));
    told(&listed);
    // Each begins on a line of its own.
    assert!(
        listed
            .lines()
            .filter(|line| line.contains("warning: ") || line.contains("error: "))
            .all(|line| { line.starts_with("warning: ") || line.starts_with("error: ") })
    );
    let doctor = out(&place.run(&["doctor"]));
    told(&doctor);
    assert!(doctor.contains("warn rule elsewhere: cannot fire") && doctor.contains("rules list` prints"), "{doctor}");
}

#[test]
fn broken_rules_are_problems_and_a_required_one_refuses_the_run() {
    let place = Place::new(&[&[Say::Text("fine")], &[Say::Text("fine")]], "");
    place.write(".tidegate/rules/word.md", "+++\ncondition = ['x', '(']\nscope = 'text'\n+++\nDo not.\n");
    let output = place.run(&["run", "go", "--output", "json"]);
    let report: Value = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((output.status.code(), &report["status"]), (Some(0), &json!({"status": "completed"})), "{report}");
    let problem = report["problems"][0].as_str().unwrap();
    assert!(problem.contains("condition `(` is not valid") && problem.contains("word.md:2)"), "{report}");
    assert!(err(&output).contains("word.md:2:20"), "{}", err(&output));

    place.write(
        ".tidegate/rules/word.md",
        "+++\ncondition = ['x', '(']\nscope = 'text'\nrequired = true\n+++\nDo not.\n",
    );
    let output = place.run(&["run", "go", "--output", "json"]);
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(2), ""));
    assert!(err(&output).contains("word.md:2:20") && err(&output).contains("unclosed group"), "{}", err(&output));
    // What is wrong can be looked at all the same.
    assert!(err(&place.run(&["rules", "list"])).contains("word.md:2:20"));
}
