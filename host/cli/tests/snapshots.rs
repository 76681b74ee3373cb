//! What the program prints, as whole screens: each file in `snapshots` is a command with its output. After a deliberate
//! change run `UPDATE_EXPECT=1 cargo test -p tidegate-cli --test it snapshots::` and read the difference.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use expect_test::expect_file;

use crate::support::tmux::Terminal;
use crate::support::{AN_AI, Place, Say, UNWRAP, code, err, out, recording};

/// A workspace with two rules of its own, a plugin of rules and prompts, and a model that breaks a rule once.
fn workspace() -> Place {
    let place = Place::with(&[("no-unwrap", UNWRAP), ("no-ai", AN_AI)]);
    let answers: &[&[Say<'_>]] =
        &[&[Say::Text("Well, as an AI language model I")], &[Say::Text("The port is 8080.")], &[Say::Text("Done.")]];
    place.write("answers.jsonl", &recording(answers));
    place.write(
        "house/plugin.toml",
        "id = \"house\"\nversion = \"0.2.0\"\napi = \"0.1\"\ndescription = \"The rules of the house.\"\n\
         [capabilities]\nprompt = \"states the house style\"\n\
         [[prompt]]\nposition = \"system_suffix\"\ncontent = \"Write short sentences.\"\n\
         [[rule]]\nname = \"no-todo\"\ncondition = 'TODO'\nscope = \"tool(*.rs)\"\nbody = \"Finish the work.\"\n",
    );
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[rules]\nbuiltin_rules = false\n\
         retry_delay_ms = 0\n[[plugin]]\npath = \"house\"\ngrants = [\"prompt\"]\n",
    );
    place
}

/// The command as it is typed, its output on both streams, and its exit code.
fn screen(place: &Place, arguments: &[&str]) -> String {
    // The doctor lists the variables of commands: those of the machine that this runs on are none of the screen's.
    let mut command = place.command(arguments);
    let folders: Vec<_> =
        command.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
    command.env_clear().envs(folders).envs([("PATH", "/bin"), ("SENTRY_DSN", "https://0000@sentry.example/1")]);
    let output = command.stdin(std::process::Stdio::null()).output().unwrap();
    let typed: Vec<String> = arguments
        .iter()
        .map(|word| if word.contains([' ', '*', '\'']) { format!("{word:?}") } else { (*word).to_owned() })
        .collect();
    let mut text = format!("$ tidegate {}\n{}", typed.join(" "), out(&output));
    for line in err(&output).lines() {
        text += &format!("stderr: {line}\n");
    }
    let text = format!("{text}exit code {}\n", code(&output));
    let root = place.path("").canonicalize().unwrap();
    without_id(text.replace(root.to_str().unwrap().trim_end_matches('/'), "$WORKSPACE"))
}

/// A session's id is another one in every run.
fn without_id(mut text: String) -> String {
    let key = "\"session\":\"";
    if let Some(start) = text.find(key).map(|at| at + key.len())
        && let Some(length) = text[start..].find('"')
    {
        text.replace_range(start..start + length, "$SESSION");
    }
    text
}

fn check(place: &Place, name: &str, arguments: &[&str]) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    expect_file![file].assert_eq(&screen(place, arguments));
}

/// A rule set of a scanner with a rule of each kind.
const ACME: &str = r#"
[[rules]]
id = "acme-key"
regex = '(?i)acme[ \w]{0,20}[:=]\s?([a-f0-9]{32})(?:\s|$)'
entropy = 3.5
keywords = ["acme"]
[[rules]]
id = "any-token"
regex = '(?i)token\s?=\s?([\w.-]{8,100})'
[[rules.allowlists]]
regexes = ['^[a-z._]+$']
stopwords = ["example"]
[[rules]]
id = "acme-twice"
regex = '(acme)\1'
"#;

#[test]
fn help() {
    let place = Place::new();
    for (name, arguments) in [
        ("help", &["--help"][..]),
        ("help-run", &["run", "--help"]),
        ("help-chat", &["chat", "--help"]),
        ("help-rules-test", &["rules", "test", "--help"]),
        ("help-rules-replay", &["rules", "replay", "--help"]),
        ("help-rules-import", &["rules", "import", "--help"]),
    ] {
        check(&place, name, arguments);
    }
}

#[test]
fn a_turn() {
    let place = workspace();
    check(&place, "run", &["run", "Which port?"]);
    check(&place, "run-json", &["run", "Which port?", "--output", "json"]);
}

/// The rule of the first example, as the README shows it.
const NO_PANIC: &str = r"---
condition: '\.unwrap\(\)'
field: [content, new_text]
---
Do not write `unwrap()`. Return the error with `?`.
";

/// The picture of the README: a model that a rule stops, on a real terminal.
#[test]
fn the_picture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(
        std::fs::read_to_string(root.join("README.md")).unwrap().contains(NO_PANIC),
        "the README shows another rule"
    );
    let place = Place::with(&[("no-unwrap", NO_PANIC)]);
    let question = "How do I read the port?";
    let recording = root.join("tests/demo/interrupt.jsonl").canonicalize().unwrap();
    let recorded = ["run", question, "--recording", recording.to_str().unwrap()];
    let terminal = Terminal::start(&place, &recorded, &[]);
    terminal.shows("exit code 0");
    let shown = terminal.colours();
    let shown = shown.split("exit code").next().unwrap();
    let picture = anstyle_svg::Term::new().render_svg(&format!("$ tidegate run {question:?}\n{shown}"));
    expect_file![root.join("tests/demo/interrupt.svg")].assert_eq(&picture);
}

#[test]
fn rules() {
    let place = workspace();
    check(&place, "rules-list", &["rules", "list"]);
    check(&place, "rules-explain", &["rules", "explain", "no-unwrap"]);
    check(&place, "rules-test", &["rules", "test", "no-ai", "--text", "I am, as an AI, not sure.", "--verbose"]);
    check(&place, "rules-check", &["rules", "check", ".tidegate/rules", "house/plugin.toml"]);
    place.write("acme.toml", ACME);
    check(&place, "rules-import", &["rules", "import", "acme.toml"]);
}

#[test]
fn plugins_and_doctor() {
    let place = workspace();
    check(&place, "plugin-list", &["plugin", "list"]);
    check(&place, "plugin-show", &["plugin", "show", "house"]);
    check(&place, "explain-prompt", &["explain", "--prompt", "Which port?"]);
    check(&place, "doctor", &["doctor"]);
    check(&place, "doctor-json", &["doctor", "--json"]);
    check(&place, "config-show", &["config", "show", "--origin"]);
}

/// Tables of `tidegate.toml`, and the files of their own next to it: one key in both, and a limit that a project cannot raise.
#[test]
fn tables() {
    let place = workspace();
    place.write(
        "user/tidegate/tidegate.toml",
        "[limits.session]\nturns = 5\n\n[errors.retry.transient]\nmax_retries = 1\n",
    );
    place.write(
        "user/tidegate/errors.toml",
        "schema_version = \"1.0.0\"\n[retry.transient]\nmax_retries = 2\nbase = \"2s\"\n",
    );
    place.write(".tidegate/thread_limits.toml", "schema_version = \"1.0.0\"\n[limits]\nturns = 9\nsteps = 3\n");
    check(&place, "config-show-tables", &["config", "show", "--origin"]);
    check(&place, "doctor-tables", &["doctor"]);
}

#[test]
fn mistakes() {
    let place = workspace();
    place.write("typo.toml", "[provider]\nkin = \"recording\"\n[rules]\ncontext_mode = \"rewnd\"\n");
    place.write("bad.md", "+++\ncondition = '(open'\nscop = \"text\"\n+++\nBody.\n");
    check(&place, "typo-in-settings", &["run", "go", "--config", "typo.toml"]);
    check(&place, "typo-in-rule", &["rules", "check", "bad.md"]);
    check(&place, "unknown-plugin", &["run", "go", "--set", "hose.limit=3"]);
    place.write("empty.toml", "");
    check(&place, "no-provider", &["run", "go", "--config", "empty.toml"]);
}
