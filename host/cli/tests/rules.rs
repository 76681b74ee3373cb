//! `tidegate rules list`, `check`, `test` and `explain`, as an operator, an author and a build server meet them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::support::{AN_AI, Place, UNWRAP, code, err, out, repository};

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
        ("gapped", "+++\ncondition = 'as any'\nrepeat = \"after-gap\"\ngap = 3\n+++\nB.\n"),
        ("ts-as-any", "+++\ncondition = 'as any'\n+++\nB.\n"),
    ]);
    let output = place.run(&["rules", "list"]);
    let rows: Vec<Vec<String>> =
        out(&output).lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect();
    let row = |name: &str| rows.iter().find(|row| row.first().is_some_and(|first| first == name)).unwrap().join(" ");
    assert_eq!(rows[0].join(" "), "RULE STATE ACTION REPEATS LONGEST FROM WATCHES");
    assert_eq!(row("no-unwrap"), "no-unwrap active interrupt once 9 B project tool(*.rs)");
    assert_eq!(row("gapped"), "gapped active interrupt after 3 turns 6 B project text, tool");
    assert_eq!(row("broken"), "broken refused");
    assert_eq!(row("book"), "book active - - - project (in the rulebook)");
    for (name, state) in [("idle", "idle"), ("off", "disabled"), ("files", "unreachable")] {
        assert!(row(name).starts_with(&format!("{name} {state} ")), "{}", row(name));
    }
    let text = out(&output);
    for part in
        ["idle: idle: it watches the tool nowhere", "off: disabled: the rule says", "ts-as-any: shadowed: built-in"]
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
            "promise": "stops the answer at the first match of a session; later matches are let through, and reported; after 3 \
                        interrupts of a turn matches are let through, and reported",
            "required": false, "secret": false, "fold": [],
            "conditions": 1, "all": 0, "unless": 0, "longest_match": 9, "examples": 2, "findings": [],
        })
    );
    assert_eq!((rule("book")["bucket"].clone(), rule("book")["action"].clone()), (json!("rulebook"), json!(null)));
    assert_eq!(rule("files")["findings"][0]["severity"], "error");
    assert_eq!(all["refused"][0]["name"], "broken", "{}", all["refused"]);
    let broken = all["findings"].as_array().unwrap().iter().find(|one| one["severity"] == "error").unwrap();
    assert_eq!((&broken["line"], &broken["column"]), (&json!(2), &json!(14)), "{broken}");
    assert_eq!((&broken["code"], &broken["rule"]), (&json!("rule-invalid-condition"), &json!("broken")), "{broken}");
    let label = &broken["labels"][0];
    assert_eq!((&label["line"], &label["start"], &label["end"]), (&json!(2), &json!(17), &json!(18)), "{broken}");
    let codes: BTreeSet<&str> =
        all["findings"].as_array().unwrap().iter().map(|one| one["code"].as_str().unwrap()).collect();
    let expected = ["rule-idle", "rule-invalid-condition", "rule-shadowed", "rule-unreachable"];
    assert_eq!(Vec::from_iter(codes), expected);

    assert!(text.contains("REPEATS: once: acts on the first match of a session and reports the others"), "{text}");
    let long = out(&place.run(&["rules", "list", "--verbose"]));
    assert!(
        long.contains("no-unwrap  active\n  `unwrap()` in Rust code\n  watches tool(*.rs); action interrupt (always)"),
        "{long}"
    );
}

#[test]
fn a_rule_is_known_by_its_name_whatever_characters_it_has() {
    let name = "rule `a` (b): c";
    let place =
        Place::with(&[(name, "+++\ncondition = '(open'\n+++\nB.\n"), ("other", "+++\ncondition = '('\n+++\nB.\n")]);
    let all = place.json(&["rules", "list", "--json"]);
    let refused: Vec<&str> =
        all["refused"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(refused, ["other", name]);
    let file = format!(".tidegate/rules/{name}.md");
    let checked = place.json(&["rules", "check", &file, "--json"]);
    for finding in checked["findings"].as_array().unwrap() {
        assert_eq!((&finding["rule"], &finding["file"]), (&json!(name), &json!(file)), "{checked}");
    }
    assert_eq!(checked["errors"], 1);
    // Of a rule that can be used, too.
    place.write(&file, "+++\ncondition = 'x'\nscope = 'tool:nowhere'\n+++\nB.\n");
    let all = place.json(&["rules", "list", "--json"]);
    let warned = all["findings"].as_array().unwrap().iter().find(|one| one["code"] == "rule-idle").unwrap();
    assert_eq!((&warned["rule"], &warned["line"]), (&json!(name), &json!(3)), "{warned}");
}

#[test]
fn settings_that_leave_a_rule_out_or_name_none_are_reported() {
    let place = Place::with(&[("no-unwrap", UNWRAP)]);
    place.write("tidegate.toml", "[rules]\ndisabled_rules = ['no-unwrap', 'gone']\n");
    let all = place.json(&["rules", "list", "--json"]);
    assert_eq!(all["findings"][0]["code"], "config-unknown-rule", "{all}");
    let checked = place.json(&["rules", "check", ".tidegate/rules", "--json"]);
    assert_eq!(checked["findings"][0]["code"], "rule-disabled", "{checked}");
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
    place.write("good/no-print.txt", UNWRAP);
    place.write("good/more/no-todo.md", UNWRAP);
    let near = place.run(&["rules", "check", "good"]);
    let said = out(&near);
    assert!(said.contains("`no-print.txt` in `good` looks like a rule but is not read"), "{said}");
    assert!(said.contains("2 files with 2 rules") && said.contains("0 errors, 1 warning\n"), "{said}");
    assert_eq!(code(&near), 0);

    std::fs::remove_dir_all(place.path("good/more")).unwrap();
    std::fs::remove_file(place.path("good/no-print.txt")).unwrap();
    let twice = place.run(&["rules", "check", "good/no-unwrap.md", "good", "./good/no-unwrap.md"]);
    assert!(out(&twice).starts_with("1 file with 1 rule") && code(&twice) == 0, "{}", out(&twice));
    let outside = Place::with(&[("mine", UNWRAP)]);
    std::fs::create_dir_all(place.path(".tidegate/rules")).unwrap();
    let link = place.path(".tidegate/rules/mine.md");
    std::os::unix::fs::symlink(outside.path(".tidegate/rules/mine.md"), &link).unwrap();
    for named in [".tidegate/rules", ".tidegate/rules/mine.md"] {
        let output = place.run(&["rules", "check", named]);
        let said = out(&output);
        assert!(said.contains("error[rule-file-outside]") && code(&output) == 1, "{named}: {said}");
    }
    let absolute = place.path(".tidegate/rules/mine.md");
    let dotted = place.path("good/../.tidegate/rules");
    for named in [absolute, dotted] {
        let output = place.run(&["rules", "check", named.to_str().unwrap()]);
        assert!(out(&output).contains("error[rule-file-outside]"), "{named:?}: {}", out(&output));
    }
    std::fs::remove_file(link).unwrap();
    // The folder itself.
    std::fs::remove_dir(place.path(".tidegate/rules")).unwrap();
    std::os::unix::fs::symlink(outside.path(".tidegate/rules"), place.path(".tidegate/rules")).unwrap();
    let folder = place.run(&["rules", "check", ".tidegate/rules"]);
    assert!(out(&folder).contains("error[rule-file-outside]"), "{}", out(&folder));
    std::fs::remove_file(place.path(".tidegate/rules")).unwrap();

    let wrong =
        "+++\ncondition = 'guess.*'\nscope = [\"text\", \"tool:nowhere\"]\n+++\nB.\n\n## Fires\n```text\nno\n```\n";
    place.write("wrong.md", wrong);
    let output = place.run(&["rules", "check", "wrong.md"]);
    let expected = "\
warning[rule-unknown-tool]: rule `wrong`: no tool `nowhere` is offered here: the tools are read_file, write_file, edit_file, list_dir, find, grep, shell, plan
 --> wrong.md:3:24
  |
3 | scope = [\"text\", \"tool:nowhere\"]
  |                        ^^^^^^^

warning[rule-unbounded-match]: rule `wrong`: `guess.*` has no longest match: text is held back up to `hold_max_bytes` (4096) or `hold_max_ms` (1500), and is shown then
 --> wrong.md:2:14
  |
2 | condition = 'guess.*'
  |              ^^^^^^^
  |
  = help: give repetitions a bound, such as `.{0,80}` in place of `.*`

error[rule-example-failed]: rule `wrong`: does not fire on its own example (text): no
 --> wrong.md:9:1
  |
9 | no
  | ^^
  |
  = help: `tidegate rules test wrong.md …` shows why

1 rule stops what it finds without `fold` (`wrong`): a word with a zero-width space or a full-width letter in it passes. `fold = [\"invisible\", \"width\", \"compose\"]` closes that, with `\"case\"` where letter case does not matter
1 file with 1 rule and 1 example checked: 1 error, 2 warnings
";
    assert_eq!((code(&output), out(&output).as_str()), (1, expected));

    // Warnings alone are not a failure, unless they are denied.
    place.write("name/ts-as-any.md", "+++\ncondition = 'x*'\nscope = \"tool\"\n+++\nB.\n");
    let checked = place.json(&["rules", "check", "name/ts-as-any.md", "--json"]);
    assert_eq!((&checked["errors"], &checked["warnings"]), (&json!(0), &json!(2)), "{checked}");
    let messages: Vec<&str> =
        checked["findings"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    assert!(
        messages[0].contains("matches the empty string") && messages[1].contains("a rule of the same name"),
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
    assert!(same.contains("`one/same.md` has a rule of the same name"), "{same}");

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
  reminder:
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
        (&["rules", "explain", "zzz"], "`tidegate rules list` prints the names"),
        (&["rules", "explain", "gone/rule.md"], "cannot read the rule file"),
        (&["rules", "test", "no-unwrap"], "--text"),
        (&["rules", "test", "no-unwrap", "--text", "x", "--tool", "t"], "cannot be used with"),
        (&["rules", "test", "no-unwrap", "--tool", "t", "--arg", "x"], "is not KEY=VALUE"),
        (&["rules", "test", "no-unwrap", "--tool", "t", "--json-args", "[]"], "a JSON object"),
        (&["rules", "test", "no-unwrap", "--file", "gone"], "cannot read"),
        (&["rules", "check", "-", "-"], "`-` once only"),
        (&["rules", "replay", "gone.jsonl"], "gone.jsonl: cannot be read"),
        (&["rules", "replay", ".tidegate"], ".tidegate: is a folder: name the files in it"),
        (&["rules", "check", "gone.md"], "error[rule-file-unreadable]: cannot read `gone.md`"),
    ] {
        let output = place.run(arguments);
        assert!(code(&output) == 2 && err(&output).contains(said), "{arguments:?}: {}", err(&output));
    }
}

#[test]
fn a_refused_rule_is_not_taken_for_one_that_does_not_exist() {
    let place = Place::with(&[("guard", "+++\ncondition = '(open'\n+++\nB.\n")]);
    for arguments in [&["rules", "explain", "guard"][..], &["rules", "test", "guard", "--text", "x"]] {
        let output = place.run(arguments);
        assert_eq!(code(&output), 2);
        for part in ["the rule `guard` is refused", "error[rule-invalid-condition]", "guard.md:2:14", "unclosed group"]
        {
            assert!(err(&output).contains(part), "{part:?} is not in {}", err(&output));
        }
    }
    let gone = place.run(&["rules", "check", "gone.md", "--json"]);
    let read: Value = serde_json::from_str(&out(&gone)).unwrap();
    assert_eq!(read["unreadable"][0]["code"], "rule-file-unreadable", "{read}");
}

#[test]
fn list_tells_that_the_host_does_not_run_without_what_is_required() {
    let off = "+++\ncondition = 'x'\nenabled = false\nrequired = true\n+++\nB.\n";
    let place = Place::with(&[("guard", off)]);
    let output = place.run(&["rules", "list"]);
    for part in ["error[rule-required]: rule `guard`", "the host does not run: 1 required rule is not in force"] {
        assert!(err(&output).contains(part), "{part:?} is not in {}", err(&output));
    }
    let all = place.json(&["rules", "list", "--json"]);
    assert_eq!((&all["unmet"][0]["code"], &all["unmet"][0]["rule"]), (&json!("rule-required"), &json!("guard")));
}

#[test]
fn a_misspelt_scope_is_named_at_its_place() {
    let place = Place::with(&[("typo", "+++\ncondition = 'x'\nscope = ['txt']\n+++\nB.\n")]);
    let found = place.json(&["rules", "check", ".tidegate/rules/typo.md", "--json"])["findings"][0].clone();
    assert_eq!((&found["code"], &found["help"]), (&json!("rule-idle"), &json!("did you mean `text`?")), "{found}");
    assert_eq!((&found["line"], &found["column"]), (&json!(3), &json!(11)), "{found}");
}

#[test]
fn a_tool_that_does_not_exist_is_named_and_tried_all_the_same() {
    let place = Place::with(&[("no-unwrap", UNWRAP)]);
    let call = ["rules", "test", "no-unwrap", "--arg", "path=a.rs", "--arg", "content=x.unwrap()", "--tool"];
    let output = place.run(&[&call[..], &["wrte_file"]].concat());
    assert!(err(&output).contains("there is no tool `wrte_file` here; did you mean `write_file`?"), "{}", err(&output));
    assert!(out(&output).contains("no-unwrap fires on tool:wrte_file") && code(&output) == 0, "{}", out(&output));
    let tried = place.json(&[&call[..], &["zzz", "--json"]].concat());
    assert!(tried["unknown_tool"].as_str().unwrap().contains("the tools are read_file, write_file"), "{tried}");
    // Rule files of other hosts have names of their own for ours.
    for known in ["write", "Write_File"] {
        let output = place.run(&[&call[..], &[known]].concat());
        assert!(!err(&output).contains("no tool"), "{}", err(&output));
    }
}

#[test]
fn required_rules_and_promises_are_told() {
    let guard = "+++\ncondition = 'x'\nscope = 'tool'\naction = 'block'\nrepeat = 'always'\nrequired = true\nsecret = true\n+++\nB.\n";
    let place = Place::with(&[("guard", guard)]);
    let text = out(&place.run(&["rules", "explain", "guard"]));
    for part in [
        "  required       the host does not run without it",
        "  promises       blocks the call of every match",
        "  secret         every match is acted on, and none is let through",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let long = out(&place.run(&["rules", "list", "--verbose"]));
    assert!(long.contains("guard.md; required: the host does not run without it"), "{long}");
    let tried = place.json(&["rules", "test", "guard", "--tool", "shell", "--arg", "command=x", "--json"]);
    assert_eq!(tried["trials"][0]["match"]["text"], "[hidden]", "{tried}");
}

#[test]
fn check_points_at_an_agent_that_is_not_here_and_at_a_fence_without_a_stream() {
    let front = |keys: &str| format!("+++\ncondition = 'x'\nscope = 'text'\n{keys}\n+++\nB.\n");
    let place = Place::with(&[
        ("agent", &front("agents = ['sub-*', 'mian']")),
        ("fence", &format!("{}\n## Fires\n```txt\nx\n```\n", front("repeat = 'once'"))),
        ("gap", &front("gap = 3")),
    ]);
    let findings = place.json(&["rules", "check", ".tidegate/rules", "--json"])["findings"].clone();
    let found = |at: usize| {
        let one = &findings[at];
        json!([one["code"], one["line"], one["column"], one["help"]])
    };
    assert_eq!(found(0), json!(["rule-idle", 4, 21, "did you mean `main`?"]), "{findings}");
    let fence = "write `text`, `thinking`, or for example `tool:edit_file path=src/a.rs new_text` after the backticks";
    assert_eq!(found(1), json!(["rule-invalid-example", 9, 1, fence]), "{findings}");
    let gap = "set `repeat` to `after-gap`, or remove the key";
    assert_eq!(found(2), json!(["rule-key-without-effect", 4, 1, gap]), "{findings}");
    assert_eq!(findings.as_array().unwrap().len(), 3, "{findings}");
    place.write("tidegate.toml", "[rules]\nrepeat_mode = 'after-gap'\n");
    let findings = place.json(&["rules", "check", ".tidegate/rules/gap.md", "--json"])["findings"].clone();
    assert_eq!(findings, json!([]), "the setting uses the gap");
}

#[test]
fn check_names_the_command_for_an_operators_file() {
    let place = Place::new();
    place.write("tidegate.toml", "[tools]\n\n[rules]\nmax_interrupts_per_turn = 0\n");
    let output = place.run(&["rules", "check", "tidegate.toml"]);
    let text = out(&output);
    assert!(
        text.contains("error[rule-file-ignored]: `tidegate.toml` is the operator's file and contains no rules"),
        "{text}"
    );
    assert!(text.contains("tidegate.toml:1:1") && text.contains("`tidegate doctor --config tidegate.toml`"), "{text}");
    assert!(text.contains(": 1 error, 0 warnings") && code(&output) == 1, "{text}");

    for text in ["[tools]\n", "", "id = 'a'\n", "[broken\n"] {
        place.write("named/tidegate.toml", text);
        let text = out(&place.run(&["rules", "check", "named/tidegate.toml"]));
        assert!(text.contains("is the operator's file"), "the name decides: {text}");
    }
    place.write("mine.toml", "[tools]\n[provider]\n");
    let text = out(&place.run(&["rules", "check", "mine.toml"]));
    assert!(text.contains("is the operator's file") && text.contains("mine.toml:2:2"), "{text}");
    place.write("plugin.toml", "[provider]\nkind = 'openai'\n");
    let text = out(&place.run(&["rules", "check", "plugin.toml"]));
    assert!(!text.contains("operator's file") && text.contains("`provider`"), "a manifest's name decides: {text}");
}

#[test]
fn a_block_of_text_promises_no_more_than_an_interrupt() {
    let guard = |more: &str| {
        format!("+++\ncondition = 'x'\nscope = 'text'\naction = 'block'\nrepeat = 'always'\n{more}+++\nB.\n")
    };
    let place = Place::with(&[("guard", &guard("")), ("never", &guard("interrupt = 'never'\n"))]);
    let text = out(&place.run(&["rules", "explain", "guard"]));
    for part in [
        "  action         interrupt: `block` applies to tool calls, and the rule watches none  (set by the rule)",
        "  max_interrupts 3 a turn  (setting `max_interrupts_per_turn`)",
        "  promises       stops the answer at every match; after 3 interrupts of a turn matches are let through, and reported",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let long = out(&place.run(&["rules", "list", "--verbose"]));
    assert!(long.contains("action remind; repeats always\n  reminds the model of every match"), "{long}");
}

#[test]
fn explain_tells_everything_about_a_rule() {
    let tricky = "+++\ncondition = '^(?!.*ok)(?=.*two)one.{0,5}x'\nscope = [\"text\", \"write\"]\ninterrupt = \"prose-only\"\n+++\nB.\n";
    let place = Place::with(&[("no-unwrap", UNWRAP), ("tricky", tricky), ("ts-as-any", tricky)]);
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
    // What comes with a workspace replaces no rule.
    let own = place.json(&["rules", "explain", "ts-as-any", "--json"]);
    assert_eq!(own["shadows"], json!([{"layer": "project", "path": ".tidegate/rules/ts-as-any.md"}]), "{own}");
    assert_eq!(own["source"]["layer"], "builtin", "{own}");
    let all = place.json(&["rules", "explain", "tricky", "--json"]);
    let roles: Vec<&str> = all["parts"].as_array().unwrap().iter().map(|part| part["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["condition", "all", "unless"], "{all}");
    assert_eq!(all["shadows"], json!([]));
    assert_eq!(all["scopes"][1], json!({"scope": "tool:write", "tools": ["write_file"], "empty": false}));
    let value = |key: &str| all["values"].as_array().unwrap().iter().find(|value| value["key"] == key).unwrap().clone();
    assert_eq!(value("interrupt"), json!({"key": "interrupt", "value": "prose-only", "setting": null}));
    assert_eq!(value("repeat"), json!({"key": "repeat", "value": "once", "setting": "repeat_mode"}));
    assert_eq!(all["told"], json!({"kind": "body", "text": "B."}));
}
