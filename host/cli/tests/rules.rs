//! `tidegate rules`: list, check, test, replay and explain, as an operator, an author and a build server meet them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A workspace with rules of its own.
struct Place(TempDir);

const UNWRAP: &str = "+++\ndescription = \"`unwrap()` in Rust code\"\ncondition = '\\.unwrap\\(\\)'\nscope = \"tool(*.rs)\"\n\
    field = [\"content\", \"new_text\"]\n+++\nUse `?`.\n\n## Fires\n```tool:write_file path=src/a.rs content\nx.unwrap()\n```\n\n\
    ## Does not fire\n```tool:write_file path=a.py content\nx.unwrap()\n```\n";

const AN_AI: &str =
    "+++\ncondition = '(?i)\\bas an AI(?: language model)?\\b'\nscope = \"text\"\n+++\nAnswer the question.\n";

impl Place {
    /// An empty workspace.
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A workspace with rules of the project, by name and text.
    fn with(rules: &[(&str, &str)]) -> Self {
        let place = Self::new();
        for (name, text) in rules {
            place.write(&format!(".tidegate/rules/{name}.md"), text);
        }
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
        self.run_with(arguments, "")
    }

    fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        use std::io::Write;
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(arguments)
            .current_dir(self.0.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("XDG_CONFIG_HOME", self.path("user"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A program that does not read its input may be gone already.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    }

    /// The only object that the command prints.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(arguments);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", out(&output), err(&output)))
    }

    /// Runs turns on a recording and keeps their transcript.
    fn transcript(&self, settings: &str, answers: &[&[Say<'_>]], prompts: &[&str]) -> &'static str {
        self.write("answers.jsonl", &recording(answers));
        let file = format!(
            "[provider]\nkind = \"recording\"\nrecording = \"answers.jsonl\"\n[tools.permission]\nwrite_file = \"allow\"\n\
             [rules]\nretry_delay_ms = 0\n{settings}\n"
        );
        self.write("tidegate.toml", &file);
        let output = self.run(&[&["run"], prompts, &["--output", "stream-json"]].concat());
        assert!(matches!(output.status.code(), Some(0 | 4)), "{}", err(&output));
        std::fs::write(self.path("t.jsonl"), &output.stdout).unwrap();
        "t.jsonl"
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("{output:?}"))
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// One block of an answer of the recorded model.
enum Say<'a> {
    Text(&'a str),
    Thinking(&'a str),
    Write(&'a str, &'a str),
}

/// Anthropic's wire format, cut at blanks.
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
            let arguments;
            let (start, kind, key, text) = match block {
                Say::Text(text) => (json!({"type": "text", "text": ""}), "text_delta", "text", *text),
                Say::Thinking(text) => {
                    (json!({"type": "thinking", "thinking": ""}), "thinking_delta", "thinking", *text)
                }
                Say::Write(path, content) => {
                    stop = "tool_use";
                    arguments = json!({"path": path, "content": content}).to_string();
                    let start =
                        json!({"type": "tool_use", "id": format!("call-{index}"), "name": "write_file", "input": {}});
                    (start, "input_json_delta", "partial_json", arguments.as_str())
                }
            };
            event(json!({"type": "content_block_start", "index": index, "content_block": start}));
            for piece in text.split_inclusive(' ') {
                event(json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}}));
            }
            event(json!({"type": "content_block_stop", "index": index}));
        }
        event(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 40}}));
        event(json!({"type": "message_stop"}));
        lines.push(json!({"end": "complete", "at_ms": 0}));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn list_tells_every_rule_and_what_keeps_it_from_firing() {
    let idle = "+++\ncondition = 'x'\nscope = \"tool:nowhere\"\n+++\nB.\n";
    let off = "+++\ncondition = 'x'\nenabled = false\n+++\nB.\n";
    let files = "+++\ncondition = 'x'\nscope = \"text\"\nglobs = \"*.rs\"\n+++\nB.\n";
    let book = "+++\ndescription = \"How we name things\"\n+++\nShort names.\n";
    let place = Place::with(&[
        ("no-unwrap", UNWRAP),
        ("idle", idle),
        ("off", off),
        ("files", files),
        ("book", book),
        ("broken", "+++\ncondition = '(open'\n+++\nB.\n"),
        ("ts-as-any", "+++\ncondition = 'as any'\nrepeat = \"after-gap\"\ngap = 3\n+++\nB.\n"),
    ]);
    let output = place.run(&["rules", "list"]);
    let rows: Vec<Vec<String>> =
        out(&output).lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    let row = |name: &str| rows.iter().find(|row| row.first().is_some_and(|first| first == name)).unwrap().join(" ");
    assert_eq!(rows[0].join(" "), "RULE STATE ACTION REPEATS LONGEST FROM WATCHES");
    assert_eq!(row("no-unwrap"), "no-unwrap active interrupt once 9 B project tool(*.rs)");
    assert_eq!(row("ts-as-any"), "ts-as-any active interrupt after 3 turns 6 B project text, tool");
    assert_eq!(row("broken"), "broken refused");
    assert_eq!(row("book"), "book active - - - project (in the rulebook)");
    for (name, state) in [("idle", "idle"), ("off", "disabled"), ("files", "unreachable")] {
        assert!(row(name).starts_with(&format!("{name} {state} ")), "{}", row(name));
    }
    let text = out(&output);
    for part in
        ["idle: idle: it watches the tool nowhere", "off: disabled: the rule says", "ts-as-any: shadowed: project"]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(err(&output).contains("broken.md:2:14") && err(&output).contains("unclosed group"), "{}", err(&output));

    let all = place.json(&["rules", "list", "--json"]);
    let rule = |name: &str| all["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == name).unwrap().clone();
    assert_eq!(
        rule("no-unwrap"),
        json!({
            "name": "no-unwrap", "description": "`unwrap()` in Rust code", "state": "active", "reason": null,
            "bucket": "stream", "source": {"layer": "project", "path": ".tidegate/rules/no-unwrap.md"},
            "scope": ["tool(*.rs)"], "globs": [], "field": ["content", "new_text"], "agents": [],
            "action": "interrupt", "interrupt": "always", "repeat": "once", "gap": null,
            "conditions": 1, "all": 0, "unless": 0, "longest_match": 9, "examples": 2, "findings": [],
        })
    );
    assert_eq!((rule("book")["bucket"].clone(), rule("book")["action"].clone()), (json!("rulebook"), json!(null)));
    assert_eq!(rule("files")["findings"][0]["severity"], "warning");
    assert_eq!(all["refused"][0]["name"], "broken", "{}", all["refused"]);
    let broken = all["findings"].as_array().unwrap().iter().find(|one| one["severity"] == "error").unwrap();
    assert_eq!((&broken["line"], &broken["column"]), (&json!(2), &json!(14)), "{broken}");

    let long = out(&place.run(&["rules", "list", "--verbose"]));
    assert!(
        long.contains("no-unwrap  active\n  `unwrap()` in Rust code\n  watches tool(*.rs); action interrupt (always)"),
        "{long}"
    );
}

#[test]
fn check_shows_what_is_wrong_at_its_place() {
    let place = Place::new();
    place.write("good/no-unwrap.md", UNWRAP);
    place.write("good/README.md", "What these rules are for.\n");
    let good = place.run(&["rules", "check", "good", "--deny-warnings"]);
    assert_eq!(
        (code(&good), out(&good).as_str()),
        (0, "1 file with 1 rule and 2 examples checked: 0 errors, 0 warnings\n")
    );

    let wrong =
        "+++\ncondition = 'guess.*'\nscope = [\"text\", \"tool:nowhere\"]\n+++\nB.\n\n## Fires\n```text\nno\n```\n";
    place.write("wrong.md", wrong);
    let output = place.run(&["rules", "check", "wrong.md"]);
    let expected = "\
warning: rule `wrong`: no tool `nowhere` is offered here: the tools are read_file, write_file, edit_file, list_dir, find, grep, shell
 --> wrong.md:3:24
  |
3 | scope = [\"text\", \"tool:nowhere\"]
  |                        ^^^^^^^

warning: rule `wrong`: `guess.*` has no longest match: text waits for it up to `hold_max_bytes` (4096) or `hold_max_ms` (1500), and is shown then
 --> wrong.md:2:14
  |
2 | condition = 'guess.*'
  |              ^^^^^^^
  |
  = help: give repetitions a bound, such as `.{0,80}` in place of `.*`

error: rule `wrong`: it does not fire on its own example (text)
 --> wrong.md:9:1
  |
9 | no
  | ^^
  |
  = help: `tidegate rules test wrong.md …` tells why

1 file with 1 rule and 1 example checked: 1 error, 2 warnings
";
    assert_eq!((code(&output), out(&output).as_str()), (1, expected));

    // Warnings alone are no failure, unless they are to be.
    place.write("name/ts-as-any.md", "+++\ncondition = 'x*'\nscope = \"tool\"\n+++\nB.\n");
    let checked = place.json(&["rules", "check", "name/ts-as-any.md", "--json"]);
    assert_eq!((&checked["errors"], &checked["warnings"]), (&json!(0), &json!(2)), "{checked}");
    let messages: Vec<&str> =
        checked["findings"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    assert!(
        messages[0].contains("matches the empty text") && messages[1].contains("a rule of the same name"),
        "{messages:?}"
    );
    assert_eq!(checked["findings"][0]["rule"], "ts-as-any");
    assert_eq!(code(&place.run(&["rules", "check", "name"])), 0);
    assert_eq!(code(&place.run(&["rules", "check", "name", "--deny-warnings"])), 1);
}

#[test]
fn check_reads_standard_input_manifests_and_says_what_it_cannot_read() {
    let place = Place::new();
    let broken = "+++\ncondition = ['a', '(b)\\1']\n+++\nB.\n";
    let output = place.run_with(&["rules", "check", "-"], broken);
    assert_eq!(code(&output), 1);
    assert!(out(&output).contains("stdin.md:2:"), "{}", out(&output));

    let rule =
        |name: &str| format!("[[rule]]\nname = \"{name}\"\ncondition = '.*'\nscope = \"thinking\"\nbody = \"B.\"\n");
    let manifest = "id = \"p\"\nversion = \"0.1.0\"\napi = \"0.1\"\ndescription = \"Rules.\"\n";
    place.write("p/plugin.toml", &format!("{manifest}{}{}", rule("first"), rule("second")));
    let checked = place.json(&["rules", "check", "p", "--json"]);
    assert_eq!(checked["rules"], json!(["first", "second"]));
    let lines: Vec<&Value> = checked["findings"].as_array().unwrap().iter().map(|one| &one["line"]).collect();
    assert_eq!(lines, [7, 12, 7, 12], "{checked}");

    place.write("one/same.md", UNWRAP);
    place.write("two/same.mdc", UNWRAP);
    let same = out(&place.run(&["rules", "check", "one", "two"]));
    assert!(same.contains("the name is taken by `one/same.md`"), "{same}");

    place.write("empty/notes.txt", "");
    let output = place.run(&["rules", "check", "gone.md", "empty", "one", "--json"]);
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((code(&output), checked["files"].clone()), (2, json!(1)));
    let unreadable: Vec<&str> =
        checked["unreadable"].as_array().unwrap().iter().map(|one| one["file"].as_str().unwrap()).collect();
    assert_eq!(unreadable, ["gone.md", "empty"]);
    std::fs::write(place.path("binary.md"), b"+++\n\xff").unwrap();
    assert!(out(&place.run(&["rules", "check", "binary.md"])).contains("not UTF-8"));
}

#[test]
fn the_built_in_pack_has_nothing_wrong() {
    let root = repository();
    let place = Place::new();
    let folder = root.join("rules/builtin").display().to_string();
    let workspace = root.display().to_string();
    let output = place.run(&["rules", "check", &folder, "--workspace", &workspace, "--config", "none.toml"]);
    assert_eq!(code(&output), 2, "a file that is not there is no reason to go on");
    place.write("none.toml", "[rules]\nproject_rules = false\n");
    let output = place.run(&["rules", "check", &folder, "--workspace", &workspace, "--config", "none.toml"]);
    assert_eq!(code(&output), 0, "{}", out(&output));
    assert!(!out(&output).contains(" 0 rules"), "{}", out(&output));
}

#[test]
fn test_says_where_a_rule_fires_and_what_is_done() {
    let place = Place::with(&[("no-unwrap", UNWRAP), ("no-ai", AN_AI)]);
    let call = ["--tool", "write_file", "--arg", "path=src/a.rs", "--arg", "content=fn f() {\n    x.unwrap()\n}"];
    let output = place.run(&[&["rules", "test", "no-unwrap"][..], &call, &["--verbose"]].concat());
    let expected = "\
no-unwrap fires on tool:write_file
  found     \".unwrap()\"
  where     line 2, bytes 14..23 of `content`, file src/a.rs
  pattern   \\.unwrap\\(\\)
  action    interrupt
  the model is told:
    <system-interrupt reason=\"rule_violation\" rule=\"no-unwrap\" path=\"src/a.rs\">
";
    assert!(out(&output).starts_with(expected) && code(&output) == 0, "{}", out(&output));
    assert!(out(&output).contains("    Use `?`.\n"), "{}", out(&output));
    assert_eq!(code(&place.run(&[&["rules", "test", "no-unwrap", "--expect-none"][..], &call].concat())), 1);

    let tried = place.json(&["rules", "test", "no-ai", "--text", "Sorry: as an AI language model I know.", "--json"]);
    let trial = &tried["trials"][0];
    assert_eq!(
        trial["match"],
        json!({"stream": "text", "pattern": "(?i)\\bas an AI(?: language model)?\\b", "text": "as an AI", "start": 7, "end": 15, "line": 1})
    );
    assert_eq!((&trial["same_however_cut"], &trial["action"]), (&json!(true), &json!("interrupt")), "{trial}");
    // The blank that decides `\b` has come with it.
    assert_eq!(trial["held"], json!({"most_bytes": 8, "at_byte": 15, "when_fired_bytes": 9, "released_bytes": 0}));

    // A file that is read, words from standard input, arguments in JSON, a rule file that the host does not have.
    place.write("src/b.rs", "fn f() { x.unwrap() }\n");
    let written = place.json(&["rules", "test", "no-unwrap", "--file", "src/b.rs", "--json"]);
    let streams: Vec<&Value> = written["trials"].as_array().unwrap().iter().map(|trial| &trial["stream"]).collect();
    assert_eq!(
        (written["fired"].clone(), streams),
        (json!(true), vec![&json!("tool:write_file"), &json!("tool:edit_file")])
    );
    place.write("elsewhere/new.md", AN_AI);
    assert_eq!(code(&place.run_with(&["rules", "test", "elsewhere/new.md", "--text", "-"], "as an AI.")), 0);
    let arguments = r#"{"path": "a.rs", "content": "x\u002eunwrap()"}"#;
    assert_eq!(code(&place.run(&["rules", "test", "no-unwrap", "--tool", "write", "--json-args", arguments])), 0);
}

#[test]
fn test_says_why_a_rule_does_not_fire() {
    let rules = [
        ("scoped", "condition = 'x'\nscope = [\"thinking\", \"tool:shell\"]"),
        ("globbed", "condition = 'x'\nscope = \"tool:write(*.ts)\""),
        ("fielded", "condition = 'xyz'\nfield = \"content\"\nscope = \"tool\""),
        ("agents", "condition = 'x'\nagents = \"review*\""),
        ("off", "condition = 'x'\nenabled = false"),
        ("unless", "condition = 'x'\nunless = 'ok'"),
        ("both", "condition = 'x'\nall = ['one', 'two']"),
        ("nothing", "condition = ['nowhere', 'never']"),
        ("apart", "all = ['one', 'two']\nscope = \"tool\""),
    ];
    let rules: Vec<(&str, String)> =
        rules.iter().map(|(name, keys)| (*name, format!("+++\n{keys}\n+++\nB.\n"))).collect();
    let place = Place::with(&rules.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>());
    let call = |text| ["--tool", "write_file", "--arg", "path=a.rs", "--arg", text];
    for (rule, input, why) in [
        ("scoped", &["--text", "x"][..], "`text` is not in its scope: `thinking`, `tool:shell`"),
        ("globbed", &call("content=x"), "the call names no file that it asks for: `*.ts`"),
        ("fielded", &call("other=xyz"), "it matches in `other`, and `field` asks for `content`"),
        ("agents", &["--text", "x"], "it watches the agents `review*`, and this is `main`"),
        ("off", &["--text", "x"], "it is disabled: the rule says `enabled = false`"),
        ("unless", &["--text", "ok: x"], "`unless` matched first: `ok` at line 1, bytes 0..2"),
        ("both", &["--text", "x and two"], "1 of 2 `all` match; these do not: `one`"),
        ("nothing", &["--text", "x"], "no condition matches: `nowhere`, `never`"),
        ("apart", &call("content=one two")[..4], "these do not"),
    ] {
        let output = place.run(&[&["rules", "test", rule], input].concat());
        assert!(code(&output) == 1 && out(&output).contains(why), "{rule}: {}{}", out(&output), err(&output));
        assert_eq!(code(&place.run(&[&["rules", "test", rule, "--expect-none"], input].concat())), 0, "{rule}");
    }
    let apart = ["rules", "test", "apart", "--tool", "t", "--arg", "a=one", "--arg", "b=two"];
    assert!(out(&place.run(&apart)).contains("not in one argument"));
    let off = out(&place.run(&["rules", "test", "off", "--text", "an x"]));
    assert!(off.contains("else it would fire") && off.contains("bytes 3..4"), "{off}");
    let reviewer = place.run(&["rules", "test", "agents", "--text", "x", "--agent", "reviewer"]);
    assert_eq!(code(&reviewer), 0, "{}", out(&reviewer));
}

#[test]
fn wrong_use_is_refused_with_what_to_do() {
    let place = Place::with(&[("no-unwrap", UNWRAP)]);
    for (arguments, said) in [
        (&["rules", "test", "no-unwrp", "--text", "x"][..], "did you mean `no-unwrap`?"),
        (&["rules", "explain", "zzz"], "`tidegate rules list` shows the names"),
        (&["rules", "explain", "gone/rule.md"], "cannot read the rule file"),
        (&["rules", "test", "no-unwrap"], "--text"),
        (&["rules", "test", "no-unwrap", "--text", "x", "--tool", "t"], "cannot be used with"),
        (&["rules", "test", "no-unwrap", "--tool", "t", "--arg", "x"], "is no KEY=VALUE"),
        (&["rules", "test", "no-unwrap", "--tool", "t", "--json-args", "[]"], "a JSON object"),
        (&["rules", "test", "no-unwrap", "--file", "gone"], "cannot read"),
        (&["rules", "check", "-", "-"], "`-` once only"),
        (&["rules", "replay", "gone.jsonl"], "gone.jsonl: cannot be read"),
    ] {
        let output = place.run(arguments);
        assert!(code(&output) == 2 && err(&output).contains(said), "{arguments:?}: {}", err(&output));
    }
}

#[test]
fn explain_tells_everything_about_a_rule() {
    let tricky = "+++\ncondition = '^(?!.*ok)(?=.*two)one.{0,5}x'\nscope = [\"text\", \"write\"]\ninterrupt = \"prose-only\"\n+++\nB.\n";
    let place = Place::with(&[("no-unwrap", UNWRAP), ("ts-as-any", tricky)]);
    let text = out(&place.run(&["rules", "explain", "no-unwrap"]));
    for part in [
        "no-unwrap  active",
        "from           project, .tidegate/rules/no-unwrap.md",
        "condition      \\.unwrap\\(\\)  (at most 9 bytes)",
        "watches        tool(*.rs)  (read_file, write_file, edit_file",
        "fields         content, new_text",
        "interrupt      always  (setting `interrupt_mode`)",
        "fires on \"x.unwrap()\" (tool:write_file path=src/a.rs content): holds",
        "does not fire on \"x.unwrap()\" (tool:write_file path=a.py content): holds",
        "    Found in a call of write_file, argument content, file src/a.rs, line 1: .unwrap()",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let all = place.json(&["rules", "explain", "ts-as-any", "--json"]);
    let roles: Vec<&str> = all["parts"].as_array().unwrap().iter().map(|part| part["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["condition", "all", "unless"], "{all}");
    assert_eq!(all["shadows"], json!([{"layer": "builtin", "path": "rules/builtin/ts-as-any.md"}]));
    assert_eq!(all["scopes"][1], json!({"scope": "tool:write", "tools": ["write_file"], "empty": false}));
    let value = |key: &str| all["values"].as_array().unwrap().iter().find(|value| value["key"] == key).unwrap().clone();
    assert_eq!(value("interrupt"), json!({"key": "interrupt", "value": "prose-only", "setting": null}));
    assert_eq!(value("repeat"), json!({"key": "repeat", "value": "once", "setting": "repeat_mode"}));
    assert_eq!(all["told"], json!({"kind": "body", "text": "B."}));
}

/// What `replay` says of each rule: how many of now and then go together how.
fn agreement(report: &Value, rule: &str) -> Value {
    let rules = report["rules"].as_array().unwrap();
    rules.iter().find(|tally| tally["rule"] == rule).map_or(Value::Null, |tally| tally["agreement"].clone())
}

/// The records of answers as they are without a list of blocks.
fn without_blocks(transcript: &str) -> String {
    let records = transcript.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["payload"].as_object_mut().unwrap().remove("blocks");
        format!("{record}\n")
    });
    records.collect()
}

#[test]
fn a_transcript_agrees_with_the_rules_it_was_made_with() {
    let place = Place::with(&[("no-unwrap", UNWRAP), ("no-ai", AN_AI)]);
    let demo = repository().join("tests/demo");
    // The demo's answers, without what the requests must hold: its plugins are not loaded.
    let answers = std::fs::read_to_string(demo.join("recorded.jsonl")).unwrap();
    let answers = answers.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line.as_object_mut().unwrap().remove("expect");
        format!("{line}\n")
    });
    place.write("demo.jsonl", &answers.collect::<String>());
    place.write("src/main.rs", &std::fs::read_to_string(demo.join("workspace/src/main.rs")).unwrap());
    place.write(
        "tidegate.toml",
        "[provider]\nkind = \"recording\"\nrecording = \"demo.jsonl\"\n[tools.permission]\nedit_file = \"allow\"\n",
    );
    let run = place.run(&["run", "Take the port from PORT.", "What is left?", "--output", "stream-json"]);
    std::fs::write(place.path("t.jsonl"), &run.stdout).unwrap();

    let output = place.run(&["rules", "replay", "t.jsonl", "--fail-on", "disagreement"]);
    let text = out(&output);
    assert!(code(&output) == 0 && text.contains("now agrees with then"), "{text}{}", err(&output));
    assert!(text.contains("1 file, 2 turns, 6 attempts: 2 matches, 2 interrupts, ~"), "{text}");
    assert!(text.contains("turn 1 step 2 attempt 2  interrupt, same, ~"), "{text}");
    assert!(text.contains("tool:edit_file `new_text` line 1 byte 41: \".unwrap()\""), "{text}");
    let report = place.json(&["rules", "replay", "t.jsonl", "--json"]);
    assert_eq!(agreement(&report, "no-unwrap"), json!({"same": 1}));
    assert_eq!(agreement(&report, "no-ai"), json!({"same": 1}));

    // A transcript that does not list blocks: what a stopped call held is not known, and no difference.
    let text = std::fs::read_to_string(place.path("t.jsonl")).unwrap();
    place.write("old.jsonl", &without_blocks(&text));
    let output = place.run(&["rules", "replay", "old.jsonl", "--json", "--fail-on", "disagreement"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let both = (agreement(&report, "no-ai"), agreement(&report, "no-unwrap"));
    assert_eq!((code(&output), both), (0, (json!({"same": 1}), json!({"not_recorded": 1}))), "{report:#}");

    // A new rule over the old session, and what happens without the old ones.
    place.write("new/no-token.md", "+++\ncondition = 'ghp_\\w{36}'\nscope = \"text\"\n+++\nNo tokens.\n");
    let new = ["rules", "replay", "t.jsonl", "--rule", "new/no-token.md", "--json"];
    let report = place.json(&new);
    assert_eq!((agreement(&report, "no-token"), agreement(&report, "no-ai")), (json!({"only_now": 1}), Value::Null));
    let fire = &report["fires"][0];
    assert_eq!((&fire["turn"], &fire["step"], &fire["action"]), (&json!(1), &json!(3), &json!("interrupt")));
    // Of 227 bytes and 96 tokens.
    assert_eq!(
        (&fire["tokens_estimated"], fire["tokens_discarded"].as_u64().is_some_and(|tokens| tokens > 10)),
        (&json!(true), true)
    );
    for (what, expected) in [("never", 0), ("fire", 1), ("interrupt", 1), ("disagreement", 1)] {
        assert_eq!(code(&place.run(&[&new[..5], &["--fail-on", what]].concat())), expected, "{what}");
    }
    std::fs::remove_file(place.path(".tidegate/rules/no-ai.md")).unwrap();
    let report = place.json(&["rules", "replay", "t.jsonl", "--json"]);
    assert_eq!(agreement(&report, "no-ai"), json!({"only_then": 1}));
    assert_eq!(report["then"][0]["agreement"], "only_then");

    // The recording itself: it was never cut, so what stops an answer does so only now.
    let report = place.json(&["rules", "replay", "demo.jsonl", "--json"]);
    assert_eq!(agreement(&report, "no-unwrap"), json!({"only_now": 1}));
}

#[test]
fn every_kind_of_action_agrees_with_its_own_transcript() {
    let rule = |keys: &str| format!("+++\n{keys}\n+++\nB.\n");
    let rules = [
        ("prose", rule("condition = 'PROSE'\nscope = \"text\"\ninterrupt = \"never\"")),
        ("think", rule("condition = 'THINK'\nscope = \"thinking\"")),
        ("tool", rule("condition = 'TOOL'\nscope = \"tool\"\naction = \"remind\"")),
        ("block", rule("condition = 'BLOCK'\nscope = \"tool\"\naction = \"block\"")),
        ("end", rule("condition = '(?m)END$'\nscope = \"text\"")),
        ("gap", rule("condition = 'GAP'\nscope = \"text\"\nrepeat = \"after-gap\"\ngap = 2")),
        ("always", rule("condition = 'AGAIN'\nscope = \"text\"\nrepeat = \"always\"")),
        ("stop", rule("condition = 'STOP'\nscope = \"text\"\naction = \"stop\"")),
    ];
    let place = Place::with(&rules.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>());
    let answers: &[&[Say<'_>]] = &[
        // The first turn: reminders, a block, siblings, and a match at the end of a block.
        &[
            Say::Text("some PROSE here"),
            Say::Write("a", "a TOOL"),
            Say::Write("b", "b TOOL"),
            Say::Write("c", "a BLOCK"),
        ],
        &[Say::Thinking("I THINK so"), Say::Text("never seen")],
        &[Say::Text("one"), Say::Thinking("and"), Say::Text("to the END")],
        &[Say::Text("PROSE again, GAP")],
        &[Say::Text("all is well")],
        // The second: the gap has not passed; three interrupts spend the budget.
        &[Say::Text("GAP and AGAIN, more")],
        &[Say::Text("GAP and AGAIN, more")],
        &[Say::Text("GAP and AGAIN, more")],
        &[Say::Text("GAP and AGAIN, more")],
        // The third: the gap has passed, and then it ends.
        &[Say::Text("GAP once more")],
        &[Say::Text("and STOP it")],
    ];
    for context in ["discard", "keep", "rewind"] {
        let settings = format!("context_mode = \"{context}\"");
        let transcript = place.transcript(&settings, answers, &["one", "two", "three"]);
        let report = place.json(&["rules", "replay", transcript, "--json"]);
        for tally in report["rules"].as_array().unwrap() {
            let kinds: Vec<&String> = tally["agreement"].as_object().unwrap().keys().collect();
            assert_eq!(kinds, ["same"], "{context}: {tally}, {}", report["then"]);
        }
        let fires: usize = report["fires"].as_array().unwrap().len();
        assert!(fires >= 11 && agreement(&report, "always") == json!({"same": 4}), "{context}: {report:#}");
        for rule in ["prose", "think", "tool", "block", "end", "gap", "stop"] {
            assert!(agreement(&report, rule)["same"].as_u64() >= Some(1), "{context}, {rule}: {report:#}");
        }
        let passed = report["rules"].as_array().unwrap().iter().find(|tally| tally["rule"] == "always").unwrap();
        assert_eq!((&passed["interrupts"], &passed["passes"]), (&json!(3), &json!(1)), "{context}");
    }
}

#[test]
fn a_reminder_that_was_never_delivered_is_none() {
    let place =
        Place::with(&[("prose", "+++\ncondition = 'WORD'\nscope = \"text\"\ninterrupt = \"never\"\n+++\nB.\n")]);
    let (mut seq, mut lines) = (0, String::new());
    let mut record = |kind: &str, at: (u32, u32, u32), payload: Value| {
        let (turn, step, attempt) = at;
        let record = json!({"seq": seq, "ts": 0, "thread_id": "t", "turn": turn, "step": step, "attempt": attempt, "type": kind, "payload": payload});
        lines.push_str(&format!("{record}\n"));
        seq += 1;
    };
    record("turn_start", (1, 0, 0), json!({}));
    // An answer of an extension's own, which no rule watches; it has no attempt.
    record("cognition_out", (1, 1, 0), json!({"text": "WORD", "is_partial": false}));
    for (attempt, partial) in [(1, true), (2, true), (2, false)] {
        let place = (1, 2, attempt);
        let evidence = json!({"end": 4});
        record(
            "rule_fired",
            place,
            json!({"rule": "prose", "stream": "text", "action": "remind", "evidence": evidence}),
        );
        let blocks = json!([{"stream": "text", "bytes": 4, "complete": !partial}]);
        record("cognition_out", place, json!({"text": "WORD", "is_partial": partial, "blocks": blocks}));
    }
    record("turn_finish", (1, 2, 2), json!({"status": "completed"}));
    place.write("t.jsonl", &lines);
    let report = place.json(&["rules", "replay", "t.jsonl", "--json"]);
    assert_eq!((agreement(&report, "prose"), report["attempts"].clone()), (json!({"same": 3}), json!(3)), "{report:#}");
}

#[test]
fn repeat_limits_count_unless_every_match_is_asked_for() {
    let place = Place::new();
    let answers: &[&[Say<'_>]] = &[&[Say::Text("a WORD")], &[Say::Text("a WORD")], &[Say::Text("a WORD, a WORD")]];
    let transcript = place.transcript("", answers, &["one", "two", "three"]);
    place.write("once.md", "+++\ncondition = 'WORD'\nscope = \"text\"\n+++\nB.\n");
    place.write("gap.md", "+++\ncondition = 'WORD'\nscope = \"text\"\nrepeat = \"after-gap\"\ngap = 2\n+++\nB.\n");
    let fires = |more: &[&str]| {
        let report = place.json(&[&["rules", "replay", transcript, "--json"], more].concat());
        report["fires"].as_array().unwrap().iter().map(|fire| fire["turn"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(fires(&["--rule", "once.md"]), [1]);
    assert_eq!(fires(&["--rule", "gap.md"]), [1, 3]);
    assert_eq!(fires(&["--rule", "once.md", "--every"]), [1, 2, 3]);
    assert_eq!(fires(&["--rule", "once.md", "--every", "--rule", "gap.md"]), [1, 1, 2, 2, 3, 3]);
    place.write("book.md", "+++\ndescription = \"d\"\n+++\nB.\n");
    let book = err(&place.run(&["rules", "replay", transcript, "--rule", "book.md"]));
    assert!(book.contains("rule `book` has no condition") && book.contains("no rule takes part"), "{book}");
    let both = place.run(&["rules", "replay", transcript, "--every", "--fail-on", "disagreement"]);
    assert!(code(&both) == 2 && err(&both).contains("--every compares nothing"));
}

#[test]
fn a_recording_of_a_stopped_answer_agrees_where_it_was_cut() {
    let place = Place::with(&[("no-ai", AN_AI)]);
    let whole = recording(&[&[Say::Text("Well, as an AI I cannot know.")], &[Say::Text("It is 42.")]]);
    // As it is recorded live: our side drops the answer at the chunk that completes the match.
    let mut cut = String::new();
    let mut after = false;
    for line in whole.lines() {
        if !after || line.contains("\"request\"") {
            after = false;
            cut.push_str(line);
            cut.push('\n');
        }
        // The blank that follows the match tells that a word has ended.
        if line.contains("\"I \\\"") || line.contains("\\\"AI \\\"") {
            after = true;
            cut.push_str("{\"end\":\"cut\"}\n");
        }
    }
    place.write("cut.jsonl", &cut);
    let report = place.json(&["rules", "replay", "cut.jsonl", "--json"]);
    assert_eq!(agreement(&report, "no-ai"), json!({"same": 1}), "{report:#}\n{cut}");
    assert_eq!((&report["turns"], &report["attempts"]), (&json!(1), &json!(2)));
    place.write("whole.jsonl", &whole);
    assert_eq!(agreement(&place.json(&["rules", "replay", "whole.jsonl", "--json"]), "no-ai"), json!({"only_now": 1}));
    std::fs::remove_file(place.path(".tidegate/rules/no-ai.md")).unwrap();
    let output = place.run(&["rules", "replay", "cut.jsonl", "--fail-on", "disagreement"]);
    assert!(code(&output) == 1 && out(&output).contains("(cut short)"), "{}", out(&output));
}

#[test]
fn nothing_in_a_file_is_passed_over_in_silence() {
    let place = Place::with(&[("no-ai", AN_AI)]);
    let transcript = place.transcript("", &[&[Say::Text("well, as an AI")], &[Say::Text("fine")]], &["one"]);
    let text = std::fs::read_to_string(place.path(transcript)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let replay = |name: &str, text: &str| {
        place.write(name, text);
        place.run(&["rules", "replay", name])
    };
    for (name, text, said) in [
        ("bad.jsonl", format!("{}\nno json\n{}\n", lines[0], lines[1]), "bad.jsonl, line 2: is no JSON"),
        (
            "part.jsonl",
            format!("{}\n{{\"type\": \"turn_start\"}}\n", lines[0]),
            "part.jsonl, line 2: is no record: `thread_id`",
        ),
        ("other.jsonl", "{\"a\": 1}\n".to_owned(), "other.jsonl, line 1: begins neither"),
        ("empty.jsonl", "\n".to_owned(), "empty.jsonl: is empty"),
        ("rec.jsonl", recording(&[&[Say::Text("x")]]).replace("\"request\"", "\"reqest\""), "rec.jsonl, line 2:"),
    ] {
        let output = replay(name, &text);
        assert!(code(&output) == 2 && err(&output).contains(said), "{name}: {}", err(&output));
    }
    let torn = replay("torn.jsonl", &text[..text.len() - 10]);
    assert!(
        code(&torn) == 0 && err(&torn).contains(&format!("torn.jsonl, line {}: is cut off", lines.len())),
        "{}",
        err(&torn)
    );
    let gap = replay("gap.jsonl", &[&lines[..2], &lines[3..]].concat().join("\n"));
    assert!(err(&gap).contains("what is between is not there"), "{}", err(&gap));
    let odd = replay(
        "odd.jsonl",
        &text
            .replace("\"type\":\"notice\"", "\"type\":\"odd\"")
            .replace("\"type\":\"thread_started\"", "\"type\":\"odd\""),
    );
    assert!(err(&odd).contains("1 records of the unknown type `odd`"), "{}", err(&odd));

    // Two threads in one file have nothing in common.
    let thread = serde_json::from_str::<Value>(lines[0]).unwrap()["thread_id"].as_str().unwrap().to_owned();
    let mixed: String = lines.iter().map(|line| format!("{line}\n{}\n", line.replace(&thread, "other"))).collect();
    place.write("mixed.jsonl", &mixed);
    let report = place.json(&["rules", "replay", "mixed.jsonl", "--json"]);
    assert_eq!((agreement(&report, "no-ai"), report["turns"].clone()), (json!({"same": 2}), json!(2)), "{report:#}");
}
