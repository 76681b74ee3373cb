//! What `tidegate rules` and `doctor` say of many rules, of rules without a condition and of rules about commands.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Place, UNWRAP, code, err, out};

/// The lines of an output that contain a word.
fn lines<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.contains(word)).collect()
}

#[test]
fn list_counts_what_is_active_among_all_that_was_written() {
    let place = Place::with(&[
        ("no-unwrap", UNWRAP),
        ("broken", "+++\ncondition = '(open'\n+++\nB.\n"),
        ("typed", "+++\ncondition = 'x'\nscope = 'tool:shell'\nfield = 'comand'\n+++\nB.\n"),
    ]);
    place.write("tidegate.toml", "[rules]\nbuiltin_rules = false\n");
    let said = out(&place.run(&["--config", "tidegate.toml", "rules", "list"]));
    let last = said.lines().last().unwrap();
    assert!(last.contains(" rules, 1 active, 1 refused; "), "{said}");
    let row = said.lines().find(|line| line.starts_with("typed ")).unwrap();
    assert!(row.contains("unreachable"), "{said}");
    assert!(said.contains("`comand` is no argument of `shell`"), "{said}");
    let doctor = out(&place.run(&["--config", "tidegate.toml", "doctor"]));
    let line = doctor.lines().find(|line| line.contains("rule typed: ")).unwrap();
    assert_eq!(line.matches("can never fire").count(), 1, "{line}");
}

#[test]
fn explain_says_where_the_text_of_a_rule_is_read() {
    let place = Place::with(&[
        ("book", "+++\ndescription = 'How we name things'\n+++\nShort names.\n"),
        ("always", "Plain words.\n"),
        ("stream", "+++\ncondition = 'x'\n+++\nNo x.\n"),
    ]);
    for (rule, head, kind) in [
        ("book", "text that the model reads with `read_rule`; ", "on_demand"),
        ("always", "text in the system prompt:\n", "prompt"),
        ("stream", "reminder, after the evidence:\n", "body"),
    ] {
        let said = out(&place.run(&["rules", "explain", rule]));
        assert!(said.contains(head), "{rule}: {said}");
        assert_eq!(place.json(&["rules", "explain", rule, "--json"])["told"]["kind"], kind);
    }
}

#[test]
fn test_prints_the_list_of_commands() {
    let front = "condition = '(?m)^rm[ ]'\nscope = 'tool:shell'\nfield = 'commands'";
    let place =
        Place::with(&[("no-rm", &format!("+++\n{front}\n+++\nNo.\n")), ("plain", "+++\ncondition = 'rm'\n+++\nNo.\n")]);
    let call = ["--tool", "shell", "--arg", "command=cd a && sudo 'rm' x"];
    let said = out(&place.run(&[&["rules", "test", "no-rm"][..], &call].concat()));
    let list = "  commands in `command`, as its conditions see them:\n    cd a\n    sudo rm x\n    rm x\n";
    assert!(said.contains(list), "{said}");
    let tried = place.json(&[&["rules", "test", "no-rm", "--json"][..], &call].concat());
    assert_eq!(tried["trials"][0]["commands"][0]["list"], "cd a\nsudo rm x\nrm x\n", "{tried}");
    assert!(!out(&place.run(&[&["rules", "test", "plain"][..], &call].concat())).contains("commands in"));
}

#[test]
fn check_recommends_fold_for_guards_in_one_line() {
    let guard = |word: &str| format!("+++\ncondition = '{word}'\nscope = 'text'\n+++\nNo.\n");
    let place = Place::with(&[
        ("a", &guard("forbidden")),
        ("reminds", "+++\ncondition = 'forbidden'\nscope = 'text'\ninterrupt = 'never'\n+++\nNo.\n"),
        ("folded", "+++\ncondition = 'forbidden'\nscope = 'text'\nfold = ['invisible', 'width']\n+++\nNo.\n"),
        ("digits", &guard("[0-9]{16}")),
        ("commands", "+++\ncondition = '(?m)^forbid[ ]'\nscope = 'tool:shell'\nfield = 'commands'\n+++\nNo.\n"),
        ("code", "+++\ncondition = 'unwrap'\nscope = 'tool(*.rs)'\n+++\nNo.\n"),
    ]);
    let said = out(&place.run(&["rules", "check", "--deny-warnings"]));
    let found = lines(&said, "fold");
    assert_eq!(found.len(), 1, "{said}");
    assert!(found[0].starts_with("1 rule stops what it finds without `fold` (`a`): "), "{said}");
    for name in ["b", "c", "d", "e"] {
        place.write(&format!(".tidegate/rules/{name}.md"), &guard("forbidden"));
    }
    let checked = place.run(&["rules", "check", "--deny-warnings"]);
    let found = out(&checked);
    assert!(found.contains("5 rules stop what they find without `fold` (`a`, `b`, `c` and 2 more): "), "{found}");
    // It is advice, and no warning.
    assert_eq!(code(&checked), 0, "{found}");
    assert_eq!(place.json(&["rules", "check", "--json"])["unfolded"].as_array().unwrap().len(), 5);
}

#[test]
fn the_doctor_has_a_line_for_each_kind_and_not_for_each_rule() {
    let place = Place::with(&[]);
    for at in 0..120 {
        let front = if at < 60 { "unknown: x\ncondition: zz" } else { "condition: zz\nscope: tool:nowhere" };
        place.write(&format!(".tidegate/rules/r{at}.md"), &format!("---\n{front}\n---\nNo.\n"));
    }
    let doctor = place.run(&["doctor"]);
    let said = out(&doctor);
    let about_rules: Vec<&str> = said.lines().filter(|line| line.contains("rule")).collect();
    assert!(about_rules.len() < 12, "{said}");
    for part in [
        "60 of this kind (`tidegate rules check --verbose` prints all), the first: rule `r0`: unknown key `unknown` is ignored",
        "60 without a problem; `tidegate rules list` lists them",
        "60 of this kind (`tidegate rules list` lists all), the first: rule r100: ",
    ] {
        assert!(said.contains(part), "{part}\n{said}{}", err(&doctor));
    }
}

#[test]
fn a_typing_error_in_one_rule_of_a_manifest_costs_that_rule_alone() {
    let place = Place::with(&[]);
    let manifest = |second: &str| {
        format!(
            "id = 'guard'\nversion = '0.1.0'\napi = '0.1'\ndescription = 'd'\n\n\
             [[rule]]\nname = 'one'\ncondition = 'aaa'\nbody = 'No.'\n\n\
             [[rule]]\nname = 'two'\nconditon = 'bbb'\nbody = 'No.'\n{second}\n\
             [[rule]]\nname = 'three'\ncondition = '(open'\nbody = 'No.'\n\n\
             [[rule]]\nname = 'four'\ncondition = 'ddd'\nrepeat = 7\nbody = 'No.'\n\n\
             [[rule]]\nname = 'five'\ncondition = 'eee'\nbody = 'No.'\n"
        )
    };
    place.write("guard/plugin.toml", &manifest(""));
    let said = out(&place.run(&["rules", "check", "guard/plugin.toml"]));
    for part in ["unknown key `conditon`", "did you mean `condition`?", "unclosed group", "`repeat` must be"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains("1 file with 2 rules"), "{said}");
    place.write("tidegate.toml", "[[plugin]]\npath = 'guard'\n");
    let listed = place.run(&["--config", "tidegate.toml", "rules", "list"]);
    let table = out(&listed);
    for (name, state) in
        [("one", "active"), ("five", "active"), ("two", "refused"), ("three", "refused"), ("four", "refused")]
    {
        let row: Vec<&str> =
            table.lines().find(|line| line.split(' ').next() == Some(name)).unwrap().split_whitespace().collect();
        assert_eq!(row[1], state, "{table}{}", err(&listed));
    }
    assert_eq!(
        place.json(&["--config", "tidegate.toml", "rules", "list", "--json"])["unmet"].as_array().unwrap().len(),
        0
    );
    // One that is required is not left out in silence: the host does not run.
    place.write("guard/plugin.toml", &manifest("required = true\n"));
    let unmet = place.json(&["--config", "tidegate.toml", "rules", "list", "--json"]);
    assert_eq!(unmet["unmet"][0]["rule"], "two", "{unmet}");
}

#[test]
fn a_misspelt_folder_of_rules_is_reported_with_its_right_name() {
    let place = Place::with(&[]);
    place.write(".tidegate/rule/a.md", UNWRAP);
    place.write(".tidegate/rules.md", UNWRAP);
    let said = out(&place.run(&["doctor"]));
    assert_eq!(lines(&said, "is not read; it has an effect as").len(), 2, "{said}");
    assert!(said.contains(".tidegate/rules/NAME.md`"), "{said}");
}

#[test]
fn test_names_arguments_that_the_tool_lacks() {
    let place = Place::with(&[("no-rm", "+++\ncondition = 'rm'\nscope = 'tool'\n+++\nNo.\n")]);
    let test = |more: &[&str]| place.run(&[&["rules", "test", "no-rm"][..], more].concat());
    for (call, wrong) in [
        (&["--tool", "shell", "--arg", "comand=rm x"][..], "`shell` has no argument `comand`; did you mean `command`?"),
        (
            &["--tool", "write_file", "--arg", "path=a", "--arg", "content=rm", "--arg", "zz=1"],
            "has no argument `zz`; its",
        ),
        (
            &["--tool", "bash", "--json-args", r#"{"command":"rm","x":1,"y":[{"z":2}]}"#],
            "has no arguments `x`, `y[].z`;",
        ),
    ] {
        let output = test(call);
        assert!(err(&output).contains(wrong), "{}", err(&output));
        assert_eq!(code(&output), 0, "it is tested anyway");
    }
    for call in [
        &["--tool", "shell", "--arg", "command=rm x"][..],
        &["--tool", "of-another-host", "--arg", "zz=rm"],
        &["--text", "rm"],
    ] {
        assert!(!err(&test(call)).contains("has no argument"), "{call:?}");
    }
    let json = place.json(&["rules", "test", "no-rm", "--json", "--tool", "shell", "--arg", "comand=rm"]);
    assert_eq!(json["unknown_arguments"], serde_json::json!(["comand"]));
}

#[test]
fn check_names_examples_of_calls_that_there_are_not() {
    let rule = |front: &str, fence: &str| {
        format!("+++\ncondition = 'rm'\n{front}\n+++\nNo.\n\n## Does not fire\n```{fence}\nls\n```\n")
    };
    for (front, fence, wrong) in [
        ("scope = 'tool'", "tool:shell comand", Some("`shell` has no argument `comand`; did you mean `command`?")),
        ("scope = 'tool'", "tool:shel command", Some("there is no tool `shel` here; did you mean `shell`?")),
        ("scope = 'tool'", "tool:bash command", None),
        // Those that the rule names are of another host.
        ("scope = 'tool:theirs'", "tool:theirs text", None),
        ("scope = 'tool:edit'\nfield = ['new_text', 'new_string']", "tool:edit path=a new_string", None),
    ] {
        let place = Place::with(&[("no-rm", &rule(front, fence))]);
        let said = out(&place.run(&["rules", "check"]));
        assert_eq!(said.contains("is of no call in this host"), wrong.is_some(), "{fence}: {said}");
        assert!(said.contains(wrong.unwrap_or_default()), "{fence}: {said}");
    }
}

#[test]
fn check_prints_one_of_many_warnings_of_a_kind() {
    let names: Vec<String> = (0..20).map(|number| format!("secret-{number:02}")).collect();
    let rule = "+++\ncondition = 'key-[0-9]+[a-z]+'\nsecret = true\n+++\nNo.\n";
    let wrong = "+++\ncondition = '('\n+++\nNo.\n";
    let mut rules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), rule)).collect();
    rules.extend((0..5).map(|number| (["e0", "e1", "e2", "e3", "e4"][number], wrong)));
    let place = Place::with(&rules);
    let said = out(&place.run(&["rules", "check"]));
    assert_eq!(lines(&said, "warning[rule-unbounded-match]").len(), 1, "{said}");
    let more = &lines(&said, "19 more `rule-unbounded-match` warnings in ")[..];
    assert!(more.len() == 1 && more[0].ends_with("secret-03.md and 16 more; `--verbose` prints them"), "{said}");
    assert!(said.contains("\nsecret-00, secret-01, secret-02 and 17 more: stops the answer at every match"), "{said}");
    // Errors are all there.
    assert_eq!(lines(&said, "error[").len(), 5, "{said}");
    assert!(said.contains("5 errors, 20 warnings"), "{said}");
    let all = out(&place.run(&["rules", "check", "--verbose"]));
    assert_eq!(lines(&all, "warning[rule-unbounded-match]").len(), 20);
    assert!(all.contains("secret-19: ") || all.contains(", secret-19: "), "{all}");
    let json = place.json(&["rules", "check", "--json"]);
    assert_eq!(json["findings"].as_array().unwrap().len(), 25);
}

#[test]
fn words_for_streams_that_are_no_scopes_are_explained() {
    for (scope, help) in [
        ("reasoning", "the model's reasoning is the scope `thinking`"),
        ("assistant", "the text of an answer is the scope `text`"),
        ("all", "all streams are `[\"text\", \"thinking\", \"tool\"]`"),
        ("shel", "did you mean `shell`?"),
    ] {
        let place = Place::with(&[("no-x", &format!("+++\ncondition = 'x'\nscope = '{scope}'\n+++\nNo.\n"))]);
        let said = out(&place.run(&["rules", "check"]));
        assert!(said.contains(help), "{scope}: {said}");
    }
}
