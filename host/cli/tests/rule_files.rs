//! `tidegate rules` on rule files as people write them: hundreds of another host, guards that can never fire, and what conditions cost.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{Place, code, err, out};

#[test]
fn hundreds_of_files_of_another_host_and_a_long_condition_are_a_few_lines() {
    let theirs = "---\ntitle: T\nversion: 1\ndescription: d\nglobs: src/**\nalwaysApply: false\n---\nBody.\n";
    let long = format!("+++\ncondition = '({}'\n+++\nB.\n", "word|".repeat(5_400));
    let names: Vec<String> = (0..257).map(|at| format!("r{at:03}")).collect();
    let mut rules: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), theirs)).collect();
    rules.push(("long", &long));
    let place = Place::with(&rules);
    let listed = place.run(&["rules", "list"]);
    let printed = err(&listed);
    assert!(
        printed.contains(
            "warning[rule-unknown-key]: 514 of this kind (`tidegate rules check --verbose` prints all), the first: rule `r000`"
        ),
        "{printed}"
    );
    assert!(
        printed.lines().count() < 20 && printed.len() < 3_000,
        "{} lines, {} bytes: {printed}",
        printed.lines().count(),
        printed.len()
    );
    // Without a file all folders of the host are checked, and each finding is reported.
    let short = out(&place.run(&["rules", "check"]));
    assert!(short.contains("513 more `rule-unknown-key` warnings in ") && short.lines().count() < 40, "{short}");
    let checked = place.run(&["rules", "check", "--verbose"]);
    assert_eq!(code(&checked), 1, "{}", err(&checked));
    assert_eq!(out(&checked).matches("warning[rule-unknown-key]").count(), 514);
    assert!(out(&checked).lines().all(|line| line.len() < 400), "a line of a condition is cut");
}

#[test]
fn a_scope_with_a_command_in_brackets_can_never_fire() {
    let place = Place::with(&[
        ("guard", "---\ncondition: zz\nscope: shell(rm *)\naction: block\nrepeat: always\n---\nB.\n"),
        ("dead", "---\ncondition: 'a^b'\nscope: text\n---\nB.\n"),
    ]);
    let listed = place.json(&["rules", "list", "--json"]);
    let guard = listed["rules"].as_array().unwrap().iter().find(|rule| rule["name"] == "guard").unwrap();
    assert_eq!(guard["state"], "unreachable");
    assert_eq!(listed["refused"][0]["name"], "dead");
    let checked = place.run(&["rules", "check", ".tidegate/rules"]);
    assert_eq!(code(&checked), 1);
    let printed = out(&checked);
    for part in [
        "error[rule-unreachable]: rule `guard`: it can never fire: `tool:shell(rm *)` asks for a file, and calls of `shell` name none",
        "write `scope = \"tool:shell\"`, `field = \"commands\"` and `condition = '(?m)^rm[ ]'`",
        "error[rule-invalid-condition]: rule `dead`: condition `a^b` can never match",
    ] {
        assert!(printed.contains(part), "{part:?} is not in {printed}");
    }
    let doctor = out(&place.run(&["doctor"]));
    assert!(doctor.contains("fail rule guard: can never fire"), "{doctor}");
}

#[test]
fn check_names_what_a_condition_could_show() {
    let rule =
        |group: &str| format!("+++\ncondition = '[a-z_]{{0,20}}key = {group}[0-9]{{9}})'\nsecret = true\n+++\nB.\n");
    let place = Place::with(&[("whole", &rule("(")), ("part", &rule("(?P<hide>"))]);
    let findings = place.json(&["rules", "check", ".tidegate/rules", "--json"])["findings"].clone();
    let [one] = findings.as_array().unwrap().as_slice() else { panic!("{findings}") };
    assert_eq!((one["code"].as_str(), one["rule"].as_str()), (Some("rule-hides-more"), Some("whole")), "{one}");
}

#[test]
fn check_and_list_name_the_rule_that_makes_matching_slow() {
    let rule = |condition: &str| format!("+++\ncondition = '{condition}'\nscope = 'text'\n+++\nB.\n");
    let place = Place::with(&[
        ("fast", &rule(r"(?i)[\w.-]{0,50}?(?:service)[ \w.-]{0,20}=[a-z0-9]{32}")),
        ("slow", &rule("[a-d ][^q]{0,90}[e-h][^z]{20,60}zqx")),
    ]);
    let findings = place.json(&["rules", "check", ".tidegate/rules", "--json"])["findings"].clone();
    let [one] = findings.as_array().unwrap().as_slice() else { panic!("{findings}") };
    assert_eq!((one["code"].as_str(), one["line"].as_u64()), (Some("rule-slow"), Some(2)), "{one}");
    assert!(one["message"].as_str().unwrap().contains("% of the work of 2 rules is for this one"), "{one}");
    let listed = place.json(&["rules", "list", "--json"]);
    let slow =
        listed["rules"].as_array().unwrap().iter().filter(|rule| !rule["findings"].as_array().unwrap().is_empty());
    assert_eq!(slow.map(|rule| rule["name"].as_str().unwrap()).collect::<Vec<_>>(), ["slow"], "{listed}");
}
